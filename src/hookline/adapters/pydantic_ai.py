"""Hooks for pydantic-ai: ``Agent(..., capabilities=[HooklineCapability(config)])``.

Each run of an agent is a turn. Model hooks are in a wrapper around the model, the last
step before a request is sent; tool hooks are the innermost of all capabilities.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from inspect import getclosurevars
from typing import Any, get_args

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
)
from hookline.agent.tool_calls import content_text, refused_result
from hookline.errors import MissingExtraError
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.translators.changes import RequestChanges
from hookline.translators.shape import LLMMessage
from hookline.translators.stable import StableTranslator

from .kit import (
    MessageShape,
    Sessions,
    answer_of,
    changed_answer,
    changed_settings,
    joined,
    must_call_tool,
    with_hooks,
)

try:
    from pydantic import TypeAdapter
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
    from pydantic_ai.output import Choices
    from pydantic_ai.result import FinalResult
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import DeferredToolRequests, RunContext
    from pydantic_core import to_jsonable_python
    from pydantic_graph import End
except ImportError as error:
    raise MissingExtraError("pydantic-ai", "pydantic-ai-slim") from error

logger = logging.getLogger("hookline")
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
_ROLES = {
    TextPart: "model",
    msg.SystemPromptPart: "system",
    msg.InstructionPart: "system",
}
_DEFAULT_NAME = "final_result"
"""How pydantic-ai names the tools of outputs that have no name of their own."""
_BLOCKED_PROMPT = "[System] A hook blocked this prompt"
_EMPTIED = "[System] A hook removed this answer"
_NOT_OVER = (
    exceptions.ApprovalRequired,
    exceptions.CallDeferred,
    exceptions.RunCancelled,
)
"""What a tool raises that has no result yet, or never will."""


_caller: ContextVar[HookedRun | None] = ContextVar("hookline_run", default=None)
"""The run whose tool is running: an agent that the tool runs is its subagent."""


class HooklineCapability(AbstractCapability[Any]):
    """Runs the hooks of a config around the runs of an agent.

    Of a config each conversation of pydantic-ai is a session; a session is used as it
    is. ``confirm`` answers hooks that ask; without it they use pydantic-ai's approval
    where the agent's output type has DeferredToolRequests (``approval=True`` where only
    the run's has it).
    """

    session: Session
    run: HookedRun
    """Of the copy for one run: its turn, or its tools alone."""
    caller: HookedRun | None
    """The run whose tool runs this agent, as a subagent."""
    calls: dict[int, HookedToolCall]
    """The calls that run, by the identity of their parts."""
    request: _Request | None = None
    """The last one to the model."""
    refusal: str | None = None
    """What hooks answer in place of its response."""
    rejection: str | None = None
    """What to go on with after an answer that hooks rejected."""
    is_settled = False
    """Whether hooks have seen the response as an answer."""

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        approval: bool | None = None,
    ) -> None:
        self._sessions = Sessions(config_or_session)
        self._confirm, self._approval = confirm, approval

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: no other capability changes what the hooks have seen."""
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> HooklineCapability:
        """A copy with the state of one run."""
        hooks = copy(self)
        hooks.caller, hooks.calls = _caller.get(), {}
        hooks.request = hooks.refusal = hooks.rejection = None
        hooks.session = self._sessions.of(ctx.conversation_id, hooks.caller)
        hooks.run = hooks.session.begin_run()
        return hooks

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """BeforeAgent, or SubagentStart; a realtime session has no turns."""
        await self.session.warn_ineffective("pydantic-ai", _INEFFECTIVE)
        if ctx.realtime:
            return await handler()
        # A run that goes on with a history has the last prompt there.
        parts = [part for message in ctx.messages for part in message.parts]
        prompts = [p.content for p in parts if isinstance(p, msg.UserPromptPart)]
        prompts += [] if ctx.prompt is None else [ctx.prompt]
        prompt = _plain(prompts[-1]) if prompts else ""
        if self.caller is None:
            self.run = turn = await self.session.begin_turn(prompt)
        else:
            name = (ctx.agent and ctx.agent.name) or "agent"
            self.run = turn = await self.session.begin_subagent(
                name, prompt, parent=self.caller
            )
        if not turn.refused:
            ctx.enqueue(*turn.additions)
        return await handler()

    async def settle(self, answer: str) -> None:
        """AfterAgent, or SubagentStop."""
        self.is_settled = True
        if isinstance(self.run, HookedTurn):
            self.rejection = await self.run.finish(answer)

    async def wrap_node_run(
        self, ctx: RunContext[Any], *, node: Any, handler: Any
    ) -> Any:
        """Go on after an answer that hooks rejected, and end where they say so."""
        is_prompt = isinstance(node, UserPromptNode)
        if is_prompt and node.user_prompt and self.run.ended:
            # The next run of this history would send the blocked prompt.
            node = replace(node, user_prompt=_BLOCKED_PROMPT)
        is_response = isinstance(node, CallToolsNode)
        if is_response and self.refusal is not None:
            # Validators and functions of the output are for answers.
            return End(FinalResult(self.refusal))
        result = await handler(node)
        if isinstance(result, CallToolsNode) and self.rejection is not None:
            parts: list[Any] = [
                msg.ToolReturnPart(
                    call.tool_name, self.rejection, call.tool_call_id, outcome="failed"
                )
                for call in result.model_response.tool_calls
            ]
            parts = parts or [msg.UserPromptPart(self.rejection)]
            return ModelRequestNode(msg.ModelRequest(parts))
        if not isinstance(result, End) or self.refusal is not None:
            return result
        # Only the end tells of an answer beside calls, and of a stop by one of them.
        output = result.data.output
        if not self.is_settled and not isinstance(output, DeferredToolRequests):
            await self.settle(content_text(output))
        reason = self.rejection or self.run.ended
        if reason is None:
            return result
        if not is_response:
            # run_stream has handed the answer out and takes no other one.
            raise exceptions.AgentRunError(f"A hook rejected the answer: {reason}")
        if self.rejection is not None:
            ctx.enqueue(reason)
            return result
        if self.request is not None:
            self.request.refusal(reason)
        return End(FinalResult(reason))

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any
    ) -> Any:
        """BeforeTool for a tool that runs elsewhere: no later step sees it."""
        if tool_def.kind == "external":
            _record(call, await self._begin_tool(ctx, call, args, defer=False))
        return args

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any
    ) -> Any:
        """BeforeTool."""
        can_defer = self._can_defer(ctx)
        hooked_call = await self._begin_tool(ctx, call, args, defer=can_defer)
        _record(call, hooked_call)
        if hooked_call.question is not None:
            raise exceptions.ApprovalRequired(metadata={"reason": hooked_call.question})
        if hooked_call.changed_names:
            names = hooked_call.tool_input.keys() - {*hooked_call.changed_names}
            unchanged = {name: args[name] for name in names & args.keys()}
            args = call.args_as_dict()
            if ctx.tool_manager is not None:
                valid = await ctx.tool_manager.validate_tool_call(
                    call,
                    approved=ctx.tool_call_approved,
                    metadata=ctx.tool_call_metadata,
                )
                if problem := valid.validation_error or valid.deferral:
                    raise problem
                args = valid.validated_args or {}
            args = {**args, **unchanged}
        self.calls[id(call)] = hooked_call
        return args

    async def _begin_tool(
        self, ctx: RunContext[Any], call: ToolCallPart, args: Any, *, defer: bool
    ) -> HookedToolCall:
        tool_input = args
        if len(args) == 1 and args.keys().isdisjoint(call.args_as_dict()):
            # The model gives the fields of an object that is the only parameter.
            fields = to_jsonable_python(*args.values(), serialize_unknown=True)
            tool_input = fields if isinstance(fields, dict) else args
        confirm = True if ctx.tool_call_approved else self._confirm
        hooked_call = await self.run.begin_tool(
            call.tool_name,
            tool_input,
            confirm=confirm,
            defer=defer and confirm is None,
        )
        if hooked_call.refused and hooked_call.question is None:
            raise exceptions.ToolFailed(hooked_call.message)
        return hooked_call

    def _can_defer(self, ctx: RunContext[Any]) -> bool:
        if self._approval is not None:
            return self._approval
        output: Any = ctx.agent.output_type if ctx.agent else None
        kinds = output if isinstance(output, list | tuple) else get_args(output)
        capabilities = ctx.capabilities.values()
        has_handler = any(isinstance(c, HandleDeferredToolCalls) for c in capabilities)
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
        hooked_call, result = await self._run(call, handler, args)
        if hooked_call is None:
            return result
        is_return = isinstance(result, msg.ToolReturn)
        returned = result if is_return else msg.ToolReturn(result)
        value, extra = returned.return_value, returned.content
        value_shown = {"return_value": value, "content": extra} if extra else value
        outcome = await hooked_call.finish(value_shown)
        if outcome.is_replaced:
            raise exceptions.ToolFailed(outcome.text)
        if not outcome.additions:
            return result
        if isinstance(value, str) and not extra:
            return replace(returned, return_value=outcome.text)
        contents = [extra] if isinstance(extra, str) else [*(extra or ())]
        return replace(returned, content=[*contents, *outcome.additions])

    async def _run(
        self, key: object, handler: Any, args: Any
    ) -> tuple[HookedToolCall | None, Any]:
        """Run a tool or an output function: its call, if hooks saw one, and result."""
        token = _caller.set(self.run)
        try:
            result = await handler(args)
        except _NOT_OVER:
            raise
        except Exception as error:
            hooked_call = self.calls.pop(id(key), None)
            if hooked_call is None:
                raise
            kinds = exceptions.ToolRetryError | exceptions.ToolFailedError
            cause = error.__cause__ if isinstance(error, kinds) else None
            outcome = await hooked_call.finish(cause or error)
            if outcome.is_replaced:
                raise exceptions.ToolFailed(outcome.text) from error
            if cause is None or not outcome.additions:
                raise
            is_final = isinstance(error, exceptions.ToolFailedError)
            kind = exceptions.ToolFailed if is_final else exceptions.ModelRetry
            raise kind(joined([str(cause), *outcome.additions])) from error
        finally:
            _caller.reset(token)
        return self.calls.pop(id(key), None), result

    async def before_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any
    ) -> Any:
        """BeforeTool for an output function, which is a tool that ends the run."""
        session, call = self.session, output_context.tool_call
        kind = output_context.output_type
        # Only the class of a ``Choices`` set knows that its values are functions.
        is_set = getattr(kind, "__module__", None) == Choices.__module__
        read: Any = getattr(kind, "__get_pydantic_core_schema__", None)
        runs_choice = is_set and getclosurevars(read).nonlocals.get("has_actions")
        if not (output_context.has_function or runs_choice) or not (
            await with_hooks(session, "BeforeTool", "AfterTool")
        ):
            return output
        if ctx.partial_output:
            # Partial outputs that are rejected are skipped: it runs once, on the whole.
            raise exceptions.ModelRetry("the output is not complete")
        name = output_context.function_name
        if name is None:
            raise exceptions.UserError(
                "hooks cannot see which of several output functions runs: "
                "pass them as output_type=[...], not in NativeOutput, PromptedOutput "
                "or Choices"
            )
        if call is not None and not call.tool_name.startswith(_DEFAULT_NAME):
            name = call.tool_name
        fields = to_jsonable_python(output, serialize_unknown=True)
        only = next(iter(call.args_as_dict() if call else ()), "text")
        args = output if isinstance(output, dict) else fields
        args = args if isinstance(args, dict) else {only: output}
        # No selection of tools forbids it: a run has to end.
        hooked_call = HookedToolCall(session, name, args, on_stop=self.run.stop)
        await hooked_call.begin(self._confirm)
        changed = hooked_call.tool_input
        if not hooked_call.refused and changed.keys() != args.keys():
            names = ", ".join(hooked_call.changed_names)
            problem = f"Not run: a hook changed the parameters of {name}: {names}"
            hooked_call.refuse(refused_result(problem))
        if hooked_call.refused:
            raise exceptions.ModelRetry(hooked_call.message)
        if call is not None:
            _record(call, hooked_call)
        self.calls[id(output_context)] = hooked_call
        if not hooked_call.changed_names or isinstance(output, dict):
            return changed if hooked_call.changed_names else output
        if not isinstance(fields, dict):
            return changed[only]
        return TypeAdapter(type(output)).validate_python(changed)

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        """AfterTool for an output function."""
        hooked_call, result = await self._run(output_context, handler, output)
        outcome = None if hooked_call is None else await hooked_call.finish(result)
        if outcome is not None and outcome.is_replaced and self.request:
            self.request.refusal(outcome.text)
            return outcome.text
        if outcome is not None and outcome.additions:
            added = outcome.additions
            logger.warning("an output cannot carry what hooks add: %s", added)
        return result

    def get_wrapper_model(self, model: models.Model) -> models.Model:
        """The model with hooks around each request."""
        return _HookedModel(model, self)


