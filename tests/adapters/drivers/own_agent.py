"""Our own agent under the suite for adapters: it must do what it asks of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookline import Config, Settings
from hookline.agent import Agent, Ending, ScriptedModel, Session
from hookline.agent.conversation import Turn
from hookline.testing.adapters import ModelRequest
from tests.adapters.scenarios import Scenario, ScenarioDriver


class OwnAgentDriver(ScenarioDriver):
    """Runs ``hookline.agent.Agent`` with a scripted model."""

    entries: Sequence[str] = ("async",)
    cannot: Mapping[str, str] = {
        "tool-recorded": "the history keeps what the model wrote; it is told the change"
    }

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        count = len(scenario.replies) + len(scenario.turns)
        model = ScriptedModel(scenario.reply(at) for at in range(count))
        answer = scenario.answers[0] if scenario.answers else None
        agent = Agent(
            session or Config(settings=Settings()),
            model,
            scenario.functions(),
            confirm=None if answer is None else (lambda _: answer is True),
            on_chunk=scenario.shown.append,
        )
        for turn in scenario.turns:
            result = await agent.run(turn)
            answered = result.ending is Ending.ANSWERED
            scenario.results.append(result.text if answered else result.reason or "")
        scenario.requests += map(_request, model.requests)
        scenario.recorded = repr(agent.chat.history)


def _request(request: dict[str, Any]) -> ModelRequest:
    texts = [message["content"] for message in request["messages"]]
    texts += [text for turn in request["turns"] for text in _results(turn)]
    names = [tool["name"] for tool in request["tools"]]
    allowed = request.get("toolConfig", {}).get("allowedFunctionNames", names)
    return ModelRequest("\n".join(texts), [name for name in names if name in allowed])


def _results(turn: Turn) -> list[str]:
    return [answer.result.text for answer in turn.answers]
