"""The trace context of requests: foreign text is checked (issue 16: OpenTelemetry)."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan

from hookline import HookBusClient, InMemoryMessageBus
from hookline.bus.contracts import MessageBusType
from hookline.bus.server import RequestServer
from hookline.bus.trace import checked_trace, current_trace

from .fakes import RecordingHandler

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


@pytest.mark.parametrize(
    ("given_context", "kept"),
    [
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        (
            {"traceparent": PARENT, "tracestate": "a=1,b=2", "more": 1},
            {"traceparent": PARENT, "tracestate": "a=1,b=2"},
        ),
        (
            {"traceparent": PARENT, "tracestate": "a\r\nX-Evil: 1"},
            {"traceparent": PARENT},
        ),
        ({"traceparent": PARENT, "tracestate": "a" * 513}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": 5}, {"traceparent": PARENT}),
        ({"traceparent": PARENT + "\n"}, {}),
        ({"traceparent": PARENT.upper()}, {}),
        ({"traceparent": "x" * 5_000_000}, {}),
        ({"traceparent": 5}, {}),
        ({"tracestate": "a=1"}, {}),
        (PARENT, {}),
        (None, {}),
        ([], {}),
    ],
)
def test_foreign_trace_context_is_checked(given_context: Any, kept: Any) -> None:
    assert checked_trace(given_context) == kept


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values | st.fixed_dictionaries({"traceparent": json_values}))
def test_any_trace_context_is_read_without_an_error(value: Any) -> None:
    assert set(checked_trace(value)) <= {"traceparent", "tracestate"}


async def answer(**more: Any) -> tuple[RecordingHandler, Any]:
    handler = RecordingHandler()
    request = {"eventName": "BeforeAgent", "input": {"prompt": "p"}, **more}
    return handler, await RequestServer(handler).handle_request(request)


@pytest.mark.parametrize("context", [None, 5, "x", {"traceparent": "x"}, [[]]])
async def test_request_with_a_wrong_trace_context_is_answered(context: Any) -> None:
    handler, response = await answer(traceContext=context)
    assert response["success"]
    assert len(handler.calls) == 1


def test_without_a_span_there_is_no_context() -> None:
    assert current_trace() == {}


class Odd(NonRecordingSpan):
    """A span of the host that raises."""

    def get_span_context(self) -> Any:
        raise RuntimeError("not now")


async def test_requester_sends_the_context_of_its_span() -> None:
    tracer = TracerProvider().get_tracer("host")
    bus = InMemoryMessageBus()
    sent: list[Any] = []
    bus.subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, sent.append)
    client = HookBusClient(bus, timeout_s=0.01)
    with tracer.start_as_current_span("turn") as turn:
        await client.request("BeforeAgent", {"prompt": "p"})
    with trace.use_span(Odd(turn.get_span_context())):
        await client.request("BeforeAgent", {"prompt": "p"})
    await client.request("BeforeAgent", {"prompt": "p"})
    context = turn.get_span_context()
    first, *others = sent
    expected = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert first["traceContext"]["traceparent"].startswith(expected)
    assert ["traceContext" in one for one in others] == [False, False]


def test_requester_without_opentelemetry_does_not_load_it() -> None:
    code = """
import asyncio, sys
from hookline import HookBusClient, InMemoryMessageBus
client = HookBusClient(InMemoryMessageBus())
asyncio.run(client.request("BeforeAgent", {"prompt": "p"}))
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
