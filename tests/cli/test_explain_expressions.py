"""``explain``, ``list`` and ``log`` show expressions (issue 13.1, 13.4)."""

from __future__ import annotations

import json
from typing import Any

from .bench import Bench, before_tool, command, group

WHEN = "tool_name == 'shell' && tool_input.command.contains('rm')"
RULE: dict[str, Any] = {"type": "rule", "name": "no-rm", "when": WHEN}


def explained(bench: Bench, hook: dict[str, Any], *words: str) -> tuple[Any, str]:
    settings = bench.settings("s.json", before_tool(group(hook)))
    base = ("explain", "BeforeTool", "--tool", "shell", "--settings", settings, *words)
    return bench.json(*base)["hooks"][0], bench.run(*base).stdout


def test_explain_shows_the_values_that_decide_a_rule(bench: Bench) -> None:
    given = json.dumps({"command": "ls -l", "other": "x" * 1000})
    hook, text = explained(bench, RULE, "--tool-input", given)
    assert hook["judgement"] == "runs"
    assert hook["rule"] == {
        "source": WHEN,
        "outcome": "false",
        "missing": None,
        "parts": [
            {"text": "tool_name == 'shell'", "outcome": "true"},
            {"text": "tool_input.command.contains('rm')", "outcome": "false"},
        ],
        "values": {"tool_name": "shell", "tool_input.command": "ls -l"},
    }
    assert "tool_name == 'shell' = true" in text
    assert "tool_input.command.contains('rm') = false" in text
    assert 'tool_input.command = "ls -l"' in text


def test_explain_names_the_field_that_is_missing(bench: Bench) -> None:
    hook, text = explained(bench, RULE, "--tool-input", '{"cmd": "rm"}')
    assert hook["rule"]["missing"] == "tool_input.command"
    assert "= false: the event has no tool_input.command" in text


def test_explain_asks_for_the_input_that_decides(bench: Bench) -> None:
    hook, text = explained(bench, RULE)
    assert hook["judgement"] == "runs"
    assert "= depends on tool_input: use --tool-input to decide it" in text


def test_explain_shows_why_a_condition_keeps_a_hook_from_running(bench: Bench) -> None:
    hook, text = explained(
        bench,
        command("true", "c", **{"if": "tool_input.n > 3", "async": True}),
        "--tool-input",
        '{"n": 2}',
    )
    assert hook["judgement"] == "condition false"
    assert hook["if"]["values"] == {"tool_input.n": 2}
    assert hook["async"] is True
    assert "but its 'if' is false" in text
    assert "tool_input.n = 2" in text
    assert "not waited for" in text


def test_list_shows_conditions_and_async(bench: Bench) -> None:
    hook = command("true", "c", **{"if": "tool_name == 'x'", "async": True})
    settings = bench.settings("s.json", before_tool(group(hook, RULE)))
    shown = bench.run("list", "--settings", settings).stdout
    assert "* if tool_name == 'x'" in shown
    assert "command, async" in shown
    found = bench.json("list", "--settings", settings)
    assert found[0]["if"] == "tool_name == 'x'"
    assert [one["async"] for one in found] == [True, False]
    assert found[1]["command"] == WHEN


def test_log_shows_async_hooks_and_missing_fields(bench: Bench) -> None:
    later = command("echo later", "later", **{"async": True})
    rule = {"type": "rule", "name": "r", "when": "tool_input.nothing == 1"}
    settings = bench.settings("s.json", before_tool(group(later, rule)))
    journal = str(bench.project / "j.sqlite")
    fire = ("fire", "BeforeTool", "--tool", "t", "--settings", settings)
    bench.run(*fire, "--journal", journal)
    shown = bench.run("log", "1", "--journal", journal).stdout
    assert "not waited for) ok" in shown
    assert "false: the event has no tool_input.nothing" in shown
