"""The trace context travels into hooks and nowhere else (issue 16: OpenTelemetry)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.baggage import set_baggage
from opentelemetry.context import attach, detach, get_current
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tests.executors.bench import until
from tests.support.web import WebServer, reply

from .recorded import TOOL, Recorded, id_of, parent_of, traceparent

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


def script(host: Recorded, **more: Any) -> dict[str, Any]:
    (host.folder / "show.py").write_text(SHOW)
    command = f"{shlex.quote(sys.executable)} show.py"
    return {"type": "command", "command": command, "name": "show", **more}


async def said(hooks: Any) -> str:
    result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert result.aggregated.success, result
    return str(result.system_message or result.user_message)


async def test_span_of_a_python_hook_is_a_child_of_the_hooks_span(
    host: Recorded,
) -> None:
    def plain(_: dict[str, Any]) -> None:
        host.tracer.start_span("inside plain").end()

    async def waits(_: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        host.tracer.start_span("inside async").end()

    async with host.system() as hooks:
        hooks.on("BeforeTool", name="plain")(plain)
        hooks.on("BeforeTool", name="async")(waits)
        await hooks.event_handler.fire("BeforeTool", TOOL)
    for name in ("plain", "async"):
        (inside,) = host.named(f"inside {name}")
        assert parent_of(inside) == id_of(host.hook(name))


async def test_hooks_in_parallel_do_not_see_each_others_spans(host: Recorded) -> None:
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


async def test_hook_that_fires_an_event_has_it_under_its_span(host: Recorded) -> None:
    async with host.system() as hooks:

        async def nested(_: dict[str, Any]) -> None:
            await hooks.event_handler.fire("Notification", {"message": "m"})

        hooks.on("BeforeTool", name="nested")(nested)
        await hooks.event_handler.fire("BeforeTool", TOOL)
    assert parent_of(host.event("Notification")) == id_of(host.hook("nested"))


async def test_fire_sync_keeps_the_span_of_its_caller(host: Recorded) -> None:
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
    host: Recorded,
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

        threads = [threading.Thread(target=asyncio.run, args=(fires(),)) for _ in "123"]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
    spans = {id_of(span): span for span in host.spans}
    for inside in host.named("inside"):
        hook = spans[parent_of(inside) or 0]
        event = spans[parent_of(hook) or 0]
        root = spans[parent_of(event) or 0]
        assert (hook.name, root.name) == ("hookline hook look", "thread")
    assert len(host.named("inside")) == len(host.named("hookline hook look")) == 15


@pytest.mark.parametrize(
    "options",
    [{}, {"envPolicy": "clean"}, {"dialect": "gemini"}],
    ids=["inherit", "clean", "dialect"],
)
async def test_command_gets_the_context_of_its_span(
    host: Recorded, options: dict[str, Any]
) -> None:
    """Issue 16: TRACEPARENT, whatever the policy for the host's environment."""
    async with host.system(script(host, **options)) as hooks:
        found = await said(hooks)
    assert found == f"{traceparent(host.hook('show'))} -"


async def test_command_gets_the_state_of_the_trace_too(
    host: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-" + "1" * 32 + "-" + "1" * 16 + "-01")
    monkeypatch.setenv("TRACESTATE", "inherited=1")
    state = TraceState([("vendor", "x")])
    remote = SpanContext(7, 7, True, TraceFlags(1), state)
    with_state = trace.set_span_in_context(trace.NonRecordingSpan(remote))
    async with host.system(script(host)) as hooks:
        plain = await said(hooks)
        with host.tracer.start_as_current_span("turn", with_state):
            stateful = await said(hooks)
    one, two = host.named("hookline hook show")
    assert plain == f"{traceparent(one)} "
    assert two.context is not None
    parent = f"00-{7:032x}-{two.context.span_id:016x}-01"
    assert stateful == f"{parent} vendor=x"


async def test_command_keeps_a_context_of_its_own(host: Recorded) -> None:
    hook = script(host, env={"TRACEPARENT": "own"})
    async with host.system(hook) as hooks:
        assert await said(hooks) == "own -"


async def test_command_inherits_what_the_host_has_while_telemetry_is_off(
    host: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", "inherited")
    async with host.system(script(host), telemetry=False) as hooks:
        assert await said(hooks) == "inherited -"
    assert host.spans == ()


async def test_worker_gets_the_context_of_each_event(host: Recorded) -> None:
    """One process, two events, two contexts."""
    async with host.system(script(host, type="worker")) as hooks:
        found = [await said(hooks), await said(hooks)]
    expected = [f"{traceparent(span)} -" for span in host.named("hookline hook show")]
    assert found == expected
    assert len(set(found)) == 2


async def test_process_on_standby_gets_the_context_of_its_event(
    host: Recorded,
) -> None:
    """It was started before there was one: the context comes beside the event."""
    async with host.system(script(host, standby=1)) as hooks:
        await until((host.folder / "started").exists)
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    (ran,) = result.aggregated.hook_results
    assert ran.standby is True
    assert result.system_message == f"{traceparent(host.hook('show'))} -"


async def test_standby_hook_that_runs_cold_gets_the_context(host: Recorded) -> None:
    """Another session than the one that a process waits for."""
    async with host.system(script(host, standby=1)) as hooks:
        await until((host.folder / "started").exists)
        event = {**TOOL, "session_id": "another"}
        result = await hooks.event_handler.fire("BeforeTool", event)
    (ran,) = result.aggregated.hook_results
    assert ran.standby is False
    assert result.system_message == f"{traceparent(host.hook('show'))} -"


def test_foreign_value_beside_an_event_sets_no_variable(host: Recorded) -> None:
    """Only the two variables of a trace, and only clean text."""
    script(host)
    trace_of = {"PATH": "/evil", "TRACEPARENT": "a\nb", "TRACESTATE": 5}
    event = {"hook_event_name": "BeforeTool", "hookline_trace": trace_of}
    done = subprocess.run(
        [sys.executable, "show.py"],
        cwd=host.folder,
        input=json.dumps(event).encode(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"systemMessage": "- -"}


async def test_http_hook_gets_the_headers(host: Recorded) -> None:
    """Issue 16: the context travels over http hooks; the host's baggage does not."""
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
from tests.telemetry.recorded import Recorded, TOOL
host = Recorded(Path({str(tmp_path)!r}))

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
