"""What ``check`` says about hooks of other hosts, and variables (issue 15.6)."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.protocol.dialects import CLAUDE_ONLY_FAILURE
from hookline.settings.fields import Report, settings_schema
from hookline.settings.lint import lint


def findings(event: str = "BeforeTool", matcher: str = "", **hook: Any) -> list[str]:
    entry = {"type": "command", "command": "true", "name": "h", **hook}
    report = Report()
    groups = [{"matcher": matcher, "hooks": [entry]}]
    lint({"hooks": {event: groups}}, None, report)
    return [f"{one.severity} {one.path[-1]}: {one.message}" for one in report.problems]


def test_the_schema_knows_all_dialects() -> None:
    hook = settings_schema()["$defs"]["hook"]["properties"]["dialect"]
    assert hook["enum"] == ["hookline", "claude", "gemini", "llxprt", "opa"]


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize("kind", ["rule", "cedar", "python"])
def test_a_hook_that_sees_our_names_has_no_dialect(kind: str, dialect: str) -> None:
    found = findings(type=kind, dialect=dialect, when="true", function="a:b")
    message = f"has no effect on a {kind} hook: it sees Hookline's names"
    assert f"warning dialect: {message}" in found


@pytest.mark.parametrize(
    ("dialect", "event", "matcher"),
    [
        ("claude", "BeforeTool", "Bash"),
        ("claude", "BeforeTool", "Write, Edit|NotebookEdit"),
        ("claude", "BeforeTool", "(?<name>Bash)"),
        ("claude", "BeforeTool", "mcp__github__.*"),
        ("claude", "SessionStart", "compact"),
        ("claude", "SessionStart", "startup|resume|compact"),
        ("claude", "Notification", "idle_prompt"),
        ("claude", "SubagentStop", "code-.*"),
        ("gemini", "BeforeTool", "(?<name>write_file)"),
        ("gemini", "BeforeTool", "mcp_.*"),
        ("gemini", "SessionStart", "startup"),
    ],
)
def test_a_matcher_that_its_host_can_read_is_fine(
    dialect: str, event: str, matcher: str
) -> None:
    assert findings(event, matcher, dialect=dialect) == []


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize(
    ("matcher", "problem"),
    [
        (r"\cA(b)", r"bad escape \c at position 0"),
        (r"\p{L}+(x)", r"bad escape \p at position 0"),
        ("(Bash", "missing ), unterminated subpattern at position 0"),
    ],
)
def test_an_expression_that_python_cannot_read_is_an_error(
    dialect: str, matcher: str, problem: str
) -> None:
    message = f"not a regular expression that Python can read ({problem})"
    assert findings("BeforeTool", matcher, dialect=dialect) == [
        f"error matcher: {message}: compared literally"
    ]


@pytest.mark.parametrize(
    ("dialect", "event", "matcher", "message"),
    [
        ("claude", "BeforeTool", "write_file", "the hook is shown 'Write'"),
        ("claude", "BeforeTool", "Bash|replace", "shown 'Edit' or 'MultiEdit'"),
        ("claude", "BeforeTool", "^(?:replace|edit)$", "'Edit' or 'MultiEdit'"),
        ("gemini", "BeforeTool", "^web_search$", "'google_web_search'"),
        ("claude", "SessionStart", "compress", "clear, compact, resume, startup"),
        ("gemini", "SessionStart", "startup|resume", "source is one of"),
    ],
)
def test_a_matcher_in_our_names_never_matches(
    dialect: str, event: str, matcher: str, message: str
) -> None:
    """Settings that an earlier 'hookline migrate' wrote have our names."""
    (found,) = findings(event, matcher, dialect=dialect)
    assert found.startswith("warning matcher: ")
    assert "never matches" in found
    assert message in found


def test_a_group_of_two_dialects_is_checked_for_both() -> None:
    hooks = [
        {"type": "command", "command": "true", "dialect": dialect}
        for dialect in ("hookline", "claude")
    ]
    report = Report()
    groups = [{"matcher": "(?<a>Bash)", "hooks": hooks}]
    lint({"hooks": {"BeforeTool": groups}}, None, report)
    (problem,) = report.problems
    assert "invalid regular expression" in problem.message


def test_a_condition_about_failures_is_fine_without_an_engine() -> None:
    assert findings("AfterTool", **{"if": CLAUDE_ONLY_FAILURE}) == []


@pytest.mark.parametrize(
    "command",
    [
        "${CLAUDE_PLUGIN_ROOT}/guard.sh",
        'sh "$CLAUDE_PLUGIN_ROOT"/guard.sh',
        "cd ${CLAUDE_PLUGIN_ROOT%/} && ./guard.sh",
        "echo $(cat $CLAUDE_PLUGIN_ROOT/x)",
        "cat > $CLAUDE_PLUGIN_ROOT/log",
    ],
)
def test_a_variable_that_nothing_sets_is_named(command: str) -> None:
    (found,) = (one for one in findings(command=command) if "uses" in one)
    assert found == (
        "warning command: hook 'h' uses $CLAUDE_PLUGIN_ROOT, which nothing sets: "
        'set it to the folder of the plugin in "env" of the hook'
    )


@pytest.mark.parametrize(
    "command",
    [
        "echo $HOME $HOOKLINE_CWD ${CLAUDE_PROJECT_DIR}/x $HOOKLINE_PYTHON $PWD",
        "NOBODY=1; echo $NOBODY",
        "NOBODY=1 && export NOBODY && echo ${NOBODY}",
        "for NOBODY in a b; do echo $NOBODY; done",
        "while read NOBODY; do echo $NOBODY; done",
        "echo ${NOBODY:-none} ${NOBODY-none} ${NOBODY:+x} ${NOBODY:?missing}",
        'if [ -n "$NOBODY" ]; then echo $NOBODY; fi',
        'test -z "$NOBODY" || echo $NOBODY',
        "source .env && echo $NOBODY",
        "echo '$NOBODY' \\$NOBODY $1 $@ $? $$ $RANDOM",
        "awk '{print $NF}' x",
    ],
)
def test_a_variable_that_is_set_tested_or_quoted_is_fine(command: str) -> None:
    assert [one for one in findings(command=command) if "uses" in one] == []


def test_variables_of_the_hook_and_of_the_environment_are_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert findings(command="echo $NOBODY", env={"NOBODY": "1"}) == []
    assert findings(command="echo $NOBODY", shell="/usr/bin/env") == []
    monkeypatch.setenv("NOBODY", "1")
    assert findings(command="echo $NOBODY") == []


def test_each_dialect_has_its_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDECODE", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    gemini, claude = "echo $GEMINI_CWD $GEMINI_SESSION_ID", "echo $CLAUDECODE"
    assert findings(command=gemini, dialect="gemini") == []
    assert findings(command=claude, dialect="claude") == []
    assert len(findings(command=gemini, dialect="claude")) == 2
    assert len(findings(command=claude)) == 1
    (hidden,) = findings(command="echo $GEMINI_API_KEY", dialect="claude")
    assert "hooks with \"dialect\": 'claude' do not see" in hidden


def test_a_file_that_hookline_does_not_have_is_said() -> None:
    (found,) = findings(command="echo x >> $CLAUDE_ENV_FILE", dialect="claude")
    assert "$CLAUDE_ENV_FILE, which nothing sets: Hookline has no such file" in found
    at_start = {"command": "echo x >> $CLAUDE_ENV_FILE", "event": "SessionStart"}
    assert findings(**at_start, dialect="claude") == []
    assert len(findings(**at_start)) == 1
