"""``python -m soak``: hammer, starve and fuzz, and write a report.

Exit status 0 means no wrong verdict, no leak, and no answer after deadline plus grace
(beside what the machine itself was late).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from .hammer import hammer
from .tally import Tally
from .watch import mark_everything, peak_memory_kib

LATE_MS = 2000
"""How late a loaded machine may wake us up."""

FIRES_PER_SECOND = 8


def main() -> int:
    """Run all parts and report."""
    options = _options()
    logging.getLogger("hookline").setLevel(logging.CRITICAL)
    mark_everything(uuid.uuid4().hex)
    started = time.monotonic()
    tally = Tally()
    asyncio.run(hammer(options.seconds, options.seed, tally))
    exhausted = int(options.seconds * FIRES_PER_SECOND) + 20
    tally.add(_in_a_process("soak.exhaustion", str(exhausted), str(options.seed)))
    report = {
        "seed": options.seed,
        "seconds": round(time.monotonic() - started, 1),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **tally.report(),
        "peak_memory_mib": round(peak_memory_kib() / 1024, 1),
        "fuzzed": _fuzz(options.examples, options.seed),
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.report is not None:
        Path(options.report).write_text(f"{text}\n")
    return _status(report)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--examples", type=int, default=1_000_000, help="of fuzzing")
    parser.add_argument("--report", metavar="FILE")
    return parser.parse_args()


def _in_a_process(module: str, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _fuzz(examples: int, seed: int) -> dict[str, Any]:
    """Fuzz on every core; each has a seed of its own."""
    if examples <= 0:
        return {}
    cores = min(os.cpu_count() or 1, max(1, examples // 1000))
    work = [(examples // cores, seed + core) for core in range(cores)]
    from .fuzzing import fuzz

    if cores == 1:
        parts = [fuzz(*work[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(cores) as pool:
            parts = pool.starmap(fuzz, work)
    return {
        "examples": sum(part["settings"] + part["outputs"] for part in parts),
        "seconds": max(part["seconds"] for part in parts),
    }


def _status(report: dict[str, Any]) -> int:
    late = report["worst_over_deadline_plus_grace_ms"] > LATE_MS
    return 1 if report["wrong_verdicts"] or report["leaks"] or late else 0


if __name__ == "__main__":
    sys.exit(main())
