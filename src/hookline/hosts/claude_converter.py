"""Convert settings of Claude Code: events, conditions, http hooks and units of time."""

from __future__ import annotations

import re
import shlex
from types import MappingProxyType

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

from .converter import Converter, Head, Wire, mapping_of, texts_of
from .permission_rules import Rule, parse_rules


class ClaudeConverter(Converter):
    """Converts names of events, conditions, http hooks, and seconds to milliseconds."""

    dialect = "claude"
    events = MappingProxyType(
        {**CLAUDE_EVENTS, CLAUDE_FAILURE_EVENT: HookEventName.AfterTool}
    )
    option_keys = ()
    own_types = ("prompt", "agent", "mcp_tool")
    fields = (
        *("type", "command", "args", "timeout", "shell", "async", "asyncRewake", "if"),
        *("url", "headers", "allowedEnvVars"),
        *("once", "statusMessage"),  # the first is ignored there too in settings
    )
    variables = r"CLAUDE_\w+"
    known_variables = frozenset({"CLAUDE_PROJECT_DIR"})
    known_in = MappingProxyType({"SessionStart": "CLAUDE_ENV_FILE"})

    def switches(self, theirs: Wire, hooks: Wire) -> tuple[bool, list[str]]:
        """``disableAllHooks``."""
        return theirs.get("disableAllHooks") is not True, []

    def other_settings(self, theirs: Wire) -> None:
        """Note variables, permissions and plugins."""
        if names := ", ".join(map(str, mapping_of(theirs.get("env")))):
            self.note(
                f"env: Claude Code sets {names} for its hooks: export them, or add "
                "them to 'env' of the hooks"
            )
        lists = mapping_of(theirs.get("permissions"))
        count = sum(len(rules) for rules in lists.values() if isinstance(rules, list))
        if count:
            rules = f"{count} rule{'s' * (count > 1)}"
            self.note(f"permissions: {rules}, which only Claude Code applies")
        if plugins := ", ".join(map(str, mapping_of(theirs.get("enabledPlugins")))):
            self.note(
                f"enabledPlugins: {plugins}: to convert the hooks of a plugin, run "
                "migrate on its folder"
            )

    def group_key(self, name: str, key: str) -> None:
        """Note a key of a group that has no meaning here."""
        if key == "if":
            problem = "Claude Code ignores it too and runs the hooks every time"
            self.note(f"{name}: 'if' of a group: {problem}")
        elif key != "description":
            super().group_key(name, key)

    def heads(self, name: str, group: Wire) -> list[Head]:
        """The matcher as it is; a permission rule in its place becomes a condition."""
        outcome = {
            "PostToolUse": CLAUDE_ONLY_SUCCESS,
            CLAUDE_FAILURE_EVENT: CLAUDE_ONLY_FAILURE,
        }.get(name)
        ((matcher, _),) = super().heads(name, group)
        matching = TRAITS[self.events[name]].matching
        if matching is Matching.NOTHING or matcher is None:
            return [(None, outcome)]
        if "mcp__" in matcher:
            self.remark(
                f"{name}: matcher {matcher!r} names MCP tools: it is carried over, and "
                "matches tools of that name or with that server in mcp_context"
            )
        rules = _rules_in(matcher) if matching is Matching.REGEX else None
        if rules is None:
            if _is_invalid(matcher):
                self.note(
                    f"{name}: matcher {matcher!r} matches nothing, as it does there"
                )
            return [(matcher, outcome)]
        self.remark(
            f"{name}: matcher {matcher!r} never matches in Claude Code: it is "
            "converted to a matcher and an 'if'"
        )
        return [self._head(name, rule, outcome) for rule in rules]

    def narrowed(self, name: str, hook: Wire, heads: list[Head]) -> list[Head]:
        """A permission rule in ``if`` becomes a matcher and a condition."""
        given = hook.get("if")
        if given is None:
            return heads
        shown = hook.get("command", hook.get("url"))
        if TRAITS[self.events[name]].matching is not Matching.REGEX:
            problem = "Claude Code never runs a hook with 'if' on this event"
            self.note(f"{name}: {shown!r} is left out: {problem}")
            return []
        rules = parse_rules(given) if isinstance(given, str) else None
        if rules is None:
            problem = f"its 'if' {given!r} is no permission rule"
            self.note(f"{name}: {shown!r} is left out: {problem}")
            return []
        found = [
            self._head(name, rule, condition)
            for matcher, condition in heads
            for rule in rules
            if _matches(matcher, rule.tool)
        ]
        if not found:
            problem = f"its 'if' {given!r} is about no tool that its matcher matches"
            self.note(f"{name}: {shown!r} is left out: {problem}")
        return list(dict.fromkeys(found))

    def _head(self, name: str, rule: Rule, condition: str | None) -> Head:
        if rule.problem:
            self.note(
                f"{name}: {rule.problem}: the hook runs for every call of {rule.tool}"
            )
        matcher = rule.tool
        if "*" in matcher:
            matcher = f"^{matcher.replace('*', '.*')}$"
        return matcher, _both(condition, rule.condition)

    def hook(self, name: str, hook: Wire) -> Wire | None:
        """A command or http hook."""
        kind = hook.get("type")
        if kind == "http" and isinstance(hook.get("url"), str):
            ours = {"type": "http", "url": hook["url"], **self._headers(name, hook)}
        elif kind == "command" and isinstance(hook.get("command"), str):
            ours = {"type": "command", "command": _command(hook)}
            if hook.get("shell") == "powershell":
                ours["shell"] = "pwsh"
        else:
            return None
        ours["dialect"] = self.dialect
        timeout = hook.get("timeout")
        if is_number(timeout):
            ours["timeout"] = round(timeout * 1000)
        elif timeout is not None:
            self.note(f"{name}: a timeout that is no number: {timeout!r}")
        if hook.get("asyncRewake") is True:
            shown = hook.get("command", hook.get("url"))
            self.note(f"{name}: 'asyncRewake' of {shown!r}: its answer wakes nobody")
        if True in (hook.get("async"), hook.get("asyncRewake")):
            ours["async"] = True
        return ours

    def _headers(self, name: str, hook: Wire) -> Wire:
        """Headers with our spelling of variables; theirs are empty unless allowed."""
        allowed = texts_of(hook.get("allowedEnvVars"))
        used: dict[str, None] = {}

        def replaced(found: re.Match[str]) -> str:
            variable = found[1] or found[2]
            if variable not in allowed:
                problem = f"is empty: {variable} is not in allowedEnvVars"
                self.note(f"{name}: a header of {hook['url']!r} {problem}")
                return ""
            used[variable] = None
            return f"${{{variable}}}"

        headers = {
            key: re.sub(r"\$\{(\w+)\}|\$([A-Za-z_]\w*)", replaced, value)
            for key, value in mapping_of(hook.get("headers")).items()
            if isinstance(value, str)
        }
        found: Wire = {"headers": headers} if headers else {}
        return found | ({"allowedEnv": list(used)} if used else {})


def _command(hook: Wire) -> str:
    """The command; one with ``args`` is started there without a shell."""
    args = hook.get("args")
    if not isinstance(args, list):
        return str(hook["command"])
    return " ".join(_quoted(str(word)) for word in (hook["command"], *args))


def _quoted(word: str) -> str:
    """A word for the shell in which nothing but Claude Code's variables is replaced."""
    parts = re.split(r"(\$\{CLAUDE_\w+\})", word)
    shown = (f'"{p}"' if p.startswith("${CLAUDE_") else shlex.quote(p) for p in parts)
    return "".join(one for one, part in zip(shown, parts, strict=True) if part) or "''"


def _both(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    return f"({one}) && ({other})"


def _rules_in(matcher: str) -> list[Rule] | None:
    """The permission rules in a matcher, where they do not belong; None if none."""
    found = parse_rules(matcher)
    if found is None or not any(rule.condition or rule.problem for rule in found):
        return None
    # Notebook(Edit|Read) is a regular expression.
    known = all(rule.tool in CLAUDE_TOOLS for rule in found)
    return (
        found if known and not any(_matches(matcher, t) for t in CLAUDE_TOOLS) else None
    )


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
