"""The breaker counts timeouts per hook and tool, and tries again with one event.

Cooldowns of minutes, several processes and damaged files cannot be reached by firing
events, so most tests here ask the breaker itself, with a clock that is set by hand.
What a skipped hook means for its event is in ``tests/pins/engine/failures.json``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline import HookSystem, Settings
from hookline.engine.breaker import CircuitBreaker
from hookline.engine.registry import HookRegistry
from hookline.engine.run_hook import refusal
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.settings.model import HookSource
from tests.support.commandline import run_command
from tests.support.workspace import Workspace

TIMEOUT = FailureCause.TIMEOUT
HANG = {"type": "command", "name": "slow", "command": "sleep 60", "timeout": 50}
COOLDOWN_S = 300
SKIPPED = "skipped: it timed out 3 times in a row"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def registered(**more: Any) -> RegisteredHook:
    settings = {"hooks": {"BeforeTool": [{"hooks": [{**HANG, **more}]}]}}
    (hook,) = HookRegistry(Settings.from_mapping(settings)).all_hooks()
    return hook


def trip(breaker: CircuitBreaker, hook: RegisteredHook, tool: str = "read") -> None:
    for _ in range(3):
        breaker.note(hook, TIMEOUT, tool)


def test_note_disturbs_no_other_thread_that_goes_through_the_counts() -> None:
    """Else that thread's note raises, and the verdict of its hook is lost."""
    breaker, hook = CircuitBreaker(), registered()
    breaker.note(hook, TIMEOUT, "read")
    elsewhere = iter(breaker.timeouts)
    breaker.note(hook, TIMEOUT, "write")
    assert len(list(elsewhere)) == 1


