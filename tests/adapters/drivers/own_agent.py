"""Our own agent under the suite for adapters: it must do what it asks of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookline import Config, Settings
from hookline.agent import Agent, Ending, ScriptedModel, Session
from hookline.agent.conversation import Turn
from hookline.testing.adapters import ModelRequest, Ran, Task


class OwnAgentDriver:
    """Runs ``hookline.agent.Agent`` with a scripted model."""

    entries: Sequence[str] = ("async",)
    cannot: Mapping[str, str] = {
        "tool-recorded": "the history keeps what the model wrote; it is told the change"
    }

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        tools = task.tools
        count = len(task.replies) + 1
        model = ScriptedModel(task.reply(at) for at in range(count))
        confirm = None if task.confirm is None else (lambda _: task.confirm is True)
        shown: list[str] = []
        agent = Agent(
            session or Config(settings=Settings()),
            model,
            [tools.read, tools.write, tools.fail],
            confirm=confirm,
            on_chunk=shown.append,
        )
        result = await agent.run(task.prompt)
        answered = result.ending is Ending.ANSWERED
        return Ran(
            answer=result.text if answered else result.reason or "",
            requests=[_request(one) for one in model.requests],
            shown="".join(shown),
            recorded=repr(agent.chat.history),
        )


def _request(request: dict[str, Any]) -> ModelRequest:
    texts = [message["content"] for message in request["messages"]]
    texts += [text for turn in request["turns"] for text in _results(turn)]
    names = [tool["name"] for tool in request["tools"]]
    allowed = request.get("toolConfig", {}).get("allowedFunctionNames", names)
    return ModelRequest("\n".join(texts), [name for name in names if name in allowed])


def _results(turn: Turn) -> list[str]:
    return [answer.result.text for answer in turn.answers]
