"""Carry hooks of Claude Code, Gemini CLI and llxprt-code over into our settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline.protocol.dialects import CLAUDE_EVENTS, CLAUDE_NOTIFICATIONS, CLAUDE_TOOLS
from hookline.protocol.events import TRAITS, HookEventName, Matching

_NAMES = re.compile(r"[A-Za-z0-9_\-| ]+")
_OUR_NAMES = tuple(dict.fromkeys(our for ours in CLAUDE_TOOLS.values() for our in ours))
_EVERYTHING = (".*", "^.*$", ".+", "^.+$", "(.*)")

_OWN_NAMES = (
    "matcher {!r} meets the tool names of your own host: "
    "see that its servers' tools are named so"
)


class Matcher(Struct, frozen=True):
    """Matchers in our spelling, any of which is to match, and what to know of them."""

    patterns: tuple[str | None, ...]
    notes: tuple[str, ...] = ()


EVERYTHING = Matcher((None,))


def tool_matcher(theirs: str | None) -> Matcher:
    """Translate the matcher of a tool event."""
    if _is_everything(theirs):
        return EVERYTHING
    assert theirs is not None
    notes: tuple[str, ...] = ()
    if _NAMES.fullmatch(theirs):
        pattern = _by_names([name.strip() for name in theirs.split("|")])
    else:
        pattern, notes = _by_expression(theirs)
    if "mcp__" in theirs:
        notes += (_OWN_NAMES.format(theirs),)
    return Matcher((pattern,), notes)


def plain_matcher(theirs: str | None, known: dict[str, str]) -> Matcher:
    """Translate a matcher that is compared exactly here: one for each value it names.

    ``known`` maps their values to ours.
    """
    if _is_everything(theirs):
        return EVERYTHING
    assert theirs is not None
    values = _values(theirs, known)
    unknown = [value for value in values if value not in known]
    return Matcher(
        tuple(known[value] for value in values if value in known),
        tuple(f"matcher {value!r}: this never happens here" for value in unknown),
    )


def _is_everything(theirs: str | None) -> bool:
    return theirs is None or theirs.strip() in ("", "*", *_EVERYTHING)


def _values(theirs: str, known: dict[str, str]) -> list[str]:
    if _NAMES.fullmatch(theirs):
        return [value.strip() for value in theirs.split("|")]
    try:
        expression = re.compile(theirs)
    except re.error:
        return [theirs]
    return [value for value in known if expression.search(value)] or [theirs]


def _by_names(names: list[str]) -> str:
    ours = [our for name in names for our in CLAUDE_TOOLS.get(name, (re.escape(name),))]
    return _exactly(ours)


def _exactly(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return f"^{unique[0]}$" if len(unique) == 1 else f"^(?:{'|'.join(unique)})$"


def _by_expression(theirs: str) -> tuple[str, tuple[str, ...]]:
    try:
        expression = re.compile(theirs)
    except re.error as error:
        return theirs, (f"matcher {theirs!r} is no regular expression here ({error})",)
    tools = [name for name in CLAUDE_TOOLS if expression.search(name)]
    meant = [our for name in tools for our in CLAUDE_TOOLS[name]]
    simple = f"{_exactly(meant)}|{theirs}" if meant else theirs
    if all(bool(re.search(simple, our)) == (our in meant) for our in _OUR_NAMES):
        return simple, ()
    # Their expression would match one of our names by accident: it judges others only.
    others = f"^(?!(?:{'|'.join(_OUR_NAMES)})$)(?=.*?(?:{theirs}))"
    return (f"{_exactly(meant)}|{others}" if meant else others), ()


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


_SILENT = frozenset({"type", "command", "timeout", "shell"})
_NEWS = {
    HookEventName.SessionStart: {x: x for x in ("startup", "resume", "clear")},
    HookEventName.SessionEnd: {
        x: x for x in ("clear", "logout", "prompt_input_exit", "other")
    },
    HookEventName.PreCompress: {x: x for x in ("manual", "auto")},
    HookEventName.Notification: CLAUDE_NOTIFICATIONS,
}


def from_claude(theirs: dict[str, Any]) -> Migrated:
    """Translate events, matchers, tools and seconds."""
    reader = _Reader()
    hooks: dict[str, list[dict[str, Any]]] = {}
    given = theirs.get("hooks")
    for name, groups in given.items() if isinstance(given, dict) else ():
        event = CLAUDE_EVENTS.get(name)
        if event is None:
            reader.note(f"{name}: there is no such event here")
        elif not isinstance(groups, list):
            reader.note(f"{name}: expected a list of groups")
        else:
            found = [
                one for group in groups for one in reader.groups(event, name, group)
            ]
            hooks[event.value] = found
    settings: dict[str, Any] = {
        "enableHooks": theirs.get("disableAllHooks") is not True
    }
    settings["hooks"] = {event: groups for event, groups in hooks.items() if groups}
    return Migrated(settings, tuple(reader.notes))


class _Reader:
    """Translates groups and remembers what did not carry over."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def groups(
        self, event: HookEventName, name: str, group: Any
    ) -> Iterator[dict[str, Any]]:
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            self.note(f"{name}: a group without a list of hooks")
            return
        hooks = [hook for one in group["hooks"] for hook in self._hook(name, one)]
        matcher = group.get("matcher")
        matcher = matcher if isinstance(matcher, str) else None
        ours = _matcher(event, matcher)
        for text in ours.notes:
            self.note(f"{name}: {text}")
        for pattern in ours.patterns if hooks else ():
            shown = {} if pattern is None else {"matcher": pattern}
            yield {**shown, "hooks": hooks}

    def _hook(self, name: str, hook: Any) -> Iterator[dict[str, Any]]:
        kind = hook.get("type") if isinstance(hook, dict) else None
        if kind != "command" or not isinstance(hook.get("command"), str):
            self.note(f"{name}: a hook of type {kind!r} has no counterpart")
            return
        command: str = hook["command"]
        ours: dict[str, Any] = {
            "type": "command",
            "command": command,
            "dialect": "claude",
        }
        timeout = hook.get("timeout")
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            ours["timeout"] = round(timeout * 1000)
        for key in sorted(hook.keys() - _SILENT):
            self.note(f"{name}: {key!r} of {command!r} has no counterpart")
        if hook.get("shell") not in (None, "bash"):
            self.note(f"{name}: the shell {hook['shell']!r} of {command!r}")
        yield ours