@pytest.mark.parametrize("source", ["settings", "code"])
async def test_timeouts_for_one_tool_do_not_switch_a_guard_off_for_another(
    workspace: Workspace, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def hang(event: dict[str, Any]) -> Any:
        if event["tool_name"] == "read":
            await asyncio.Event().wait()
        return {"decision": "deny"}

    slow = """case $(cat) in *'"read"'*) sleep 60;; esac; exit 2"""
    guards = [{**HANG, "command": slow, "timeout": 300}] if source == "settings" else []
    settings = workspace.settings("BeforeTool", *guards)
    async with HookSystem(workspace.config(settings)) as hooks:
        if source == "code":
            hooks.on("BeforeTool", timeout_ms=300)(hang)
        fire = hooks.event_handler.fire_before_tool_event
        reads = [await fire("read", {}) for _ in range(4)]
        assert reads[3].aggregated.hook_results[0].error == SKIPPED
        assert reads[3].aggregated.hook_results[0].duration == 0
        assert (await fire("write", {})).blocked
    assert "3 times in a row for 'read': skipped for 300 s" in caplog.text


def test_timeouts_are_counted_for_each_tool_and_each_hook() -> None:
    hook, breaker = registered(), CircuitBreaker()
    for tool in ("a", "b", "a", "b", "c"):
        breaker.note(hook, TIMEOUT, tool)
    assert [breaker.skips(hook, tool) for tool in "abc"] == [0, 0, 0]
    breaker.note(hook, TIMEOUT, "a")
    assert [breaker.skips(hook, tool) for tool in "abc"] == [3, 0, 0]
    assert {tool: entry.count for tool, entry in breaker.skipped(hook).items()} == {
        "a": 3
    }
    assert breaker.skips(registered(timeout=60_000), "a") == 0


@pytest.mark.parametrize("shared", [True, False])
def test_one_event_per_cooldown_is_let_through(tmp_path: Path, shared: bool) -> None:
    clock, hook = Clock(), registered()
    breaker = CircuitBreaker(str(tmp_path) if shared else None, clock)
    trip(breaker, hook)
    for _ in range(3):
        clock.now += COOLDOWN_S - 1
        assert breaker.skips(hook, "read") == 3
        clock.now += 2
        assert [breaker.skips(hook, "read") for _ in range(3)] == [0, 3, 3]
    # A probe that times out starts another cooldown.
    clock.now += 60
    breaker.note(hook, TIMEOUT, "read")
    clock.now += COOLDOWN_S - 1
    assert breaker.skips(hook, "read") == 4
    # A clock that was set back skips no hook for longer.
    clock.now -= 100_000
    assert breaker.skips(hook, "read") == 0


@pytest.mark.parametrize("cause", [None, FailureCause.CRASH])
def test_probe_that_ends_in_time_closes_it_in_all_processes(
    tmp_path: Path, cause: FailureCause | None
) -> None:
    clock, hook = Clock(), registered()
    mine = CircuitBreaker(str(tmp_path), clock)
    trip(mine, hook)
    other = CircuitBreaker(str(tmp_path), clock)
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (3, 3)
    clock.now += COOLDOWN_S + 1
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (0, 3)
    mine.note(hook, cause, "read")
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (0, 0)
    assert [other.skips(hook, "read") for _ in range(3)] == [0, 0, 0]


HOSTILE = ["\ud800", "a" * 100_000, "x\0y", "ü" * 300, '"}\n', "__proto__", ""]


def test_no_tool_name_breaks_or_fills_the_file(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    hook = registered()
    for number, tool in enumerate(HOSTILE):
        with subtests.test(tool=ascii(tool)[:20]):
            project = tmp_path / str(number)
            trip(CircuitBreaker(str(project)), hook, tool)
            breaker = CircuitBreaker(str(project))
            assert breaker.skips(hook, tool) == 3
            assert breaker.skips(hook, tool + "x") == 0
    files = list((tmp_path / "state").rglob("*.json"))
    assert len(files) == len(HOSTILE)
    assert all(file.stat().st_size < 500 for file in files)
    for number in range(600):
        breaker.note(hook, TIMEOUT, f"tool-{number}")
    (most,) = [file for file in files if file.stat().st_size > 500]
    assert most.stat().st_size < 50_000
    assert len(json.loads(most.read_text())) == 500


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": {"b": 5}}', b"\xff"])
def test_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    hook = registered()
    trip(CircuitBreaker(str(tmp_path)), hook)
    (file,) = (tmp_path / "state").rglob("*.json")
    file.write_bytes(content)
    trip(CircuitBreaker(str(tmp_path)), hook)
    assert CircuitBreaker(str(tmp_path)).skips(hook, "read") == 3
    assert msgspec.json.decode(file.read_bytes())


def test_file_that_others_can_write_switches_no_guard_off(tmp_path: Path) -> None:
    hook = registered()
    trip(CircuitBreaker(str(tmp_path)), hook)
    (file,) = (tmp_path / "state").rglob("*.json")
    file.chmod(0o666)
    for _ in range(2):
        assert CircuitBreaker(str(tmp_path)).skips(hook, "read") == 0
        trip(CircuitBreaker(str(tmp_path)), hook)


def test_looking_at_a_plan_takes_no_probe(tmp_path: Path) -> None:
    clock, hook = Clock(), registered()
    breaker = CircuitBreaker(str(tmp_path), clock)
    trip(breaker, hook)
    fields = {"cwd": str(tmp_path), "session_id": "s", "tool_name": "read"}
    call = HookCall(HookEventName.BeforeTool, fields)
    assert refusal(hook, call, breaker, to_run=False) is not None
    clock.now += COOLDOWN_S + 1
    assert refusal(hook, call, breaker, to_run=False) is None
    assert refusal(hook, call, breaker) is None
    assert refusal(hook, call, breaker) is not None


async def test_project_cannot_bring_along_that_a_guard_timed_out(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home folder is inside the repository."""
    (workspace.folder / ".git").mkdir()
    state = workspace.folder / "home" / "state"
    settings = workspace.settings("BeforeTool", {**HANG, "command": "exit 2"})
    hook = HookRegistry(Settings.from_mapping(settings)).all_hooks()[0]
    trip(CircuitBreaker(str(workspace.folder)), hook, "write")
    (shipped,) = (state.parents[2] / "state" / "hookline" / "timeouts").glob("*.json")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    folder = state / "hookline" / "timeouts"
    folder.mkdir(parents=True)
    (folder / shipped.name).write_bytes(shipped.read_bytes())
    (folder / shipped.name).chmod(0o600)
    async with HookSystem(workspace.config(settings)) as hooks:
        assert (await hooks.event_handler.fire_before_tool_event("write", {})).blocked


async def test_managed_hook_is_never_skipped(workspace: Workspace) -> None:
    settings = workspace.settings("BeforeTool", {**HANG, "managed": True})
    config = workspace.config({})
    config.settings = Settings.from_mapping(settings, HookSource.SYSTEM)
    async with HookSystem(config) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = [await fire("x", {}) for _ in range(4)]
    errors = [result.aggregated.hook_results[0].error for result in results]
    assert errors == ["timed out after 50 ms"] * 4


def test_timeouts_are_remembered_from_one_command_to_the_next(
    workspace: Workspace,
) -> None:
    file = workspace.folder / "settings.json"
    file.write_text(json.dumps(workspace.settings("BeforeTool", HANG)))
    where = ("--settings", str(file), "--cwd", str(workspace.folder))

    def run(*words: str) -> Any:
        return run_command(*words, *where)

    fired = [run("fire", "BeforeTool", "--tool", "x", "--json") for _ in range(4)]
    assert fired[3].json()["hooks"][0]["error"] == SKIPPED
    assert run("list", "--json").json()[0]["tripped"] is True
    assert "skipped: repeated timeouts" in run("list").stdout
