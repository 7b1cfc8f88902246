"""How the model services spell an answer, whole and as server-sent events."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol, Self, cast

from msgspec import Struct

Calls = Sequence[tuple[str, dict[str, Any]]]
_WORDS = re.compile(r"\S+\s*|\s+")


class Service(Protocol):
    """One service's wire format."""

    def is_streamed(self, path: str, body: dict[str, Any]) -> bool:
        """Whether a request wants events."""
        ...

    def whole(self, text: str, calls: Calls) -> dict[str, Any]:
        """The answer as one object."""
        ...

    def events(self, text: str, calls: Calls) -> Iterator[str]:
        """The answer as events, word by word."""
        ...


def service_of(path: str) -> Service | None:
    """The service that a path belongs to."""
    if "generateContent" in path or "streamGenerateContent" in path:
        return GenAI()
    if path.endswith("/chat/completions"):
        return OpenAI()
    return Anthropic() if path.split("?", maxsplit=1)[0].endswith("/messages") else None


class GenAI:
    """``generateContent`` and ``streamGenerateContent``."""

    def is_streamed(self, path: str, body: dict[str, Any]) -> bool:
        """It is in the path."""
        del body
        return "streamGenerateContent" in path

    def whole(self, text: str, calls: Calls) -> dict[str, Any]:
        """One GenerateContentResponse."""
        parts: list[Any] = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": n, "args": args}} for n, args in calls]
        return _genai(parts, "STOP")

    def events(self, text: str, calls: Calls) -> Iterator[str]:
        """A chunk per word, then the calls."""
        for word in _WORDS.findall(text):
            yield _data(_genai([{"text": word}], None))
        parts = [{"functionCall": {"name": n, "args": args}} for n, args in calls]
        yield _data(_genai(parts or [{"text": ""}], "STOP"))


class OpenAI:
    """``/chat/completions``."""

    def is_streamed(self, path: str, body: dict[str, Any]) -> bool:
        """It is in the body."""
        del path
        return body.get("stream") is True

    def whole(self, text: str, calls: Calls) -> dict[str, Any]:
        """One ChatCompletion."""
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = _openai_calls(calls)
        choice = {"index": 0, "message": message, "finish_reason": _ended(calls)}
        return _openai("chat.completion", choice)

    def events(self, text: str, calls: Calls) -> Iterator[str]:
        """A chunk per word, then the calls with their arguments in two pieces."""
        yield _openai_chunk({"role": "assistant", "content": ""})
        for word in _WORDS.findall(text):
            yield _openai_chunk({"content": word})
        for at, call in enumerate(_openai_calls(calls)):
            arguments = call["function"]["arguments"]
            first = {**call["function"], "arguments": arguments[:3]}
            yield _openai_chunk(
                {"tool_calls": [{**call, "index": at, "function": first}]}
            )
            rest = {"index": at, "function": {"arguments": arguments[3:]}}
            yield _openai_chunk({"tool_calls": [rest]})
        yield _openai_chunk({}, _ended(calls))
        yield "data: [DONE]\n\n"


class Anthropic:
    """``/messages``."""

    def is_streamed(self, path: str, body: dict[str, Any]) -> bool:
        """It is in the body."""
        del path
        return body.get("stream") is True

    def whole(self, text: str, calls: Calls) -> dict[str, Any]:
        """One Message."""
        blocks: list[Any] = [{"type": "text", "text": text}] if text else []
        blocks += [_tool_use(at, name, args) for at, (name, args) in enumerate(calls)]
        return _message(blocks, "tool_use" if calls else "end_turn")

    def events(self, text: str, calls: Calls) -> Iterator[str]:
        """Blocks in deltas."""
        yield _event("message_start", message=_message([], None))
        at = 0
        if text:
            words = [{"type": "text_delta", "text": w} for w in _WORDS.findall(text)]
            yield from _block(at, {"type": "text", "text": ""}, words)
            at += 1
        for number, (name, args) in enumerate(calls):
            written = json.dumps(args)
            pieces = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in (written[:3], written[3:])
            ]
            block = {**_tool_use(number, name, {})}
            yield from _block(at, block, pieces)
            at += 1
        ended = {"stop_reason": "tool_use" if calls else "end_turn"}
        delta = {**ended, "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": 2})
        yield _event("message_stop")


def _genai(parts: list[Any], reason: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {
        "content": {"role": "model", "parts": parts},
        "index": 0,
    }
    if reason is not None:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "local"}


def _openai_calls(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for at, (name, arguments) in enumerate(calls)
    ]


def _ended(calls: Calls) -> str:
    return "tool_calls" if calls else "stop"


def _openai(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-local",
        "object": kind,
        "created": 0,
        "model": "local",
        "choices": [choice],
    }


def _openai_chunk(delta: dict[str, Any], reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _data(_openai("chat.completion.chunk", choice))


def _tool_use(at: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": f"toolu_{at}",
        "name": name,
        "input": arguments,
    }


def _message(blocks: list[Any], reason: str | None) -> dict[str, Any]:
    return {
        "id": "msg_local",
        "type": "message",
        "role": "assistant",
        "model": "local",
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }


def _block(at: int, block: dict[str, Any], deltas: list[Any]) -> Iterator[str]:
    yield _event("content_block_start", index=at, content_block=block)
    for delta in deltas:
        yield _event("content_block_delta", index=at, delta=delta)
    yield _event("content_block_stop", index=at)


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\n" + _data({"type": kind, **fields})


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


class Answer(Struct, frozen=True):
    """What the model is to say: text, and calls as (name, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


class Asked(Struct, frozen=True):
    """One request that came in."""

    path: str
    body: dict[str, Any]


class ModelServer:
    """Serves on a free port of the loopback interface; use it as ``with``."""

    def __init__(self, answers: Iterable[Answer | str] = ()) -> None:
        self._answers = iter(answers)
        self._lock = threading.Lock()
        self.requests: list[Asked] = []
        self.gate: threading.Event | None = None
        """Where set, a stream waits for it after its first chunk."""
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: dict[str, Any]) -> Answer:
        """Note a request and give the next answer; an empty one after the last."""
        with self._lock:
            self.requests.append(Asked(path, body))
            answer = next(self._answers, "")
        return Answer(answer) if isinstance(answer, str) else answer

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.gate is not None:
            self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer as the service whose path it is."""
        owner = cast("_Server", self.server).owner
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        service = service_of(self.path)
        if service is None:
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        answer = owner.take(self.path, body)
        if not service.is_streamed(self.path, body):
            self._send(200, service.whole(answer.text, answer.calls))
            return
        self._stream(service.events(answer.text, answer.calls), owner.gate)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[str], gate: threading.Event | None) -> None:
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
            pass  # the client has hung up, as an aborted one does
