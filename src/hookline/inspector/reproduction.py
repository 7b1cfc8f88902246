"""An event as a command that fires it again, and as a hooktest.

Both are made to be pasted: whatever the event holds, a shell gets one command and a
TOML parser one case.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from hookline.journal.query import FullEntry
from hookline.protocol.events import known_event
from hookline.protocol.outputs import changed_tool_input, read_output
from hookline.protocol.values import encode
from hookline.protocol.verdict import Verdict
from hookline.settings.toml_text import toml_key, toml_value

_GIVEN_ELSEWHERE = frozenset({"hook_event_name", "timestamp", "cwd"})
_DELIMITER = "HOOKLINE_INPUT"
_UNSAFE = re.compile(r"[^\x20-\x7e\n]|!")
_OBJECTS = ("tool_input", "tool_response", "llm_request", "llm_response")
_TEXTS = {"tool_name": "tool", "prompt": "prompt", "session_id": "session_id"}
_MAX_DEPTH = 60
"""Of a value in a hooktest: Python's TOML parser recurses for each level."""
_MAX_MESSAGE = 200
_MAX_BYTES = 1024 * 1024
"""Of an input that is worth copying; the journal itself records less."""
_WORDS = {"ask": "asks", "changed": "is changed"}


def reproductions(full: FullEntry, options: Sequence[str]) -> dict[str, Any]:
    """The event as a command and as a test; ``options`` say which settings to use."""
    copies: dict[str, Any] = {"inexact": reasons_inexact(full)}
    if len(encode(full.input)) > _MAX_BYTES:
        return copies | {"fire_command": None, "case": None}
    case = hooktest(full, options)
    return copies | {"fire_command": fire_command(full, options), "case": case}


def reasons_inexact(full: FullEntry) -> list[str]:
    """Why the event cannot be fired again exactly as it was."""
    entry = full.entry
    reasons = {
        "credentials in the input are masked": entry.input_masked,
        "the input is truncated": entry.input_cut,
        "a hook in the host's code took part, which runs only there": entry.in_code,
    }
    return [reason for reason, holds in reasons.items() if holds]


def fire_command(full: FullEntry, options: Sequence[str]) -> str:
    """A command for any POSIX shell."""
    chosen = dict(zip(options[::2], options[1::2], strict=True))
    # Not Path.is_dir, which raises for a long name and a folder of somebody else.
    folder = full.entry.cwd
    if folder.isprintable() and os.path.isdir(folder):  # noqa: PTH112
        chosen["--cwd"] = folder
    return command_with_input("fire", full.entry.event, chosen, full.input)


def command_with_input(
    command: str, event: str, options: Mapping[str, str], event_input: Mapping[str, Any]
) -> str:
    """A command of ours that reads an event from a here-document."""
    pairs = (pair for pair in options.items() if pair[1].isprintable())
    words = ["hookline", command, event, *chain.from_iterable(pairs)]
    fields = {k: v for k, v in event_input.items() if k not in _GIVEN_ELSEWHERE}
    line = f"{shlex.join(words)} --input - <<'{_DELIMITER}'"
    return f"{line}\n{_shell_safe_json(fields)}\n{_DELIMITER}\n"


def _shell_safe_json(value: Any) -> str:
    """JSON of which a terminal gets only plain ASCII.

    No line can end the here-document, and there is no ``!``: an interactive shell
    replaces it by an earlier command, even there.
    """
    text = msgspec.json.format(encode(value), indent=2).decode()
    return _UNSAFE.sub(lambda found: _escaped_units(found.group()), text)


