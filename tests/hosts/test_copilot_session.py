"""The answer that Copilot does not tell: from the file that it keeps of a session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bridged import BridgedProject, payload


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


def answer_in(bridged: BridgedProject, transcript: object) -> str:
    """The prompt and the answer of a turn, as hooks see them."""
    path = str(transcript) if isinstance(transcript, Path) else transcript
    sent = payload("copilot/agentStop-1") | {"transcriptPath": path}
    then = {"decision": "deny", "reason": "[${prompt}][${prompt_response}]"}
    bridged.rule("AfterAgent", then)
    reason: str = bridged.ask("copilot", sent, "agentStop").json()["reason"]
    return reason


def test_answer_is_read_from_the_transcript(
    bridged: BridgedProject, tmp_path: Path
) -> None:
    """HOSTS, AfterAgent: no answer text, read the transcript."""
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(EVENTS) + "\n")
    assert answer_in(bridged, file) == "[the prompt][All DONE.]"


def test_transcript_is_read_from_its_end_and_never_waited_for(
    bridged: BridgedProject, tmp_path: Path
) -> None:
    """A path in an event is somebody else's text."""
    file, pipe = tmp_path / "events.jsonl", tmp_path / "pipe"
    long = record("user.message", "p" * (4 << 20))
    file.write_text("\n".join([long, record("assistant.message", "end")]))
    assert answer_in(bridged, file) == "[][end]"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link", tmp_path, tmp_path / "none", "\0", None):
        assert answer_in(bridged, path) == "[][]"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_broken_transcript_is_no_error(
    bridged: BridgedProject, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_bytes(b'{"type": "assistant.message"' + content)
    assert answer_in(bridged, file) == "[][]"
