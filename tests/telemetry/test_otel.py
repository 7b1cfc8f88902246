"""The spans of events and hooks (issue 16: OpenTelemetry)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from hookline import HookEventName, HookSystem, ProcessedHookResult
from hookline.engine.on_error import BrokenSystem
from hookline.settings.load import Settings

from .recorded import TOOL, Recorded, attributes, id_of, parent_of


async def fire(
    hooks: HookSystem, event: str = "BeforeTool", **fields: Any
) -> ProcessedHookResult:
    return await hooks.event_handler.fire(event, fields or TOOL)


async def test_spans_of_an_event_and_its_hook_are_children_of_the_hosts_span(
    host: Recorded,
) -> None:
    """Issue 16: a span per fire and one per hook, under the host's current span."""
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        with host.tracer.start_as_current_span("agent turn") as turn:
            await fire(hooks, **TOOL, tool_use_id="call-7")
            assert trace.get_current_span() is turn
    event, hook = host.event(), host.hook("look")
    assert (parent_of(event), parent_of(hook)) == (id_of(turn), id_of(event))
    assert attributes(event) == {
        "hookline.event": "BeforeTool",
        "hookline.verdict": "allowed",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.tool.name": "write_file",
        "gen_ai.tool.call.id": "call-7",
    }
    assert attributes(hook) == {
        "hookline.event": "BeforeTool",
        "hookline.hook.name": "look",
        "hookline.hook.type": "python",
        "hookline.hook.source": "runtime",
        "hookline.hook.mode": "enforce",
        "gen_ai.tool.name": "write_file",
    }
    assert event.status.status_code is hook.status.status_code is StatusCode.UNSET
    assert event.kind is SpanKind.INTERNAL


async def test_an_event_without_a_span_of_the_host_is_a_root(host: Recorded) -> None:
    async with host.system() as hooks:
        await fire(hooks)
    assert parent_of(host.event()) is None


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        (None, "allowed"),
        ({"decision": "block", "reason": "secret reason"}, "blocked"),
        ({"decision": "ask", "reason": "secret reason"}, "ask"),
        ({"continue": False, "stopReason": "secret reason"}, "stopped"),
        ({"hookSpecificOutput": {"tool_input": {"path": "b"}}}, "changed"),
        ({"hookSpecificOutput": {"tool_input": {"path": "a.txt"}}}, "allowed"),
    ],
)
async def test_verdict_is_an_attribute_and_no_error(
    host: Recorded, says: Any, verdict: str
) -> None:
    """Issue 16: a block is not an error; without content no reason is exported."""
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="say")(lambda _: says)
        await fire(hooks)
    assert attributes(host.event())["hookline.verdict"] == verdict
    for span in host.spans:
        assert span.status.status_code is StatusCode.UNSET
        assert "secret" not in str(attributes(span))


async def test_failed_hook_has_an_error_status_with_its_cause(host: Recorded) -> None:
    command = "echo password=hunter2 >&2; exit 3"
    hook = {"type": "command", "command": command, "name": "broken"}
    async with host.system(hook, {"type": "command", "command": "true"}) as hooks:
        result = await fire(hooks)
    assert not result.blocked
    broken = host.hook("broken")
    assert attributes(broken) | {
        "error.type": "crash",
        "process.exit.code": 3,
    } == attributes(broken)
    assert broken.status.status_code is StatusCode.ERROR
    assert broken.status.description == "crash"
    assert host.event().status.status_code is StatusCode.UNSET
    assert attributes(host.event())["hookline.hooks.failed"] == 1
    assert host.hook("true").status.status_code is StatusCode.UNSET


async def test_command_that_blocks_by_exit_2_is_no_error(host: Recorded) -> None:
    hook = {"type": "command", "command": "exit 2", "name": "no"}
    async with host.system(hook) as hooks:
        await fire(hooks)
    span = host.hook("no")
    assert span.status.status_code is StatusCode.UNSET
    assert attributes(span)["hookline.hook.decision"] == "deny"
    assert attributes(span)["process.exit.code"] == 2


async def test_hook_that_observes_says_that_it_would_block(host: Recorded) -> None:
    hook = {"type": "command", "command": "exit 2", "name": "no", "mode": "observe"}
    async with host.system(hook) as hooks:
        await fire(hooks)
    assert attributes(host.hook("no"))["hookline.hook.mode"] == "observe"
    assert attributes(host.hook("no"))["hookline.hook.would_block"] is True
    assert attributes(host.event())["hookline.would_block"] is True
    assert attributes(host.event())["hookline.verdict"] == "allowed"


