"""The translator of anthropic.

The service can require one tool by its name, not one of several, and none under
``auto``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .base import Entry, SdkTranslator, first_candidate, own_name
from .shape import (
    HookToolConfig,
    LLMCandidate,
    LLMUsage,
    ToolConfigParts,
    tool_config_parts,
    whole_number,
)
from .streams import assemble_anthropic
from .values import (
    anthropic_types,
    as_record,
    get,
    is_list,
    is_record,
    items,
    rebuilt,
    string_of,
    text_at,
    unexpected,
    with_field,
)

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
_ROLES = {"assistant": "model"}
_PARALLEL = "disable_parallel_tool_use"
_SETTINGS = {
    "maxOutputTokens": ("max_tokens",),
    "stopSequences": ("stop_sequences",),
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "topK": ("top_k",),
}
# The SDK raises for these as arguments, so they are sent in ``extra_body``.
_BODY_SETTINGS = ("temperature", "topP", "topK")
_REASONS = {
    "end_turn": "STOP",
    "stop_sequence": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
}
# The agent runs these itself; any other tool with a type is run by the service.
_CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_INPUT_COUNTS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class AnthropicTranslator(SdkTranslator):
    """The ``HookTranslator`` of anthropic."""

    name = "Anthropic Messages"
    separate_system = True
    cache_field = "cache_control"
    request_type = "the arguments of messages.create() as a dict with messages"
    response_type = "a Message"
    response_fields = ("content",)
    roles = _ROLES
    finish_reasons = _REASONS
    call_reasons = ("tool_use",)
    settings = _SETTINGS
    chunk_type = "an event of anthropic"
    assembled = staticmethod(assemble_anthropic)

    def _entry(self, raw: Any, place: str) -> Entry:
        role, content = text_at(raw, "role", place), get(raw, "content")
        if content is None:
            raise unexpected(f"{place}.content", "a string or a list", None)
        texts, other_types = self._read_blocks(content, f"{place}.content")
        return Entry(
            raw,
            self._message(role, texts),
            bool(other_types),
            any(kind.endswith(("tool_use", "tool_result")) for kind in other_types),
            "tool_result" in other_types,
        )

    def _config(self, request: Any) -> dict[str, Any]:
        body = get(request, "extra_body")
        config = {key: get(body, *_SETTINGS[key]) for key in _BODY_SETTINGS}
        config |= super()._config(request)
        return {key: setting for key, setting in config.items() if setting is not None}

    def _with_config(self, request: Any, key: str, value: Any) -> Any:
        if key not in _BODY_SETTINGS or get(request, *_SETTINGS[key]) is not None:
            return super()._with_config(request, key, value)
        body = with_field(get(request, "extra_body") or {}, value, *_SETTINGS[key])
        return with_field(request, body or None, "extra_body")

    def _with_system(self, request: Any, texts: Sequence[str]) -> Any:
        system = get(request, "system")
        if is_list(system):
            blocks = [{"type": "text", "text": text} for text in texts]
            return with_field(request, [*system, *blocks], "system")
        joined = "\n\n".join([*([system] if system else []), *texts])
        return with_field(request, joined, "system")

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Read a ``tool_choice``; unknown modes pass as text."""
        as_record(tool_config, "tool_choice")
        kind = string_of(get(tool_config, "type"))
        if kind == "tool":
            name = string_of(get(tool_config, "name"))
            return HookToolConfig("ANY", [name] if name else None)
        return HookToolConfig(None if kind is None else _MODES.get(kind, kind))

    def _new_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
        choice: dict[str, Any] = {"type": own_name(_MODES, mode)}
        if names and self.carries_names(tool_config):
            choice = {"type": "tool", "name": names[0]}
        parallel = get(get(request, "tool_choice"), _PARALLEL)
        if parallel is not None and mode != "NONE":
            choice[_PARALLEL] = parallel
        return choice

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the API can restrict a call to the names in a hook's tool config."""
        tool_config = tool_config_parts(hook_tool_config)
        names = tool_config.allowed_function_names or ()
        return tool_config.mode == "ANY" and len(names) == 1

    def _names_in(self, tool: Any) -> list[str]:
        kind, name = string_of(get(tool, "type")), string_of(get(tool, "name"))
        is_own = kind is None or kind.startswith(_CLIENT_TOOLS)
        return [name] if name and is_own else []

    def _limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        # Tools of the service have names here, so that a list can allow them.
        return tool if string_of(get(tool, "name")) in names else None

    def _without_service_fields(self, request: Any, names: Collection[str]) -> Any:
        return with_field(request, None, "mcp_servers")

    def _candidates(self, response: Any) -> list[LLMCandidate]:
        texts, _ = self._read_blocks(get(response, "content"), "content")
        return [self._candidate(texts, get(response, "stop_reason"))]

    def _usage(self, response: Any) -> LLMUsage | None:
        usage = get(response, "usage")
        if not is_record(usage):
            return None
        prompt = sum(whole_number(get(usage, name)) or 0 for name in _INPUT_COUNTS)
        output = whole_number(get(usage, "output_tokens"))
        return LLMUsage(prompt, output, prompt + (output or 0))

    def _calls(self, response: Any) -> list[str]:
        blocks = items(get(response, "content"))
        return [str(get(b, "name")) for b in blocks if get(b, "type") == "tool_use"]

    def _new_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        first = first_candidate(candidates)
        text = "".join(first.content.parts)
        changes: dict[str, Any] = {
            "content": [{"type": "text", "text": text}],
            "stop_reason": self._own_reason(
                first.finish_reason, get(base, "stop_reason")
            ),
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