def _escaped_units(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def hooktest(full: FullEntry, options: Sequence[str]) -> dict[str, Any]:
    """A hooktest with this event as its case, and how to use it."""
    settings = dict(zip(options[::2], options[1::2], strict=True)).get("--settings")
    case = _Case(full)
    text = "\n".join(
        (
            f"settings = {toml_value(settings or 'project')}",
            "",
            "[[case]]",
            *case.lines(),
            "",
        )
    )
    return {
        "name": f"event-{full.entry.id}.hooktest.toml",
        "text": text,
        "inexact": [*reasons_inexact(full), *case.notes],
    }


class _Case:
    """Writes the lines of one case, and notes what cannot be written."""

    def __init__(self, full: FullEntry) -> None:
        self._full = full
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> list[str]:
        """What is not as it was."""
        return list(self._notes)

    def lines(self) -> Iterator[str]:
        """The keys with one value first, then the tables."""
        plain, tables = self._event_fields()
        plain |= self._expectation()
        if changed := self._changed():
            tables["changed"] = changed
        for key, value in plain.items():
            yield f"{key} = {toml_value(value)}"
        for name, table in tables.items():
            yield f"\n[case.{name}]"
            for key, value in table.items():
                yield f"{toml_key(key)} = {toml_value(value)}"

    def _event_fields(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        entry = self._full.entry
        about = " ".join(filter(None, (entry.event, entry.target)))
        word = _WORDS.get(entry.verdict, f"is {entry.verdict}")
        plain = {"name": f"{about[:_MAX_MESSAGE]} {word}", "event": entry.event}
        tables: dict[str, dict[str, Any]] = {}
        event_fields: dict[str, Any] = {}
        for field, value in self._full.input.items():
            written = self._writable(value)
            if field in _GIVEN_ELSEWHERE or written is None:
                continue
            if field in _TEXTS and isinstance(written, str):
                plain[_TEXTS[field]] = written
            elif field in _OBJECTS and isinstance(written, dict):
                tables[field] = written
            else:
                event_fields[field] = written
        return plain, tables | ({"input": event_fields} if event_fields else {})

    def _expectation(self) -> dict[str, Any]:
        entry = self._full.entry
        expected: dict[str, Any] = {"expect": self._full.decided.expected}
        first = (entry.reason or "").strip().partition("\n")[0][:_MAX_MESSAGE]
        if (
            first
            and expected["expect"] != "allow"
            and not self._full.entry.output_masked
        ):
            expected["message"] = re.escape(first)
        if any(hook["failed"] and not hook["async"] for hook in self._full.hooks):
            expected["fails"] = True
        return expected

    def _changed(self) -> dict[str, Any] | None:
        """What the hooks changed, if that is recorded whole."""
        entry, decided = self._full.entry, self._full.decided
        if entry.output_masked or entry.output_cut or reasons_inexact(self._full):
            return None
        changed = _change_of(self._full, decided)
        written = self._writable(changed) if changed else None
        return written if written == changed else None

    def _writable(self, value: Any, depth: int = 0) -> Any:
        """A copy that TOML can hold; None if it cannot."""
        if value is None:
            self._note("null is left out: TOML has no such value")
        if isinstance(value, str) and ("{cwd}" in value or "{server}" in value):
            self._note("{cwd} and {server} are replaced when the test runs")
        if not isinstance(value, dict | list):
            return value
        if depth > _MAX_DEPTH:
            self._note("parts that are nested too deeply are left out")
            return None
        if isinstance(value, list):
            items = (self._writable(item, depth + 1) for item in value)
            return [item for item in items if item is not None]
        pairs = ((key, self._writable(item, depth + 1)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not None}

    def _note(self, text: str) -> None:
        self._notes[text] = None


def _change_of(full: FullEntry, decided: Verdict) -> dict[str, Any] | None:
    """The change in the words of ``changed``: the whole tool input, or given parts."""
    event = known_event(full.entry.event)
    if event is None or not isinstance(full.final_output, dict):
        return None
    final, _ = read_output(full.final_output, event)
    if decided.tool_input is not None:
        return changed_tool_input(full.input.get("tool_input"), final)
    if decided.llm_request is not None:
        return final.llm_request
    return final.llm_response if decided.llm_response is not None else None
