"""The trace context travels into hooks and nowhere else."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.baggage import set_baggage
from opentelemetry.context import attach, detach, get_current
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tests.support.processes import wait_until
from tests.support.telemetry_rows import (
    TOOL,
    TelemetryHost,
    id_of,
    parent_of,
    run_in_threads,
    traceparent,
)
from tests.support.web import WebServer, reply

SHOW = """
import os
from hookline.script import run, system_message

def hook(event):
    assert "hookline_trace" not in event, event
    found = (os.environ.get(name, "-") for name in ("TRACEPARENT", "TRACESTATE"))
    return system_message(" ".join(found))

open("started", "w").close()
run(hook)
"""
"""Says which trace it is in."""


def script(host: TelemetryHost, **more: Any) -> dict[str, Any]:
    (host.folder / "show.py").write_text(SHOW)
    command = f"{shlex.quote(sys.executable)} show.py"
    return {"type": "command", "command": command, "name": "show", **more}


async def said(hooks: Any) -> str:
    result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert result.aggregated.success, result
    return str(result.system_message or result.user_message)


async def test_hooks_in_parallel_do_not_see_each_others_spans(
    host: TelemetryHost,
) -> None:
    seen: dict[str, Any] = {}
    both = asyncio.Barrier(2)

    def hook(name: str) -> Any:
        async def run(_: dict[str, Any]) -> None:
            await both.wait()
            seen[name] = trace.get_current_span()
            await both.wait()
            assert trace.get_current_span() is seen[name]

        return run

    async with host.system() as hooks:
        for name in ("one", "two"):
            hooks.on("BeforeTool", name=name)(hook(name))
        before = get_current()
        await hooks.event_handler.fire("BeforeTool", TOOL)
        assert get_current() is before
    for name in ("one", "two"):
        assert id_of(seen[name]) == id_of(host.hook(name))


async def test_fire_sync_keeps_the_span_of_its_caller(host: TelemetryHost) -> None:
    hooks = host.system()
    hooks.on("BeforeTool", name="look")(lambda _: None)

    def work() -> None:
        with host.tracer.start_as_current_span("thread"):
            hooks.fire_sync("BeforeTool", TOOL)

    await asyncio.to_thread(work)
    await asyncio.to_thread(asyncio.run, hooks.dispose())
    (thread,) = host.named("thread")
    assert parent_of(host.event()) == id_of(thread)
    assert parent_of(host.hook("look")) == id_of(host.event())


async def test_event_loops_in_several_threads_keep_their_traces_apart(
    host: TelemetryHost,
) -> None:
    async with host.system() as hooks:

        async def look(_: dict[str, Any]) -> None:
            await asyncio.sleep(0.001)
            host.tracer.start_span("inside").end()

        hooks.on("BeforeTool", name="look")(look)

        async def fires() -> None:
            with host.tracer.start_as_current_span("thread"):
                for _ in range(5):
                    await hooks.event_handler.fire("BeforeTool", TOOL)

        await run_in_threads(fires)
    spans = {id_of(span): span for span in host.spans}
    for inside in host.named("inside"):
        hook = spans[parent_of(inside) or 0]
        event = spans[parent_of(hook) or 0]
        root = spans[parent_of(event) or 0]
        assert (hook.name, root.name) == ("hookline hook look", "thread")
    assert len(host.named("inside")) == len(host.named("hookline hook look")) == 20


async def test_process_on_standby_gets_the_context_of_its_event(
    host: TelemetryHost,
) -> None:
    """It was started before there was one: the context comes beside the event.

    For another session than the one that it waits for, a new one is started.
    """
    for session, is_warm in (("s-1", True), ("another", False)):
        host.forget_spans()
        async with host.system(script(host, standby=1)) as hooks:
            await wait_until((host.folder / "started").exists)
            event = {**TOOL, "session_id": session}
            result = await hooks.event_handler.fire("BeforeTool", event)
        (ran,) = result.aggregated.hook_results
        assert ran.standby is is_warm
        assert result.system_message == f"{traceparent(host.hook('show'))} -"
        (host.folder / "started").unlink()


async def test_http_hook_gets_the_headers(host: TelemetryHost) -> None:
    """The context travels over http hooks; the host's baggage does not."""
    with WebServer(reply({})) as server:
        hook = {"type": "http", "url": server.url, "name": "ask"}
        own = {"Traceparent": "own", "X-More": "1"}
        kept = {"type": "http", "url": server.url, "name": "kept", "headers": own}
        async with host.system(hook, kept, sequential=True) as hooks:
            token = attach(set_baggage("user", "ann"))
            await hooks.event_handler.fire("BeforeTool", TOOL)
            detach(token)
        first, second = server.exchanges
    propagator = TraceContextTextMapPropagator()
    found = trace.get_current_span(propagator.extract(first.headers))
    assert id_of(found) == id_of(host.hook("ask"))
    assert first.headers["traceparent"] == traceparent(host.hook("ask"))
    assert second.headers["traceparent"] == "own"
    assert "baggage" not in first.headers
    assert host.hook("ask").kind is trace.SpanKind.CLIENT


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_of_the_host_has_spans_and_figures_of_its_own(tmp_path: Path) -> None:
    """In a process of its own: a fork of pytest would run its exit handlers."""
    code = f"""
import asyncio, os, sys
from pathlib import Path
from hookline.telemetry.instruments import instruments_of
from tests.support.telemetry_rows import TelemetryHost, TOOL
host = TelemetryHost(Path({str(tmp_path)!r}))

async def main():
    async with host.system() as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        await hooks.event_handler.fire("BeforeTool", TOOL)
    return sorted(span.name for span in host.spans)

found = instruments_of(host.meters)
held = found._events._lock
parent = asyncio.run(main())
held.acquire()  # as another thread might at this moment
pid = os.fork()
if pid == 0:
    assert asyncio.run(main()) == sorted(2 * parent)
    (events,) = host.points("hookline.events")
    (times,) = host.points("hookline.hook.duration")
    os._exit(0 if (events.value, times.count) == (1, 1) else 5)
held.release()
assert os.waitpid(pid, 0)[1] == 0
(events,) = host.points("hookline.events")
print(parent, events.value)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    expected = "['hookline BeforeTool', 'hookline hook look'] 1\n"
    assert done.stdout == expected, done.stderr


async def test_span_inside_of_a_python_hook_is_a_child_of_the_hooks_span(
    host: TelemetryHost,
) -> None:
    """Also that of an event which the hook fires."""

    def plain(_: dict[str, Any]) -> None:
        host.tracer.start_span("inside plain").end()

    async def waits(_: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        host.tracer.start_span("inside async").end()
        await hooks.event_handler.fire("Notification", {"message": "m"})

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="plain")(plain)
        hooks.on("BeforeTool", name="async")(waits)
        await hooks.event_handler.fire("BeforeTool", TOOL)
    for name in ("plain", "async"):
        (inside,) = host.named(f"inside {name}")
        assert parent_of(inside) == id_of(host.hook(name))
    assert parent_of(host.event("Notification")) == id_of(host.hook("async"))


async def test_program_gets_the_context_of_its_span(
    host: TelemetryHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRACEPARENT, whatever the policy for the host's environment.

    Of a worker each event has its own. A hook keeps its own value, and while telemetry
    is off that of the host.
    """
    for options in ({"envPolicy": "clean"}, {"dialect": "gemini"}, {"type": "worker"}):
        host.forget_spans()
        async with host.system(script(host, **options)) as hooks:
            messages = [await said(hooks), await said(hooks)]
        spans = host.named("hookline hook show")
        assert messages == [f"{traceparent(span)} -" for span in spans], options
        assert len(set(messages)) == 2
    monkeypatch.setenv("TRACEPARENT", "00-" + "1" * 32 + "-" + "1" * 16 + "-01")
    monkeypatch.setenv("TRACESTATE", "inherited=1")
    state = TraceState([("vendor", "x")])
    remote = SpanContext(7, 7, True, TraceFlags(1), state)
    with_state = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    host.forget_spans()
    async with host.system(script(host)) as hooks:
        plain = await said(hooks)
        with host.tracer.start_as_current_span("turn", with_state):
            stateful = await said(hooks)
    first, second = host.named("hookline hook show")
    assert plain == f"{traceparent(first)} "
    assert stateful == f"00-{7:032x}-{id_of(second):016x}-01 vendor=x"
    monkeypatch.delenv("TRACESTATE")
    async with host.system(script(host, env={"TRACEPARENT": "own"})) as hooks:
        assert await said(hooks) == "own -"
    host.forget_spans()
    monkeypatch.setenv("TRACEPARENT", "inherited")
    async with host.system(script(host), telemetry=False) as hooks:
        assert await said(hooks) == "inherited -"
    assert host.spans == ()
