"""``hooked(Anthropic(), config)``: Messages, plain and beta, pass the hooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial, update_wrapper
from typing import Any

from hookline.agent.tool_calls import ToolResult, content_text
from hookline.agent.turn import HookedRun
from hookline.agent.waiting import run_to_end
from hookline.errors import MissingExtraError, UnknownClientError
from hookline.protocol.events import HookEventName
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.values import get, items, string_of

from . import ClientHooks
from .http import (
    AFTER_MODEL,
    MODEL_EVENTS,
    Body,
    ClientRequests,
    Endpoints,
    Hidden,
    HookedAsyncClient,
    HookedClient,
    HookedSyncClient,
    ModelApi,
    hooked_copy,
    server_sent,
)

try:
    from anthropic import _base_client, _streaming
except ImportError as error:
    raise MissingExtraError("anthropic", "anthropic") from error

_CLIENTS = (_base_client.SyncAPIClient, _base_client.AsyncAPIClient)
# A release without these methods would send or show something past the hooks.
_USED = (
    "request",
    "_copy_and_prepare",
    "_process_response",
    "_make_sse_decoder",
    "_prepare_url",
)
if not all(hasattr(kind, name) for kind in _CLIENTS for name in _USED):
    raise MissingExtraError("anthropic", "anthropic", "2.8")

_TOOL_EVENTS = (HookEventName.BeforeTool, HookEventName.AfterTool)
_FILES, _SKILLS, _BATCHES = "/v1/files", "/v1/skills", "/v1/messages/batches"
_ID = "/[^/%]+"
_SAMPLING = ("temperature", "top_p", "top_k")
_ENDING = ("stop_reason", "stop_sequence", "stop_details")


class MessagesApi(ModelApi):
    """Messages, plain and beta."""

    translator = AnthropicTranslator()
    last_events = ("message_stop",)

    def body(self, request: Any) -> Body:
        """The arguments of ``create()`` as the body that is sent."""
        # The translator puts these there; any other field no hook has seen.
        extra = request.get("extra_body") or {}
        sampling = {name: extra[name] for name in _SAMPLING if name in extra}
        body = {name: value for name, value in request.items() if name != "extra_body"}
        return {**body, **sampling}

    def refusal(self, body: Body, reason: str) -> Body:
        """An empty message that was refused, with the reason as the explanation."""
        details = {"type": "refusal", "category": None, "explanation": reason or None}
        return {
            "id": "msg_hookline", "type": "message", "role": "assistant",
            "model": str(body.get("model") or ""), "content": [],
            "stop_reason": "refusal", "stop_sequence": None, "stop_details": details,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip

    def is_read(self, event: Any) -> bool:
        """Whether the SDK reads an event; others must not end or spoil a stream."""
        return bool(event.event and event.data)

    def failure(self, event: Any, body: Body | None) -> str | None:
        """An error event, as it is."""
        is_error = event.event == "error"
        return server_sent(event.data, event.event) if is_error else None

    def is_shown(self, events: list[Body], whole: Body) -> bool:
        """Whether the pieces of text are those of the whole message."""
        parts: list[Any] = []
        for event in events:
            parts += items(get(event.get("message"), "content"))
            parts += [event.get("content_block"), event.get("delta")]
        return _text_of(parts) == _text_of(items(whole.get("content")))

    def stream(self, whole: Body) -> Iterator[Body]:
        """The events of a message."""
        head = {**whole, "content": [], **dict.fromkeys(_ENDING)}
        yield {"type": "message_start", "message": head}
        for at, block in enumerate(items(whole.get("content"))):
            start, delta = dict(block), None  # most blocks come whole
            if start.get("type") == "text":
                delta = {"type": "text_delta", "text": start.get("text") or ""}
                start["text"] = ""
            elif start.get("type") == "tool_use":
                arguments = json.dumps(start.get("input") or {})
                delta = {"type": "input_json_delta", "partial_json": arguments}
                start["input"] = {}
            yield {"type": "content_block_start", "index": at, "content_block": start}
            if delta is not None:
                yield {"type": "content_block_delta", "index": at, "delta": delta}
            yield {"type": "content_block_stop", "index": at}
        ending = {name: whole.get(name) for name in _ENDING}
        counts = {"output_tokens": get(whole.get("usage"), "output_tokens") or 0}
        yield {"type": "message_delta", "delta": ending, "usage": counts}
        yield {"type": "message_stop"}

    def without_calls(
        self, whole: Body, allowed: frozenset[str]
    ) -> tuple[Body, list[str]]:
        """The message without calls of other tools, and their names."""
        content = items(whole.get("content"))
        calls = [block for block in content if get(block, "type") == "tool_use"]
        dropped = [call for call in calls if tool_name(call) not in allowed]
        remaining = [block for block in content if block not in dropped]
        changed = {**whole, "content": remaining}
        if dropped and len(dropped) == len(calls):
            changed["stop_reason"] = "end_turn"
        return changed, [tool_name(call) for call in dropped]


def tool_name(block: Any) -> str:
    """The name of a tool as its hooks know it; members of toolsets have two."""
    family, name = get(block, "toolset_name"), str(get(block, "name") or "")
    return name if family is None else f"{family}.{name}"


def _text_of(parts: list[Any]) -> str:
    texts = [p for p in parts if get(p, "type") in ("text", "text_delta")]
    return "".join(string_of(get(part, "text")) or "" for part in texts)


class AnthropicRequests(ClientRequests):
    """What one client sends."""

    sse_decoder = _streaming.SSEDecoder
    endpoints = Endpoints(
        models=(("POST /v1/messages", MessagesApi()),),
        harmless=(
            f"GET /v1/models({_ID})?",
            f"(GET|POST) {_FILES}",
            f"(GET|DELETE) {_FILES}{_ID}",
            f"GET {_FILES}{_ID}/content",
            f"(GET|POST) {_SKILLS}({_ID}/versions)?",
            f"(GET|DELETE) {_SKILLS}{_ID}(/versions{_ID})?",
            f"GET {_SKILLS}{_ID}/versions{_ID}/content",
            f"GET {_BATCHES}",
            f"(GET|DELETE) {_BATCHES}{_ID}",
            f"POST {_BATCHES}{_ID}/cancel",
        ),
        hidden=(
            Hidden(
                f"POST {_BATCHES}",
                MODEL_EVENTS,
                "the service makes the calls of a batch later",
            ),
            Hidden(
                f"GET {_BATCHES}{_ID}/results",
                (AFTER_MODEL,),
                "it reads what a model answered",
            ),
            Hidden(
                "POST /v1/messages/count_tokens",
                (HookEventName.BeforeModel,),
                "it sends a prompt and is no model call",
            ),
            Hidden(
                ".*",
                (*MODEL_EVENTS, *_TOOL_EVENTS),
                "the service may call models or tools by itself",
            ),
        ),
    )

    async def prepared(
        self, client: Any, target: str, options: Any, listening: list[HookEventName]
    ) -> Any:
        """The options, with what the SDK makes of one-shot iterators and files."""
        headers = (options.headers or {}).items()
        helpers = [v for k, v in headers if k.lower() == "x-stainless-helper"]
        if self.run is None and any(
            not isinstance(name, str) or "ToolRunner" in name for name in helpers
        ):
            why = "use client.beta.messages.tool_runner()"
            await self.refuse(target, _TOOL_EVENTS, why)
        prepare = client._copy_and_prepare  # noqa: SLF001 - makes every body
        options = await self.wait.value(prepare(options))
        body = options.json_data if isinstance(options.json_data, dict) else {}
        if body.get("thread"):
            why = "a thread keeps its messages at the service"
            await self.refuse(target, MODEL_EVENTS, why)
        if body.get("mcp_servers"):
            self.hooks.session.warn_once(
                "the service calls tools of mcp_servers without tool hooks"
            )
        return options


def hooked_anthropic(client: Any, hooks: ClientHooks) -> Any:
    """Pass the model calls of an anthropic client, plain or async, through the hooks.

    Also for those of Bedrock, Vertex and the other platforms.
    """
    if not isinstance(client, _CLIENTS):
        raise UnknownClientError(type(client).__qualname__)
    is_async = isinstance(client, _base_client.AsyncAPIClient)
    return _hooked(client, AnthropicRequests(hooks, is_async=is_async))


def _hooked(client: Any, requests: ClientRequests) -> Any:
    mixin = HookedAsyncAnthropic if requests.wait.is_async else HookedAnthropic
    hooked = hooked_copy(client, requests, mixin)
    if vars(hooked).get("_middleware_chain") is not None:
        hooked._middleware_chain = hooked._build_middleware_chain()  # noqa: SLF001 - it holds the client
    if "beta" in vars(hooked):
        hooked.beta = _with_hooked_runner(hooked.beta, hooked)
    return hooked


class _Anthropic(HookedClient):
    # The tool runner then sends the whole conversation, so that hooks see it.
    _supports_message_threads = False

    @cached_property
    def beta(self) -> Any:
        """The SDK's ``beta``, with a tool runner whose tools pass the hooks."""
        sdk: Any = super()
        return _with_hooked_runner(sdk.beta, self)

    def copy(self, **changes: Any) -> Any:
        """The SDK's ``copy()``, whose result passes the hooks too."""
        # The SDK hands credentials on only from its own classes, not from subclasses.
        unhooked: Any = object.__new__(type(self).__bases__[-1])
        vars(unhooked).update(vars(self))
        return _hooked(unhooked.copy(**changes), self._hookline)

    with_options = copy  # as in the SDK


