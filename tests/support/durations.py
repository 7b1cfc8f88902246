"""How long tests took last time, so that ``make quick`` can leave the slow ones out.

``make quick`` runs the tables of ``tests/pins``, the tests of the packages that differ
from the last commit on ``main``, and as many of them as fit into a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

CACHE = "hookline/durations"
QUICK = "HOOKLINE_QUICK"
BUDGET_S = 70.0
"""Of two workers, start-up not counted."""
ROOT = Path(__file__).parent.parent.parent
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
    left = BUDGET_S
    chosen = set()
    for item in sorted(items, key=lambda item: seconds.get(item.nodeid, 0.0)):
        left -= seconds.get(item.nodeid, 0.0)
        if left < 0:
            break
        chosen.add(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def changed_files() -> list[str]:
    """The files that differ from ``main``, and those of the last commit without one."""
    git = ("git", "-C", str(ROOT))
    base = subprocess.run(
        [*git, "merge-base", "HEAD", "main"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    names = _lines(*git, "diff", "--name-only", base or "HEAD")
    names += _lines(*git, "ls-files", "--others", "--exclude-standard")
    if not names and base in {"", head}:
        names = _lines(*git, "diff", "--name-only", "HEAD~1")
    return names


def _lines(*command: str) -> list[str]:
    return subprocess.check_output(command, text=True).splitlines()


def tests_of(files: list[str]) -> Iterator[str]:
    """Test files that changed, and the folders of tests of packages that changed."""
    for name in files:
        parts = Path(name).parts
        if parts[0] == "tests" and parts[-1].startswith("test_"):
            yield name
        elif parts[:2] == ("src", "hookline") and len(parts) > 2:
            yield f"tests/{Path(parts[2]).stem}"
            yield f"tests/test_{Path(parts[2]).stem}.py"


if __name__ == "__main__":
    paths = {*ALWAYS, *tests_of(changed_files())}
    existing = sorted(path for path in paths if (ROOT / path).exists())
    print(f"quick: {' '.join(existing)}", flush=True)
    os.environ[QUICK] = "1"
    sys.exit(pytest.main(["-n", "2", "-q", *existing, *sys.argv[1:]]))
