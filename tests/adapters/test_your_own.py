"""The adapter that the page builds passes the suite."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hookline.agent import Session
from hookline.testing.adapters import AdapterSuite, ModelRequest, Ran, Task

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "frameworks" / "your_own.py"
PAGE = ROOT / "docs" / "how-to" / "frameworks" / "your-own.md"


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tiny = load(EXAMPLE)


class TinyDriver:
    """Runs the agent of the example."""

    entries: Sequence[str] = ("async",)
    cannot: Mapping[str, str] = {
        "tool-recorded": "the tiny framework records no inputs of tools",
    }

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        requests: list[ModelRequest] = []

        async def model(messages: list[dict[str, str]], offered: list[str]) -> Any:
            reply = task.reply(len(requests))
            text = "\n".join(message["content"] for message in messages)
            requests.append(ModelRequest(text, offered))
            return tiny.Answer(reply.text, list(reply.calls))

        tools = {
            "read": task.tools.read,
            "write": task.tools.write,
            "fail": task.tools.fail,
        }
        if session is None:
            agent = tiny.TinyAgent(model, tools)
        else:
            agent = tiny.HookedTinyAgent(model, tools)
            agent.config = session
        if task.confirm is not None:
            agent.confirm = lambda _: task.confirm
        answer = await agent.run(task.prompt)
        return Ran(answer=answer, requests=requests, recorded=repr(agent.messages))


class TestTinyAgent(AdapterSuite):
    driver = TinyDriver()


def test_the_page_shows_the_code_that_runs() -> None:
    """Every line of Python on the page is in the example or in this file."""
    blocks = PAGE.read_text().split("```python\n")[1:]
    shown = [
        line.strip() for block in blocks for line in block.split("```")[0].split("\n")
    ]
    code = EXAMPLE.read_text() + Path(__file__).read_text()
    assert blocks
    assert [line for line in shown if line not in code] == []
