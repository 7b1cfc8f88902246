"""What hooks say in the real programs, from ``cases.toml``, and what is seen of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hookline.hosts.effects import Effect
from hookline.protocol.events import HookEventName

from .programs import Call, Program
from .run import Run

SAID = "said-by-a-hook"
SECRET = "top-secret-7"
_ACT = {"shell": "touch ran.txt; cat secret.txt"}


class Seen(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run left behind; all of it must be so."""

    written: tuple[str, ...] = ()
    """Files that the project has."""
    absent: tuple[str, ...] = ()
    """Files that it does not have."""
    text_of: Mapping[str, str] = {}
    sent: tuple[str, ...] = ()
    """Texts that the model was sent."""
    not_sent: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    not_printed: tuple[str, ...] = ()
    requests: int | None = None
    """How often the model was asked."""

    def is_seen_in(self, run: Run) -> bool:
        """Whether a run left it behind."""
        return (
            all(map(run.has, self.written))
            and not any(map(run.has, self.absent))
            and all(run.has(path, text) for path, text in self.text_of.items())
            and all(map(run.sent, self.sent))
            and not any(map(run.sent, self.not_sent))
            and all(text in run.stdout for text in self.printed)
            and not any(text in run.stdout for text in self.not_printed)
            and self.requests in (None, len(run.requests))
        )


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One effect of one event."""

    title: str
    event: HookEventName
    effect: Effect
    full: Seen
    stricter: Seen | None = None
    """What must be seen where the host cannot express it; None: it may be lost."""
    says: Mapping[str, Any] = {}
    turns: tuple[str | dict[str, Any], ...] = (_ACT, "done")
    group: Mapping[str, Any] = {}
    """Further keys of the group, such as a matcher."""
    hook: Mapping[str, Any] = {}
    """Further keys of the hook."""
    shown: str = ""
    """A text that the hook must have been shown."""

    def turns_of(self, program: Program) -> list[Call | str] | None:
        """What the model does in a program; None: the program cannot."""
        calls = [_call(program, turn) for turn in self.turns]
        possible = [call for call in calls if call is not None]
        return possible if len(possible) == len(calls) else None


def _call(program: Program, turn: str | dict[str, Any]) -> Call | str | None:
    """One turn of the model: a text, or a call of a tool that the program has."""
    match turn:
        case "subagent":
            return program.agent
        case str():
            return turn
        case {"shell": command}:
            return program.run(command)
        case {"write": [path, text]}:
            return program.write_file(path, text)
        # A part of a patch cannot be put back (hosts/README.md#what-a-hook-sees).
        case {"write_alone": [path, text]}:
            return program.write_file(path, text) if program.write else None
        case {"note": text}:
            return program.mcp_tool and (program.mcp_tool, {"text": text})
        case {"patch": files} | {"patch_in_shell": files} if program.write:
            return None
        case {"patch": files}:
            return program.patch(files)
        case {"patch_in_shell": files}:
            _, patch = program.patch(files)
            return program.run(f"apply_patch <<'EOF'\n{patch}\nEOF\n")
    raise ValueError(f"unknown turn {turn!r}")


CASES = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("cases.toml").read_text())["case"],
    tuple[Case, ...],
)
