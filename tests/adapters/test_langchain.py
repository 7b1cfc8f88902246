"""LangChain agents (issue 14 adapters)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.testing.adapters import AdapterSuite

from .drivers.langchain import LangChainDriver
from .langchain_scenes import agent_of, answer, ask, deny, hooked, thread


class TestLangChain(AdapterSuite):
    driver = LangChainDriver()


def test_the_example_runs_offline() -> None:
    """The page shows its output, which the tests of the pages compare."""
    root = Path(__file__).parents[2]
    file = root / "examples" / "frameworks" / "langchain_agent.py"
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert "[e-mail]" in done.stdout
    assert (
        done.stdout
        in (root / "docs" / "how-to" / "frameworks" / "langchain.md").read_text()
    )


@pytest.mark.parametrize("name", ["batch", "abatch"])
async def test_a_batch_is_many_runs(name: str) -> None:
    async with hooked(BeforeAgent=deny("not that")) as (config, _):
        agent, model = agent_of(config)
        inputs, configs = [ask("a"), ask("b")], [thread("1"), thread("2")]
        if name == "batch":
            results = await asyncio.to_thread(agent.batch, inputs, configs)
        else:
            results = await agent.abatch(inputs, configs)
    assert [answer(one) for one in results] == ["not that", "not that"]
    assert model.requests == []


async def test_what_the_middleware_keeps_is_plain_data() -> None:
    """Servers serialize the streams, where private keys of the state appear."""
    async with hooked() as (config, _):
        agent, _ = agent_of(config, "done")
        stream = agent.astream(ask("hi"), stream_mode="values")
        kept = [one["hookline"] async for one in stream if "hookline" in one]
        result = await agent.ainvoke(ask("hi"))
    assert kept
    assert [json.loads(json.dumps(one)) for one in kept] == kept
    assert "hookline" not in result