class HookedAnthropic(_Anthropic, HookedSyncClient):
    """Goes before ``Anthropic`` and the plain clients of platforms."""


class HookedAsyncAnthropic(_Anthropic, HookedAsyncClient):
    """Goes before ``AsyncAnthropic`` and the async clients of platforms."""


# A runner without these runs its tools elsewhere; its requests are refused then.
_RUNS_TOOLS = ("_run_tool", "_run_toolset_member")


def _with_hooked_runner(beta: Any, client: Any) -> Any:
    """Replace ``tool_runner`` of a client's new ``beta.messages``."""
    messages: Any = getattr(beta, "messages", None)
    if (sdk_runner := getattr(messages, "tool_runner", None)) is not None:
        runner = partial(_tool_runner, client, type(messages))
        messages.tool_runner = update_wrapper(runner, sdk_runner)
    return beta


def _tool_runner(client: Any, kind: Callable[[Any], Any], /, **arguments: Any) -> Any:
    """The SDK's tool runner, whose model calls and tools are one run with hooks."""
    requests: ClientRequests = client._hookline  # noqa: SLF001 - our own field
    hooks, is_async = requests.hooks, requests.wait.is_async
    run = hooks.begin_run()
    in_run = AnthropicRequests(hooks, is_async=is_async, run=run)
    runner = kind(_hooked(client, in_run)).tool_runner(**arguments)
    if not all(hasattr(runner, name) for name in _RUNS_TOOLS):
        return kind(client).tool_runner(**arguments)
    finish: Any = (lambda work: work) if is_async else run_to_end
    result = partial(_result, requests, run)
    own_tool, own_member = runner._run_tool, runner._run_toolset_member  # noqa: SLF001 - replaced here
    runner._run_tool = lambda tool, use: finish(result(use, partial(own_tool, tool)))  # noqa: SLF001 - same
    runner._run_toolset_member = lambda use: finish(result(use, own_member))  # noqa: SLF001 - same
    return runner


