"""The names that agents are built on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hookline import agent

ALIASES = {"HookFirer": "EventFirer", "Says": "ScriptedReply"}
UNIONS = {"ConfigOrSession", "Confirm"}
"""Types that have no name of their own."""


def test_every_public_name_is_there() -> None:
    for name in agent.__all__:
        found = getattr(agent, name)
        if name in UNIONS:
            assert found is not None
        else:
            assert found.__name__ == ALIASES.get(name, name)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = agent.Nothing  # type: ignore[attr-defined] # what the test is about


def test_an_agent_without_an_sdk_loads_none() -> None:
    code = (
        "import sys; from hookline.agent import Agent, ScriptedModel, hooked_tool; "
        "print(*sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in found.stdout.split()}
    assert not loaded & {"google", "openai", "anthropic", "pydantic"}
