"""Tracebacks of hooks in this process start at the author's own file."""

from __future__ import annotations

import logging
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem
from tests.support.project import Project

HOOK = {"type": "python", "name": "guard", "function": "checks:guard"}
CRASHES = tomllib.loads(Path(__file__).with_name("crashes.toml").read_text())


@pytest.fixture
def checks(project: Project, request: pytest.FixtureRequest) -> Project:
    project.write(".hookline/checks.py", CRASHES[request.param])
    project.write(".hookline/words.py", "1 / 0\n")
    project.settings(HOOK)
    project.trust()
    return project


def files(text: str) -> list[str]:
    return re.findall(r'File "([^"]*)"', text)


@pytest.mark.parametrize("checks", CRASHES, indirect=True)
async def test_traceback_starts_at_the_authors_file(
    checks: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "hookline")
    (ran,) = (await checks.fire()).aggregated.hook_results
    shown = files(ran.stderr)
    assert shown[0].startswith(str(checks.folder)), ran.stderr
    for place in ("hookline/executors", "<frozen importlib", "asyncio/base_events"):
        assert not any(place in file for file in shown), ran.stderr
    # The log shows it with the failure, in lines that pass for no record.
    (line,) = (text for text in caplog.messages if text.startswith("hook:failure"))
    head, *rest = line.split("\n")
    assert "error=" in head
    assert "a note" not in head
    assert files("\n".join(rest)) == shown
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize("checks", ["plain", "syntax error"], indirect=True)
async def test_traceback_is_whole_at_debug_level(
    checks: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "hookline")
    (ran,) = (await checks.fire()).aggregated.hook_results
    assert any("hookline/execute/python.py" in file for file in files(ran.stderr))


async def test_function_registered_in_code_is_the_first_frame(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def guard(event: dict[str, Any]) -> None:
        raise KeyError("line\nhook:failure event='forged'")

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        result = await hooks.event_handler.fire_before_tool_event("t", {})
    (ran,) = result.aggregated.hook_results
    assert files(ran.stderr) == [__file__]
    assert not any("\nhook:failure" in text for text in caplog.messages)
