"""Convert the hook settings of Claude Code, Gemini CLI and llxprt-code into ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any

from msgspec import Struct

from hookline.protocol.dialects import CLAUDE_EVENTS, CLAUDE_NOTIFICATIONS, CLAUDE_TOOLS
from hookline.protocol.events import TRAITS, HookEventName, Matching


class MigrationSource(StrEnum):
    """The agent that the settings belong to."""

    CLAUDE = "claude"
    GEMINI = "gemini"
    LLXPRT = "llxprt"


class Migrated(Struct, frozen=True):
    """Our settings, and notes on what could not be converted."""

    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def hook_count(self) -> int:
        """The number of converted hooks."""
        events = self.settings["hooks"].values()
        return sum(len(group["hooks"]) for groups in events for group in groups)


def migrate(source: MigrationSource, theirs: dict[str, Any]) -> Migrated:
    """Convert one settings file."""
    is_claude = source is MigrationSource.CLAUDE
    return (_ClaudeConverter() if is_claude else _Converter()).convert(theirs)


class _Converter:
    """Converts settings of Gemini CLI and llxprt-code, whose protocol is ours."""

    events: Mapping[str, HookEventName] = HookEventName.__members__
    option_keys: tuple[str, ...] = ("disabled", "enabled", "notifications")
    """Keys beside the events, in some versions."""
    fields: Sequence[str] = ("type", "command", "name", "description", "timeout", "env")

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}

    def note(self, text: str) -> None:
        self._notes[text] = None

    def convert(self, theirs: dict[str, Any]) -> Migrated:
        given = theirs.get("hooks", {})
        if not isinstance(given, dict):
            self.note("hooks: expected an object with a list of groups for each event")
            given = {}
        hooks: dict[str, Any] = {}
        for name, groups in given.items():
            if found := self._event(name, groups):
                hooks[self.events[name].value] = found
        enabled, disabled = self.switches(theirs, given)
        settings: dict[str, Any] = {"enableHooks": enabled, "hooks": hooks}
        if disabled:
            settings["hooksConfig"] = {"disabled": list(dict.fromkeys(disabled))}
        return Migrated(settings, tuple(self._notes))

    def switches(
        self, theirs: dict[str, Any], hooks: dict[str, Any]
    ) -> tuple[bool, list[str]]:
        """Whether hooks are enabled, and which are not; versions keep it elsewhere."""
        config, tools = (_mapping(theirs.get(key)) for key in ("hooksConfig", "tools"))
        enabled = [place.get("enableHooks") for place in (theirs, tools)]
        enabled += [place.get("enabled") for place in (config, hooks)]
        disabled = _texts(config.get("disabled")) + _texts(hooks.get("disabled"))
        return False not in enabled, disabled

    def _event(self, name: str, groups: Any) -> list[dict[str, Any]]:
        if name in self.option_keys and not isinstance(groups, dict):
            return []
        if name not in self.events:
            self.note(f"{name}: Hookline has no such event")
            return []
        if not isinstance(groups, list):
            self.note(f"{name}: expected a list of groups")
            return []
        return [ours for group in groups for ours in self._group(name, group)]

    def _group(self, name: str, group: Any) -> list[dict[str, Any]]:
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            self.note(f"{name}: a group without a list of hooks")
            return []
        hooks = [ours for hook in group["hooks"] for ours in self._hook(name, hook)]
        heads = self.heads(name, group)
        return [{**head, "hooks": hooks} for head in heads] if hooks else []

    def heads(self, name: str, group: dict[str, Any]) -> list[dict[str, Any]]:
        """The fields of our groups for one of theirs, without the hooks."""
        for key in sorted(group.keys() - {"matcher", "sequential", "hooks"}):
            self.note(f"{name}: {key!r} of a group is not supported")
        return [{key: group[key] for key in ("matcher", "sequential") if key in group}]

    def _hook(self, name: str, hook: Any) -> Iterator[dict[str, Any]]:
        kind = hook.get("type") if isinstance(hook, dict) else None
        if kind != "command" or not isinstance(hook.get("command"), str):
            self.note(f"{name}: hooks of type {kind!r} are not supported")
            return
        for key in sorted(hook.keys() - set(self.fields)):
            self.note(f"{name}: {key!r} of {hook['command']!r} is not supported")
        yield self.hook(name, hook)

    def hook(self, name: str, hook: dict[str, Any]) -> dict[str, Any]:
        """Our hook for a command hook of theirs."""
        return {key: hook[key] for key in self.fields if key in hook}


class _ClaudeConverter(_Converter):
    """Converts names of events and tools, matchers, and seconds to milliseconds."""

    events = CLAUDE_EVENTS
    option_keys = ()
    fields = ("type", "command", "timeout", "shell")

    def switches(
        self, theirs: dict[str, Any], hooks: dict[str, Any]
    ) -> tuple[bool, list[str]]:
        return theirs.get("disableAllHooks") is not True, []

    def heads(self, name: str, group: dict[str, Any]) -> list[dict[str, Any]]:
        given = group.get("matcher")
        matcher = _matcher(self.events[name], given if isinstance(given, str) else "")
        for text in matcher.notes:
            self.note(f"{name}: {text}")
        return [{"matcher": found} if found else {} for found in matcher.patterns]

    def hook(self, name: str, hook: dict[str, Any]) -> dict[str, Any]:
        ours = {"type": "command", "command": hook["command"], "dialect": "claude"}
        timeout = hook.get("timeout")
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            ours["timeout"] = round(timeout * 1000)
        if hook.get("shell") not in (None, "bash"):
            shell, command = hook["shell"], hook["command"]
            self.note(f"{name}: the shell {shell!r} of {command!r} is not supported")
        return ours


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [n for n in value if isinstance(n, str)] if isinstance(value, list) else []


class Matcher(Struct, frozen=True):
    """Alternative matchers in our syntax, and notes for the user."""

    patterns: tuple[str | None, ...]
    notes: tuple[str, ...] = ()


_MATCH_ALL = Matcher((None,))
_MATCH_ALL_TEXTS = ("", "*", ".*", "^.*$", ".+", "^.+$", "(.*)")
_NAMES = re.compile(r"[A-Za-z0-9_\-| ]+")
_OUR_TOOLS = tuple(dict.fromkeys(chain.from_iterable(CLAUDE_TOOLS.values())))
_VALUES: dict[HookEventName, dict[str, str]] = {
    HookEventName.SessionStart: {
        **{x: x for x in ("startup", "resume", "clear")},
        "compact": "compress",
    },
    HookEventName.SessionEnd: {
        x: x for x in ("clear", "logout", "prompt_input_exit", "other")
    },
    HookEventName.PreCompress: {x: x for x in ("manual", "auto")},
    HookEventName.Notification: CLAUDE_NOTIFICATIONS,
}
"""Their values of the fields that we compare exactly, and ours."""


def _matcher(event: HookEventName, theirs: str) -> Matcher:
    matching = TRAITS[event].matching
    if matching is Matching.EXACT and event in _VALUES:
        return _exact_matcher(theirs, _VALUES[event])
    if matching is Matching.EXACT:
        return _name_matcher(theirs)
    return tool_matcher(theirs) if matching is Matching.REGEX else _MATCH_ALL


def tool_matcher(theirs: str) -> Matcher:
    """Convert the matcher of a tool event of Claude Code."""
    if theirs.strip() in _MATCH_ALL_TEXTS:
        return _MATCH_ALL
    notes: tuple[str, ...] = ()
    if _NAMES.fullmatch(theirs):
        names = [name.strip() for name in theirs.split("|")]
        known = (CLAUDE_TOOLS.get(name, (re.escape(name),)) for name in names)
        pattern = _exactly(list(chain.from_iterable(known)))
    else:
        pattern, notes = _tool_expression(theirs)
    if "mcp__" in theirs:
        note = f"matcher {theirs!r} is compared with the tool names of your own host"
        notes += (f"{note}: check that it names MCP tools like that",)
    return Matcher((pattern,), notes)


def _tool_expression(theirs: str) -> tuple[str, tuple[str, ...]]:
    try:
        expression = re.compile(theirs)
    except re.error as error:
        note = f"matcher {theirs!r} is not a valid regular expression here ({error})"
        return theirs, (note,)
    found = (ours for their, ours in CLAUDE_TOOLS.items() if expression.search(their))
    meant = list(chain.from_iterable(found))
    prefix = f"{_exactly(meant)}|" if meant else ""
    simple = f"{prefix}{theirs}"
    if all(bool(re.search(simple, our)) == (our in meant) for our in _OUR_TOOLS):
        return simple, ()
    # The expression matches one of our names by accident: use it for other tools only.
    return f"{prefix}^(?!(?:{'|'.join(_OUR_TOOLS)})$)(?=.*?(?:{theirs}))", ()


def _exactly(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return f"^{unique[0]}$" if len(unique) == 1 else f"^(?:{'|'.join(unique)})$"


def _exact_matcher(theirs: str, known: dict[str, str]) -> Matcher:
    """Convert a matcher that we compare exactly: one pattern for each value."""
    if theirs.strip() in _MATCH_ALL_TEXTS:
        return _MATCH_ALL
    values = _values(theirs, known)
    unknown = (value for value in values if value not in known)
    notes = tuple(f"matcher {value!r} never matches here" for value in unknown)
    return Matcher(tuple(known[value] for value in values if value in known), notes)


def _name_matcher(theirs: str) -> Matcher:
    """Convert a matcher of names that anybody may choose, such as types of agents."""
    if theirs.strip() in _MATCH_ALL_TEXTS:
        return _MATCH_ALL
    if _NAMES.fullmatch(theirs):
        return Matcher(tuple(name.strip() for name in theirs.split("|")))
    note = f"matcher {theirs!r} is a regular expression, compared exactly here"
    return Matcher((None,), (f"{note}: the hook runs for every name instead",))


def _values(theirs: str, known: dict[str, str]) -> list[str]:
    if _NAMES.fullmatch(theirs):
        return [value.strip() for value in theirs.split("|")]
    try:
        expression = re.compile(theirs)
    except re.error:
        return [theirs]
    return [value for value in known if expression.search(value)] or [theirs]
