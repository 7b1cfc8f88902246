"""The last prompt and answer in the file that Copilot keeps of a session.

Copilot does not tell a hook what the agent answered. Only the end of the file is read,
and only if it is a file: a path in an event is somebody else's text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from os import O_NONBLOCK, pread
from typing import Any

from hookline.protocol.values import decode

MAX_BYTES = 4 * 1024 * 1024
"""How much of the end of the file is read."""


def last_answer(path: Any) -> tuple[str, str]:
    """The prompt of the last turn and the answer to it, empty where there is none."""
    answer = ""
    for kind, text in _messages(_end_of(path) if isinstance(path, str) else b""):
        if kind == "user.message":
            return text, answer
        answer = answer or text
    return "", answer


def _messages(end: bytes) -> Iterator[tuple[str, str]]:
    """The messages of the main agent, the last one first."""
    for line in reversed(end.split(b"\n")):
        if b'"user.message"' in line or b'"assistant.message"' in line:
            event = _event(line)
            data = event.get("data")
            content = data.get("content") if isinstance(data, dict) else None
            is_message = event.get("type") in ("user.message", "assistant.message")
            if is_message and "agentId" not in event and isinstance(content, str):
                yield event["type"], content


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = decode(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _end_of(path: str) -> bytes:
    try:
        # A pipe without a writer would keep us waiting.
        file = os.open(path, os.O_RDONLY | O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return b""
        return pread(file, MAX_BYTES, max(0, found.st_size - MAX_BYTES))
    except OSError:
        return b""
    finally:
        os.close(file)
