"""``hookline fire`` that a signal ends: no hook goes on without it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_project import command_hook, settings_of
from tests.support.journals import wait_until
from tests.support.processes import (
    STUBBORN,
    WORKER,
    children,
    marked,
    none_left,
    until,
)
from tests.support.serving import WAIT_S

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)
FIRE = (sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool", "--tool", "x")
STATUS = {
    signal.SIGKILL: -signal.SIGKILL,
    signal.SIGTERM: -signal.SIGTERM,
    signal.SIGHUP: -signal.SIGHUP,
    signal.SIGINT: 130,
}


class Fire:
    """``hookline fire`` with one hook, and the mark of what it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"FIRE_TEST={folder}"

    def start(self, hook: dict[str, object], *prefix: str) -> subprocess.Popen[bytes]:
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
        return subprocess.Popen(
            [*prefix, *FIRE, "--settings", str(settings)],
            cwd=self.folder,
            env={**os.environ, "FIRE_TEST": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def started(self) -> None:
        await until(str(self.folder / "started"))


@pytest.fixture
def fire(tmp_path: Path) -> Fire:
    return Fire(tmp_path)


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_signal_ends_the_hook_too(
    fire: Fire, text: str, number: signal.Signals
) -> None:
    with fire.start(command_hook(text)) as running:
        await fire.started()
        running.send_signal(number)
        assert running.wait() == STATUS[number]
    assert await none_left(fire.mark)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
async def test_hook_is_gone_before_the_command_is(
    fire: Fire, number: signal.Signals
) -> None:
    with fire.start(command_hook(STUBBORN["ignores SIGTERM"])) as running:
        await fire.started()
        running.send_signal(number)
    assert marked(fire.mark) == []


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
async def test_signal_ends_a_hanging_worker_too(
    fire: Fire, number: signal.Signals
) -> None:
    fire.folder.joinpath("worker.py").write_text(WORKER)
    hook: dict[str, object] = {
        "type": "worker",
        "command": f"{sys.executable} worker.py",
    }
    with fire.start(hook) as running:
        await fire.started()
        running.send_signal(number)
        assert running.wait() == STATUS[number]
    assert await none_left(fire.mark)


SECOND = [(signal.SIGINT, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize(("first", "second"), SECOND)
async def test_second_signal_leaves_nothing_either(
    fire: Fire, first: signal.Signals, second: signal.Signals
) -> None:
    with fire.start(command_hook(STUBBORN["has deaf children"])) as running:
        await fire.started()
        running.send_signal(first)
        running.send_signal(second)
        assert running.wait() in {130, -signal.SIGTERM, -signal.SIGINT}
    assert await none_left(fire.mark)


async def test_signal_in_the_grace_after_a_timeout_ends_what_is_left(
    fire: Fire,
) -> None:
    text = "trap 'touch gone' TERM; touch started; while :; do sleep 1; done"
    with fire.start(command_hook(text, timeout=300)) as running:
        await until(str(fire.folder / "gone"))
        running.send_signal(signal.SIGTERM)
        assert running.wait() == -signal.SIGTERM
    assert marked(fire.mark) == []


async def test_nohup_keeps_its_meaning(fire: Fire) -> None:
    """A host started with SIGHUP ignored goes on, and so does its hook."""
    text = "touch started; until test -e go; do sleep 0.02; done; exit 2"
    with fire.start(command_hook(text), "nohup") as running:
        await fire.started()
        running.send_signal(signal.SIGHUP)
        fire.folder.joinpath("go").touch()
        assert running.wait() == 2


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
async def test_first_process_of_a_container_ends_too(fire: Fire) -> None:
    """Its signals have no default action; a killed hook must not count as allowed."""
    space = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
    with fire.start(command_hook(STUBBORN["sleeps"]), *space) as running:
        try:
            await until(str(fire.folder / "started"), 10)
        except AssertionError:
            pytest.skip("may not make a namespace")
        first = next(iter(children(running.pid)))
        os.kill(first, signal.SIGTERM)
        assert running.wait() == 128 + signal.SIGTERM
    assert await none_left(fire.mark)


def test_ctrl_c_kills_the_hooks_and_exits_quietly(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(settings_of(command_hook("touch up; sleep 60"))))
    with subprocess.Popen(
        [*FIRE, "--settings", str(settings)], cwd=tmp_path, stderr=subprocess.PIPE
    ) as running:
        wait_until((tmp_path / "up").exists)
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=WAIT_S)
    assert running.returncode == 130
    assert b"Traceback" not in complaints
