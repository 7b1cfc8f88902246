"""The model and the runs of hooked agents of the OpenAI Agents SDK.

``HookedModel`` stands between the SDK and a model. What BeforeTool hooks make of calls
is in the answer before the SDK reads it; nothing that an AfterModel hook removes is in
any event of a stream.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import operator
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from agents import (
    Agent,
    AgentsException,
    FunctionTool,
    ItemHelpers,
    Model,
    ModelBehaviorError,
    ModelProvider,
    ModelResponse,
    Usage,
    UserError,
)
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.tool import get_function_tool_origin
from agents.tool_context import ToolContext
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)

from hookline.agent import (
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
)
from hookline.translators.openai import OpenAITranslator

_TRANSLATOR = OpenAITranslator()
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "tool_choice": "tool_choice",
}
"""Settings of a request that hooks may change, and their names in the SDK."""


class StoppedByHook(AgentsException):
    """A hook ended the run, and the agent's output type cannot hold the reason.

    ``HooklineRunner`` returns a result instead.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(eq=False)
class AgentRun:
    """One run of the SDK with all agents that take over; a subagent has its own."""

    session: Session
    run: HookedRun
    is_plain: bool = False
    """Whether nobody fires the events of a turn."""
    agent: Agent[Any] | None = None
    is_seen: bool = False
    """Whether the last call of a model was a hooked one."""
    ended: str | None = None
    """Why a hook ended the run without an answer."""
    tools: dict[str, FunctionTool] = field(default_factory=dict)
    calls: dict[str, tuple[str, HookedToolCall]] = field(default_factory=dict)
    """The calls of the last answer by id, with their arguments after the hooks."""
    questions: dict[str, str] = field(default_factory=dict)
    """What hooks ask about calls, by id; those of subagents too."""
    handoffs: dict[str, HookedToolCall] = field(default_factory=dict)
    """The handoffs of the last answer by name."""
    transfer: str | None = None
    """What the model is told in place of the SDK's message about a handoff."""
    is_refused: bool = False
    """Whether hooks refused the last handoff."""
    subagents: list[HookedTurn] = field(default_factory=list)
    """The turns of agents that took over."""
    paused: dict[str, AgentRun] = field(default_factory=dict)
    """The runs of subagents that wait for a person, by the id of the call."""
    inserted: list[Any] = field(default_factory=list)
    """Items for each request, after the input of the run."""
    insert_at: int | None = None

    @property
    def end_reason(self) -> str | None:
        """Why a hook ended the run."""
        return self.run.stop_reason or self.ended

    async def begin_calls(self, output: Iterable[Any], handoffs: list[Any]) -> Any:
        """Fire BeforeTool for all calls of an answer; its items with their changes."""
        self.calls.clear()
        self.handoffs.clear()
        names = {one.tool_name for one in handoffs}
        return await asyncio.gather(*(self._begin(item, names) for item in output))

    async def _begin(self, item: Any, handoffs: set[str]) -> Any:
        if not isinstance(item, ResponseFunctionToolCall):
            return item
        if item.name in handoffs:
            call = await self.run.begin_tool(item.name, input_of(item.arguments))
            self.handoffs[item.name] = call
        elif item.name in self.tools:
            tool = self.tools[item.name]
            call = await self.begin_tool(tool, item.arguments, defer=True)
        else:
            return item  # the SDK knows no such tool
        if call.question is not None:
            self.questions[item.call_id] = call.question
        arguments = arguments_of(call, item.arguments)
        self.calls[item.call_id] = arguments, call
        if arguments == item.arguments:
            return item
        return item.model_copy(update={"arguments": arguments})

    async def begin_tool(
        self, tool: FunctionTool, arguments: str, **options: Any
    ) -> HookedToolCall:
        """Fire BeforeTool for a call of a function tool."""
        origin = get_function_tool_origin(tool)
        server = origin and origin.mcp_server_name
        mcp = {"server_name": server, "tool_name": tool.name} if server else None
        given = input_of(arguments)
        return await self.run.begin_tool(tool.name, given, mcp_context=mcp, **options)

    async def admitted(
        self, tool: FunctionTool, ctx: ToolContext[Any], arguments: str
    ) -> HookedToolCall:
        """The call that the SDK makes now, if need be with a person's approval."""
        began, call = self.calls.pop(ctx.tool_call_id, ("", None))
        if call is not None and began == arguments and self._holds(call):
            return call
        # The SDK makes a call that hooks ask about only after a person's approval.
        approved = ctx.is_tool_approved(tool.name, ctx.tool_call_id)
        return await self.begin_tool(tool, arguments, confirm=approved or None)

    def _holds(self, call: HookedToolCall) -> bool:
        """Whether what hooks said about a call is still all there is to say."""
        is_stopped = self.run.stop_reason is not None
        return call.question is None and (call.refused or not is_stopped)

    def asks(self, name: str) -> bool:
        """Whether a hook asks about a call of a tool."""
        return any(
            call.question is not None and call.tool_name == name
            for _, call in self.calls.values()
        )


