"""An OpenAI client with hooks, offline: a local server plays the service.

python examples/frameworks/openai_client.py
"""

from __future__ import annotations

from typing import Any

from openai import OpenAI

from hookline import Config, HookSystem, Settings
from hookline.agent import hooked
from hookline.errors import UnhookedCallError
from hookline.testing.modelapi import ModelServer

ANSWERS = ["Ask grace@example.org about it.", "Ask grace@example.org again."]


def no_passwords(event: dict[str, Any]) -> dict[str, Any] | None:
    """BeforeModel: keep passwords from the service."""
    asked = str(event["llm_request"]["messages"])
    if "password" in asked:
        return {"decision": "block", "reason": "keep passwords to yourself"}
    return None


def no_addresses(event: dict[str, Any]) -> dict[str, Any]:
    """AfterModel: take addresses out of the answer."""
    text = event["llm_response"]["text"].replace("grace@example.org", "Grace")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


def main() -> None:
    config = Config(settings=Settings.from_mapping({}))
    hooks = HookSystem(config)
    hooks.on("BeforeModel")(no_passwords)
    hooks.on("AfterModel")(no_addresses)

    with (
        ModelServer(ANSWERS) as server,
        OpenAI(api_key="none", base_url=f"{server.url}/v1") as plain,
    ):
        client = hooked(plain, config)

        response = client.responses.create(model="gpt-5-mini", input="Whom do I ask?")
        print("answered:", response.output_text)

        message: Any = {"role": "user", "content": "And again?"}
        chunks = client.chat.completions.create(
            model="gpt-5-mini", messages=[message], stream=True
        )
        streamed = [c.choices[0].delta.content or "" for c in chunks if c.choices]
        print("streamed:", "".join(streamed))

        message["content"] = "My password is hunter2."
        blocked = client.chat.completions.create(model="m", messages=[message])
        choice = blocked.choices[0]
        print("blocked:", choice.finish_reason, "-", choice.message.refusal)

        try:
            client.embeddings.create(model="m", input="hunter2")
        except UnhookedCallError as error:
            print("refused:", error)
        print("requests that the service got:", len(server.requests))


if __name__ == "__main__":
    main()
