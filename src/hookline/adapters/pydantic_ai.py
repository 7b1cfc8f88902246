"""Hooks for pydantic-ai: ``Agent(..., capabilities=[HooklineCapability(config)])``.

Each run of an agent is a turn. Model hooks are in a wrapper around the model, the last
step before a request is sent; tool hooks are the innermost of all capabilities.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, get_args

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
    session_of,
)
from hookline.agent.tool_calls import content_text
from hookline.errors import MissingExtraError
from hookline.log import logger
from hookline.translators.messages import RequestChanges
from hookline.translators.passthrough import StableTranslator
from hookline.translators.stable import LLMMessage

try:
    from pydantic_ai import exceptions, models
    from pydantic_ai import messages as msg
    from pydantic_ai.agent import CallToolsNode, ModelRequestNode, UserPromptNode
    from pydantic_ai.capabilities import (
        AbstractCapability,
        CapabilityOrdering,
        HandleDeferredToolCalls,
    )
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import DeferredToolRequests, RunContext
    from pydantic_core import to_jsonable_python
    from pydantic_graph import End
except ImportError as error:
    raise MissingExtraError("pydantic-ai", "pydantic-ai-slim") from error

_INEFFECTIVE = {
    "SessionStart": "pydantic-ai has no sessions; fire it with session.fire()",
    "SessionEnd": "pydantic-ai has no sessions; fire it with session.fire()",
    "PreCompress": "pydantic-ai does not say when it shortens a history",
}
_SETTINGS = {
    "temperature": "temperature",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop_sequences",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
"""The settings of a model call by their names in the stable shape."""
_BLOCKED_PROMPT = "[System] A hook blocked this prompt"
_EMPTIED = "[System] A hook removed this answer"

_NOT_OVER = (
    exceptions.ApprovalRequired,
    exceptions.CallDeferred,
    exceptions.RunCancelled,
)
"""What a tool raises that has no result yet, or never will."""


class _RunState:
    """What the hooks of one run share."""

    def __init__(self, session: Session, parent: _RunState | None) -> None:
        self.session, self.parent = session, parent
        self.run: HookedRun = session.begin_run()
        self.turn: HookedTurn | None = None
        self.calls: dict[int, HookedToolCall] = {}
        """The calls that run, by the identity of their parts."""
        self.again: str | None = None
        """What to go on with after an answer that hooks rejected."""
        self.is_settled = False
        """Whether hooks have decided on the last response as an answer."""

    @property
    def is_subagent(self) -> bool:
        return self.parent is not None

    async def begin_turn(self, name: str | None, prompt: str) -> HookedTurn:
        if self.is_subagent:
            turn = await self.session.begin_subagent(name or "agent", prompt)
        else:
            turn = await self.session.begin_turn(prompt)
        self.run = self.turn = turn
        return turn

    def pass_on_stop(self) -> None:
        """A stop holds for the agent whose tool runs this one, too."""
        if self.parent is not None and self.run.stop_reason is not None:
            self.parent.run.stop(self.run.stop_reason)

    async def settle(self, answer: str | None) -> str | None:
        """AfterAgent, if a response is an answer; the reason if hooks end the turn."""
        self.again, self.is_settled = None, answer is not None
        if self.turn is None or answer is None:
            return None
        self.again = await self.turn.finish(answer)
        return self.turn.ended


_delegating: ContextVar[_RunState | None] = ContextVar("hookline_run", default=None)
"""The run whose tool is running: an agent that the tool runs is its subagent."""


class HooklineCapability(AbstractCapability[Any]):
    """Runs the hooks of a config around the runs of an agent.

    A config takes the session from the conversation id of each run. ``confirm`` answers
    hooks that ask; without it they use pydantic-ai's approval where the agent's output
    type has DeferredToolRequests (``approval=True`` where only the run's has it).
    """

    state: _RunState
    """Of the run that this copy is for."""

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        approval: bool | None = None,
    ) -> None:
        self._given = config_or_session
        self._confirm, self._approval = confirm, approval

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a spec of an agent cannot hold a config."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: no other capability changes what the hooks have seen."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> HooklineCapability:
        """A copy with the state of one run."""
        session, parent, hooks = session_of(self._given), _delegating.get(), copy(self)
        if session is not self._given:
            found = parent.session.session_id if parent else ctx.conversation_id
            session = session.view(found)
        hooks.state = _RunState(session, parent)
        return hooks

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """BeforeAgent, or SubagentStart; a realtime session has no turns."""
        await self.state.session.warn_ineffective("pydantic-ai", _INEFFECTIVE)
        if not ctx.realtime:
            name = ctx.agent.name if ctx.agent else None
            turn = await self.state.begin_turn(name, _prompt_of(ctx))
            if not turn.refused:
                ctx.enqueue(*turn.additions)
        try:
            return await handler()
        finally:
            self.state.pass_on_stop()

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Keep a blocked prompt out of the history, which the next run would send."""
        is_prompt = isinstance(node, UserPromptNode) and node.user_prompt
        if is_prompt and self.state.run.ended:
            return replace(node, user_prompt=_BLOCKED_PROMPT)
        return node

    async def wrap_node_run(
        self, ctx: RunContext[Any], *, node: Any, handler: Any
    ) -> Any:
        """Go on after an answer that AfterAgent rejected."""
        result = await handler(node)
        again = self.state.again
        if again is not None and isinstance(result, CallToolsNode):
            self.state.again = None
            return ModelRequestNode(_rejection(result.model_response, again))
        if isinstance(result, End) and not self.state.is_settled:
            await self._settle_late(ctx, node, result.data.output)
        return result

    async def _settle_late(self, ctx: RunContext[Any], node: Any, output: Any) -> None:
        """AfterAgent for an answer beside tool calls, which only the end tells."""
        if isinstance(output, DeferredToolRequests):
            return
        ended = await self.state.settle(content_text(output))
        again, self.state.again = self.state.again, None
        if again is not None and isinstance(node, CallToolsNode):
            ctx.enqueue(again)
        elif reason := again or ended:
            # run_stream has handed the answer out and takes no other one.
            raise exceptions.AgentRunError(f"A hook rejected the answer: {reason}")

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any
    ) -> Any:
        """BeforeTool for a tool that runs elsewhere: no later step sees it."""
        if tool_def.kind == "external":
            shown = _input_of(call, args)
            begun = await self._begin_tool(ctx, call, shown, defer=False)
            _record(call, shown, begun.tool_input)
        return args

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any
    ) -> Any:
        """BeforeTool."""
        shown = _input_of(call, args)
        begun = await self._begin_tool(ctx, call, shown, defer=self._can_defer(ctx))
        names = _record(call, shown, begun.tool_input)
        if begun.question is not None:
            raise exceptions.ApprovalRequired(metadata={"reason": begun.question})
        if names:
            kept = args if shown is args else {}
            valid = await _validated(ctx, call)
            args = valid | {k: v for k, v in kept.items() if k not in names}
        self.state.calls[id(call)] = begun
        return args

    async def _begin_tool(
        self, ctx: RunContext[Any], call: ToolCallPart, shown: Any, *, defer: bool
    ) -> HookedToolCall:
        confirm = True if ctx.tool_call_approved else self._confirm
        begun = await self.state.run.begin_tool(
            call.tool_name, shown, confirm=confirm, defer=defer and confirm is None
        )
        if begun.refused and begun.question is None:
            raise exceptions.ToolFailed(begun.message)
        return begun

    def _can_defer(self, ctx: RunContext[Any]) -> bool:
        if self._approval is not None:
            return self._approval
        output: Any = ctx.agent.output_type if ctx.agent else None
        kinds = output if isinstance(output, list | tuple) else get_args(output)
        others = ctx.capabilities.values()
        has_handler = any(isinstance(one, HandleDeferredToolCalls) for one in others)
        return has_handler or DeferredToolRequests in (*kinds, output)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: Any,
        args: Any,
        handler: Any,
    ) -> Any:
        """AfterTool, for what the tool and other capabilities made of the result."""
        token = _delegating.set(self.state)
        try:
            result = await handler(args)
        except _NOT_OVER:
            raise
        except Exception as error:
            if begun := self.state.calls.pop(id(call), None):
                raise await _failure(begun, error) from error
            raise
        finally:
            _delegating.reset(token)
        begun = self.state.calls.pop(id(call), None)
        return await _result(begun, result) if begun else result

    def get_wrapper_model(self, model: models.Model) -> models.Model:
        """The model with hooks around each request."""
        return _HookedModel(model, self.state)