async def test_recheck_has_a_span_of_its_own(host: Recorded) -> None:
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="guard")(lambda _: None)
        change = {"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}}
        hooks.on("BeforeTool", name="change", recheck=False)(lambda _: change)
        await fire(hooks)
    first, again = host.named("hookline hook guard")
    assert "hookline.hook.recheck" not in attributes(first)
    assert attributes(again)["hookline.hook.recheck"] is True
    assert parent_of(first) == parent_of(again) == id_of(host.event())


async def test_hook_whose_condition_is_false_has_no_span(host: Recorded) -> None:
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="never", condition="1 == 2")(lambda _: None)
        await fire(hooks)
    assert [span.name for span in host.spans] == ["hookline BeforeTool"]
    assert attributes(host.event())["hookline.verdict"] == "allowed"


async def test_async_hook_ends_its_span_when_it_ends(host: Recorded) -> None:
    """Issue 16: hooks that nobody waits for are children of their event too."""
    gate = asyncio.Event()

    async def slow(_: dict[str, Any]) -> None:
        await gate.wait()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="slow", asynchronous=True)(slow)
        with host.tracer.start_as_current_span("turn"):
            await fire(hooks)
        assert [span.name for span in host.spans] == ["hookline BeforeTool", "turn"]
        gate.set()
    assert parent_of(host.hook("slow")) == id_of(host.event())
    assert attributes(host.hook("slow"))["hookline.hook.async"] is True


async def test_async_hooks_in_a_queue_belong_to_their_own_events(
    host: Recorded,
) -> None:
    """A queued hook is started by the end of another event's hook."""
    gate = asyncio.Event()

    async def slow(_: dict[str, Any]) -> None:
        await gate.wait()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="slow", asynchronous=True)(slow)
        for _ in range(70):  # 64 run at a time
            await fire(hooks)
        gate.set()
    events = {id_of(span): span for span in host.named("hookline BeforeTool")}
    runs = host.named("hookline hook slow")
    assert {parent_of(span) for span in runs} == events.keys()
    for run in runs:
        assert run.context is not None
        event = events[parent_of(run) or 0]
        assert event.context is not None
        assert run.context.trace_id == event.context.trace_id


async def test_cancelled_event_ends_its_spans(host: Recorded) -> None:
    started = asyncio.Event()

    async def wait(_: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="wait")(wait)
        task = asyncio.create_task(fire(hooks))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert attributes(host.event())["hookline.verdict"] == "cancelled"
    assert attributes(host.hook("wait"))["hookline.hook.cancelled"] is True


async def test_timeout_and_a_missing_program_have_their_causes(host: Recorded) -> None:
    slow = {"type": "command", "command": "sleep 60", "name": "slow", "timeout": 50}
    gone = {"type": "command", "command": "./nothing-here", "name": "gone"}
    async with host.system(slow, gone) as hooks:
        await fire(hooks)
    causes = {n: attributes(host.hook(n))["error.type"] for n in ("slow", "gone")}
    assert causes == {"slow": "timeout", "gone": "spawn"}


async def test_invalid_event_has_a_span_with_its_stage(host: Recorded) -> None:
    async with host.system() as hooks:
        await hooks.event_handler.fire("SessionStart", {"source": "boot"})
    (span,) = host.spans
    assert span.name == "hookline SessionStart"
    assert attributes(span)["error.type"] == "validation"
    assert span.status.status_code is StatusCode.ERROR


class Unreadable(dict[str, Any]):
    """A mapping of the caller's that raises."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("no")


async def test_fields_that_cannot_be_read_are_a_failed_span(host: Recorded) -> None:
    async with host.system() as hooks:
        await hooks.event_handler.fire("BeforeTool", Unreadable(TOOL))
    assert attributes(host.event())["error.type"] == "validation"
    assert attributes(host.event())["hookline.event"] == "BeforeTool"


async def test_model_payload_that_cannot_be_translated_is_a_failed_span(
    host: Recorded,
) -> None:
    """protocol.md#bus: an event of a bus is translated before it is planned."""
    async with host.system(event="BeforeModel") as hooks:
        hooks.on("BeforeModel")(lambda _: None)
        handler = hooks.event_handler
        await handler.fire_validated(HookEventName.BeforeModel, {"llm_request": 5})
    assert attributes(host.event("BeforeModel"))["error.type"] == "translation"


