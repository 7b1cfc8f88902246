"""An adapter for a framework of your own, as the page your-own.md builds it.

python examples/frameworks/your_own.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from hookline import Config, Settings
from hookline.adapters.kit import answer_of
from hookline.agent import ConfigOrSession, HookedTurn, session_of


@dataclass
class Answer:
    """What a model of the tiny framework says."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@dataclass
class TinyAgent:
    """A framework in 20 lines: a model, tools, and three methods to override."""

    model: Callable[[list[dict[str, str]], list[str]], Awaitable[Answer]]
    tools: dict[str, Callable[..., str]]
    messages: list[dict[str, str]] = field(default_factory=list)

    async def ask_model(self, offered: list[str]) -> Answer:
        return await self.model(self.messages, offered)

    async def call_tool(self, name: str, tool_input: dict[str, Any]) -> str:
        tool = self.tools[name]
        return tool(**tool_input)

    async def run(self, prompt: str) -> str:
        self.messages.append({"role": "user", "content": prompt})
        while True:
            answer = await self.ask_model(list(self.tools))
            self.messages.append({"role": "model", "content": answer.text})
            if not answer.calls:
                return answer.text
            calls = [self.call_tool(*call) for call in answer.calls]
            for result in await asyncio.gather(*calls):
                self.messages.append({"role": "user", "content": result})


class StoppedError(Exception):
    """Ends a run; the tiny framework has no other way."""


class HookedTinyAgent(TinyAgent):
    """The adapter: what hooks decide, in the words of the framework."""

    turn: HookedTurn
    config: ConfigOrSession
    confirm: Callable[[Any], bool] | None = None

    async def run(self, prompt: str) -> str:
        self.turn = await session_of(self.config).begin_turn(prompt)
        if self.turn.refused:
            return self.turn.reason or ""
        text = self.turn.prompt
        try:
            while True:
                answer = await super().run(text)
                rejection = await self.turn.finish(answer)
                if rejection is None:
                    return self.turn.reason or answer if self.turn.refused else answer
                text = rejection
        except StoppedError:
            return self.turn.reason or ""

    async def ask_model(self, offered: list[str]) -> Answer:
        request = {"model": "tiny", "messages": self.messages}
        call = await self.turn.begin_model(request, available_tools=offered)
        self._end_if_stopped()
        if (instead := answer_of(call)) is not None:
            # A hook answers in the model's place, or ends the turn.
            self.turn.blocked = instead.is_ending
            return Answer(instead.text)
        self.messages = call.request["messages"]
        allowed = call.allowed_names
        offered = [name for name in offered if allowed is None or name in allowed]
        answer = await super().ask_model(offered)
        outcome = await call.finish({"text": answer.text})
        self._end_if_stopped()
        return Answer(outcome.text) if outcome.changed else answer

    async def call_tool(self, name: str, tool_input: dict[str, Any]) -> str:
        call = await self.turn.begin_tool(name, tool_input, confirm=self.confirm)
        self._end_if_stopped()
        if call.refused:
            return f"Error: {call.message}"
        try:
            result: object = await super().call_tool(name, call.tool_input)
        except Exception as error:  # noqa: BLE001 - hooks see what the tool raised
            result = error
        outcome = await call.finish(result)
        self._end_if_stopped()
        return outcome.text

    def _end_if_stopped(self) -> None:
        if self.turn.stopped:
            raise StoppedError


async def main() -> None:
    settings = {
        "hooks": {
            "BeforeTool": [
                {
                    "matcher": "write",
                    "hooks": [
                        {"type": "command", "command": "echo no writing >&2; exit 2"}
                    ],
                }
            ]
        }
    }

    async def model(messages: list[dict[str, str]], offered: list[str]) -> Answer:
        if len(messages) == 1:
            return Answer("I will write.", [("write", {"path": "a.md"})])
        return Answer(f"The tool said: {messages[-1]['content']}")

    agent = HookedTinyAgent(model, {"write": lambda path: f"wrote {path}"})
    agent.config = Config(settings=Settings.from_mapping(settings))
    async with agent.config:
        print(await agent.run("write a.md"))


if __name__ == "__main__":
    asyncio.run(main())
