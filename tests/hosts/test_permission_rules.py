"""Permission rules of Claude Code as expressions (issue 15.6, decision 0126).

The tables hold what Claude Code 2.1.325 was seen to do with a hook's ``if``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.expressions.program import MissingFieldError, Scope, compile_expression
from hookline.hosts.permission_rules import parse_rules


def holds(rule: str, cwd: Path | str = "/work", **tool_input: object) -> bool:
    rules = parse_rules(rule)
    assert rules is not None
    (found,) = rules
    assert not found.problem
    if found.condition is None:
        return True
    try:
        program = compile_expression(found.condition)
        return program.is_true(Scope({"tool_input": tool_input}, str(cwd), str(cwd)))
    except MissingFieldError:
        return False


@pytest.mark.parametrize(
    ("rule", "runs", "runs_not"),
    [
        ("Bash(git *)", ["git", "git push o", "true && git x"], ["ls", "gitk"]),
        ("Bash(git:*)", ["git", "git push o"], ["ls", "gitk"]),
        ("Bash(git push:*)", ["git push", "git push o"], ["git pushx", "git log"]),
        ("Bash(git push)", ["git push"], ["git push o"]),
        ("Bash(git push*)", ["git push", "git pushx"], ["git log"]),
        ("Bash(* main)", ["git push origin main"], ["git push"]),
        ("Bash(npm run test:*)", ["npm run test", "npm run test x"], ["npm run tests"]),
        (r"Bash(rm -rf \(x\))", ["rm -rf '(x)'"], ["rm -rf x"]),
        ("Bash(rm -rf:*)", ["rm -rf x", "echo hi; rm -rf y"], ["rm -fr x", "rm"]),
        ("Bash(  git   status  )", ["git status", "git  status"], ["git stash"]),
        ("Bash", ["ls"], []),
        ("Bash(*)", ["ls"], []),
    ],
)
def test_rules_about_commands(rule: str, runs: list[str], runs_not: list[str]) -> None:
    for line in runs:
        assert holds(rule, command=line), line
    for line in runs_not:
        assert not holds(rule, command=line), line


@pytest.mark.parametrize(
    ("rule", "runs", "runs_not"),
    [
        ("Write(*.ts)", ["a.ts", "src/b.ts", "/tmp/f.ts"], ["e.md"]),
        ("Write(**/*.ts)", ["a.ts", "src/deep/c.ts", "/tmp/f.ts"], ["e.md"]),
        ("Write(src/**)", ["src/b.ts", "src/deep/c.ts"], ["x/src/d.md", "a.ts"]),
        ("Write(/src/**)", ["src/b.ts"], ["x/src/d.md"]),
        ("Write(./src/**)", ["src/b.ts"], ["x/src/d.md"]),
        ("Write(src/*)", ["src/b.ts", "src/deep/c.ts"], ["x/src/d.md"]),
        ("Write(src/)", ["src/b.ts", "x/src/d.md"], ["a.ts"]),
        ("Write(src)", ["src/b.ts", "x/src/d.md", "src"], ["a.ts"]),
        ("Write(.env*)", [".env", "a/.env.local"], ["env"]),
        ("Write(.env)", [".env", "a/.env"], [".env.local"]),
        ("Write(/.env)", [".env"], ["a/.env"]),
        ("Write(docs/*.md)", ["docs/x.md"], ["docs/y/z.md"]),
        ("Write(**/test_*.py)", ["t/test_a.py"], ["t/a_test.py"]),
        ("Write(src/**/*.ts)", ["src/a.ts", "src/x/y/a.ts"], ["a.ts"]),
        ("Write([ab].ts)", ["a.ts", "src/a.ts"], ["ab.ts"]),
        ("Write(a?.ts)", ["ab.ts"], ["a.ts"]),
        ("Write(//opt/**)", ["/opt/f.ts"], ["opt/f.ts"]),
        ("Write(*.{ts,md})", ["a.ts", "b.md"], ["c.py"]),
        ("Write(*)", ["a"], []),
        ("Edit(**)", ["a"], []),
        ("Read(~/.ssh/**)", ["~/.ssh/id"], ["ssh/id"]),
    ],
)
def test_rules_about_files(
    rule: str, runs: list[str], runs_not: list[str], tmp_path: Path
) -> None:
    for key in ("path", "file_path", "absolute_path"):
        for path in runs:
            assert holds(rule, tmp_path, **{key: path}), path
        for path in runs_not:
            assert not holds(rule, tmp_path, **{key: path}), path


@pytest.mark.parametrize(
    ("rule", "runs", "runs_not"),
    [
        (
            "WebFetch(domain:example.com)",
            ["https://example.com/a", "HTTP://me@EXAMPLE.com:80"],
            ["https://example.com.evil.org", "https://evil.org/example.com"],
        ),
        ("WebFetch(domain:*.x.org)", ["https://a.x.org"], ["https://x.org"]),
    ],
)
def test_rules_about_addresses(rule: str, runs: list[str], runs_not: list[str]) -> None:
    for url in runs:
        assert holds(rule, url=url), url
    for url in runs_not:
        assert not holds(rule, url=url), url


def test_rules_about_agents() -> None:
    assert holds("Task(Explore)", subagent_type="Explore")
    assert not holds("Agent(Explore)", subagent_type="Plan")


@pytest.mark.parametrize(
    "rule",
    ["Bash(git *)", "Write(*.ts)", "WebFetch(domain:x.org)", "Task(Explore)"],
)
def test_a_call_without_the_field_is_left_to_the_hook(rule: str) -> None:
    """Too often rather than never."""
    assert holds(rule, other="x")


def test_several_rules_are_alternatives() -> None:
    rules = parse_rules("Bash(git:*) || Bash(a|b) | Edit, mcp__git__*")
    assert rules is not None
    tools = [rule.tool for rule in rules]
    assert tools == ["Bash", "Bash", "Edit", "mcp__git__*"]


@pytest.mark.parametrize("text", ["git push", "*", "bash(git *)", "Bash(git", ""])
def test_what_is_no_rule_is_none(text: str) -> None:
    """Claude Code never runs a hook with such an ``if``."""
    assert parse_rules(text) is None


@pytest.mark.parametrize("rule", ["Grep(x)", "Write(!*.ts)", "WebFetch(x)"])
def test_a_rule_that_cannot_be_converted_says_so(rule: str) -> None:
    rules = parse_rules(rule)
    assert rules is not None
    assert rules[0].condition is None
    assert rule in rules[0].problem


@given(st.text(alphabet="aB(*/\\\"'{},:|)[]!~ \n\u00e9", max_size=12))
@settings(max_examples=200)
def test_every_condition_compiles(text: str) -> None:
    for tool in ("Bash", "Write", "WebFetch", "Task"):
        for rule in parse_rules(f"{tool}({text})") or ():
            if rule.condition is not None:
                compile_expression(rule.condition)
