"""Permission rules of Claude Code, such as ``Bash(git push *)``, as conditions of ours.

A hook of Claude Code runs only for calls that its ``if`` describes in this syntax. Each
rule becomes a tool, which a matcher names, and an expression about the call's input.
What the rules mean was observed in Claude Code 2.1.325 (decision 0126). Where one
cannot be told exactly, the hook runs too often rather than never.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from msgspec import Struct

_RULE = r"(?s)((?:[A-Z]|mcp__)[\w*-]*)(?:\((.*)\))?"
_PATHS = ("path", "file_path", "absolute_path")


class Rule(Struct, frozen=True):
    """The calls that a rule means: those of a tool for which the condition is true."""

    tool: str
    """A name, or for MCP tools a name with ``*``."""
    condition: str | None = None
    problem: str = ""
    """Why there is no condition although the rule has one; empty where it has."""


def parse_rules(text: str) -> list[Rule] | None:
    """The rules in a text, of which any must hold; None if it is no such text."""
    # They are split at |, || and , outside of parentheses.
    parts, depth = [""], 0
    for lexeme in re.findall(r"(?s)\\.|\|\|?|.", text):
        depth += (lexeme == "(") - (lexeme == ")")
        if depth == 0 and lexeme in ("|", "||", ","):
            parts.append("")
        else:
            parts[-1] += lexeme
    rules = []
    for part in parts:
        match = re.fullmatch(_RULE, part.strip())
        if match is None:
            return None
        tool, specifier = match.groups()
        if specifier in (None, "", "*", "**"):
            rules.append(Rule(tool))
            continue
        convert = _CONVERTERS.get(tool)
        condition = convert(specifier) if convert else None
        rule = f"{tool}({specifier})"
        problem = f"{rule!r} cannot be converted" if condition is None else ""
        rules.append(Rule(tool, condition, problem))
    return rules


def _command(specifier: str) -> str:
    pattern = re.sub(r"\\([()\\])", r"\1", specifier)
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2]} *"
    return _if_there("command", f"tool_input.command.runs({_text(pattern)})")


def _path(specifier: str) -> str | None:
    globs = _globs(specifier)
    if globs is None:
        return None
    tests = [
        f"tool_input.{key}.glob({_text(pattern)})"
        for key in _PATHS
        for pattern in globs
    ]
    has_path = " || ".join(f"has(tool_input.{key})" for key in _PATHS)
    # A tool that calls the path something else is none that the rule can rule out.
    return f"{' || '.join(tests)} || !({has_path})"


def _globs(specifier: str) -> list[str] | None:
    """Our patterns for one of theirs, which is read as in ``.gitignore``."""
    text = specifier.removeprefix("./").replace("[^", "[!")
    if "\\" in text or text.startswith("!"):
        return None
    name = text.rstrip("/")
    if name.startswith("/"):
        name = name[1:]  # //x is the absolute path /x
    elif "/" not in name and name != "~":
        name = f"**/{name}"
    inside = f"{name}/**"
    if name.endswith("**"):
        return [name]
    return [inside] if text.endswith("/") else [name, inside]


def _address(specifier: str) -> str | None:
    if not specifier.startswith("domain:"):
        return None
    host = specifier.removeprefix("domain:").strip()
    parts = (re.escape(part) for part in host.split("*"))
    pattern = rf"(?i)^[a-z]+://([^/?#@]*@)?{'[^/?#]*'.join(parts)}([:/?#]|$)"
    return _if_there("url", f"tool_input.url.matches({_text(pattern)})")


def _agent(specifier: str) -> str:
    key = "subagent_type"
    return _if_there(key, f"tool_input.{key} == {_text(specifier)}")


def _if_there(key: str, test: str) -> str:
    # Callers of the library may call a field something else: then the hook decides.
    return f"!has(tool_input.{key}) || {test}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


_CONVERTERS: dict[str, Callable[[str], str | None]] = {
    "Bash": _command,
    **dict.fromkeys(("Read", "Write", "Edit", "MultiEdit"), _path),
    "WebFetch": _address,
    **dict.fromkeys(("Task", "Agent"), _agent),
}