class _HookedModel(WrapperModel):
    """The model of one request, with the hooks of its run."""

    def __init__(self, wrapped: models.Model, state: _RunState) -> None:
        super().__init__(wrapped)
        self._state = state

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: models.ModelRequestParameters,
    ) -> ModelResponse:
        given = _Request(messages, model_settings, model_request_parameters)
        call = await self._begin(given)
        if call.refused:
            return await self._answer(call, given)
        changes = call.changes
        sent = given.changed(changes, call)
        return await self._finish(
            call, await self._model(changes).request(*sent), given
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: models.ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[models.StreamedResponse]:
        given = _Request(messages, model_settings, model_request_parameters)
        call = await self._begin(given)
        if call.refused:
            yield self._replay(await self._answer(call, given), given)
            return
        changes = call.changes
        sent = (*given.changed(changes, call), run_context)
        async with self._model(changes).request_stream(*sent) as stream:
            if not await self._is_held_back():
                yield stream
                return
            events = [event async for event in stream]
        response = await self._finish(call, stream.get(), given)
        yield self._replay(response, given, is_shown=bool(events))

    async def _begin(self, given: _Request) -> HookedModelCall:
        """BeforeToolSelection and BeforeModel."""
        return await self._state.run.begin_model(
            {"model": self.model_name, **given.stable},
            available_tools=given.tool_names,
            translator=StableTranslator(),
        )

    async def _answer(self, call: HookedModelCall, given: _Request) -> ModelResponse:
        """The answer of hooks to a request that is not sent."""
        if call.text and call.stop_reason is None:
            return await self._settle(given.answer(call.text), given)
        self._state.is_settled = True
        return given.refusal(call.stop_reason or call.reason)

    async def _finish(
        self, call: HookedModelCall, response: ModelResponse, given: _Request
    ) -> ModelResponse:
        """AfterModel, and AfterAgent if the response is an answer."""
        outcome = await call.finish({"text": given.text_of(response)})
        if outcome.stop_reason is not None:
            self._state.is_settled = True
            return given.refusal(outcome.stop_reason)
        if outcome.changed:
            response = given.rewritten(response, outcome.text)
        return await self._settle(response, given)

    async def _settle(self, response: ModelResponse, given: _Request) -> ModelResponse:
        answer = given.text_of(response) if given.is_answer(response) else None
        reason = await self._state.settle(answer)
        return response if reason is None else given.refusal(reason)

    async def _is_held_back(self) -> bool:
        """Whether a stream waits for hooks that see the complete response."""
        end = "SubagentStop" if self._state.is_subagent else "AfterAgent"
        has_hooks = self._state.session.has_hooks
        return await has_hooks("AfterModel") or await has_hooks(end)

    def _replay(
        self, response: ModelResponse, given: _Request, *, is_shown: bool = True
    ) -> models.StreamedResponse:
        # Without events nobody takes a rejected answer for the final one; hooks of
        # another config, further in, may have rejected it as well.
        return models.CompletedStreamedResponse(
            response,
            model_request_parameters=given.params,
            replay_events=is_shown and self._state.again is None,
        )

    def _model(self, changes: RequestChanges) -> models.Model:
        name = changes.model
        return self.wrapped if name is None else models.infer_model(name)

    async def batch_encode(self, request: Any) -> Any:
        """Refuse: BatchModelRequests sends requests past the hooks."""
        raise exceptions.UserError("hooks cannot see requests of BatchModelRequests")


@dataclass(frozen=True)
class _Request:
    """A model request of pydantic-ai's, as hooks see and change it."""

    messages: list[ModelMessage]
    settings: ModelSettings | None
    params: models.ModelRequestParameters

    @property
    def stable(self) -> dict[str, Any]:
        """Messages and settings in the stable shape."""
        found = [(part, _text_of(part)) for _, _, part in _rows(self.messages)]
        texts = [{"role": _role_of(part), "content": t} for part, t in found if t]
        settings: Mapping[str, Any] = self.settings or {}
        config = {k: settings[v] for k, v in _SETTINGS.items() if v in settings}
        return {"messages": texts, "config": config}

    @property
    def tool_names(self) -> list[str]:
        """The tools that may be called; those for the output are not among them."""
        own = [tool.name for tool in self.params.function_tools]
        return own + [tool.kind for tool in self.params.native_tools]

    def changed(
        self, changes: RequestChanges, call: HookedModelCall
    ) -> tuple[Any, Any, Any]:
        """The messages, settings and parameters to send after the hooks."""
        params, settings = self.params, dict[str, Any](self.settings or {})
        for name in _SETTINGS.keys() & changes.config:
            settings[_SETTINGS[name]] = changes.config[name]
        if call.allowed_names is not None:
            params = self._restricted(call.allowed_names)
            settings["tool_choice"] = None  # it may name a tool that is gone
        if call.request.get("toolConfig", {}).get("mode") == "ANY":
            settings["tool_choice"] = "required" if params.function_tools else None
        settings = {
            name: value for name, value in settings.items() if value is not None
        }
        return _edited(self.messages, changes), settings or None, params

    def _restricted(self, allowed: frozenset[str]) -> models.ModelRequestParameters:
        own, hosted = self.params.function_tools, self.params.native_tools
        return replace(
            self.params,
            function_tools=[tool for tool in own if tool.name in allowed],
            native_tools=[tool for tool in hosted if tool.kind in allowed],
        )

    def text_of(self, response: ModelResponse) -> str:
        """What hooks see: the text, and a structured output as JSON."""
        outputs = [call.args_as_json_str() for call in self._outputs(response)]
        return "\n".join(filter(None, [response.text, *outputs]))

    def _outputs(self, response: ModelResponse) -> list[ToolCallPart]:
        names = {tool.name for tool in self.params.output_tools}
        return [call for call in response.tool_calls if call.tool_name in names]

    def is_answer(self, response: ModelResponse) -> bool:
        """Whether the run ends with this response."""
        if response.tool_calls:
            return bool(self._outputs(response))
        return response.state == "complete" and bool(response.text or response.files)

    def answer(self, text: str) -> ModelResponse:
        """An answer in the model's place; JSON for a structured output."""
        tools = self.params.output_tools
        is_text = self.params.allow_text_output or not tools
        return ModelResponse(
            [TextPart(text) if is_text else ToolCallPart(tools[0].name, text)]
        )

    def refusal(self, reason: str | None) -> ModelResponse:
        """A response that ends the run with a reason, which only text can."""
        text = reason or "Blocked by hook"
        if self.params.output_object or not self.params.allow_text_output:
            raise exceptions.AgentRunError(f"Stopped by a hook: {text}")
        return ModelResponse([TextPart(text)])

    def rewritten(self, response: ModelResponse, text: str) -> ModelResponse:
        """A response with another text, and nothing of what was beside it."""
        if lost := [call.tool_name for call in response.tool_calls]:
            logger.warning("a hook changed an answer, its calls are dropped: %s", lost)
        outputs = self._outputs(response)
        return replace(
            response,
            parts=[replace(outputs[0], args=text, id=None)]
            if outputs
            else self.answer(text or _EMPTIED).parts,
            finish_reason="stop",
            # They may repeat the text, or name the service's own copy of it.
            provider_details=None,
            provider_response_id=None,
        )


_Row = tuple[int | None, str, Any]
"""A part with the index of its message, None for a new one, and the message's kind."""


def _rows(messages: list[ModelMessage]) -> list[_Row]:
    found = enumerate(messages)
    return [(at, message.kind, part) for at, message in found for part in message.parts]


def _edited(
    messages: list[ModelMessage], changes: RequestChanges
) -> list[ModelMessage]:
    """Copies of the messages with what hooks changed."""
    if not (changes.edited or changes.inserted or changes.removed or changes.appended):
        return messages
    made: list[Any] = []
    last: int | None = None
    for at, kind, part in changes.applied(
        _rows(messages),
        text_of=lambda row: _text_of(row[2]),
        edit=_with_text,
        make=_new,
    ):
        # A new part joins the message before it: models look for tool results in
        # the last one.
        if made and made[-1].kind == kind and at in (None, last):
            made[-1] = replace(made[-1], parts=[*made[-1].parts, part])
            continue
        made.append(_message(messages, at, kind, part))
        last = at
    return made


def _message(messages: list[Any], at: int | None, kind: str, part: Any) -> Any:
    if at is not None:
        return replace(messages[at], parts=[part])
    return msg.ModelRequest([part]) if kind == "request" else ModelResponse([part])


def _new(message: LLMMessage) -> _Row:
    if message.role == "model":
        return None, "response", TextPart(message.content)
    kind = msg.SystemPromptPart if message.role == "system" else msg.UserPromptPart
    return None, "request", kind(message.content)


def _role_of(part: Any) -> str:
    if isinstance(part, TextPart):
        return "model"
    return "system" if isinstance(part, msg.SystemPromptPart) else "user"


def _text_of(part: Any) -> str:
    """The text that hooks see of a part; calls and results are not among it."""
    if isinstance(part, TextPart | msg.SystemPromptPart):
        return part.content
    return _plain(part.content) if isinstance(part, msg.UserPromptPart) else ""


def _plain(content: Any) -> str:
    """The text of what a user says."""
    if isinstance(content, str):
        return content
    texts = (
        one.content if isinstance(one, msg.TextContent) else one for one in content
    )
    return "".join(text for text in texts if isinstance(text, str))


def _with_text(row: _Row, text: str | None) -> _Row | None:
    """A part with another text; None if nothing is left of it."""
    at, kind, part = row
    content: Any = text
    if isinstance(part, TextPart):
        part = TextPart("")  # an id names the service's own copy
    elif not isinstance(part.content, str):
        others = [p for p in part.content if not isinstance(p, str | msg.TextContent)]
        content = [text, *others] if text else others
    return (at, kind, replace(part, content=content)) if content else None


def _rejection(response: ModelResponse, reason: str) -> msg.ModelRequest:
    """What tells the model that its answer was rejected."""
    answers: list[Any] = [
        msg.ToolReturnPart(call.tool_name, reason, call.tool_call_id, outcome="failed")
        for call in response.tool_calls
    ]
    return msg.ModelRequest(answers or [msg.UserPromptPart(reason)])


def _prompt_of(ctx: RunContext[Any]) -> str:
    """The prompt of a run; where it goes on with a history, the last one there."""
    if ctx.prompt is not None:
        return _plain(ctx.prompt)
    parts = [part for _, _, part in _rows(ctx.messages)]
    prompts = (part for part in reversed(parts) if isinstance(part, msg.UserPromptPart))
    return next(map(_text_of, prompts), "")


def _input_of(call: ToolCallPart, args: dict[str, Any]) -> dict[str, Any]:
    """The input as the model gives it: an object may stand for an only parameter."""
    if len(args) == 1 and args.keys().isdisjoint(call.args_as_dict()):
        fields = to_jsonable_python(*args.values(), serialize_unknown=True)
        if isinstance(fields, dict):
            return fields
    return args


def _record(
    call: ToolCallPart, shown: dict[str, Any], changed: dict[str, Any]
) -> list[str]:
    """Write the changes of hooks into the call in the history; name what changed."""
    gone = object()
    names = [
        name
        for name in shown | changed
        if changed.get(name, gone) is not shown.get(name, gone)
    ]
    if names:
        kept = {k: v for k, v in call.args_as_dict().items() if k not in names}
        new = {name: changed[name] for name in names if name in changed}
        call.args = kept | to_jsonable_python(new, serialize_unknown=True)
        # By its id a service takes its own copy of the call.
        call.id = None
    return names


async def _validated(ctx: RunContext[Any], call: ToolCallPart) -> dict[str, Any]:
    """The arguments of a changed call, as pydantic-ai validates them."""
    if ctx.tool_manager is None:
        return call.args_as_dict()
    valid = await ctx.tool_manager.validate_tool_call(
        call, approved=ctx.tool_call_approved, metadata=ctx.tool_call_metadata
    )
    if problem := valid.validation_error or valid.deferral:
        raise problem
    return valid.validated_args or {}


async def _result(begun: HookedToolCall, result: Any) -> Any:
    """What the model gets of a tool's result after the hooks."""
    returned = result if isinstance(result, msg.ToolReturn) else msg.ToolReturn(result)
    value, extra = returned.return_value, returned.content
    shown = {"return_value": value, "content": extra} if extra else value
    outcome = await begun.finish(shown)
    if outcome.withheld or outcome.stop_reason:
        raise exceptions.ToolFailed(outcome.text)
    if not outcome.additions:
        return result
    if isinstance(value, str) and not extra:
        return replace(returned, return_value=outcome.text)
    given = [extra] if isinstance(extra, str) else [*(extra or ())]
    return replace(returned, content=[*given, *outcome.additions])


async def _failure(begun: HookedToolCall, error: Exception) -> Exception:
    """What to raise for a tool that failed, after the hooks."""
    is_told = isinstance(error, exceptions.ToolRetryError | exceptions.ToolFailedError)
    cause = error.__cause__ if is_told else None
    outcome = await begun.finish(cause if isinstance(cause, Exception) else error)
    if outcome.withheld or outcome.stop_reason:
        return exceptions.ToolFailed(outcome.text)
    if not is_told or not outcome.additions:
        return error
    text = "\n\n".join([str(cause or error), *outcome.additions])
    return (
        exceptions.ToolFailed(text)
        if isinstance(error, exceptions.ToolFailedError)
        else exceptions.ModelRetry(text)
    )
