"""What the three applications share: a tool, and the hooks that guard it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hookline import Config, HookSystem, Settings

if TYPE_CHECKING:
    from hookline.types import BeforeToolInput, HookOutput

HERE = Path(__file__).parent


def refund(order: str, amount: float) -> str:
    """Give a customer money back."""
    return f"refunded {amount:g} for {order}"


def limit(event: BeforeToolInput) -> HookOutput | None:
    """A hook in this process. It runs on the event loop: it must not block."""
    if event["tool_input"]["amount"] > 100:
        return {"decision": "deny", "reason": "over 100: ask a person"}
    return None


def make_config() -> Config:
    """The hooks of the settings and of this file; one config for each process."""
    settings = Settings.from_file(HERE / "settings.json")
    config = Config(working_dir=HERE, settings=settings)
    hooks = HookSystem(config)
    hooks.on("BeforeTool", matcher="refund", on_error="block")(limit)
    return config


def wanted(prompt: str) -> list[tuple[str, float]]:
    """A stand-in for the model: "A-1 20" asks for one call of the tool."""
    lines = (line.split() for line in prompt.splitlines())
    return [(order, float(amount)) for order, amount in lines]
