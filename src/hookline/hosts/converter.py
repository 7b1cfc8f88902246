"""Convert the hook settings of Gemini CLI, llxprt-code and Claude Code to ours.

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

from hookline.protocol.dialects import (
    CLAUDE,
    CLAUDE_EVENTS,
    CLAUDE_FAILURE_EVENT,
    CLAUDE_TOOLS,
    listed_names,
    python_expression,
)
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.rules.failure import CLAUDE_ONLY_FAILURE, CLAUDE_ONLY_SUCCESS
from hookline.settings.model import is_number
from hookline.shell.parse import quote_variables

from .install.calls import bridge_program
from .permission_rules import Rule, parse_rules
from .registry import HOSTS

Wire = dict[str, Any]
Head = tuple[str | None, str | None]
"""What decides whether a hook runs: a matcher, and a condition."""
_OUTCOMES = {
    "PostToolUse": CLAUDE_ONLY_SUCCESS,
    CLAUDE_FAILURE_EVENT: CLAUDE_ONLY_FAILURE,
}
"""Claude Code has two events for what is one of ours: the conditions that part it."""


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
    disabled: dict[str, None] = {}
    is_enabled = True
    notes: dict[str, None] = {}
    remarks: dict[str, None] = {}
    for part in parts:
        is_enabled = is_enabled and part.settings["enableHooks"]
        for event, groups in part.settings["hooks"].items():
            hooks.setdefault(event, []).extend(groups)
        config = part.settings.get("hooksConfig", {})
        disabled |= dict.fromkeys(config.get("disabled", ()))
        notes |= dict.fromkeys(part.notes)
        remarks |= dict.fromkeys(part.remarks)
    settings: Wire = {"enableHooks": is_enabled, "hooks": hooks}
    settings |= {"hooksConfig": {"disabled": [*disabled]}} if disabled else {}
    return Migrated(settings, tuple(notes), tuple(remarks))


class Converter:
    """Converts the settings of Gemini CLI, whose protocol is ours."""

    dialect = "gemini"
    events: Mapping[str, HookEventName] = HookEventName.__members__
    option_keys: tuple[str, ...] = ("disabled", "enabled", "notifications")
    """Keys beside the events, in some versions."""
    group_keys: Mapping[str, str] = {}
    """Further keys of a group, and what they mean; of an empty text nothing is said."""
    own_types: tuple[str, ...] = ()
    """Types of hooks that only the host itself can run."""
    fields: tuple[str, ...] = (
        *("type", "command", "name", "description", "timeout", "env"),
    )
    variables = r"GEMINI_\w+|LLXPRT_\w+|CLAUDE_\w+|extensionPath|workspacePath"
    set_variables: Mapping[str, str] = {
        **dict.fromkeys(("GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "GEMINI_CWD"), ""),
        **dict.fromkeys(("CLAUDE_PROJECT_DIR", "LLXPRT_PROJECT_DIR"), ""),
    }
    """Those that we set too, and the event if it is one alone."""

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

    def convert(self, content: Wire) -> Migrated:
        """Convert the whole of a file."""
        by_event = content.get("hooks", {})
        if not isinstance(by_event, dict):
            self.note("hooks: expected an object with a list of groups for each event")
            by_event = {}
        hooks: dict[str, list[Wire]] = {}
        for name, groups in by_event.items():
            if name in self.option_keys and not isinstance(groups, dict):
                continue
            if name not in self.events:
                self.note(f"{name}: Hookline has no such event")
            elif not isinstance(groups, list):
                self.note(f"{name}: expected a list of groups")
            elif converted := [
                part for group in groups for part in self._group(name, group)
            ]:
                hooks.setdefault(self.events[name].value, []).extend(converted)
        is_enabled, disabled = self.switches(content, by_event)
        if not is_enabled:
            self.remark("hooks are turned off there, and so they are here: enableHooks")
        settings: Wire = {"enableHooks": is_enabled, "hooks": hooks}
        if disabled:
            settings["hooksConfig"] = {"disabled": list(dict.fromkeys(disabled))}
        self.other_settings(content)
        return Migrated(settings, tuple(self._notes), tuple(self._remarks))

    def switches(self, content: Wire, hooks: Wire) -> tuple[bool, list[str]]:
        """Whether hooks are enabled, and which are not; versions keep it elsewhere."""
        config, tools = (_object(content.get(key)) for key in ("hooksConfig", "tools"))
        switches = [place.get("enableHooks") for place in (content, tools)]
        switches += [place.get("enabled") for place in (config, hooks)]
        disabled = _texts(config.get("disabled")) + _texts(hooks.get("disabled"))
        return False not in switches, disabled

    def other_settings(self, content: Wire) -> None:
        """Note what lies beside the hooks and matters to them."""

    def _group(self, name: str, group: Any) -> Iterator[Wire]:
        """Our groups for one of the file: hooks in a row with one matcher share one."""
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            self.note(f"{name}: a group without a list of hooks: {f'{group!r:.100}'}")
            return
        for key in sorted(group.keys() - {"matcher", "sequential", "hooks"}):
            meaning = self.group_keys.get(key, f"{key!r} of a group is not supported")
            if meaning:
                self.note(f"{name}: {meaning}")
        matcher = group.get("matcher")
        if matcher is not None and not isinstance(matcher, str):
            self.note(f"{name}: a matcher that is no text: the hooks run every time")
            matcher = None
        heads = self.heads(name, matcher)
        hooks = [
            (head[0], converted if head[1] is None else {**converted, "if": head[1]})
            for hook in group["hooks"]
            if (converted := self._hook(name, hook)) is not None
            for head in self.narrowed(name, hook, heads)
        ]
        beside = {"sequential": group["sequential"]} if "sequential" in group else {}
        for matched, pairs in groupby(hooks, key=lambda pair: pair[0]):
            start = {} if matched is None else {"matcher": matched}
            yield {**start, **beside, "hooks": [hook for _, hook in pairs]}

    def heads(self, name: str, matcher: str | None) -> list[Head]:
        """When the hooks of a group run; each hook is converted once for each."""
        return [(matcher, None)]

    def narrowed(self, name: str, hook: Wire, heads: list[Head]) -> list[Head]:
        """The same for one hook, which may have a condition of its own."""
        return heads

    def _hook(self, name: str, hook: Any) -> Wire | None:
        kind = hook.get("type") if isinstance(hook, dict) else None
        converted = self.hook(name, hook) if isinstance(hook, dict) else None
        if converted is None:
            why = ": only Claude Code can run them" if kind in self.own_types else ""
            self.note(f"{name}: hooks of type {kind!r} are not supported{why}")
            return None
        subject = converted.get("command", converted.get("url"))
        if any(bridge_program(converted.get("command"), host) for host in HOSTS):
            self.note(f"{name}: {subject!r} is Hookline itself")
            return None
        for key in sorted(hook.keys() - {*self.fields, "dialect"}):
            self.note(f"{name}: {key!r} of {subject!r} is not supported")
        if "command" in converted:
            converted["command"] = self._with_variables(name, converted["command"])
            env = {**_object(converted.get("env")), **self._env}
            converted |= {"env": env} if env else {}
        return converted

    def hook(self, name: str, hook: Wire) -> Wire | None:
        """Our hook for one of the file; None where there is none like it."""
        if hook.get("type") != "command" or not isinstance(hook.get("command"), str):
            return None
        converted = {key: hook[key] for key in self.fields if key in hook}
        return {**converted, "dialect": self.dialect}

    def _with_variables(self, name: str, command: str) -> str:
        """The command with the plugin's folder in quotes; note what nobody sets."""
        pattern = rf"\$(?:\{{({self.variables})\}}|({self.variables})\b)"
        uses = (braced or plain for braced, plain in re.findall(pattern, command))
        for variable in dict.fromkeys(uses):
            is_set = self.set_variables.get(variable) in ("", name)
            if is_set or variable in self._env or f"{variable}=" in command:
                continue
            why = "by Hookline"
            if variable in (
                "CLAUDE_PLUGIN_ROOT",
                "CLAUDE_PLUGIN_DATA",
                "extensionPath",
            ):
                why = "(run migrate on the plugin's folder)"
            self.note(f"{name}: {variable} is not set {why}: {command!r} may not work")
        for option in re.findall(r"\$\{user_config\.\w+\}", command):
            problem = "replace it by its value"
            self.note(f"{name}: {option} is an option of a plugin: {problem}")
        odd = [key for key, value in self._env.items() if shlex.quote(value) != value]
        return quote_variables(command.replace("${/}", "/"), odd)


