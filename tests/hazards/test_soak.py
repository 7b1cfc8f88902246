"""The soak in its short form: seconds instead of minutes, the same demands.

Random faults of hooks, too few descriptors, and random settings and outputs: those are
read without a crash, and a block is never lost.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from soak.faults import FAULTS

ROOT = Path(__file__).parents[2]
SECONDS, EXAMPLES = 4, 1900


def test_no_wrong_verdict_and_no_leak_under_random_faults(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = f"--seconds {SECONDS} --seed 20 --examples {EXAMPLES} --report {report}"
    done = subprocess.run(
        [sys.executable, "-m", "soak", *words.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stderr
    outcome = json.loads(report.read_text())
    assert outcome["wrong"] == []
    assert outcome["leaked"] == []
    assert done.returncode == 0
    assert outcome["fires"] > len(FAULTS)
    assert outcome["faults"]["descriptors exhausted"] > 20
    assert outcome["fuzzed"]["examples"] >= EXAMPLES
