"""Where the journal is: the path that settings name, or the state directory."""

from __future__ import annotations

import os

from hookline.errors import JournalError
from hookline.statefiles import state_dir

FILE_NAME = "journal.sqlite"
REPLAY_VARIABLE = "HOOKLINE_REPLAY"
"""Set for hooks that are replayed: they may act on it, and nothing is recorded."""


def journal_path(option: bool | str, working_dir: str) -> str:
    """The file that ``hooksConfig.journal`` means; a relative one is the project's."""
    if isinstance(option, str) and option.strip():
        return os.path.join(working_dir, os.path.expanduser(option))  # noqa: PTH111, PTH118
    folder = state_dir()
    if folder is None:
        raise JournalError(FILE_NAME, "there is no home to keep it in: name a file")
    return os.path.join(folder, FILE_NAME)  # noqa: PTH118


def recording_path(option: bool | str, working_dir: str) -> str | None:
    """Where events are to be recorded; None is nowhere, as in a replay."""
    if not option or os.environ.get(REPLAY_VARIABLE):
        return None
    return journal_path(option, working_dir)
