"""What ``check`` says about rules and conditions (issue 13.1)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.settings.lint import check_file


def findings(tmp_path: Path, event: str, hook: dict[str, Any]) -> list[str]:
    file = tmp_path / "settings.json"
    hooks = {event: [{"hooks": [hook]}]}
    file.write_text(json.dumps({"hooks": hooks}, indent=1))
    prefix = f"hooks.{event}[0].hooks[0]."
    return [
        f"{one.severity}: {one.where.removeprefix(prefix)}: {one.message}"
        for one in check_file(file).findings
    ]


def rule(when: str = "true", **more: Any) -> dict[str, Any]:
    return {"type": "rule", "when": when, **more}


@pytest.mark.parametrize(
    ("event", "hook", "expected"),
    [
        ("BeforeTool", rule("tool_input.path.endsWith('x')"), None),
        ("BeforeTool", rule("tool_input.ticket_number == 5"), None),
        ("BeforeTool", rule("type(tool_input.x) in [string, list] || now > now"), None),
        (
            "BeforeTool",
            rule("tool_input.pth == 'x'"),
            (
                "warning: when: column 12: no known tool has an input 'pth': did you "
                "mean 'path'?"
            ),
        ),
        (
            "BeforeTool",
            rule("true &&\n event.tool_input.comand == 'x'"),
            (
                "warning: when: line 2, column 19: no known tool has an input "
                "'comand': did you mean 'command'?"
            ),
        ),
        (
            "AfterTool",
            rule("tool_response.llmcontent == 'x'"),
            (
                "warning: when: column 15: tool_response has no field 'llmcontent': "
                "did you mean 'llmContent'?"
            ),
        ),
        (
            "SessionStart",
            rule("prompt == 'x'"),
            (
                "warning: when: column 1: SessionStart has no field 'prompt', unlike "
                "BeforeAgent, AfterAgent, SubagentStart, SubagentStop"
            ),
        ),
        (
            "BeforeTool",
            rule("tool_inpt.path == 'x'"),
            (
                "error: when: column 1: no event has a field 'tool_inpt': did you mean "
                "'tool_input'?"
            ),
        ),
        (
            "BeforeTool",
            {"type": "command", "command": "true", "if": "tool_name = 'x'"},
            "error: if: column 11: ",
        ),
        (
            "BeforeTool",
            rule(then={"decision": "deny", "reason": "a ${tool_nam} b"}),
            (
                "error: then.reason: in '${tool_nam}': column 1: no event has a field "
                "'tool_nam': did you mean 'tool_name'?"
            ),
        ),
        (
            "BeforeTool",
            rule(then={"decison": "deny"}),
            "warning: then: decison: unknown key, ignored: did you mean 'decision'?",
        ),
        ("BeforeTool", rule(then={"continue": "${tool_name == 'x'}"}), None),
        (
            "BeforeTool",
            {"type": "command", "command": "true", "async": True, "onError": "block"},
            "warning: onError: has no effect: nobody waits for an async hook",
        ),
        (
            "BeforeTool",
            rule(dialect="claude"),
            "warning: dialect: has no effect on a rule hook: it sees Hookline's names",
        ),
        (
            "BeforeTool",
            rule(pool=3),
            "warning: pool: has no effect on a rule hook",
        ),
        (
            "BeforeTool",
            {"type": "command", "command": "true", "when": "no such thing"},
            "warning: when: has no effect on a command hook",
        ),
    ],
)
def test_mistakes_are_shown_with_their_place(
    tmp_path: Path, event: str, hook: dict[str, Any], expected: str | None
) -> None:
    found = findings(tmp_path, event, hook)
    assert len(found) == (expected is not None)
    assert all(one.startswith(expected or "") for one in found)


def test_the_line_in_the_file_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        '[[hooks.BeforeTool]]\n[[hooks.BeforeTool.hooks]]\ntype = "rule"\n'
        "when = '''\ntool_name ==\n'''\n"
    )
    (finding,) = check_file(file).findings
    assert finding.line == 4
    assert finding.message == "line 2, column 1: the expression ends too early"


def test_a_missing_engine_is_named_once_for_a_rule(tmp_path: Path) -> None:
    """Not for each text in it (protocol.md#rules)."""
    then = {"decision": "deny", "reason": "${tool_name}: ${tool_input.path}"}
    rule = {"type": "rule", "when": "true", "name": "r", "then": then}
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [rule]}]}}))
    code = (
        "import sys; sys.modules['cel_expr_python'] = None\n"
        "from hookline.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "check", str(settings)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert (found.stdout + found.stderr).count("install 'cel-expr-python>=0.1.3'") == 1
