"""A model server for tests: the APIs of three services, whole and streamed."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from itertools import count
from typing import Any

from msgspec import Struct

from .loopback import QuietHandler, ThreadedServer

Calls = Sequence[tuple[int, str, Any]]
_WORDS = re.compile(r"\S+\s*|\s+")


def _genai_whole(text: str, calls: Calls) -> dict[str, Any]:
    parts: list[Any] = [{"text": text}] if text else []
    return _genai([*parts, *_genai_calls(calls)], "STOP")


def _genai_events(text: str, calls: Calls) -> Iterator[str]:
    for word in _WORDS.findall(text):
        yield _data(_genai([{"text": word}], None))
    yield _data(_genai(_genai_calls(calls) or [{"text": ""}], "STOP"))


def _openai_whole(text: str, calls: Calls) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = _openai_calls(calls)
    reason = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return _openai("chat.completion", choice)


def _openai_events(text: str, calls: Calls) -> Iterator[str]:
    """The arguments of a call come in two pieces."""
    yield _openai_chunk({"role": "assistant", "content": ""})
    for word in _WORDS.findall(text):
        yield _openai_chunk({"content": word})
    for at, call in enumerate(_openai_calls(calls)):
        arguments = call["function"]["arguments"]
        first = {**call["function"], "arguments": arguments[:3]}
        yield _openai_chunk({"tool_calls": [{**call, "index": at, "function": first}]})
        second_part = {"index": at, "function": {"arguments": arguments[3:]}}
        yield _openai_chunk({"tool_calls": [second_part]})
    yield _openai_chunk({}, "tool_calls" if calls else "stop")
    yield "data: [DONE]\n\n"


def _responses_whole(text: str, calls: Calls) -> dict[str, Any]:
    output = [_responses_message(text)] if text else []
    return _response([*output, *_responses_calls(calls)], "completed")


def _responses_events(text: str, calls: Calls) -> Iterator[str]:
    """The arguments of a call come in two pieces."""
    whole = _responses_whole(text, calls)
    started = _response([], "in_progress")
    events: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    for at, item in enumerate(whole["output"]):
        place = {"output_index": at, "item_id": item["id"]}
        is_text = item["type"] == "message"
        inner = _text_events(item, text) if is_text else _argument_events(item)
        added = {**item, **_EMPTY[item["type"]], "status": "in_progress"}
        events.append({"type": "response.output_item.added", **place, "item": added})
        events += [{**place, **event} for event in inner]
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for at, event in enumerate(events):
        yield _event(**event, sequence_number=at)


def _text_events(item: dict[str, Any], text: str) -> list[dict[str, Any]]:
    part = item["content"][0]
    kind = "response.output_text"
    events: list[dict[str, Any]] = [
        {"type": "response.content_part.added", "part": {**part, "text": ""}},
        *({"type": f"{kind}.delta", "delta": w} for w in _WORDS.findall(text)),
        {"type": f"{kind}.done", "text": text},
        {"type": "response.content_part.done", "part": part},
    ]
    return [{"content_index": 0, "logprobs": [], **event} for event in events]


def _argument_events(item: dict[str, Any]) -> list[dict[str, Any]]:
    if item["type"] == "custom_tool_call":
        return []
    kind, written = "response.function_call_arguments", item["arguments"]
    return [
        {"type": f"{kind}.delta", "delta": written[:3]},
        {"type": f"{kind}.delta", "delta": written[3:]},
        {"type": f"{kind}.done", "arguments": written, "name": item["name"]},
    ]


_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
"""How an item looks before its content is streamed."""


def _responses_message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    head = {"id": "msg_local", "type": "message", "role": "assistant"}
    return {**head, "status": "completed", "content": [part]}


def _responses_calls(calls: Calls) -> list[dict[str, Any]]:
    return [_responses_call(*call) for call in calls]


def _responses_call(number: int, name: str, arguments: Any) -> dict[str, Any]:
    """``space/tool`` names a tool of a namespace; a text is a free-form call."""
    namespace, _, tool = name.rpartition("/")
    call = {"call_id": f"call_{number}", "name": tool, "status": "completed"}
    if isinstance(arguments, str):
        free = {"id": f"ctc_{number}", "type": "custom_tool_call"}
        return {**free, **call, "input": arguments}
    call |= {"arguments": json.dumps(arguments)}
    call |= {"namespace": namespace} if namespace else {}
    return {"id": f"fc_{number}", "type": "function_call", **call}


def _response(output: list[Any], status: str) -> dict[str, Any]:
    head = {"id": "resp_local", "object": "response", "created_at": 0, "error": None}
    tools = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    usage = {
        "input_tokens": 1, "output_tokens": 2, "total_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    whole = {**head, "model": "local", "status": status, "output": output, **tools}
    return {**whole, "usage": usage if status == "completed" else None}


def _anthropic_whole(text: str, calls: Calls) -> dict[str, Any]:
    blocks: list[Any] = [{"type": "text", "text": text}] if text else []
    blocks += [_tool_use(number, name, args) for number, name, args in calls]
    return _message(blocks, "tool_use" if calls else "end_turn")


def _anthropic_events(text: str, calls: Calls) -> Iterator[str]:
    yield _event("message_start", message=_message([], None))
    if text:
        words = [{"type": "text_delta", "text": w} for w in _WORDS.findall(text)]
        yield from _block(0, {"type": "text", "text": ""}, words)
    for at, (number, name, args) in enumerate(calls, start=bool(text)):
        written = json.dumps(args)
        pieces = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in (written[:3], written[3:])
        ]
        yield from _block(at, _tool_use(number, name, {}), pieces)
    reason = "tool_use" if calls else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={"output_tokens": 2})
    yield _event("message_stop")


class _Service(Struct, frozen=True):
    """The wire format of one service: an answer as an object, or word by word."""

    path_pattern: str
    whole: Callable[[str, Calls], dict[str, Any]]
    events: Callable[[str, Calls], Iterator[str]]


_SERVICES = (
    _Service("generateContent|streamGenerateContent", _genai_whole, _genai_events),
    _Service(r"/chat/completions(\?|$)", _openai_whole, _openai_events),
    _Service(r"/responses(\?|$)", _responses_whole, _responses_events),
    _Service(
        r"^[^?]*(/messages|/invoke|:(streamR|r)awPredict)(\?|$)",
        _anthropic_whole,
        _anthropic_events,
    ),
)


def _genai_calls(calls: Calls) -> list[Any]:
    return [{"functionCall": {"name": name, "args": args}} for _, name, args in calls]


def _genai(parts: list[Any], reason: str | None) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    candidate |= {} if reason is None else {"finishReason": reason}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "local"}


def _openai_calls(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for number, name, args in calls
    ]


def _openai(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    head = {"id": "chatcmpl-local", "object": kind, "created": 0, "model": "local"}
    return {**head, "choices": [choice]}


def _openai_chunk(delta: dict[str, Any], reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _data(_openai("chat.completion.chunk", choice))


def _tool_use(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call_id = f"toolu_{number}"
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _message(blocks: list[Any], reason: str | None) -> dict[str, Any]:
    head = {"id": "msg_local", "type": "message", "role": "assistant"}
    end = {"stop_reason": reason, "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 2}
    return {**head, "model": "local", "content": blocks, **end, "usage": usage}


def _block(at: int, block: dict[str, Any], deltas: list[Any]) -> Iterator[str]:
    yield _event("content_block_start", index=at, content_block=block)
    for delta in deltas:
        yield _event("content_block_delta", index=at, delta=delta)
    yield _event("content_block_stop", index=at)


def _event(type: str, **fields: Any) -> str:  # noqa: A002 - as the services name it
    return f"event: {type}\n" + _data({"type": type, **fields})


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


class Answer(Struct, frozen=True):
    """What the model answers: text, and calls as (name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    status: int = 200
    """Any other status is an error, with the text as its message."""


class ReceivedRequest(Struct, frozen=True):
    """One request that came in."""

    path: str
    body: dict[str, Any]


class ModelServer(ThreadedServer):
    """Gives one answer after the other on a port of this machine."""

    def __init__(self, answers: Iterable[Answer | str] = ()) -> None:
        super().__init__(_Handler)
        self._answers = iter(answers)
        self._lock = threading.Lock()
        self.requests: list[ReceivedRequest] = []
        self.numbers = count()
        """One for each call: an agent may take a repeated id for the same call."""
        self.gate: threading.Event | None = None
        """If set, a stream waits for it after its first chunk."""

    def take(self, path: str, body: dict[str, Any]) -> Answer:
        """Keep a request and give the next answer; an empty one after the last."""
        with self._lock:
            self.requests.append(ReceivedRequest(path, body))
            answer = next(self._answers, "")
        return Answer(answer) if isinstance(answer, str) else answer

    def __exit__(self, *details: object) -> None:
        if self.gate is not None:
            self.gate.set()
        super().__exit__(*details)


class _Handler(QuietHandler[ModelServer]):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body would wait 40 ms for its headers

    def do_POST(self) -> None:  # noqa: N802 - the base class calls it
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        services = (
            candidate
            for candidate in _SERVICES
            if re.search(candidate.path_pattern, self.path)
        )
        service = next(services, None)
        if service is None:
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        answer = self.owner.take(self.path, body)
        calls = [(next(self.owner.numbers), *call) for call in answer.calls]
        if answer.status != HTTPStatus.OK:
            self._send(answer.status, {"error": {"message": answer.text}})
        elif "streamGenerateContent" in self.path or body.get("stream") is True:
            self._stream(service.events(answer.text, calls))
        else:
            self._send(200, service.whole(answer.text, calls))

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[str]) -> None:
        gate = self.owner.gate
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for at, event in enumerate(events):
                if at == 1 and gate is not None:
                    gate.wait()
                self.wfile.write(event.encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client closed the connection, as an aborted one does