def input_of(arguments: str) -> dict[str, Any]:
    """The input of a call; arguments that are no JSON object as they are."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": arguments}


def arguments_of(call: HookedToolCall, given: str) -> str:
    """The arguments to run with: those given unless hooks changed them."""
    if call.tool_input == input_of(given):
        return given
    return json.dumps(call.tool_input, ensure_ascii=False)


class HookedProvider(ModelProvider):
    """Models by name, hooked."""

    def __init__(self, inner: ModelProvider, run: Callable[[], AgentRun]) -> None:
        self.inner, self.run = inner, run

    def get_model(self, model_name: str | None) -> Model:
        """The model of a name; the provider's own if it is hooked already."""
        model = self.inner.get_model(model_name)
        if isinstance(model, HookedModel):
            return model
        return HookedModel(model, self.run, self.inner)

    async def aclose(self) -> None:
        """Close the models of the provider."""
        await self.inner.aclose()

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)


def _attribute(wrapper: Any, name: str) -> Any:
    """What the SDK looks for on a model or a provider beside the interface."""
    if "inner" not in vars(wrapper):  # a copy in the making
        raise AttributeError(name)
    return getattr(wrapper.inner, name)


_PARAMETERS = inspect.signature(Model.get_response)


class HookedModel(Model):
    """A model whose calls obey hooks."""

    def __init__(
        self,
        inner: Model,
        run: Callable[[], AgentRun],
        provider: ModelProvider | None = None,
    ) -> None:
        self.inner, self.run, self.provider = inner, run, provider

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)  # noqa: SLF001  # the same method

    async def close(self) -> None:
        """Close the model."""
        await self.inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        """What the model says about a failed call."""
        return self.inner.get_retry_advice(request)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model, if hooks allow it."""
        call = await self._begin(*args, **kwargs)
        if call.answer is not None:
            return ModelResponse(call.answer, Usage(), None)
        response = await call.model.get_response(**call.given)
        return replace(response, output=await call.finish(response.output))

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Call the model, if hooks allow it, and show what they leave."""
        call = await self._begin(*args, **kwargs)
        if call.answer is not None:
            for event in stream_of(with_items(call.answer)):
                yield event
            return
        stream = call.model.stream_response(**call.given)
        try:
            async for event in stream:
                for shown in await call.shown(event):
                    yield shown
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    async def _begin(self, *args: Any, **kwargs: Any) -> _ModelCall:
        given = dict(_PARAMETERS.bind(self, *args, **kwargs).arguments)
        del given["self"]
        call = _ModelCall(self, given)
        call.run.is_seen = True
        await call.begin()
        return call