class _HookedModel(WrapperModel):
    """The model of one request, with the hooks of its run."""

    def __init__(self, wrapped: models.Model, hooks: HooklineCapability) -> None:
        super().__init__(wrapped)
        self._hooks = hooks

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: models.ModelRequestParameters,
    ) -> ModelResponse:
        hooked_request = _Request(messages, model_settings, model_request_parameters)
        call, response = await self._begin(hooked_request), None
        if not call.refused:
            model, *arguments = hooked_request.changed(call, self.wrapped)
            response = await model.request(*arguments)
        return await self._finish(call, hooked_request, response)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: models.ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[models.StreamedResponse]:
        hooked_request = _Request(messages, model_settings, model_request_parameters)
        call, response, is_shown = await self._begin(hooked_request), None, True
        if not call.refused:
            model, *arguments = hooked_request.changed(call, self.wrapped)
            async with model.request_stream(*arguments, run_context) as stream:
                end = "SubagentStop" if self._hooks.caller else "AfterAgent"
                if not await with_hooks(self._hooks.session, "AfterModel", end):
                    yield stream
                    return
                # Hooks of another config, further in, may have rejected the answer.
                is_shown = bool([event async for event in stream])
            response = stream.get()
        response = await self._finish(call, hooked_request, response)
        yield models.CompletedStreamedResponse(
            response,
            model_request_parameters=model_request_parameters,
            # Without events nobody takes a rejected answer for the final one.
            replay_events=is_shown and self._hooks.rejection is None,
        )

    async def _begin(self, request: _Request) -> HookedModelCall:
        """BeforeToolSelection and BeforeModel."""
        hooks = self._hooks
        hooks.request, hooks.is_settled = request, False
        hooks.refusal = hooks.rejection = None
        # Those for the output are no tools that a hook could forbid.
        functions, hosted = request.params.function_tools, request.params.native_tools
        return await hooks.run.begin_model(
            {"model": self.model_name, **request.stable},
            available_tools=[*(t.name for t in functions), *(t.kind for t in hosted)],
            translator=StableTranslator(),
        )

    async def _finish(
        self, call: HookedModelCall, request: _Request, response: ModelResponse | None
    ) -> ModelResponse:
        """AfterModel, and AfterAgent if the run ends with the response."""
        hooks, answer = self._hooks, answer_of(call)
        if response is not None:
            outcome = await call.finish({"text": request.text_of(response)})
            changed = changed_answer(outcome, request.calls_beside_output(response))
            if changed is not None and not changed.is_ending:
                response = request.rewritten(response, changed.text)
        elif answer is not None and not answer.is_ending:
            response = request.answer(answer.text)
        if response is None:
            hooks.refusal = answer.text if answer else BLOCKED_BY_HOOK
            return request.refusal(hooks.refusal)
        if request.is_answer(response):
            await hooks.settle(request.text_of(response))
        hooks.refusal = hooks.run.ended
        return response if hooks.refusal is None else request.refusal(hooks.refusal)

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
    def _rows(self) -> list[_Row]:
        rows: list[_Row] = [
            (None, instruction) for instruction in self.params.instruction_parts or ()
        ]
        for message in self.messages:
            rows += [(message, part) for part in message.parts or (None,)]
        return rows

    @property
    def stable(self) -> dict[str, Any]:
        """Messages and settings in the stable shape."""
        settings: Mapping[str, Any] = self.settings or {}
        config = {k: settings[v] for k, v in _SETTINGS.items() if v in settings}
        return {"messages": _MESSAGES.shown(self._rows), "config": config}

    def changed(self, call: HookedModelCall, model: models.Model) -> tuple[Any, ...]:
        """The model, messages, settings and parameters after the hooks."""
        changes, params = call.changes, self.params
        settings = changed_settings(self.settings or {}, changes, _SETTINGS)
        if (allowed := call.allowed_names) is not None:
            functions, hosted = params.function_tools, params.native_tools
            params = replace(
                params,
                function_tools=[tool for tool in functions if tool.name in allowed],
                native_tools=[tool for tool in hosted if tool.kind in allowed],
            )
            settings.pop("tool_choice", None)  # it may name a tool that is gone
        if must_call_tool(call):
            settings.pop("tool_choice", None)
            if params.function_tools:
                settings["tool_choice"] = "required"
        messages = self.messages
        if changes:
            messages, instructions = self._edited(changes)
            params = replace(params, instruction_parts=instructions)
        if changes.model is not None:
            model = models.infer_model(changes.model)
        return model, messages, settings or None, params

    def _edited(self, changes: RequestChanges) -> tuple[list[Any], list[Any] | None]:
        """Copies of the messages and of the instructions as hooks changed them."""
        edited: list[Any] = []
        instructions: list[msg.InstructionPart] = []
        last: Any = None
        for owner, part in _MESSAGES.changed(self._rows, changes):
            if isinstance(part, msg.InstructionPart):
                instructions.append(part)
                continue
            # A new part joins the message before it: models look for tool results in
            # the last one.
            is_other = part is None or (owner is not last and owner.parts)
            if is_other or not edited or edited[-1].kind != owner.kind:
                edited.append(replace(owner, parts=[]))
                last = owner
            if part is not None:
                edited[-1].parts.append(part)
        if self.params.instruction_parts is None:
            return edited, None
        for message in edited:
            if message.kind == "request" and message.instructions:
                message.instructions = msg.InstructionPart.join(instructions)
        return edited, instructions

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

    def refusal(self, reason: str) -> ModelResponse:
        """A response that ends the run with a reason, which only text can."""
        if self.params.output_object or not self.params.allow_text_output:
            raise exceptions.AgentRunError(f"Stopped by a hook: {reason}")
        return ModelResponse([TextPart(reason)])

    def calls_beside_output(self, response: ModelResponse) -> list[str]:
        """The tools that a response calls, without the one for the output."""
        output = next(iter(self._outputs(response)), None)
        return [call.tool_name for call in response.tool_calls if call is not output]

    def rewritten(self, response: ModelResponse, text: str) -> ModelResponse:
        """A response with another text, and nothing of what was beside it."""
        output = next(iter(self._outputs(response)), None)
        return replace(
            response,
            parts=[replace(output, args=text, id=None)]
            if output
            else self.answer(text or _EMPTIED).parts,
            finish_reason="stop",
            # They may repeat the text, or name the service's own copy of it.
            provider_details=None,
            provider_response_id=None,
        )


