"""What is remembered of a conversation between the processes of its events."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.hosts.conversation import Conversation


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the files of conversations are in."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "hookline" / "conversations"


def conversation(agent_id: str = "") -> Conversation:
    """As another process of the bridge has it."""
    return Conversation("claude", "session", agent_id)


def test_a_stop_and_the_rejections_of_a_turn_do_not_disturb_each_other(
    state: Path,
) -> None:
    """One file holds both, and nothing of a subagent."""
    assert conversation().count_rejection(again=False) == 1
    conversation().postpone_stop("enough \ud800")
    assert conversation().count_rejection(again=True) == 2
    assert conversation("agent").take_stop() is None
    assert conversation().take_stop() == "enough ?"
    assert conversation().take_stop() is None
    assert conversation().count_rejection(again=True) == 3
    assert conversation().count_rejection(again=False) == 1
    conversation().end_turn()
    assert not [*state.iterdir()]


def test_a_file_that_others_can_write_stops_and_counts_nothing(state: Path) -> None:
    """Fails closed: a stop may have been in it."""
    conversation().postpone_stop("enough")
    [file] = state.iterdir()
    file.chmod(0o666)
    assert "other users can write it" in (conversation().take_stop() or "")
    assert conversation().count_rejection(again=True) == 1
