"""Turn the settings of other agents into ours.

Pure: settings go in as a mapping, and come out with a note for everything that does
not carry over. Scripts stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from msgspec import Struct


class Origin(StrEnum):
    """Whose settings they are."""

    CLAUDE = "claude"
    GEMINI = "gemini"
    LLXPRT = "llxprt"


class Migrated(Struct, frozen=True):
    """Our settings, and what was left behind."""

    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def hook_count(self) -> int:
        """How many hooks carried over."""
        events = self.settings["hooks"].values()
        return sum(len(group["hooks"]) for groups in events for group in groups)


def migrate(origin: Origin, theirs: dict[str, Any]) -> Migrated:
    """Translate one settings file."""
    from .claude import from_claude
    from .gemini import from_gemini

    translate: dict[Origin, Callable[[dict[str, Any]], Migrated]] = {
        Origin.CLAUDE: from_claude,
        Origin.GEMINI: from_gemini,
        Origin.LLXPRT: from_gemini,
    }
    migrated = translate[origin](theirs)
    if isinstance(theirs.get("hooks", {}), dict):
        return migrated
    note = "hooks: expected an object with a list of groups for each event"
    return Migrated(migrated.settings, (note, *migrated.notes))
