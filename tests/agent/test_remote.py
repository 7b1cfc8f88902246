"""Agents whose hooks run elsewhere: the same effects over a bus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings
from hookline.agent import Agent, Ending, ScriptedModel, ScriptedReply
from hookline.bus import HookBusClient, InMemoryMessageBus, RemoteHooks

from .scenes import config_of, names, runs, specific


async def test_an_agent_obeys_hooks_that_are_reached_over_a_bus(
    tmp_path: Path,
) -> None:
    """DESIGN: triggers, scheduler and chat work the same on RemoteHooks."""
    hooks = {
        "BeforeTool": specific(tool_input={"path": "src/a"}),
        "AfterTool": specific(additionalContext="noted"),
        "BeforeModel": specific(llm_request={"config": {"temperature": 0.1}}),
        "AfterModel": runs("true"),
        "AfterAgent": runs("true"),
    }
    there = config_of(tmp_path, hooks)
    bus = InMemoryMessageBus()
    written: list[str] = []

    def write(path: str) -> str:
        written.append(path)
        return f"wrote {path}"

    here = Config("s-2", tmp_path, Settings.from_mapping({"enableHooks": False}))
    model = ScriptedModel([ScriptedReply("", (("write", {"path": "a"}),)), "done"])
    async with HookSystem(there, message_bus=bus):
        here.use_hooks(RemoteHooks(HookBusClient(bus), session_id="s-2"))
        result = await Agent(here, model, [write]).run("go")
    assert (result.ending, result.text) == (Ending.ANSWERED, "done")
    assert written == ["src/a"]
    assert model.requests[0]["config"] == {"temperature": 0.1}
    answers: Any = model.requests[1]["turns"][2].answers
    assert answers[0].result.llm_content == "wrote src/a\n\nnoted"
    assert names(tmp_path)[0] == "BeforeModel"
