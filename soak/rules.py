"""Rules, conditions and hooks that nobody waits for, on inputs of every kind."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings

from .tally import Tally

_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "equal": ("tool_input.value == 'bad'", lambda value: value == "bad"),
    "text": (
        "type(tool_input.value) == string && tool_input.value.contains('bad')",
        lambda value: isinstance(value, str) and "bad" in value,
    ),
    "list": (
        "type(tool_input.value) == list && tool_input.value.exists(v, v == 'bad')",
        lambda value: isinstance(value, list) and "bad" in value,
    ),
    "path": (
        "type(tool_input.value) == string && tool_input.value.glob('**/bad')",
        lambda value: isinstance(value, str) and value.split("/")[-1] == "bad",
    ),
    "missing": ("tool_input.nothing.more == 1", lambda _: False),
    "broken": ("tool_input.value.size() > 'x'", lambda _: True),  # fails, so blocks
}
"""Expressions, each with the verdict that is right."""


def _settings() -> Settings:
    groups: list[dict[str, Any]] = []
    for name, (when, _) in _RULES.items():
        rule = {"type": "rule", "name": name, "when": when}
        condition = {"type": "command", "command": "exit 2", "name": "c", "if": when}
        groups += [
            {"matcher": f"^rule-{name}$", "hooks": [rule]},
            {"matcher": f"^if-{name}$", "hooks": [condition]},
            {"matcher": f"^beside-{name}$", "hooks": [rule, _LATER, _CHANGES]},
        ]
    return Settings.from_mapping({"hooks": {"BeforeTool": groups}})


_LATER = {"type": "command", "command": "cat >/dev/null", "name": "l", "async": True}
_CHANGES = {
    "type": "rule",
    "name": "changes",
    "when": "!has(tool_input.seen)",
    "then": {"hookSpecificOutput": {"tool_input": {"seen": "${tool_name}"}}},
}


async def bother_rules(chance: random.Random, tally: Tally, until: float) -> None:
    """Fire until the time is over."""
    with tempfile.TemporaryDirectory() as folder:
        async with HookSystem(Config("soak", folder, _settings())) as hooks:
            while time.monotonic() < until:
                name = chance.choice(list(_RULES))
                way = chance.choice(("rule", "rule", "rule", "if", "beside"))
                value = _value(chance, 3)
                fire = hooks.event_handler.fire_before_tool_event
                result = await fire(f"{way}-{name}", {"value": value})
                wrong = _wrong(_RULES[name][1](value), result, value)
                tally.fired(f"{way} of expressions", wrong)
                await asyncio.sleep(0.002)


def _wrong(right: bool, result: ProcessedHookResult, value: Any) -> str | None:
    if result.blocked is right:
        return None
    return f"blocked is {result.blocked} for {str(value)[:80]!r}: {result.reason}"


def _value(chance: random.Random, depth: int) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: "bad",
        lambda: chance.choice(
            ("", "good", "a/bad", "bad/a", "xbadx", "b\0ad", "\ud800")
        ),
        lambda: "x" * chance.choice((10, 1000, 4000)),
        lambda: chance.choice((0, 1.5, 2**70, None, True, float("nan"))),
    ]
    if depth:
        kinds += [
            lambda: [_value(chance, depth - 1) for _ in range(chance.randrange(5))],
            lambda: {"bad": _value(chance, depth - 1)},
        ]
    return chance.choice(kinds)()
