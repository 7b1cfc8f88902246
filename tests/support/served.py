"""Rows that fire an event on an http hook: what its server got, and the verdict."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

from .fired import described, fire_row
from .web import Exchange, WebServer, reply


async def fire_served_row(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fire the event of a row on hooks that ask ``<url>``.

    ``answer`` is what the server sends: ``status``, ``body`` and ``headers``, or raw
    text, after which ``"closes": true`` closes the connection. ``env`` are variables
    of the host; None is one that is not set. With ``"shows": "request"`` the requests
    are a part of what came of it, else their number.
    """
    closes = row.get("closes", False)

    def answer(exchange: Exchange) -> bytes | None:
        exchange.connection.sendall(_bytes_of(row.get("answer", {})))
        return None if closes else b""

    variables = {"HOOKLINE_REPLAY": None, **row.get("env", {})}
    with (
        WebServer(answer) as server,
        patch.dict(os.environ),
    ):
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        places: dict[str, object] = {
            "url": server.url,
            "address": server.url.removeprefix("http://"),
        }
        verdict = await fire_row(row, folder, places)
    requests = [_request(exchange) for exchange in server.exchanges]
    answered = requests if row.get("shows") == "request" else len(requests)
    return described({**verdict, "requests": answered}, {"folder": folder, **places})


def _bytes_of(answer: dict[str, Any] | str) -> bytes:
    if isinstance(answer, str):
        return answer.encode()
    body = answer.get("body", "")
    if "times" in answer:
        body *= answer["times"]
    if "encoding" in answer:
        body = body.encode(answer["encoding"])
    return reply(body, answer.get("status", 200), **answer.get("headers", {}))


def _request(exchange: Exchange) -> dict[str, Any]:
    headers = dict(exchange.headers)
    assert headers.pop("content-length") == str(len(exchange.body))
    return {
        "target": exchange.target,
        "headers": headers,
        "body": exchange.body.decode(),
    }
