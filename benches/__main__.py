"""Run the benchmarks: ``python -m benches [--rounds N] [--only GROUP] [--plots]``.

Prints a table with the bar of each figure and what got slower since the last report.
Writes the same as JSON, with versions and machine, to ``docs/benchmarks/report.json``;
``--plots`` draws ``docs/benchmarks/*.svg`` as well.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from . import memory, plot, processes
from .floor import Floors
from .measure import Figure

PLOTS = Path(__file__).parents[1] / "docs" / "benchmarks"
ROUNDS = 200
SLOWER = 1.15
"""Ratios of two runs on one machine differ by less than that, most of the time."""
_UNITS = {
    "ratio": "",
    "us": " us",
    "added_us": " us more",
    "speedup": " times faster",
}
GROUPS = {
    "processes": "processes",
    "inprocess": "inprocess",
    "rules": "rules",
    "cedar": "cedar",
    "http": "services",
    "workers": "workers",
    "standby": "standby",
    "startup": "startup",
    "bridge": "bridge",
    "adapters": "adapters",
    "clients": "clients",
    "telemetry": "telemetry",
}
"""The module of each group; not every environment has what all of them need."""


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="hookline-bench-") as folder, Floors() as f:
        print(_heading())
        figures = asyncio.run(_measure(options, f, Path(folder)))
        used = memory.figures(Path(folder)) if not options.only else []
        for case in used:
            print(_memory_row(case))
        if options.plots:
            asyncio.run(_draw(f, Path(folder), options.rounds))
    missed = [figure.name for figure in figures if figure.held is False]
    print(f"bars missed: {', '.join(missed)}" if missed else "all bars held")
    for line in slower_than(_last_report(options.output), figures):
        print(line)
    if not options.only:
        _write(options.output, figures, used)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--plots", action="store_true")
    parser.add_argument("--output", type=Path, default=PLOTS / "report.json")
    return parser.parse_args()


async def _measure(
    options: argparse.Namespace, floors: Floors, folder: Path
) -> list[Figure]:
    chosen = [options.only] if options.only else list(GROUPS)
    found = []
    for group in chosen:
        module = importlib.import_module(f"benches.{GROUPS[group]}")
        for figure in await module.figures(floors, folder, options.rounds):
            print(_row(figure), flush=True)
            found.append(figure)
    return found


def _heading() -> str:
    names = ("figure", "median", "floor", "ratio", "best", "bar")
    return "{:34} {:>12} {:>12} {:>8} {:>8}  {}".format(*names)


def _row(figure: Figure) -> str:
    times = f"{_time(figure.measured_us):>12} {_time(figure.floor_us):>12}"
    ratios = f"{figure.ratio:8.3f} {figure.best_ratio:8.3f}"
    return f"{figure.name:34} {times} {ratios}  {_bar(figure)}"


def _bar(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    unit = _UNITS[figure.bar_is]
    return f"{figure.bar:g}{unit} {'held' if figure.held else 'MISSED'}"


def _time(us: float) -> str:
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.2f} us"


def _memory_row(case: memory.Memory) -> str:
    allocated = f"{case.allocated_bytes / 1024:.0f} KiB allocated"
    grown = f"process {case.grown_kib} KiB higher"
    return f"{'memory: ' + case.name:34} {allocated}, {grown}"


async def _draw(floors: Floors, folder: Path, rounds: int) -> None:
    PLOTS.mkdir(parents=True, exist_ok=True)
    few = max(7, rounds // 10)
    by_count = await processes.by_count(floors, folder, few)
    by_size = await processes.by_size(floors, folder, few)
    for name, title, across, figures in (
        ("hooks", "One event, hooks at once", "hooks", by_count),
        ("payload", "One event, one hook", "bytes of input", by_size),
    ):
        curves = [
            plot.Curve("Hookline", [(x, f.measured_us / 1000) for x, f in figures]),
            plot.Curve("bare spawn", [(x, f.floor_us / 1000) for x, f in figures]),
        ]
        plot.draw(PLOTS / f"{name}.svg", title, across, curves)


def _last_report(path: Path) -> list[Figure]:
    """The figures of the last report; none where there is no such file."""
    if not path.exists():
        return []
    report = msgspec.json.decode(path.read_bytes())
    return msgspec.convert(report["figures"], list[Figure])


def slower_than(last: list[Figure], figures: list[Figure]) -> list[str]:
    """A line for each figure whose ratio to its floor has grown since the last report.

    The floor is measured in the same run, so a slower machine is no slower figure.
    """
    last_ratios = {figure.name: figure.ratio for figure in last}
    return [
        f"slower: {figure.name}, {figure.ratio:.2f} times its floor, "
        f"{last_ratios[figure.name]:.2f} in the last report"
        for figure in figures
        if figure.ratio > last_ratios.get(figure.name, figure.ratio) * SLOWER
    ]


def _write(path: Path, figures: list[Figure], used: list[memory.Memory]) -> None:
    report = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "versions": {
            "python": platform.python_version(),
            "hookline": version("hookline"),
            "msgspec": version("msgspec"),
        },
        "figures": [msgspec.to_builtins(f) | {"held": f.held} for f in figures],
        "memory": msgspec.to_builtins(used),
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return names[0].strip() if names else platform.processor()


if __name__ == "__main__":
    sys.exit(main())
