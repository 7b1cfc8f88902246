"""Convert settings of Gemini CLI and llxprt-code; the base for other hosts.

A converted hook keeps its matcher and gets a ``dialect``, so that it is matched by,
shown and answers in the names of its host (protocol.md#dialects). Nothing is lost in
silence: what cannot be converted is a note, what works in another way a remark.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from msgspec import Struct

from hookline.protocol.events import HookEventName
from hookline.shell.parse import quote_variables

from .install.calls import bridge_program
from .registry import HOSTS

Wire = dict[str, Any]
Head = tuple[str | None, str | None]
"""What decides whether a hook runs: a matcher, and a condition."""


class Migrated(Struct, frozen=True):
    """Our settings, what could not be converted, and what works in another way."""

    settings: Wire
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def hook_count(self) -> int:
        """The number of converted hooks."""
        events = self.settings["hooks"].values()
        return sum(len(group["hooks"]) for groups in events for group in groups)


def joined(parts: Iterable[Migrated]) -> Migrated:
    """Several files as one: all their hooks run, and one of them can disable all."""
    hooks: dict[str, list[Wire]] = {}
    options: Wire = {}
    enabled = True
    notes: dict[str, None] = {}
    remarks: dict[str, None] = {}
    for part in parts:
        enabled = enabled and part.settings["enableHooks"]
        for event, groups in part.settings["hooks"].items():
            hooks.setdefault(event, []).extend(groups)
        disabled = part.settings.get("hooksConfig", {}).get("disabled", [])
        if disabled:
            known = options.get("disabled", [])
            options["disabled"] = list(dict.fromkeys([*known, *disabled]))
        notes |= dict.fromkeys(part.notes)
        remarks |= dict.fromkeys(part.remarks)
    settings: Wire = {"enableHooks": enabled, "hooks": hooks}
    settings |= {"hooksConfig": options} if options else {}
    return Migrated(settings, tuple(notes), tuple(remarks))


class Converter:
    """Converts settings of Gemini CLI, whose protocol is ours."""

    dialect = "gemini"
    events: Mapping[str, HookEventName] = HookEventName.__members__
    option_keys: tuple[str, ...] = ("disabled", "enabled", "notifications")
    """Keys beside the events, in some versions."""
    own_types: tuple[str, ...] = ()
    """Types of hooks that only the host itself can run."""
    fields: tuple[str, ...] = (
        *("type", "command", "name", "description", "timeout", "env"),
    )
    variables = r"GEMINI_\w+|LLXPRT_\w+|CLAUDE_\w+|extensionPath|workspacePath"
    known_in: Mapping[str, str] = {}
    """A variable that the host sets on one of its events only."""
    known_variables = frozenset(
        {
            *("GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "GEMINI_CWD"),
            *("CLAUDE_PROJECT_DIR", "LLXPRT_PROJECT_DIR"),
        }
    )

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._notes: dict[str, None] = {}
        self._remarks: dict[str, None] = {}

    def note(self, text: str) -> None:
        """Something is not converted."""
        self._notes[text] = None

    def remark(self, text: str) -> None:
        """Something is converted and works in another way."""
        self._remarks[text] = None

    def convert(self, theirs: Wire) -> Migrated:
        """Convert the whole of a file."""
        given = theirs.get("hooks", {})
        if not isinstance(given, dict):
            self.note("hooks: expected an object with a list of groups for each event")
            given = {}
        hooks: dict[str, list[Wire]] = {}
        for name, groups in given.items():
            if found := self._event(name, groups):
                hooks.setdefault(self.events[name].value, []).extend(found)
        enabled, disabled = self.switches(theirs, given)
        if not enabled:
            self.remark("hooks are turned off there, and so they are here: enableHooks")
        settings: Wire = {"enableHooks": enabled, "hooks": hooks}
        if disabled:
            settings["hooksConfig"] = {"disabled": list(dict.fromkeys(disabled))}
        self.other_settings(theirs)
        return Migrated(settings, tuple(self._notes), tuple(self._remarks))

    def switches(self, theirs: Wire, hooks: Wire) -> tuple[bool, list[str]]:
        """Whether hooks are enabled, and which are not; versions keep it elsewhere."""
        config, tools = (
            mapping_of(theirs.get(key)) for key in ("hooksConfig", "tools")
        )
        enabled = [place.get("enableHooks") for place in (theirs, tools)]
        enabled += [place.get("enabled") for place in (config, hooks)]
        disabled = texts_of(config.get("disabled")) + texts_of(hooks.get("disabled"))
        return False not in enabled, disabled

    def other_settings(self, theirs: Wire) -> None:
        """Note what lies beside the hooks and matters to them."""

    def _event(self, name: str, groups: Any) -> list[Wire]:
        if name in self.option_keys and not isinstance(groups, dict):
            return []
        if name not in self.events:
            self.note(f"{name}: Hookline has no such event")
            return []
        if not isinstance(groups, list):
            self.note(f"{name}: expected a list of groups")
            return []
        return [ours for group in groups for ours in self._group(name, group)]

    def _group(self, name: str, group: Any) -> Iterator[Wire]:
        """Our groups for one of theirs: hooks in a row with one condition share one."""
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            shown = f"{group!r:.100}"
            self.note(f"{name}: a group without a list of hooks: {shown}")
            return
        for key in sorted(group.keys() - {"matcher", "sequential", "hooks"}):
            self.group_key(name, key)
        heads = self.heads(name, group)
        found = [
            (head[0], ours if head[1] is None else {**ours, "if": head[1]})
            for hook in group["hooks"]
            for ours in self._hook(name, hook)
            for head in self.narrowed(name, hook, heads)
        ]
        rest = {"sequential": group["sequential"]} if "sequential" in group else {}
        for matcher, hooks in groupby(found, key=lambda one: one[0]):
            start = {} if matcher is None else {"matcher": matcher}
            yield {**start, **rest, "hooks": [hook for _, hook in hooks]}

    def group_key(self, name: str, key: str) -> None:
        """Note a key of a group that has no meaning here."""
        self.note(f"{name}: {key!r} of a group is not supported")

    def heads(self, name: str, group: Wire) -> list[Head]:
        """When the hooks of a group run; each hook is converted once for each."""
        matcher = group.get("matcher")
        if matcher is not None and not isinstance(matcher, str):
            self.note(f"{name}: a matcher that is no text: the hooks run every time")
            return [(None, None)]
        return [(matcher, None)]

    def narrowed(self, name: str, hook: Wire, heads: list[Head]) -> list[Head]:
        """The same for one hook, which may have a condition of its own."""
        return heads

    def _hook(self, name: str, hook: Any) -> Iterator[Wire]:
        kind = hook.get("type") if isinstance(hook, dict) else None
        ours = self.hook(name, hook) if isinstance(hook, dict) else None
        if ours is None:
            why = ": only Claude Code can run them" if kind in self.own_types else ""
            self.note(f"{name}: hooks of type {kind!r} are not supported{why}")
            return
        shown = ours.get("command", ours.get("url"))
        if any(bridge_program(ours.get("command"), host) for host in HOSTS):
            self.note(f"{name}: {shown!r} is Hookline itself")
            return
        for key in sorted(hook.keys() - {*self.fields, "dialect"}):
            self.note(f"{name}: {key!r} of {shown!r} is not supported")
        if "command" in ours:
            ours["command"] = self._with_variables(name, ours["command"])
            env = {**mapping_of(ours.get("env")), **self._env}
            ours |= {"env": env} if env else {}
        yield ours

    def hook(self, name: str, hook: Wire) -> Wire | None:
        """Our hook for one of theirs; None where there is none like it."""
        if hook.get("type") != "command" or not isinstance(hook.get("command"), str):
            return None
        ours = {key: hook[key] for key in self.fields if key in hook}
        return {**ours, "dialect": self.dialect}

    def _with_variables(self, name: str, command: str) -> str:
        """The command with the plugin's folder in quotes; note what nobody sets."""
        named = re.findall(
            rf"\$(?:\{{({self.variables})\}}|({self.variables})\b)", command
        )
        for variable in dict.fromkeys(a or b for a, b in named):
            known = {*self.known_variables, *self._env, self.known_in.get(name)}
            if variable not in known and f"{variable}=" not in command:
                self.note(f"{name}: {_unset(variable)}: {command!r} may not work")
        for option in re.findall(r"\$\{user_config\.\w+\}", command):
            problem = "replace it by its value"
            self.note(f"{name}: {option} is an option of a plugin: {problem}")
        odd = [key for key, value in self._env.items() if shlex.quote(value) != value]
        return quote_variables(command.replace("${/}", "/"), odd)


class LlxprtConverter(Converter):
    """Converts settings of llxprt-code, which sets one variable for its hooks."""

    dialect = "llxprt"
    known_variables = frozenset({"LLXPRT_PROJECT_DIR"})


def _unset(variable: str) -> str:
    if variable in ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "extensionPath"):
        return f"{variable} is not set (run migrate on the plugin's folder)"
    return f"{variable} is not set by Hookline"


def mapping_of(value: Any) -> Wire:
    """An object, or an empty one where something else is given."""
    return value if isinstance(value, dict) else {}


def texts_of(value: Any) -> list[str]:
    """The texts in a list; none where something else is given."""
    return [n for n in value if isinstance(n, str)] if isinstance(value, list) else []
