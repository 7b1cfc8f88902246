"""How long tests took last time, so that ``make quick`` can leave the slow ones out.

``make quick`` runs what fits into a minute of the tables of ``tests/pins`` and of the
tests of packages that differ from ``main``. In a clone whose tests never ran it goes by
``durations.json``, which ``python -m tests.support.durations --record`` writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

CACHE = "hookline/durations"
QUICK = "QUICK_TESTS"
"""The variable that names the tests of what has changed."""
BUDGET_S = 70.0
"""Of two workers, start-up not counted."""
FAVOUR = 3
"""How much longer than others a test of what has changed may take."""
ROOT = Path(__file__).parent.parent.parent
ROUGH = Path(__file__).with_suffix(".json")
"""Seconds of each test file with four workers on two quiet cores."""
ALWAYS = ("tests/pins", "tests/test_architecture.py")

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):
        cache.set(CACHE, cache.get(CACHE, {}) | _seconds)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if QUICK not in os.environ:
        return
    seconds = config.cache.get(CACHE, {})
    of_files = json.loads(ROUGH.read_text())
    tests_in = Counter(file_of(item.nodeid) for item in items)
    changed = tuple(os.environ[QUICK].split())

    def expected_s(item: pytest.Item) -> float:
        file = file_of(item.nodeid)
        rough_s = of_files.get(file, 0.0) / tests_in[file]
        return float(seconds.get(item.nodeid, rough_s))

    def rank(item: pytest.Item) -> float:
        return expected_s(item) / (FAVOUR if item.nodeid.startswith(changed) else 1)

    left_s = BUDGET_S
    chosen = set()
    for item in sorted(items, key=rank):
        left_s -= expected_s(item)
        if left_s < 0:
            break
        chosen.add(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def changed_files() -> list[str]:
    """The files that differ from ``main``, and those of the last commit without any."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    names = _git("diff", "--name-only", *base)
    names += _git("ls-files", "--others", "--exclude-standard")
    return names or _git("diff", "--name-only", "HEAD~1")


def _git(*words: str) -> list[str]:
    """The lines that git prints: none where it fails, as in a clone without history."""
    command = ("git", "-C", str(ROOT), *words)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def tests_of(files: list[str]) -> Iterator[str]:
    """Test files that changed, and the tests of packages that changed."""
    for name in files:
        parts = Path(name).parts
        if parts[0] == "tests" and parts[-1].startswith("test_"):
            yield name
        elif parts[:2] == ("src", "hookline") and len(parts) > 2:
            package = Path(parts[2]).stem
            yield f"tests/{package}"
            yield f"tests/test_{package}.py"
            yield f"tests/pins/test_{package}.py"


def record() -> int:
    """Write down how long the files took that are slow enough to matter."""
    of_files: Counter[str] = Counter()
    cached = json.loads((ROOT / ".pytest_cache" / "v" / CACHE).read_text())
    for test, seconds in cached.items():
        of_files[file_of(test)] += seconds
    slow = {file: round(of_files[file]) for file in sorted(of_files)}
    there = {file: s for file, s in slow.items() if s and (ROOT / file).exists()}
    ROUGH.write_text(json.dumps(there, indent=1) + "\n")
    return 0


def main() -> int:
    changed = sorted(p for p in {*tests_of(changed_files())} if (ROOT / p).exists())
    paths = [*ALWAYS, *(path for path in changed if not path.startswith(ALWAYS))]
    print(f"quick: {' '.join(paths)}", flush=True)
    os.environ[QUICK] = " ".join(changed)
    return pytest.main(["-n", "2", "-q", *paths, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(record() if "--record" in sys.argv else main())
