"""Requests and answers of the API: JSON, and server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hookline.protocol.values import decode, encode

_LONGEST_NUMBER = 18


class _NumberConvertor(IntegerConvertor):
    # Python refuses to convert more than 4300 digits.
    regex = "[0-9]{1,4000}"


register_url_convertor("number", _NumberConvertor())


def reply(value: Any, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(encode(value), status, media_type="application/json")


def refuse(status: int, message: str) -> Response:
    """Answer with an error; the message says what to do."""
    return reply({"error": {"message": message}}, status)


def event_stream(parts: AsyncIterator[bytes]) -> Response:
    """Answer with server-sent events (see ``server_event``)."""
    return StreamingResponse(parts, media_type="text/event-stream")


def server_event(name: str, data: Any, event_id: int | None = None) -> bytes:
    """One server-sent event; JSON has no line breaks, so one line holds its data."""
    number = b"" if event_id is None else b"id: %d\n" % event_id
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), number, encode(data))


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    body = await request.body()
    try:
        value = decode(body)
    except ValueError as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return value


def number_of(request: Request, name: str, default: int | None = None) -> int | None:
    """A whole number of the query, or the default."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST_NUMBER:
        raise HTTPException(400, f"{name} is not a whole number: {text[:40]!r}")
    return int(text)
