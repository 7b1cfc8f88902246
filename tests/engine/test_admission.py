"""Issue 12.17: the breaker counts per hook and tool, and tries again with one event."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline import HookSystem, ProcessedHookResult, Settings
from hookline.engine.admission import CircuitBreaker, refusal
from hookline.engine.registry import HookRegistry
from hookline.executors.contract import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.settings.locations import locked
from tests.support.workshop import Workshop

TIMEOUT = FailureCause.TIMEOUT
HANG = {"type": "command", "name": "slow", "command": "sleep 60", "timeout": 50}
COOLDOWN_S = 300


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
    (found,) = HookRegistry(Settings.from_mapping(settings)).all_hooks()
    return found


def trip(breaker: CircuitBreaker, hook: RegisteredHook, tool: str = "read") -> None:
    for _ in range(3):
        breaker.note(hook, TIMEOUT, tool)


def errors(results: list[ProcessedHookResult]) -> list[str]:
    return [str(one.aggregated.hook_results[0].error) for one in results]


SKIPPED = "skipped: it timed out 3 times in a row"


@pytest.mark.parametrize("source", ["settings", "code"])
async def test_timeouts_for_one_tool_do_not_switch_a_guard_off_for_another(
    workshop: Workshop, source: str
) -> None:
    async def hang(event: dict[str, Any]) -> Any:
        if event["tool_name"] == "read":
            await asyncio.Event().wait()
        return {"decision": "deny"}

    slow = """case $(cat) in *'"read"'*) sleep 60;; esac; exit 2"""
    guards = [{**HANG, "command": slow, "timeout": 300}] if source == "settings" else []
    settings = workshop.settings("BeforeTool", *guards)
    async with HookSystem(workshop.config(settings)) as hooks:
        if source == "code":
            hooks.on("BeforeTool", timeout_ms=300)(hang)
        fire = hooks.event_handler.fire_before_tool_event
        reads = [await fire("read", {}) for _ in range(4)]
        assert errors(reads)[3] == SKIPPED
        assert (await fire("write", {})).blocked


def test_timeouts_are_counted_for_each_tool() -> None:
    hook, breaker = registered(), CircuitBreaker()
    for tool in ("a", "b", "a", "b", "c"):
        breaker.note(hook, TIMEOUT, tool)
    assert [breaker.skips(hook, tool) for tool in "abc"] == [0, 0, 0]
    breaker.note(hook, TIMEOUT, "a")
    assert [breaker.skips(hook, tool) for tool in "abc"] == [3, 0, 0]
    assert breaker.open_for(hook) == 3


def test_hooks_that_differ_in_their_timeout_are_counted_apart() -> None:
    breaker, strong = CircuitBreaker(), registered(timeout=60_000)
    trip(breaker, registered(timeout=1))
    assert breaker.skips(strong, "read") == 0


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


def test_a_probe_that_times_out_starts_another_cooldown(tmp_path: Path) -> None:
    clock, hook = Clock(), registered()
    breaker = CircuitBreaker(str(tmp_path), clock)
    trip(breaker, hook)
    clock.now += COOLDOWN_S + 1
    assert breaker.skips(hook, "read") == 0
    clock.now += 60
    breaker.note(hook, TIMEOUT, "read")
    clock.now += COOLDOWN_S - 1
    assert breaker.skips(hook, "read") == 4


@pytest.mark.parametrize("cause", [None, FailureCause.CRASH])
def test_a_probe_that_ends_in_time_closes_it_in_all_processes(
    tmp_path: Path, cause: FailureCause | None
) -> None:
    clock, hook = Clock(), registered()
    mine, other = (CircuitBreaker(str(tmp_path), clock) for _ in range(2))
    trip(mine, hook)
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (3, 3)
    clock.now += COOLDOWN_S + 1
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (0, 3)
    mine.note(hook, cause, "read")
    assert (mine.skips(hook, "read"), other.skips(hook, "read")) == (0, 0)
    assert [other.skips(hook, "read") for _ in range(3)] == [0, 0, 0]


def _skips(folder: str, start: Any, answers: Any) -> None:
    breaker = CircuitBreaker(folder, lambda: 2_000_000.0)
    start.wait()
    answers.put(breaker.skips(registered(), "read"))


def test_of_many_processes_one_takes_the_probe(tmp_path: Path) -> None:
    trip(CircuitBreaker(str(tmp_path), lambda: 1_000_000.0), registered())
    context = multiprocessing.get_context("fork")
    start, answers = context.Event(), context.Queue()
    arguments = (str(tmp_path), start, answers)
    children = [context.Process(target=_skips, args=arguments) for _ in range(8)]
    for child in children:
        child.start()
    start.set()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert sorted(found) == [0, 3, 3, 3, 3, 3, 3, 3]


def test_a_lock_that_is_never_released_leaves_no_guard_out(tmp_path: Path) -> None:
    clock, hook = Clock(), registered()
    breaker = CircuitBreaker(str(tmp_path), clock)
    trip(breaker, hook)
    clock.now += COOLDOWN_S + 1
    with locked(breaker._folder):
        assert breaker.skips(hook, "read") == 0


POLICIES: list[tuple[Any, bool]] = [
    ("block", True),
    ({"timeout": "block"}, True),
    ({"crash": "block"}, False),
    ("allow", False),
]


@pytest.mark.parametrize(("policy", "blocks"), POLICIES)
@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
async def test_a_skip_means_what_the_timeouts_mean(
    workshop: Workshop, policy: Any, blocks: bool, event: str
) -> None:
    settings = workshop.settings(event, {**HANG, "onError": policy})
    async with HookSystem(workshop.config(settings)) as hooks:
        given = {"tool_name": "read", "tool_input": {}, "tool_response": {}}
        fired = [await hooks.event_handler.fire(event, given) for _ in range(5)]
    assert errors(fired)[3:] == [SKIPPED] * 2
    for result in fired:
        closed = result.aggregated.hook_results[0].closed
        assert closed is blocks
        assert result.blocked is (blocks and event == "BeforeTool")


async def test_a_skipped_observer_blocks_nothing(workshop: Workshop) -> None:
    hook = {**HANG, "onError": "block", "mode": "observe"}
    settings = workshop.settings("BeforeTool", hook)
    async with HookSystem(workshop.config(settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        fired = [await fire("read", {}) for _ in range(4)]
    assert not any(result.blocked for result in fired)


HOSTILE = ["\ud800", "a" * 100_000, "x\0y", "ü" * 300, '"}\n', "__proto__", ""]


@pytest.mark.parametrize("tool", HOSTILE, ids=range(len(HOSTILE)))
def test_no_tool_name_breaks_or_fills_the_file(tmp_path: Path, tool: str) -> None:
    hook = registered()
    trip(CircuitBreaker(str(tmp_path)), hook, tool)
    breaker = CircuitBreaker(str(tmp_path))
    assert breaker.skips(hook, tool) == 3
    assert breaker.skips(hook, tool + "x") == 0
    (file,) = Path(breaker._folder).glob("*.json")
    assert file.stat().st_size < 500


def test_endless_tool_names_do_not_fill_the_file(tmp_path: Path) -> None:
    hook, breaker = registered(), CircuitBreaker(str(tmp_path))
    for number in range(200):
        breaker.note(hook, TIMEOUT, f"tool-{number}")
    (file,) = Path(breaker._folder).glob("*.json")
    assert file.stat().st_size < 10_000
    assert len(next(iter(json.loads(file.read_text()).values()))) == 64


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": {"b": 5}}', b"\xff"])
def test_a_damaged_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    hook = registered()
    trip(CircuitBreaker(str(tmp_path)), hook)
    (file,) = (tmp_path / "state").rglob("*.json")
    file.write_bytes(content)
    trip(CircuitBreaker(str(tmp_path)), hook)
    assert CircuitBreaker(str(tmp_path)).skips(hook, "read") == 3
    assert msgspec.json.decode(file.read_bytes())


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


async def test_a_project_cannot_bring_along_that_a_guard_timed_out(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12.12: the home folder is inside the repository."""
    (workshop.folder / ".git").mkdir()
    state = workshop.folder / "home" / "state"
    settings = workshop.settings("BeforeTool", {**HANG, "command": "exit 2"})
    hook = HookRegistry(Settings.from_mapping(settings)).all_hooks()[0]
    trip(CircuitBreaker(str(workshop.folder)), hook, "write")
    (shipped,) = (state.parents[2] / "state" / "hookline" / "timeouts").glob("*.json")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    folder = state / "hookline" / "timeouts"
    folder.mkdir(parents=True)
    (folder / shipped.name).write_bytes(shipped.read_bytes())
    (folder / shipped.name).chmod(0o600)
    async with HookSystem(workshop.config(settings)) as hooks:
        assert (await hooks.event_handler.fire_before_tool_event("write", {})).blocked