class LlxprtConverter(Converter):
    """Converts settings of llxprt-code, which sets one variable for its hooks."""

    dialect = "llxprt"
    set_variables: Mapping[str, str] = {"LLXPRT_PROJECT_DIR": ""}


class ClaudeConverter(Converter):
    """Converts names of events, conditions, http hooks, and seconds to milliseconds."""

    dialect = "claude"
    events: Mapping[str, HookEventName] = {
        **CLAUDE_EVENTS,
        CLAUDE_FAILURE_EVENT: HookEventName.AfterTool,
    }
    option_keys = ()
    group_keys: Mapping[str, str] = {
        "if": "'if' of a group: Claude Code ignores it too and runs the hooks "
        "every time",
        "description": "",
    }
    own_types = ("prompt", "agent", "mcp_tool")
    fields = (
        *("type", "command", "args", "timeout", "shell", "async", "asyncRewake", "if"),
        *("url", "headers", "allowedEnvVars"),
        *("once", "statusMessage"),  # the first is ignored there too in settings
    )
    variables = r"CLAUDE_\w+"
    set_variables: Mapping[str, str] = {
        "CLAUDE_PROJECT_DIR": "",
        "CLAUDE_ENV_FILE": "SessionStart",
    }

    def switches(self, content: Wire, hooks: Wire) -> tuple[bool, list[str]]:
        """``disableAllHooks``."""
        return content.get("disableAllHooks") is not True, []

    def other_settings(self, content: Wire) -> None:
        """Note variables, permissions and plugins."""
        if names := ", ".join(map(str, _object(content.get("env")))):
            self.note(
                f"env: Claude Code sets {names} for its hooks: export them, or add "
                "them to 'env' of the hooks"
            )
        lists = _object(content.get("permissions")).values()
        count = sum(len(rules) for rules in lists if isinstance(rules, list))
        if count:
            rules = f"{count} rule{'s' * (count > 1)}"
            self.note(f"permissions: {rules}, which only Claude Code applies")
        if plugins := ", ".join(map(str, _object(content.get("enabledPlugins")))):
            self.note(
                f"enabledPlugins: {plugins}: to convert the hooks of a plugin, run "
                "migrate on its folder"
            )

    def heads(self, name: str, matcher: str | None) -> list[Head]:
        """The matcher as it is; a permission rule in its place becomes a condition."""
        outcome = _OUTCOMES.get(name)
        matching = TRAITS[self.events[name]].matching
        if matching is Matching.NOTHING or matcher is None:
            return [(None, outcome)]
        if "mcp__" in matcher:
            self.remark(
                f"{name}: matcher {matcher!r} names MCP tools: it is carried over, and "
                "matches tools of that name or with that server in mcp_context"
            )
        rules = parse_rules(matcher) if matching is Matching.REGEX else None
        # Notebook(Edit|Read) is a regular expression.
        if (
            rules is not None
            and any(rule.condition or rule.problem for rule in rules)
            and all(rule.tool in CLAUDE_TOOLS for rule in rules)
            and not any(_matches(matcher, tool) for tool in CLAUDE_TOOLS)
        ):
            self.remark(
                f"{name}: matcher {matcher!r} never matches in Claude Code: it is "
                "converted to a matcher and an 'if'"
            )
            return [self._head(name, rule, outcome) for rule in rules]
        if _is_invalid(matcher):
            self.note(f"{name}: matcher {matcher!r} matches nothing, as it does there")
        return [(matcher, outcome)]

    def narrowed(self, name: str, hook: Wire, heads: list[Head]) -> list[Head]:
        """A permission rule in ``if`` becomes a matcher and a condition."""
        text = hook.get("if")
        if text is None:
            return heads
        narrowed: list[Head] = []
        rules = parse_rules(text) if isinstance(text, str) else None
        if TRAITS[self.events[name]].matching is not Matching.REGEX:
            problem = "Claude Code never runs a hook with 'if' on this event"
        elif rules is None:
            problem = f"its 'if' {text!r} is no permission rule"
        else:
            problem = f"its 'if' {text!r} is about no tool that its matcher matches"
            narrowed = [
                self._head(name, rule, condition)
                for matcher, condition in heads
                for rule in rules
                if _matches(matcher, rule.tool)
            ]
        if not narrowed:
            subject = hook.get("command", hook.get("url"))
            self.note(f"{name}: {subject!r} is left out: {problem}")
        return list(dict.fromkeys(narrowed))

    def _head(self, name: str, rule: Rule, condition: str | None) -> Head:
        if rule.problem:
            self.note(
                f"{name}: {rule.problem}: the hook runs for every call of {rule.tool}"
            )
        matcher = rule.tool
        if "*" in matcher:
            matcher = f"^{matcher.replace('*', '.*')}$"
        if condition is not None and rule.condition is not None:
            return matcher, f"({condition}) && ({rule.condition})"
        return matcher, condition or rule.condition

    def hook(self, name: str, hook: Wire) -> Wire | None:
        """A command or http hook."""
        kind = hook.get("type")
        if kind == "http" and isinstance(hook.get("url"), str):
            converted = {
                "type": "http",
                "url": hook["url"],
                **self._headers(name, hook),
            }
        elif kind == "command" and isinstance(hook.get("command"), str):
            command, args = hook["command"], hook.get("args")
            if isinstance(args, list):  # it is started there without a shell
                command = " ".join(_quoted(str(word)) for word in (command, *args))
            converted = {"type": "command", "command": command}
            if hook.get("shell") == "powershell":
                converted["shell"] = "pwsh"
        else:
            return None
        converted["dialect"] = self.dialect
        timeout = hook.get("timeout")
        if is_number(timeout):
            converted["timeout"] = round(timeout * 1000)
        elif timeout is not None:
            self.note(f"{name}: a timeout that is no number: {timeout!r}")
        if hook.get("asyncRewake") is True:
            subject = hook.get("command", hook.get("url"))
            self.note(f"{name}: 'asyncRewake' of {subject!r}: its answer wakes nobody")
        if True in (hook.get("async"), hook.get("asyncRewake")):
            converted["async"] = True
        return converted

    def _headers(self, name: str, hook: Wire) -> Wire:
        """Headers with our spelling of variables; others are empty unless allowed."""
        allowed = _texts(hook.get("allowedEnvVars"))
        used: dict[str, None] = {}

        def replaced(match: re.Match[str]) -> str:
            variable = match[1] or match[2]
            if variable not in allowed:
                problem = f"is empty: {variable} is not in allowedEnvVars"
                self.note(f"{name}: a header of {hook['url']!r} {problem}")
                return ""
            used[variable] = None
            return f"${{{variable}}}"

        headers = {
            key: re.sub(r"\$\{(\w+)\}|\$([A-Za-z_]\w*)", replaced, value)
            for key, value in _object(hook.get("headers")).items()
            if isinstance(value, str)
        }
        converted: Wire = {"headers": headers} if headers else {}
        return converted | ({"allowedEnv": list(used)} if used else {})


