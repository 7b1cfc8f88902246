"""Which tools an Anthropic request offers, and its ``tool_choice``.

The service can hold a call to one name, not to several, and to none under ``auto``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .formats import (
    Draft,
    Entry,
    change_request,
    change_response,
    show_request,
    show_response,
)
from .messages import BlockKinds, MessageListRequests, kinds_in, texts_in
from .sdk_objects import (
    anthropic_types,
    count_or_none,
    get,
    is_record,
    items_of,
    put,
    record,
    text_or_none,
    wrong,
)
from .stable import (
    HookToolConfig,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMUsage,
    tool_config_parts,
)
from .streams import assemble_anthropic

_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
_CHOICES = {mode: choice for choice, mode in _MODES.items()}
_PARALLEL = "disable_parallel_tool_use"


def read_tool_choice(choice: Any) -> HookToolConfig:
    """Read a ``tool_choice``; what is not in the table passes as text."""
    kind = text_or_none(get(record(choice, "tool_choice"), "type"), "tool_choice.type")
    if kind == "tool":
        name = text_or_none(get(choice, "name"), "tool_choice.name")
        return HookToolConfig("ANY", [name] if name else None)
    return HookToolConfig(None if kind is None else _MODES.get(kind, kind))


def write_tool_choice(tool_config: HookToolConfig, before: Any) -> dict[str, Any]:
    """Write a ``tool_choice``; whether tools run in parallel stays as it was."""
    mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
    if carries_names(tool_config) and names:
        choice: dict[str, Any] = {"type": "tool", "name": names[0]}
    else:
        choice = {"type": _CHOICES.get(mode, mode)}
    parallel = get(before, _PARALLEL)
    if parallel is not None and mode != "NONE":
        choice[_PARALLEL] = parallel
    return choice


def carries_names(tool_config: HookToolConfig) -> bool:
    """Whether the names can be said: one that has to be called."""
    names = tool_config.allowed_function_names
    return tool_config.mode == "ANY" and names is not None and len(names) == 1


def offered_names(request: Any) -> list[str]:
    """Name the tools that a request offers."""
    tools = items_of(get(request, "tools"), "tools")
    return [name for tool in tools if isinstance(name := get(tool, "name"), str)]


def limit_offered(request: Mapping[str, Any], names: Collection[str]) -> Any:
    """Leave out all tools with a name but some."""
    tools = items_of(get(request, "tools"), "tools")
    kept = [tool for tool in tools if _stays(get(tool, "name"), names)]
    if kept == tools:
        return request
    if kept:
        return {**request, "tools": kept}
    # Without tools the service refuses a choice among them.
    return {k: v for k, v in request.items() if k not in ("tools", "tool_choice")}


def _stays(name: Any, names: Collection[str]) -> bool:
    return not isinstance(name, str) or name in names


KINDS = BlockKinds(frozenset({"text"}), "cache_control")
_SHOWN_ROLES = {"assistant": "model"}
_REASONS = {
    "end_turn": "STOP",
    "stop_sequence": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "model_context_window_exceeded": "MAX_TOKENS",
    "refusal": "SAFETY",
}
_OWN_REASONS = {"STOP": "end_turn", "MAX_TOKENS": "max_tokens", "SAFETY": "refusal"}
_INPUT_COUNTS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
_CONFIG = {"maxOutputTokens": "max_tokens", "stopSequences": "stop_sequences"}
# The SDK has no arguments for these any more and raises for them, so that they
# travel in ``extra_body``.
_BODY_CONFIG = {"temperature": "temperature", "topP": "top_p", "topK": "top_k"}


class MessageRequests(MessageListRequests):
    """The ``RequestFormat`` of Anthropic Messages."""

    name = "Anthropic Messages"
    system_apart = True
    kinds = KINDS

    def entries(self, request: Any) -> list[Entry]:
        """Read the messages."""
        found = items_of(get(request, "messages"), "messages")
        return [_entry(raw, f"messages[{at}]") for at, raw in enumerate(found)]

    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that have a stable name."""
        body = get(request, "extra_body")
        found = {key: get(request, own) for key, own in _CONFIG.items()}
        for key, own in _BODY_CONFIG.items():
            value = get(request, own)
            found[key] = get(body, own) if value is None else value
        return {key: value for key, value in found.items() if value is not None}

    def tool_config(self, request: Any) -> HookToolConfig | None:
        """Read ``tool_choice``."""
        choice = get(request, "tool_choice")
        return None if choice is None else read_tool_choice(choice)

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to ``system``, a string or blocks."""
        found = get(request, "system")
        if isinstance(found, list | tuple):
            blocks = [{"type": "text", "text": text} for text in texts]
            return put(request, [*found, *blocks], "system")
        joined = "\n\n".join([*([found] if found else []), *texts])
        return put(request, joined, "system")

    def takes_config(self, request: Any, key: str) -> bool:
        """There is no place for ``seed``, for example."""
        del request
        return key in _CONFIG or key in _BODY_CONFIG

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting, where the request has it or the SDK takes it."""
        own = _CONFIG.get(key) or _BODY_CONFIG[key]
        if key in _CONFIG or get(request, own) is not None:
            return put(request, value, own)
        body = put(get(request, "extra_body") or {}, value, own)
        return put(request, body or None, "extra_body")

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change ``tool_choice``."""
        choice = write_tool_choice(tool_config, get(request, "tool_choice"))
        return put(request, choice, "tool_choice")


class MessageResponses:
    """The ``ResponseFormat`` of Anthropic Messages: one candidate."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the text blocks; thinking is no text."""
        if not _is_message(response):
            raise wrong("response", "a Message", response)
        reason = text_or_none(get(response, "stop_reason"), "stop_reason")
        texts = texts_in(get(response, "content"), "content", KINDS)
        shown = None if reason is None else _REASONS.get(reason, reason)
        return [LLMCandidate(LLMContent("model", texts), shown, 0)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Count what went in, cached or not, and what came out."""
        usage = get(response, "usage")
        if usage is None:
            return None
        record(usage, "usage")
        counts = [
            count_or_none(get(usage, name), f"usage.{name}") for name in _INPUT_COUNTS
        ]
        went_in = sum(count or 0 for count in counts)
        came_out = count_or_none(get(usage, "output_tokens"), "usage.output_tokens")
        return LLMUsage(went_in, came_out, went_in + (came_out or 0))

    def calls(self, response: Any) -> list[str]:
        """Name the tool uses that the agent has to answer."""
        content = get(response, "content")
        blocks = content if isinstance(content, list | tuple) else []
        return [
            str(get(block, "name"))
            for block in blocks
            if get(block, "type") == "tool_use"
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a Message, or a dict where the base is one."""
        draft = drafts[0] if drafts else Draft([], 0)
        changes: dict[str, Any] = {
            "content": [{"type": "text", "text": "".join(draft.texts)}],
            "stop_reason": _stop_reason(draft, base),
        }
        if usage is not None:
            changes["usage"] = {
                "input_tokens": usage.prompt_token_count or 0,
                "output_tokens": usage.candidates_token_count or 0,
            }
        if isinstance(base, Mapping):
            return {**base, **changes}
        fresh = {
            "id": "msg_hookline", "type": "message", "role": "assistant", "model": "",
            "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        whole = anthropic_types().Message.model_construct(**{**fresh, **changes})
        if base is None:
            return whole
        return base.model_copy(update={key: getattr(whole, key) for key in changes})


def _is_message(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "content" in value
    return is_record(value) and hasattr(value, "content")


def _entry(raw: Any, place: str) -> Entry:
    role = text_or_none(get(record(raw, place), "role"), f"{place}.role")
    if role is None:
        raise wrong(f"{place}.role", "a string", None)
    content = get(raw, "content")
    if content is None:
        raise wrong(f"{place}.content", "a string or a list", None)
    text = "".join(texts_in(content, f"{place}.content", KINDS))
    kinds = kinds_in(content)
    return Entry(
        raw,
        LLMMessage(_SHOWN_ROLES.get(role, role), text) if text else None,
        any(kind not in KINDS.text for kind in kinds),
        any(kind.endswith(("tool_use", "tool_result")) for kind in kinds),
        "tool_result" in kinds,
    )


def _stop_reason(draft: Draft, base: Any) -> Any:
    if draft.finish_reason is not None:
        return _OWN_REASONS.get(draft.finish_reason, draft.finish_reason)
    before = get(base, "stop_reason")
    return "end_turn" if before in (None, "tool_use") else before


_REQUESTS = MessageRequests()
_RESPONSES = MessageResponses()


class AnthropicTranslator:
    """The ``HookTranslator`` of the anthropic package."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show the arguments of ``messages.create``."""
        return show_request(_REQUESTS, _arguments(request))

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed."""
        base = None if base_request is None else _arguments(base_request)
        return change_request(_REQUESTS, hook_request, base, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a Message."""
        return show_response(_RESPONSES, response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the Message that a hook wants."""
        return change_response(_RESPONSES, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``tool_choice``."""
        return read_tool_choice(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``tool_choice``, as parallel as that of the base."""
        found = tool_config_parts(hook_tool_config)
        return write_tool_choice(found, get(base_request, "tool_choice"))

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Only one name, and only under ``ANY``."""
        return carries_names(tool_config_parts(hook_tool_config))

    def tool_names(self, request: Any) -> list[str]:
        """Name the tools that a request offers."""
        return offered_names(_arguments(request))

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other tools out."""
        return limit_offered(_arguments(request), names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one Message of the events of a stream."""
        return assemble_anthropic(chunks)


def _arguments(request: Any) -> Mapping[str, Any]:
    if not isinstance(request, Mapping) or "messages" not in request:
        raise wrong("request", "the arguments of messages.create() as a dict", request)
    return request