async def _result(
    requests: ClientRequests,
    run: HookedRun,
    tool_use: Any,
    execute: Callable[[Any], Any],
) -> Any:
    """The ``tool_result`` of a call, run as its hooks allow."""
    if not isinstance(tool_use.input, Mapping):
        return _error(tool_use, "input: expected a JSON object")
    wait, confirm = requests.wait, requests.hooks.confirm
    begin = run.begin_tool(tool_name(tool_use), tool_use.input, confirm=confirm)
    call = await wait.hooks(begin)
    if call.refused:
        return _error(tool_use, call.message)
    changed = tool_use.model_copy(update={"input": call.tool_input})
    result_block = await wait.value(execute(changed))
    content = result_block.get("content")
    error = content_text(content) if result_block.get("is_error") else None
    tool_result = ToolResult(llm_content=content, error=error)
    outcome = await wait.hooks(call.finish(tool_result))
    if not outcome.changed:
        return result_block
    if not isinstance(outcome.content, list):
        return {**result_block, "content": outcome.text}
    added = [{"type": "text", "text": text} for text in outcome.additions]
    return {**result_block, "content": [*outcome.content, *added]}


def _error(tool_use: Any, message: str) -> dict[str, Any]:
    family = get(tool_use, "toolset_name")
    toolset = {} if family is None else {"toolset_name": family}
    head = {"type": "tool_result", "tool_use_id": tool_use.id, **toolset}
    return {**head, "content": message, "is_error": True}