class _ModelCall:
    """One call of a model by the SDK."""

    def __init__(self, hooked: HookedModel, given: dict[str, Any]) -> None:
        self.run = hooked.run()
        self.model = hooked.inner
        self.given = given
        """The arguments for the model, after the hooks."""
        self.answer: list[Any] | None = None
        """What hooks answer in the model's place."""
        self._provider = hooked.provider
        self._schema = given["output_schema"]
        # What is offered is not all that the SDK would run.
        self._handoffs = given["handoffs"]
        self._call: HookedModelCall
        self._held: list[Any] = []
        self._done: list[Any] = []
        self._holds_all = self._holds_calls = self._is_rewritten = False

    async def begin(self) -> None:
        """Fire the hooks before the call, and apply what they say."""
        self._insert()
        request = self._request()
        names = [one["name"] for one in request["tools"]]
        call = self._call = await self.run.run.begin_model(
            request, available_tools=names, translator=_TRANSLATOR
        )
        if call.refused:
            self.answer = self._refusal()
            return
        self._apply(request, call.request)
        self._restrict(call.allowed_names)
        self._holds_all = await self.run.session.has_hooks("AfterModel")
        self._holds_calls = await self.run.session.has_hooks("BeforeTool")

    def _insert(self) -> None:
        run = self.run
        if run.inserted:
            items = ItemHelpers.input_to_new_input_list(self.given["input"])
            run.insert_at = len(items) if run.insert_at is None else run.insert_at
            items[run.insert_at : run.insert_at] = run.inserted
            self.given["input"] = items

    def _request(self) -> dict[str, Any]:
        """The call as a request of the Responses API."""
        given = self.given
        offered = [one.name for one in given["tools"]]
        offered += [one.tool_name for one in given["handoffs"]]
        settings = {
            name: value
            for name, own in _SETTINGS.items()
            if isinstance(value := getattr(given["model_settings"], own), str | float)
            or isinstance(value, int)
        }
        return {
            "model": _name_of(self.model),
            "input": given["input"],
            "tools": [{"type": "function", "name": name} for name in offered],
            **settings,
        }

    def _apply(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        self.given["input"] = after["input"]
        changed = {
            own: _choice(after.get(name))
            for name, own in _SETTINGS.items()
            if after.get(name) != before.get(name)
        }
        if changed:
            settings = replace(self.given["model_settings"], **changed)
            self.given["model_settings"] = settings
        if after.get("model") != before["model"]:
            self.model = _renamed(self.model, self._provider, after.get("model"))

    def _restrict(self, allowed: frozenset[str] | None) -> None:
        if allowed is None:
            return
        given = self.given
        given["tools"] = [one for one in given["tools"] if one.name in allowed]
        given["handoffs"] = [one for one in self._handoffs if one.tool_name in allowed]
        if not given["tools"] and not given["handoffs"]:
            # A service rejects a choice where there is nothing to choose from.
            settings = replace(given["model_settings"], tool_choice=None)
            given["model_settings"] = settings

    def _refusal(self) -> list[Any]:
        call = self._call
        if call.response is not None and call.stop_reason is None:
            return [message_with(call.text)]
        return self._ending(call.stop_reason or call.reason or "")

    def _ending(self, reason: str) -> list[Any]:
        """The last answer of a run that a hook ended."""
        self.run.ended = reason
        if self._schema is not None and not self._schema.is_plain_text():
            try:
                self._schema.validate_json(reason)
            except ModelBehaviorError:
                raise StoppedByHook(reason) from None
        return [message_with(reason)]

    async def finish(self, output: list[Any]) -> list[Any]:
        """Fire the hooks after the call; the items of the answer to go on with."""
        outcome = await self._call.finish({"object": "response", "output": output})
        self._is_rewritten = outcome.changed or outcome.stop_reason is not None
        if outcome.stop_reason is not None:
            return self._ending(outcome.stop_reason)
        if outcome.changed:
            output = [message_with(outcome.text)]
        return list(await self.run.begin_calls(output, self._handoffs))

    async def shown(self, event: Any) -> list[Any]:
        """The events to pass on for one event of the model's stream."""
        if isinstance(event, ResponseCompletedEvent):
            return await self._completed(event)
        if isinstance(event, ResponseOutputItemDoneEvent):
            self._done.append(event.item)
        if getattr(event, "type", "") in ("response.incomplete", "response.failed"):
            # Hooks have not seen it whole, so that nobody sees any of it.
            return [_without_output(event) if self._holds_all else event]
        if self._holds_all or (self._holds_calls and _is_call(event)):
            self._held.append(event)
            return []
        return [event]

    async def _completed(self, event: ResponseCompletedEvent) -> list[Any]:
        response = event.response
        # Some services leave the items out of the last event.
        before = response.output = list(response.output or self._done)
        after = response.output = await self.finish(before)
        if self._is_rewritten:
            return list(stream_of(response))
        if all(map(operator.is_, before, after)):
            return [*self._held, event]
        others = [one for one in self._held if not _is_call(one)]
        made = [one for one in stream_of(response) if _is_call(one)]
        return [*others, *made, event]


def _name_of(model: Model) -> str:
    name = getattr(model, "model", "")
    return name if isinstance(name, str) else ""


def _renamed(model: Model, provider: ModelProvider | None, name: Any) -> Model:
    """The model that a hook named instead."""
    if provider is not None:
        return provider.get_model(name)
    if not _name_of(model):
        raise UserError(f"a hook wants model {name!r}, but this one cannot be renamed")
    other = copy.copy(model)
    cast("Any", other).model = name
    return other


def _choice(value: Any) -> Any:
    """A tool choice as the SDK has it; the names are in the tools that are offered."""
    if not isinstance(value, dict):
        return value
    return value.get("name") or value.get("mode")


def _is_call(event: Any) -> bool:
    """Whether an event of a stream shows a call of a function."""
    kind = str(getattr(event, "type", ""))
    is_item = isinstance(getattr(event, "item", None), ResponseFunctionToolCall)
    return is_item or kind.startswith("response.function_call")


def _without_output(event: Any) -> Any:
    response = event.response and event.response.model_copy(update={"output": []})
    return event.model_copy(update={"response": response})


def with_items(output: Iterable[Any]) -> Response:
    """A response with these items."""
    return Response.model_construct(
        id=FAKE_RESPONSES_ID, created_at=0, model="", object="response",
        output=list(output), parallel_tool_calls=True, tool_choice="auto", tools=[],
        status="completed",
    )  # fmt: skip


def message_with(text: str) -> ResponseOutputMessage:
    """A message of the model with this text."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, content=[part], role="assistant", status="completed",
        type="message",
    )  # fmt: skip


def stream_of(response: Response) -> Iterator[Any]:
    """The events of a stream that gives this response."""
    empty = response.model_copy(update={"output": [], "status": "in_progress"})
    events: list[Any] = [(ResponseCreatedEvent, "created", {"response": empty})]
    for at, item in enumerate(response.output):
        place = {"output_index": at, "item": item}
        events.append((ResponseOutputItemAddedEvent, "output_item.added", place))
        for index, part in enumerate(getattr(item, "content", None) or []):
            where = {"item_id": item.id, "output_index": at, "content_index": index}
            events += _part_events(part, where)
        events.append((ResponseOutputItemDoneEvent, "output_item.done", place))
    events.append((ResponseCompletedEvent, "completed", {"response": response}))
    for number, (kind, name, fields) in enumerate(events):
        yield kind.model_construct(
            type=f"response.{name}", sequence_number=number, **fields
        )


def _part_events(part: Any, where: dict[str, Any]) -> list[Any]:
    text = getattr(part, "text", "")
    whole = {**where, "part": part}
    more = {**where, "logprobs": []}
    return [
        (ResponseContentPartAddedEvent, "content_part.added", whole),
        (ResponseTextDeltaEvent, "output_text.delta", {**more, "delta": text}),
        (ResponseTextDoneEvent, "output_text.done", {**more, "text": text}),
        (ResponseContentPartDoneEvent, "content_part.done", whole),
    ]
