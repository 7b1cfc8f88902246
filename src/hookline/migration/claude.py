"""Claude Code's settings in ours; its hooks keep their spelling by ``dialect``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.dialects import CLAUDE_EVENTS, CLAUDE_NOTIFICATIONS
from hookline.events import TRAITS, HookEventName, Matching

from . import Migrated
from .matchers import EVERYTHING, Matcher, plain_matcher, tool_matcher

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
