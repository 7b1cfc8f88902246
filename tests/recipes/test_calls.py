"""Calls as models and people make them, each with the verdict of one recipe.

A line of ``calls/*.jsonl`` is a verdict, a tool and its input, in the shapes of Claude
Code, Gemini CLI, Codex, Copilot, Cursor, Cline, Goose, OpenCode, MCP servers and agents
built on SDKs. ``{cwd}`` is the project. ``⟦M36⟧`` is 36 random characters: no secret
is in the file, so that no scanner takes it for one.
"""

from __future__ import annotations

import json
import random
import re
import string
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hookline.engine.planner import compile_matcher
from hookline.recipes.catalog import RECIPES

CALLS = Path(__file__).parent / "calls"
ALPHABETS = {
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + string.digits,
    "M": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "h": "0123456789abcdef",
    "d": string.digits,
}
LOADED = {file.stem: file.read_text("utf-8").splitlines() for file in CALLS.iterdir()}


def filled(line: str, cwd: str) -> tuple[str, str, dict[str, Any]]:
    chosen = random.Random(line)

    def secret(found: re.Match[str]) -> str:
        return "".join(chosen.choices(ALPHABETS[found[1]], k=int(found[2])))

    text = re.sub(r"⟦(\w)(\d+)⟧", secret, line.replace("⟦⟧", ""))
    verdict, tool, tool_input = json.loads(text.replace("{cwd}", cwd))
    return verdict, tool, tool_input


def judge(name: str, tool: str, tool_input: dict[str, Any], cwd: Path) -> str:
    """The recipe's verdict, where its matcher lets it see the tool at all."""
    recipe = RECIPES[name]
    matcher = recipe.places[0].matcher
    if matcher is not None and not compile_matcher(matcher).matches(tool):
        return "allow"
    script = recipe.scripts[0].removesuffix(".py")
    check = import_module(f"hookline.recipes.hooks.{script}").check
    event = {"tool_name": tool, "tool_input": tool_input, "cwd": str(cwd)}
    return str((check(event) or {}).get("decision", "allow"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("src", ".git", ".hookline"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".env").write_text("x")
    return tmp_path


@pytest.mark.parametrize("name", sorted(LOADED))
def test_recipe_judges_real_calls(
    name: str, project: Path, subtests: pytest.Subtests
) -> None:
    for number, line in enumerate(LOADED[name], 1):
        with subtests.test(f"{name}.jsonl, line {number}"):
            expected, tool, tool_input = filled(line, str(project))
            assert judge(name, tool, tool_input, project) == expected


def test_every_guard_has_calls_of_both_kinds() -> None:
    for lines in LOADED.values():
        verdicts = [json.loads(line)[0] for line in lines]
        assert min(verdicts.count("block"), verdicts.count("allow")) >= 50


SHELLS = ("Bash", "run_shell_command", "shell", "execute_command", "run_in_terminal")
WRITERS = ("Write", "write_file", "Edit", "MultiEdit", "apply_patch", "replace")


def test_matchers_know_the_tools_of_other_agents() -> None:
    """``Bash`` is not ``bash``."""
    matchers = [recipe.places[0].matcher for recipe in RECIPES.values()]
    for matcher in filter(None, matchers):
        assert "shell" in matcher or "write" in matcher
        tools = [*(SHELLS * ("shell" in matcher)), *(WRITERS * ("write" in matcher))]
        assert all(map(compile_matcher(matcher).matches, tools))
