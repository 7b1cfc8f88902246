"""Add hooks to the text of settings that exist; what is there stays as it is.

A hook of the same name on the same event is the user's: it is never changed and never
added a second time. Pure: nothing is read or written here.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import SettingsError
from hookline.hosts.install import json_edit
from hookline.settings.read import parse_text
from hookline.settings.toml_text import toml_key, toml_value

Group = dict[str, Any]
Groups = dict[str, list[Group]]
"""By event, as in the settings."""


class Presence(StrEnum):
    """What settings held of a hook before."""

    ADDED = "added"
    SAME = "same"
    ADAPTED = "adapted"
    """A hook of this name that differs, or stands beside others."""


class Merged(Struct, frozen=True):
    """Settings with hooks added."""

    text: str
    hooks: Mapping[Presence, Collection[str]]
    """The names of the hooks that were wanted."""
    by_hand: str = ""
    """What has to be added by hand, where the text cannot be kept otherwise."""

    def names(self, presence: Presence) -> str:
        """The hooks of one kind."""
        return ", ".join(self.hooks.get(presence, ()))


class _Sorted(Struct):
    missing: Groups = {}
    names: dict[Presence, dict[str, None]] = {}


def merge_groups(text: str, file: str, wanted: Groups) -> Merged:
    """Add the groups whose hooks are missing; raises ``SettingsError``."""
    is_toml = file.endswith(".toml")
    if is_toml and text.startswith("\ufeff"):
        merged = merge_groups(text[1:], file, wanted)
        return replace(merged, text=f"\ufeff{merged.text}")
    parsed = None if is_toml else json_edit.parse(text, file)
    value = parse_text(text, file) if parsed is None else parsed.value
    _require_lists(value, file, parsed, wanted)
    sorted_out = _sort_out(value.get("hooks") or {}, wanted)
    if not sorted_out.missing:
        return Merged(text, sorted_out.names)
    if parsed is None:
        return _appended_to_toml(text, file, value, sorted_out)
    for event, groups in sorted_out.missing.items():
        for group in groups:
            parsed = parsed.appended(("hooks", event), group)
    return Merged(parsed.text, sorted_out.names)


def _require_lists(
    value: dict[str, Any], file: str, parsed: json_edit.JsonText | None, wanted: Groups
) -> None:
    if parsed is not None:
        parsed.require(("hooks",), dict, "an object")
        for event in wanted:
            parsed.require(("hooks", event), list, "a list")
        return
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise SettingsError("hooks: expected a table", file)
    for event in wanted:
        if not isinstance(hooks.get(event, []), list):
            raise SettingsError(f"hooks.{event}: expected an array of tables", file)


def _sort_out(hooks: dict[str, Any], wanted: Groups) -> _Sorted:
    found = _Sorted()
    for event, groups in wanted.items():
        there = hooks.get(event, [])
        # A list: a name that somebody wrote may be any value.
        known = [hook.get("name") for hook in _hooks_in(there)]
        for group in groups:
            names = [hook["name"] for hook in group["hooks"]]
            if group in there:
                kind = Presence.SAME
            elif any(name in known for name in names):
                kind = Presence.ADAPTED
            else:
                kind = Presence.ADDED
                found.missing.setdefault(event, []).append(group)
            found.names.setdefault(kind, {}).update(dict.fromkeys(names))
    return found


def _hooks_in(groups: list[Any]) -> Iterator[dict[str, Any]]:
    for group in groups:
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for hook in hooks if isinstance(hooks, list) else ():
            if isinstance(hook, dict):
                yield hook


def _appended_to_toml(
    text: str, file: str, value: dict[str, Any], sorted_out: _Sorted
) -> Merged:
    """Tables can follow any text, unless it defines the event as one value."""
    newline = "\r\n" if "\r\n" in text else "\n"
    missing = sorted_out.missing
    added = "\n".join(
        line
        for event, groups in missing.items()
        for group in groups
        for line in ("", *_tables(event, group))
    )
    added = f"{added}\n".replace("\n", newline)
    head = text if not text or text.endswith("\n") else f"{text}{newline}"
    whole = f"{head}{added}" if head.strip() else added.lstrip()
    try:
        is_kept = parse_text(whole, file) == _with_groups(value, missing)
    except SettingsError:
        is_kept = False
    if is_kept:
        return Merged(whole, sorted_out.names)
    return Merged(text, sorted_out.names, added.strip())


def _tables(event: str, group: Group) -> Iterator[str]:
    name = f"hooks.{toml_key(event)}"
    yield f"[[{name}]]"
    yield from _pairs({key: item for key, item in group.items() if key != "hooks"})
    for hook in group["hooks"]:
        yield ""
        yield f"[[{name}.hooks]]"
        yield from _pairs(hook)


def _pairs(values: dict[str, Any]) -> Iterator[str]:
    return (f"{toml_key(key)} = {toml_value(item)}" for key, item in values.items())


def _with_groups(value: dict[str, Any], missing: Groups) -> dict[str, Any]:
    expected = copy.deepcopy(value)
    hooks = expected.setdefault("hooks", {})
    for event, groups in missing.items():
        hooks.setdefault(event, []).extend(groups)
    return expected
