"""Rules: the whole fire against the engine alone, large inputs, and many rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed, timed_plain

GROUP = "rules"
WHEN = "tool_input.path.endsWith('.env')"
SMALL = {"path": "src/main.py", "content": "x = 1\n"}
LARGE = {"path": "src/main.py", "content": "x" * 1_000_000}
NESTED = {"path": "src/main.py", "edits": [{"old": "", "new": "x" * 1_000_000}]}
REPEAT = 20
FEW, MANY, CROWD = 10, 10_000, 500


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    rounds *= 3
    few_rounds, bar = max(9, rounds // 10), Bar(2000, "us")
    crowded = [{"hooks": [_rule(name=f"rule {n}") for n in range(CROWD)]}]
    one = [{"hooks": [_rule()]}]
    blocks = [{"hooks": [_rule("true")]}]
    async with (
        _fires(folder, one, SMALL) as small,
        _fires(folder, one, LARGE) as large,
        _fires(folder, one, NESTED) as nested,
        _fires(folder, blocks, SMALL) as denied,
        _fires(folder, _others(FEW), SMALL, 10 * REPEAT) as few,
        _fires(folder, _others(MANY), SMALL, 10 * REPEAT) as many,
        _fires(folder, crowded, SMALL, 1) as crowd,
    ):
        return [
            await _compare("rule", small, _bare(SMALL), rounds, Bar(25, "us")),
            await _compare("rule that blocks", denied, _bare(SMALL), rounds),
            await _compare("rule beside 1 MB", large, _bare(LARGE), rounds, Bar(1.3)),
            await _compare_sizes("1 MB and a small input", large, small, rounds),
            await _compare_sizes("the same, nested", nested, small, rounds),
            await compare(
                *(GROUP, f"{MANY:,} rules for other tools", many),
                *(few, f"{FEW} rules for other tools", rounds, Bar(1.1)),
            ),
            await _compare(
                f"{CROWD} rules on one event", crowd, _bare(SMALL), few_rounds, bar
            ),
        ]


async def _compare(
    name: str, work: Timed, floor: Timed, rounds: int, bar: Bar | None = None
) -> Figure:
    engine = "the engine alone, given the event"
    return await compare(GROUP, name, work, floor, engine, rounds, bar)


async def _compare_sizes(name: str, large: Timed, small: Timed, rounds: int) -> Figure:
    what = "a rule with a small input"
    return await compare(GROUP, name, large, small, what, rounds, Bar(1.3))


def _rule(when: str = WHEN, **more: Any) -> dict[str, Any]:
    return {"type": "rule", "when": when, "name": "no-env", **more}


def _others(count: int) -> list[dict[str, Any]]:
    return [
        {"matcher": f"tool_{n}_.*", "hooks": [_rule(name=f"rule {n}")]}
        for n in range(count)
    ]


@asynccontextmanager
async def _fires(
    folder: Path,
    groups: list[dict[str, Any]],
    tool_input: dict[str, Any],
    repeat: int = REPEAT,
) -> AsyncIterator[Timed]:
    settings = Settings.from_mapping({"hooks": {"BeforeTool": groups}})
    async with HookSystem(Config("bench", folder, settings)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        yield timed(lambda: fire("write_file", tool_input), repeat)


def _bare(tool_input: dict[str, Any]) -> Timed:
    from cel_expr_python import cel

    kinds = {"tool_name": cel.Type.STRING, "tool_input": cel.Type.DYN}
    program = cel.NewEnv(variables=kinds).compile(WHEN)
    event = {"tool_name": "write_file", "tool_input": tool_input}
    return timed_plain(lambda: program.eval(data=event).plain_value(), REPEAT)