_Row = tuple[Any, Any]
"""A message and a part of it, or None; the message of a new part is empty."""


def _new(message: LLMMessage) -> _Row:
    if message.role == "model":
        return ModelResponse([]), TextPart(message.content)
    kind = msg.SystemPromptPart if message.role == "system" else msg.UserPromptPart
    return msg.ModelRequest([]), kind(message.content)


def _text_of(row: _Row) -> str:
    """The text that hooks see of a part; calls and results are not among it."""
    part = row[1]
    if type(part) in _ROLES:
        return str(part.content)
    return _plain(part.content) if isinstance(part, msg.UserPromptPart) else ""


def _plain(content: Any) -> str:
    """The text of what a user says."""
    if isinstance(content, str):
        return content
    texts = (
        item.content if isinstance(item, msg.TextContent) else item for item in content
    )
    return "".join(text for text in texts if isinstance(text, str))


def _with_text(row: _Row, text: str | None) -> _Row | None:
    """A part with another text; None if nothing is left of it."""
    owner, part = row
    content: Any = text
    if isinstance(part, TextPart):
        part = TextPart("")  # an id names the service's own copy
    elif not isinstance(part.content, str):
        other_items = [
            p for p in part.content if not isinstance(p, str | msg.TextContent)
        ]
        content = [text, *other_items] if text else other_items
    return (owner, replace(part, content=content)) if content else None


_MESSAGES: MessageShape[_Row] = MessageShape(
    role_of=lambda row: _ROLES.get(type(row[1]), "user"),
    text_of=_text_of,
    with_text=_with_text,
    new=_new,
)


def _record(call: ToolCallPart, hooked_call: HookedToolCall) -> None:
    """Write what hooks changed into the call in the history."""
    names, changed = hooked_call.changed_names, hooked_call.tool_input
    if names:
        unchanged = {k: v for k, v in call.args_as_dict().items() if k not in names}
        new = {name: changed[name] for name in names if name in changed}
        call.args = unchanged | to_jsonable_python(new, serialize_unknown=True)
        # By its id a service takes its own copy of the call.
        call.id = None
