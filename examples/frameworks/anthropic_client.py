"""An Anthropic client with hooks, offline: a local server plays the service.

python examples/frameworks/anthropic_client.py
"""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic, beta_tool

from hookline import Config, HookSystem, Settings
from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from hookline.testing.modelapi import Answer, ModelServer

ANSWERS = [
    "Ask grace@example.org about it.",
    Answer("", (("remove", {"path": "notes.md"}),)),
    "I left notes.md alone.",
]


def no_addresses(event: dict[str, Any]) -> dict[str, Any] | None:
    """AfterModel: take addresses out of the answer."""
    text = event["llm_response"].get("text") or ""
    if "@" not in text:
        return None
    clean = text.replace("grace@example.org", "Grace")
    return {"hookSpecificOutput": {"llm_response": {"text": clean}}}


def keep_notes(event: dict[str, Any]) -> dict[str, Any]:
    """BeforeTool: nothing is removed."""
    return {"decision": "block", "reason": f"keep {event['tool_input']['path']}"}


@beta_tool
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


def main() -> None:
    config = Config(settings=Settings.from_mapping({}))
    hooks = HookSystem(config)
    hooks.on("AfterModel")(no_addresses)
    hooks.on("BeforeTool", matcher="remove")(keep_notes)
    ask: dict[str, Any] = {"model": "claude-sonnet-5-5", "max_tokens": 100}
    ask["messages"] = [{"role": "user", "content": "Whom do I ask? Then tidy up."}]

    with (
        ModelServer(ANSWERS) as server,
        Anthropic(api_key="none", base_url=server.url) as plain,
    ):
        client = hooked(plain, config)

        with client.messages.stream(**ask) as stream:
            print("streamed:", "".join(stream.text_stream))

        runner = client.beta.messages.tool_runner(**ask, tools=[remove])
        print("answered:", runner.until_done().content[0].to_dict()["text"])
        result = server.requests[-1].body["messages"][-1]["content"][0]
        print("the tool gave the model:", result["content"])

        try:
            client.messages.batches.create(requests=[])
        except UnhookedCallError as error:
            print("refused:", error)
        print("requests that the service got:", len(server.requests))


if __name__ == "__main__":
    main()