def _quoted(word: str) -> str:
    """A word for the shell in which nothing but Claude Code's variables is replaced."""
    parts = filter(None, re.split(r"(\$\{CLAUDE_\w+\})", word))
    quoted = (f'"{p}"' if p.startswith("${CLAUDE_") else shlex.quote(p) for p in parts)
    return "".join(quoted) or "''"


def _is_invalid(matcher: str) -> bool:
    """Whether a matcher is a regular expression that nobody can read."""
    if matcher.strip() in ("", "*") or listed_names(CLAUDE, matcher) is not None:
        return False
    try:
        re.compile(python_expression(matcher))
    except re.error:
        return True
    return False


def _matches(matcher: str | None, tool: str) -> bool:
    """Whether a matcher matches a tool of Claude Code; any tool for ``*`` in it."""
    name, matcher = tool.replace("*", "x"), (matcher or "").strip()
    if matcher in ("", "*"):
        return True
    listed = listed_names(CLAUDE, matcher)
    if listed is not None:
        return name in listed
    if _is_invalid(matcher):
        return False
    return re.search(python_expression(matcher), name) is not None


def _object(value: Any) -> Wire:
    """An object, or an empty one where something else is given."""
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    """The texts in a list; none where something else is given."""
    return [n for n in value if isinstance(n, str)] if isinstance(value, list) else []
