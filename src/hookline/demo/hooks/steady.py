"""BeforeModel: limit the temperature to 0.2."""

from typing import Any

from hookline.script import Output, modify_request, run

HIGHEST = 0.2


def steady(event: dict[str, Any]) -> Output | None:
    """Lower the temperature."""
    config = event["llm_request"].get("config", {})
    if config.get("temperature", 0) > HIGHEST:
        return modify_request(config={"temperature": HIGHEST})
    return None


run(steady)
