"""The answer that Copilot does not tell: from the file that it keeps of a session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.hosts.copilot_session import MAX_BYTES, last_answer

from .captured import Desk, captured, desk

__all__ = ["desk"]


def record(kind: str, content: Any, **event: Any) -> str:
    return json.dumps({"type": kind, "data": {"content": content}, **event})


EVENTS = [
    record("user.message", "old prompt"),
    record("assistant.message", "old answer"),
    record("user.message", "the prompt"),
    record("assistant.message", "first thought"),
    record("assistant.message", ""),
    record("assistant.message", "of a subagent", agentId="a1"),
    "[1, 2",
    '"assistant.message"',
    record("assistant.message", "All DONE."),
    record("hook.start", "x"),
]


async def test_the_answer_is_read_from_the_transcript(
    desk: Desk, tmp_path: Path
) -> None:
    """HOSTS, AfterAgent: no answer text, read the transcript."""
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(EVENTS) + "\n")
    assert last_answer(str(file)) == ("the prompt", "All DONE.")
    given = captured("copilot", "agentStop-1") | {"transcriptPath": str(file)}
    reason = "${prompt}: ${prompt_response}"
    desk.rule("AfterAgent", {"decision": "deny", "reason": reason})
    reply = await desk.ask("copilot", given, "agentStop")
    expected = b'{"decision":"block","reason":"the prompt: All DONE."}\n'
    assert reply.stdout == expected


def test_a_transcript_is_read_from_its_end_and_never_waited_for(tmp_path: Path) -> None:
    """A path in an event is somebody else's text."""
    file, pipe = tmp_path / "events.jsonl", tmp_path / "pipe"
    long = record("user.message", "p" * MAX_BYTES)
    file.write_text("\n".join([long, record("assistant.message", "end")]))
    assert last_answer(str(file)) == ("", "end")
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link", tmp_path, tmp_path / "none", "\0", 7, None):
        given = str(path) if isinstance(path, Path) else path
        assert last_answer(given) == ("", "")


@given(content=st.binary(max_size=200))
def test_a_broken_transcript_is_no_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "broken.jsonl"
    file.write_bytes(b'{"type": "assistant.message"' + content)
    assert last_answer(str(file)) == ("", "")