def _matcher(event: HookEventName, theirs: str | None) -> Matcher:
    matching = TRAITS[event].matching
    if matching is Matching.REGEX:
        return tool_matcher(theirs)
    if matching is Matching.EXACT:
        return plain_matcher(theirs, _NEWS[event])
    return EVERYTHING


_HOOK_KEYS = ("type", "command", "name", "description", "timeout", "env")
_GROUP_KEYS = ("matcher", "sequential", "hooks")
_OPTION_KEYS = ("disabled", "enabled", "notifications")


def from_gemini(theirs: dict[str, Any]) -> Migrated:
    """Carry events over by name, and gather options from where versions keep them."""
    notes: list[str] = []
    given = theirs.get("hooks")
    given = given if isinstance(given, dict) else {}
    hooks: dict[str, list[dict[str, Any]]] = {}
    for name, groups in given.items():
        if name in _OPTION_KEYS and not isinstance(groups, dict):
            continue
        if name not in tuple(HookEventName) or not isinstance(groups, list):
            notes.append(f"{name}: there is no such event here")
            continue
        found = [ours for group in groups for ours in _group(name, group, notes)]
        if found:
            hooks[name] = found
    options = _options(theirs, given)
    settings: dict[str, Any] = {"enableHooks": options.pop("enabled"), "hooks": hooks}
    if options["disabled"]:
        settings["hooksConfig"] = options
    return Migrated(settings, tuple(notes))


def _group(name: str, group: Any, notes: list[str]) -> list[dict[str, Any]]:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        notes.append(f"{name}: a group without a list of hooks")
        return []
    hooks = [_hook(name, hook, notes) for hook in group["hooks"]]
    left = sorted(group.keys() - set(_GROUP_KEYS))
    notes.extend(f"{name}: {key!r} of a group has no counterpart" for key in left)
    kept = {key: group[key] for key in ("matcher", "sequential") if key in group}
    found = [hook for hook in hooks if hook]
    return [{**kept, "hooks": found}] if found else []


def _hook(name: str, hook: Any, notes: list[str]) -> dict[str, Any] | None:
    kind = hook.get("type") if isinstance(hook, dict) else None
    if kind != "command" or not isinstance(hook.get("command"), str):
        notes.append(f"{name}: a hook of type {kind!r} has no counterpart")
        return None
    left, command = sorted(hook.keys() - set(_HOOK_KEYS)), hook["command"]
    notes.extend(f"{name}: {key!r} of {command!r} has no counterpart" for key in left)
    return {key: hook[key] for key in _HOOK_KEYS if key in hook}


def _options(theirs: dict[str, Any], hooks: dict[str, Any]) -> dict[str, Any]:
    config, tools = theirs.get("hooksConfig"), theirs.get("tools")
    config = config if isinstance(config, dict) else {}
    tools = tools if isinstance(tools, dict) else {}
    places = (theirs, tools)
    switches = [place.get("enableHooks") for place in places]
    switches += [config.get("enabled"), hooks.get("enabled")]
    disabled = [*_names(config.get("disabled")), *_names(hooks.get("disabled"))]
    return {
        "enabled": False not in switches,
        "disabled": list(dict.fromkeys(disabled)),
    }


def _names(value: Any) -> list[str]:
    return [n for n in value if isinstance(n, str)] if isinstance(value, list) else []