async def test_broken_system_has_a_span_for_each_event(host: Recorded) -> None:
    async with host.system() as hooks:
        handler = hooks.event_handler
        broken = BrokenSystem(RuntimeError("no registry"), Settings())
        handler.pipeline = _with(handler.pipeline, broken=broken)
        await fire(hooks)
    assert attributes(host.event())["error.type"] == "internal"


def _with(pipeline: Any, **changes: Any) -> Any:
    from msgspec.structs import replace

    return replace(pipeline, **changes)


async def test_event_that_nothing_can_show_is_blocked_with_a_failed_span(
    host: Recorded,
) -> None:
    """protocol.md#process: too deep to be shown to a guard."""
    deep: list[Any] = []
    for _ in range(600):
        deep = [deep]
    hook = {"type": "command", "command": "true"}
    async with host.system(hook) as hooks:
        result = await fire(hooks, tool_name="t", tool_input={"deep": deep})
    assert result.blocked
    assert attributes(host.event())["error.type"] == "execution"
    assert attributes(host.event())["hookline.verdict"] == "blocked"


@pytest.mark.parametrize("event", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
async def test_events_of_a_model_name_it(host: Recorded, event: str) -> None:
    async with host.system() as hooks:
        hooks.on(HookEventName.of(event), name="look")(lambda _: None)
        request = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}
        response = {"text": "hello"}
        await fire(hooks, event, llm_request=request, llm_response=response)
    for span in (host.event(event), host.hook("look")):
        assert attributes(span)["gen_ai.request.model"] == "m-1"
        assert "hello" not in str(attributes(span))


class Odd(str):
    """Text of a class of its own."""

    def __str__(self) -> str:
        raise RuntimeError("not for you")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x" * 100_000, "x" * 256),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        (Odd("odd"), "odd"),
    ],
    ids=["huge", "surrogate", "subclass"],
)
async def test_hostile_tool_name_is_cut_to_a_valid_attribute(
    host: Recorded, name: str, shown: str
) -> None:
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        result = await fire(hooks, tool_name=name, tool_input={}, tool_use_id=name)
    assert result.aggregated.success
    found = attributes(host.event())
    assert found["gen_ai.tool.name"] == found["gen_ai.tool.call.id"] == shown
    assert type(found["gen_ai.tool.name"]) is str


class Incomparable:
    """A value of the host's, as arrays are."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = object.__hash__


async def test_value_that_cannot_be_compared_ends_its_spans(host: Recorded) -> None:
    async with host.system() as hooks:
        change = {"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}}
        hooks.on("BeforeTool", name="change")(lambda _: change)
        given = {"path": Incomparable()}
        result = await fire(hooks, tool_name="t", tool_input=given)
    assert result.aggregated.success
    assert attributes(host.event())["hookline.verdict"] == "changed"


async def test_command_with_a_secret_is_no_name(host: Recorded) -> None:
    """The name of a command without one is the command itself."""
    command = "true --api-key=sk-1234567890abcdef1234 token=abcdefgh12345678xyz"
    async with host.system({"type": "command", "command": command}) as hooks:
        await fire(hooks)
    (event, hook) = sorted(host.spans, key=lambda span: len(span.name))
    assert event.name == "hookline BeforeTool"
    assert "[masked]" in hook.name
    assert "sk-1234" not in hook.name + str(attributes(hook))
    assert "abcdefgh" not in hook.name + str(attributes(hook))


async def test_hooks_run_the_same_after_the_providers_are_shut_down(
    host: Recorded,
) -> None:
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="no")(lambda _: {"decision": "block"})
        host.close()
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert result.blocked
    assert host.spans == ()


async def test_hooks_that_are_sampled_out_run_the_same(host: Recorded) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    host.tracers = TracerProvider(sampler=ALWAYS_OFF)
    async with host.system() as hooks:
        hooks.on("BeforeTool")(lambda _: {"decision": "block", "reason": "no"})
        result = await fire(hooks)
    assert (result.blocked, host.spans) == (True, ())
    assert [point.value for point in host.points("hookline.events")] == [1]
