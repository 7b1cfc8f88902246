"""The translator of anthropic.

The service can require one tool by its name, not one of several, and none under
``auto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .messages import BlockTypes, read_blocks
from .sdk_objects import (
    anthropic_types,
    as_record,
    count_or_none,
    get,
    rebuilt,
    text_at,
    text_or_none,
    unexpected,
    with_field,
)
from .stable import (
    HookToolConfig,
    LLMCandidate,
    LLMContent,
    LLMUsage,
    tool_config_parts,
)
from .streams import assemble_anthropic
from .translator import Entry, MessageListTranslator, first_candidate

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
_CHOICES = {mode: choice for choice, mode in _MODES.items()}
_PARALLEL = "disable_parallel_tool_use"
_SETTINGS = {"maxOutputTokens": "max_tokens", "stopSequences": "stop_sequences"}
# The SDK raises for these as arguments, so they are sent in ``extra_body``.
_BODY_SETTINGS = {"temperature": "temperature", "topP": "top_p", "topK": "top_k"}
_REASONS = {
    "end_turn": "STOP",
    "stop_sequence": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
}
_STOP_REASONS = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens", "SAFETY": "refusal"}
_INPUT_COUNTS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class AnthropicTranslator(MessageListTranslator):
    """The ``HookTranslator`` of anthropic."""

    name = "Anthropic Messages"
    separate_system = True
    blocks = BlockTypes(frozenset({"text"}), "cache_control")
    request_type = "the arguments of messages.create() as a dict with messages"
    response_type = "a Message"
    response_fields = ("content",)

    def entry(self, raw: Any, place: str) -> Entry:
        """Read one message."""
        role, content = text_at(raw, "role", place), get(raw, "content")
        if content is None:
            raise unexpected(f"{place}.content", "a string or a list", None)
        texts, others = read_blocks(content, f"{place}.content", self.blocks)
        calls = any(kind.endswith(("tool_use", "tool_result")) for kind in others)
        message = self.shown(role, texts)
        return Entry(raw, message, bool(others), calls, "tool_result" in others)

    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that have a stable name."""
        body = get(request, "extra_body")
        found = {key: get(request, name) for key, name in _SETTINGS.items()}
        for key, name in _BODY_SETTINGS.items():
            value = get(request, name)
            found[key] = get(body, name) if value is None else value
        return {key: value for key, value in found.items() if value is not None}

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to ``system``, a string or blocks."""
        found = get(request, "system")
        if isinstance(found, list | tuple):
            blocks = [{"type": "text", "text": text} for text in texts]
            return with_field(request, [*found, *blocks], "system")
        joined = "\n\n".join([*([found] if found else []), *texts])
        return with_field(request, joined, "system")

    def takes_config(self, request: Any, key: str) -> bool:
        """Whether the API has the setting; ``seed`` it does not have."""
        del request
        return key in _SETTINGS or key in _BODY_SETTINGS

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting, where the request has it or the SDK takes it."""
        name = _SETTINGS.get(key) or _BODY_SETTINGS[key]
        if key in _SETTINGS or get(request, name) is not None:
            return with_field(request, value, name)
        body = with_field(get(request, "extra_body") or {}, value, name)
        return with_field(request, body or None, "extra_body")

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Read a ``tool_choice``; unknown modes pass as text."""
        as_record(tool_config, "tool_choice")
        kind = text_or_none(get(tool_config, "type"), "tool_choice.type")
        if kind == "tool":
            name = text_or_none(get(tool_config, "name"), "tool_choice.name")
            return HookToolConfig("ANY", [name] if name else None)
        return HookToolConfig(None if kind is None else _MODES.get(kind, kind))

    def write_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        """Write a ``tool_choice``; parallel use stays as it was."""
        mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
        choice: dict[str, Any] = {"type": _CHOICES.get(mode, mode)}
        if names and self.carries_names(tool_config):
            choice = {"type": "tool", "name": names[0]}
        parallel = get(get(request, "tool_choice"), _PARALLEL)
        if parallel is not None and mode != "NONE":
            choice[_PARALLEL] = parallel
        return choice

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Only one name, and only under ``ANY``."""
        found = tool_config_parts(hook_tool_config)
        return found.mode == "ANY" and len(found.allowed_function_names or ()) == 1

    def names_in(self, tool: Any) -> list[str]:
        """Read the name of a tool."""
        name = get(tool, "name")
        return [name] if isinstance(name, str) else []

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the text blocks as one candidate; thinking is not text."""
        reason = text_or_none(get(response, "stop_reason"), "stop_reason")
        texts, _ = read_blocks(get(response, "content"), "content", self.blocks)
        shown = None if reason is None else _REASONS.get(reason, reason)
        return [LLMCandidate(LLMContent("model", texts), shown, 0)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read ``usage``; cached input counts as input."""
        usage = get(response, "usage")
        if usage is None:
            return None
        as_record(usage, "usage")
        prompt = sum(
            count_or_none(get(usage, name), f"usage.{name}") or 0
            for name in _INPUT_COUNTS
        )
        output = count_or_none(get(usage, "output_tokens"), "usage.output_tokens")
        return LLMUsage(prompt, output, prompt + (output or 0))

    def calls(self, response: Any) -> list[str]:
        """List the tool uses that the agent has to answer."""
        content = get(response, "content")
        blocks = content if isinstance(content, list | tuple) else []
        return [str(get(b, "name")) for b in blocks if get(b, "type") == "tool_use"]

    def build_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a Message, or a dict if the base is one."""
        first = first_candidate(candidates)
        text = "".join(first.content.parts)
        changes: dict[str, Any] = {
            "content": [{"type": "text", "text": text}],
            "stop_reason": _stop_reason(first.finish_reason, base),
        }
        if usage is not None:
            changes["usage"] = {
                "input_tokens": usage.prompt_token_count or 0,
                "output_tokens": usage.candidates_token_count or 0,
            }
        defaults = {
            "id": "msg_hookline", "type": "message", "role": "assistant", "model": "",
            "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return rebuilt(lambda: anthropic_types().Message, base, changes, defaults)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Assemble a Message from the events of a stream."""
        return assemble_anthropic(chunks)


def _stop_reason(reason: str | None, base: Any) -> Any:
    if reason is not None:
        return _STOP_REASONS.get(reason, reason)
    before = get(base, "stop_reason")
    return "end_turn" if before in (None, "tool_use") else before
