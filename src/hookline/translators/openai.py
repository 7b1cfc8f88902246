"""Which tools an OpenAI request offers, and ``tool_choice`` in both APIs.

Chat Completions nests a tool's name (``{"function": {"name": ...}}``), the Responses
API does not (``flat``). Both can hold a call to a list of names under every mode.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .formats import (
    Draft,
    Entry,
    RequestFormat,
    ResponseFormat,
    change_request,
    change_response,
    show_request,
    show_response,
)
from .messages import (
    BlockKinds,
    MessageListRequests,
    emptied_content,
    kinds_in,
    texts_in,
)
from .sdk_objects import (
    chat_types,
    count_or_none,
    get,
    is_record,
    items_of,
    put,
    record,
    responses_types,
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
from .streams import assemble_openai

_MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
_CHOICES = {mode: choice for choice, mode in _MODES.items()}


def read_tool_choice(choice: Any) -> HookToolConfig:
    """Read a ``tool_choice``; what is not in the table passes as text."""
    if isinstance(choice, str):
        return HookToolConfig(_MODES.get(choice, choice))
    if not is_record(choice):
        raise wrong("tool_choice", "a string or an object", choice)
    kind = text_or_none(get(choice, "type"), "tool_choice.type")
    if kind != "allowed_tools":
        return HookToolConfig("ANY", [_name_of(choice, "tool_choice")])
    inner = get(choice, "allowed_tools") or choice
    mode = text_or_none(get(inner, "mode"), "tool_choice.mode") or "auto"
    tools = items_of(get(inner, "tools"), "tool_choice.tools")
    names = [_name_of(tool, "tool_choice.tools") for tool in tools]
    return HookToolConfig(_MODES.get(mode, mode), names)


def write_tool_choice(tool_config: HookToolConfig, tools: Any, *, flat: bool) -> Any:
    """Write a ``tool_choice`` in the spelling of one of the two APIs."""
    mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
    choice = _CHOICES.get(mode, mode)
    if not names or mode == "NONE":
        return choice
    kinds = {
        name: kind
        for kind, name in map(_kind_and_name, items_of(tools, "tools"))
        if name
    }
    chosen = [_spelt(name, kinds.get(name, "function"), flat=flat) for name in names]
    if mode == "ANY" and len(chosen) == 1:
        return chosen[0]
    allowed = {"mode": choice, "tools": chosen}
    if flat:
        return {"type": "allowed_tools", **allowed}
    return {"type": "allowed_tools", "allowed_tools": allowed}


def offered_names(request: Any) -> list[str]:
    """Name the functions and custom tools that a request offers."""
    tools = _leaves(items_of(get(request, "tools"), "tools"))
    return [name for _, name in map(_kind_and_name, tools) if name]


def limit_offered(request: Mapping[str, Any], names: Collection[str]) -> Any:
    """Leave out all tools with a name but some; hosted tools stay."""
    tools = items_of(get(request, "tools"), "tools")
    kept = [left for tool in tools if (left := _limited(tool, names)) is not None]
    if kept == tools:
        return request
    if kept:
        return {**request, "tools": kept}
    # Without tools the service refuses the settings that speak of them.
    gone = ("tools", "tool_choice", "parallel_tool_calls")
    return {key: value for key, value in request.items() if key not in gone}


def _limited(tool: Any, names: Collection[str]) -> Any:
    inner = _namespace(tool)
    if inner is not None:
        kept = [one for one in inner if _kind_and_name(one)[1] in names]
        return {**tool, "tools": kept} if kept else None
    name = _kind_and_name(tool)[1]
    return tool if name is None or name in names else None


def _leaves(tools: list[Any]) -> list[Any]:
    return [leaf for tool in tools for leaf in _namespace(tool) or [tool]]


def _namespace(tool: Any) -> list[Any] | None:
    if get(tool, "type") != "namespace":
        return None
    return items_of(get(tool, "tools"), "tools.tools")


def _kind_and_name(tool: Any) -> tuple[str, str | None]:
    kind = str(get(tool, "type") or "function")
    name = get(tool, "name") or get(get(tool, kind), "name")
    return kind, name if isinstance(name, str) else None


def _name_of(choice: Any, place: str) -> str:
    kind, name = _kind_and_name(choice)
    return name or str(get(choice, "server_label") or kind or place)


def _spelt(name: str, kind: str, *, flat: bool) -> dict[str, Any]:
    return (
        {"type": kind, "name": name} if flat else {"type": kind, kind: {"name": name}}
    )


class OpenAIRequests(MessageListRequests):
    """The shared part of both request formats."""

    system_apart = False
    names: Mapping[str, tuple[str, ...]]
    """The stable name of a setting, and the API's own ones."""
    flat_tools: bool
    """Whether a tool is named beside its type, and not within."""

    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that have a stable name."""
        found = {key: get(request, *own) for key, own in self.names.items()}
        if isinstance(found.get("stopSequences"), str):
            found["stopSequences"] = [found["stopSequences"]]
        return {key: value for key, value in found.items() if value is not None}

    def takes_config(self, request: Any, key: str) -> bool:
        """There is no place for ``topK``, for example."""
        del request
        return key in self.names

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting, under the name that the request uses."""
        return put(request, value, *self.names[key])

    def tool_config(self, request: Any) -> HookToolConfig | None:
        """Read ``tool_choice``."""
        choice = get(request, "tool_choice")
        return None if choice is None else read_tool_choice(choice)

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change ``tool_choice``."""
        tools = get(request, "tools")
        choice = write_tool_choice(tool_config, tools, flat=self.flat_tools)
        return put(request, choice, "tool_choice")


CHAT_KINDS = BlockKinds(frozenset({"text"}), "prompt_cache_breakpoint")
SHOWN_ROLES = {"assistant": "model", "developer": "system"}
_ANSWERING_ROLES = frozenset({"tool", "function"})
_CHAT_CONFIG = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_completion_tokens", "max_tokens"),
    "stopSequences": ("stop",),
    "frequencyPenalty": ("frequency_penalty",),
    "presencePenalty": ("presence_penalty",),
    "seed": ("seed",),
    "candidateCount": ("n",),
}
_CHAT_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "tool_calls": "STOP",
    "function_call": "STOP",
}
_OWN_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}
_CALL_REASONS = frozenset({"tool_calls", "function_call"})
_CHAT_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class ChatRequests(OpenAIRequests):
    """The ``RequestFormat`` of Chat Completions."""

    name = "OpenAI Chat Completions"
    kinds = CHAT_KINDS
    names = _CHAT_CONFIG
    flat_tools = False

    def entries(self, request: Any) -> list[Entry]:
        """Read the messages."""
        found = items_of(get(request, "messages"), "messages")
        return [_chat_entry(raw, f"messages[{at}]") for at, raw in enumerate(found)]


class ChatResponses:
    """The ``ResponseFormat`` of Chat Completions."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the choices."""
        choices = items_of(get(response, "choices"), "choices")
        return [_candidate(one, f"choices[{at}]") for at, one in enumerate(choices)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read the three counts."""
        return read_usage(get(response, "usage"), _CHAT_COUNTS)

    def calls(self, response: Any) -> list[str]:
        """Name the tool calls of all choices."""
        messages = [get(choice, "message") for choice in get(response, "choices") or []]
        calls = [call for one in messages for call in get(one, "tool_calls") or []]
        old = [get(one, "function_call") for one in messages]
        return [_call_name(call) for call in calls] + [
            str(get(call, "name")) for call in old if call is not None
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a ChatCompletion, or a dict where the base is one."""
        before = get(base, "choices") or []
        choices = [
            _choice(draft, before[at] if at < len(before) else None)
            for at, draft in enumerate(drafts)
        ]
        counts = write_usage(usage, get(base, "usage"), _CHAT_COUNTS)
        if isinstance(base, Mapping):
            return {**base, "choices": choices, **({"usage": counts} if counts else {})}
        whole = chat_types().ChatCompletion.model_construct(
            id=get(base, "id") or "chatcmpl-hookline",
            object="chat.completion",
            created=get(base, "created") or int(time.time()),
            model=get(base, "model") or "",
            choices=choices,
            usage=counts,
        )
        if base is None:
            return whole
        changes = {"choices": whole.choices}
        return base.model_copy(
            update={**changes, "usage": whole.usage} if counts else changes
        )


def is_completion(value: Any) -> bool:
    """Tell a completion from anything else."""
    if isinstance(value, Mapping):
        return "choices" in value
    return is_record(value) and hasattr(value, "choices")


def read_usage(usage: Any, names: Sequence[str]) -> LLMUsage | None:
    """Read what a call cost, by the names of the counts."""
    if usage is None:
        return None
    record(usage, "usage")
    return LLMUsage(*(count_or_none(get(usage, n), f"usage.{n}") for n in names))


def write_usage(
    usage: LLMUsage | None, base: Any, names: Sequence[str]
) -> dict[str, Any] | None:
    """Write what a hook says that a call cost."""
    if usage is None:
        return None
    said = (
        usage.prompt_token_count,
        usage.candidates_token_count,
        usage.total_token_count,
    )
    counts = {name: count or 0 for name, count in zip(names, said, strict=True)}
    before = base if isinstance(base, Mapping) or base is None else base.model_dump()
    return {**(before or {}), **counts}


def _chat_entry(raw: Any, place: str) -> Entry:
    role = text_or_none(get(record(raw, place), "role"), f"{place}.role")
    if role is None:
        raise wrong(f"{place}.role", "a string", None)
    content = get(raw, "content")
    text = "".join(texts_in(content, f"{place}.content", CHAT_KINDS))
    if role in _ANSWERING_ROLES:
        return Entry(raw, has_others=True, has_calls=True, answers=True)
    calls = bool(get(raw, "tool_calls") or get(raw, "function_call"))
    others = any(kind not in CHAT_KINDS.text for kind in kinds_in(content))
    return Entry(
        raw,
        LLMMessage(SHOWN_ROLES.get(role, role), text) if text else None,
        calls or others or bool(get(raw, "refusal") or get(raw, "audio")),
        calls,
    )


def _candidate(choice: Any, place: str) -> LLMCandidate:
    message = record(get(record(choice, place), "message"), f"{place}.message")
    texts = texts_in(get(message, "content"), f"{place}.message.content", CHAT_KINDS)
    reason = text_or_none(get(choice, "finish_reason"), f"{place}.finish_reason")
    return LLMCandidate(
        LLMContent("model", [text for text in texts if text]),
        None if reason is None else _CHAT_REASONS.get(reason, reason),
        count_or_none(get(choice, "index"), f"{place}.index"),
    )


def _call_name(call: Any) -> str:
    inner = get(call, "function", "custom")
    return str(get(inner, "name"))


def _choice(draft: Draft, before: Any) -> dict[str, Any]:
    reason = get(before, "finish_reason")
    if draft.finish_reason is not None:
        reason = _OWN_REASONS.get(draft.finish_reason, draft.finish_reason)
    elif reason is None or reason in _CALL_REASONS:
        reason = "stop"
    message = {"role": "assistant", "content": "".join(draft.texts), "refusal": None}
    return {
        "finish_reason": reason,
        "index": draft.index,
        "logprobs": None,
        "message": message,
    }


ITEM_KINDS = BlockKinds(
    frozenset({"input_text", "output_text", "text"}), "prompt_cache_breakpoint"
)
_ITEM_CONFIG = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_output_tokens",),
}
_ITEM_REASONS = {
    "completed": "STOP",
    "max_output_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_INCOMPLETE = {"MAX_TOKENS": "max_output_tokens", "SAFETY": "content_filter"}
_ITEM_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_USAGE_DETAILS = {
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
_CALL_SUFFIX, _ANSWER_SUFFIX = "_call", "_call_output"
# The service has made these calls itself: nobody waits for them.
_HOSTED_CALLS = frozenset(
    {
        "file_search_call", "web_search_call", "code_interpreter_call",
        "image_generation_call", "mcp_call", "tool_search_call",
    }
)  # fmt: skip


class ItemRequests(OpenAIRequests):
    """The ``RequestFormat`` of the Responses API."""

    name = "OpenAI Responses"
    kinds = ITEM_KINDS
    names = _ITEM_CONFIG
    flat_tools = True
    messages_key = "input"

    def entries(self, request: Any) -> list[Entry]:
        """Read ``input``, a string or items."""
        given = get(request, "input")
        if isinstance(given, str):
            return [Entry(given, LLMMessage("user", given) if given else None)]
        found = items_of(given, "input")
        return [_item_entry(raw, f"input[{at}]") for at, raw in enumerate(found)]

    def edited(self, raw: Any, text: str) -> Any:
        """Put a new text in place of all the text of a message."""
        if isinstance(raw, str):
            return text
        return super().edited(raw, text)

    def emptied(self, raw: Any) -> Any:
        """Take the text out of a message."""
        return put(
            raw, emptied_content(get(raw, "content"), ITEM_KINDS) or [], "content"
        )

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change ``input``; a string stays one while it is alone."""
        if isinstance(get(request, "input"), str) and len(raws) == 1 and not added:
            return put(request, raws[0], "input")
        items = [
            {"role": "user", "content": raw} if isinstance(raw, str) else raw
            for raw in raws
        ]
        return put(
            request, _without_stray_reasoning(items, get(request, "input")), "input"
        )


class ItemResponses:
    """The ``ResponseFormat`` of the Responses API: one candidate."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the texts of all output messages as one candidate."""
        output = items_of(get(response, "output"), "output")
        texts = [
            text
            for at, item in enumerate(output)
            if get(record(item, f"output[{at}]"), "type") == "message"
            for text in texts_in(
                get(item, "content"), f"output[{at}].content", ITEM_KINDS
            )
        ]
        reason = _reason(response)
        shown = None if reason is None else _ITEM_REASONS.get(reason, reason)
        return [LLMCandidate(LLMContent("model", texts), shown, 0)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read the three counts."""
        return read_usage(get(response, "usage"), _ITEM_COUNTS)

    def calls(self, response: Any) -> list[str]:
        """Name the tool calls."""
        return [
            str(get(item, "name") or get(item, "type"))
            for item in get(response, "output") or []
            if _kind(item).endswith(_CALL_SUFFIX) and _kind(item) not in _HOSTED_CALLS
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a Response, or a dict where the base is one."""
        draft = drafts[0] if drafts else Draft([], 0)
        changes: dict[str, Any] = {"output": [_message(draft, base)], **_ending(draft)}
        counts = write_usage(usage, get(base, "usage"), _ITEM_COUNTS)
        if counts:
            changes["usage"] = {**_USAGE_DETAILS, **counts}
        if isinstance(base, Mapping):
            return {**base, **changes}
        fresh = {
            "id": "resp_hookline", "object": "response", "created_at": time.time(),
            "model": "", "status": "completed", "parallel_tool_calls": False,
            "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        whole = responses_types().Response.model_construct(**{**fresh, **changes})
        if base is None:
            return whole
        return base.model_copy(update={key: getattr(whole, key) for key in changes})


def is_response(value: Any) -> bool:
    """Tell a Response from anything else."""
    if isinstance(value, Mapping):
        return "output" in value
    return is_record(value) and hasattr(value, "output")


def _item_entry(raw: Any, place: str) -> Entry:
    record(raw, place)
    kind = text_or_none(get(raw, "type"), f"{place}.type")
    if kind is None and get(raw, "role") is None and get(raw, "content") is not None:
        raise wrong(f"{place}.role", "a string", None)
    if kind not in (None, "message") or get(raw, "role") is None:
        return _hidden(raw, kind or "", place)
    role = text_or_none(get(raw, "role"), f"{place}.role") or ""
    content = get(raw, "content")
    text = "".join(texts_in(content, f"{place}.content", ITEM_KINDS))
    return Entry(
        raw,
        LLMMessage(SHOWN_ROLES.get(role, role), text) if text else None,
        any(kind not in ITEM_KINDS.text for kind in kinds_in(content)),
    )


def _hidden(raw: Any, kind: str, place: str) -> Entry:
    if kind == "message":
        raise wrong(f"{place}.role", "a string", None)
    answers = kind.endswith(_ANSWER_SUFFIX)
    calls = answers or kind.endswith(_CALL_SUFFIX)
    return Entry(raw, None, has_others=True, has_calls=calls, answers=answers)


def _kind(item: Any) -> str:
    return str(get(item, "type") or "")


def _without_stray_reasoning(items: list[Any], before: Any) -> list[Any]:
    """Take out the reasoning of an answer that was taken out.

    The service refuses a reasoning item that nothing of the model's follows.
    """
    if not isinstance(before, list | tuple):
        return items
    # An entry is known by its identity, unless it is in the history more than once.
    times = Counter(map(id, before))
    meant = {
        id(item): after for item, after in pairwise(before) if times[id(item)] == 1
    }
    return [
        item
        for item, after in pairwise([*items, None])
        if not (
            _kind(item) == "reasoning"
            and get(meant.get(id(item)), "role") == "assistant"
            and _is_new_turn(after)
        )
    ]


def _is_new_turn(item: Any) -> bool:
    return item is None or get(item, "role") not in (None, "assistant")


def _reason(response: Any) -> str | None:
    details = get(get(response, "incomplete_details"), "reason")
    return text_or_none(
        details if details is not None else get(response, "status"), "status"
    )


def _message(draft: Draft, base: Any) -> dict[str, Any]:
    messages = [one for one in get(base, "output") or [] if _kind(one) == "message"]
    return {
        "id": (get(messages[0], "id") if messages else None) or "msg_hookline",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": text, "annotations": []}
            for text in draft.texts
        ],
    }


def _ending(draft: Draft) -> dict[str, Any]:
    if draft.finish_reason is None:
        return {}
    if draft.finish_reason == "STOP":
        return {"status": "completed", "incomplete_details": None}
    reason = _INCOMPLETE.get(draft.finish_reason, draft.finish_reason)
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


_ITEM_KEYS = frozenset(
    {"input", "instructions", "previous_response_id", "conversation", "prompt"}
)


class OpenAITranslator:
    """The ``HookTranslator`` of the openai package."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show the arguments of either ``create``."""
        return show_request(_request_format(request), request)

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed; without a base it is Chat Completions."""
        form = ChatRequests() if base_request is None else _request_format(base_request)
        return change_request(form, hook_request, base_request, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a ChatCompletion or a Response."""
        return show_response(_response_format(response), response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook wants; the base decides between the APIs."""
        form: ResponseFormat = ChatResponses()
        if base_response is not None:
            form = _response_format(base_response)
        return change_response(form, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``tool_choice`` of either API."""
        return read_tool_choice(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``tool_choice``, for Chat Completions unless the base says else."""
        flat = base_request is not None and _is_items(base_request)
        found = tool_config_parts(hook_tool_config)
        return write_tool_choice(found, get(base_request, "tools"), flat=flat)

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """``allowed_tools`` holds names under every mode."""
        return tool_config_parts(hook_tool_config).mode != "NONE"

    def tool_names(self, request: Any) -> list[str]:
        """Name the functions and custom tools that a request offers."""
        return offered_names(_arguments(request))

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other functions and custom tools out."""
        return limit_offered(_arguments(request), names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one ChatCompletion of chunks, or one Response of events."""
        return assemble_openai(chunks)


def _arguments(request: Any) -> Mapping[str, Any]:
    if not isinstance(request, Mapping):
        raise wrong("request", "the arguments of create() as a dict", request)
    return request


def _is_items(request: Any) -> bool:
    arguments = _arguments(request)
    return "messages" not in arguments and not _ITEM_KEYS.isdisjoint(arguments)


def _request_format(request: Any) -> RequestFormat:
    if _is_items(request):
        return ItemRequests()
    if "messages" not in request:
        raise wrong("request", "a dict with messages or input", request)
    return ChatRequests()


def _response_format(response: Any) -> ResponseFormat:
    if is_completion(response):
        return ChatResponses()
    if is_response(response):
        return ItemResponses()
    raise wrong("response", "a ChatCompletion or a Response", response)
