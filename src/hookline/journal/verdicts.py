"""What came of an event, in a form that two runs of it can be compared by.

Pure. Messages and reasons are left out: wording may change, a verdict may not.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from hookline.events import TRAITS, Chain, HookEventName, Merge
from hookline.jsontext import decode, encode
from hookline.outputs import HookOutput
from hookline.results import ProcessedHookResult

from .cutting import seal
from .masking import Masker

_sorted = msgspec.json.Encoder(order="sorted").encode

EFFECT_LIMIT = 16 * 1024

_GOING_ON = frozenset({"tool_input", "llm_request", "tools"})

WORDS = {
    "tool_input": "changed input",
    "llm_request": "changed request",
    "llm_response": "changed response",
    "tools": "restricted tools",
    "withheld": "withheld result",
}


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event's hooks decided; effects are JSON texts, masked and sealed."""

    blocked: bool = False
    ask: bool = False
    stop: bool = False
    withheld: bool = False
    tool_input: str | None = None
    llm_request: str | None = None
    llm_response: str | None = None
    tools: str | None = None

    @property
    def word(self) -> str:
        """The one word for it, the strongest first."""
        if self.stop:
            return "stopped"
        if self.blocked:
            return "blocked"
        if self.ask:
            return "ask"
        return "changed" if self.effects else "allowed"

    @property
    def effects(self) -> dict[str, str]:
        """What it changes, by the name of the field."""
        named = {
            "tool_input": self.tool_input,
            "llm_request": self.llm_request,
            "llm_response": self.llm_response,
            "tools": self.tools,
            "withheld": "true" if self.withheld else None,
        }
        return {name: text for name, text in named.items() if text is not None}


def verdict_of(
    event: HookEventName, result: ProcessedHookResult, tool_input: Any
) -> Verdict:
    """Read the verdict off a result; ``tool_input`` is what the tool was to get."""
    effects = _effects(event, result.final_output, tool_input)
    if result.blocked or result.should_stop:
        # Nothing goes on that could have been changed.
        effects = {k: v for k, v in effects.items() if k not in _GOING_ON}
    return Verdict(
        blocked=result.blocked, ask=result.ask, stop=result.should_stop, **effects
    )


def _effects(
    event: HookEventName, final: HookOutput | None, tool_input: Any
) -> dict[str, Any]:
    if final is None:
        return {}
    traits = TRAITS[event]
    effects: dict[str, Any] = {}
    if final.modified_tool_input is not None and traits.chain is Chain.TOOL_INPUT:
        changed, before = _plain(final.modified_tool_input), _plain(tool_input)
        effects["tool_input"] = None if changed == before else _sealed(changed)
    if final.llm_request is not None and traits.chain is Chain.LLM_REQUEST:
        effects["llm_request"] = _sealed(final.llm_request)
    if final.llm_response is not None and traits.merge is Merge.FIELDS:
        effects["llm_response"] = _sealed(final.llm_response)
    if final.tool_config is not None and traits.merge is Merge.TOOL_SELECTION:
        effects["tools"] = _sealed(final.tool_config)
    if final.withholds_result and event is HookEventName.AfterTool:
        effects["withheld"] = True
    return effects


def _plain(value: Any) -> Any:
    return decode(encode(value))


def _sealed(value: Any) -> str:
    masked = Masker(texts=True).mask(_plain(value))
    return seal(_sorted(masked).decode(), EFFECT_LIMIT)
