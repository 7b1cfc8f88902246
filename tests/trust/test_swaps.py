"""Foreign files give no verdict while folders are exchanged."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

import pytest

from tests.support.project import DENY, GUARD, Project

EVIL = "echo foreign; exit 0"


def guarded_in_tools(project: Project, path: str) -> None:
    project.write("tools/guard.sh", DENY)
    project.write("evil/guard.sh", EVIL)
    (project.folder / "current").symlink_to("tools")
    project.settings({**GUARD, "command": f"bash {path}"})
    assert project.trust() == 0


ATTACK = """
import ctypes, os, random, sys, time
renameat2 = ctypes.CDLL(None).renameat2
one, other = map(os.fsencode, sys.argv[1:])
print("ready", flush=True)
while os.getppid() != 1:
    for _ in range(2):
        renameat2(-100, one, -100, other, 2)
        time.sleep(random.random() * 0.003)
    time.sleep(random.random() * 0.01)
"""


@contextmanager
def attacking(places: list[str]) -> Iterator[None]:
    """Exchange two places over and over meanwhile."""
    with Popen([sys.executable, "-c", ATTACK, *places], stdout=PIPE) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        try:
            yield
        finally:
            attacker.kill()


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("tools/guard.sh", "tools", "evil"),
        ("tools/guard.sh", "tools/guard.sh", "evil/guard.sh"),
        ("current/guard.sh", "current", "elsewhere"),
        (".hookline/hooks/guard.sh", ".hookline/hooks", "evil"),
        ("../project/tools/guard.sh", "tools", "evil"),
    ],
)
async def test_no_foreign_verdict_counts_while_folders_are_exchanged(
    project: Project, path: str, one: str, other: str
) -> None:
    """``renameat2`` exchanges both at once: up to 30 % of the runs got through."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("renameat2 is Linux's")
    project.write(".hookline/hooks/guard.sh", DENY)
    guarded_in_tools(project, path)
    (project.folder / "elsewhere").symlink_to("evil")
    places = [str(project.folder / name) for name in (one, other)]
    with attacking(places):
        async with project.system() as hooks:
            for _ in range(150):
                result = await hooks.event_handler.fire_before_tool_event("x", {})
                assert result.blocked, result.aggregated.hook_results
