"""Hooks in the OpenAI Agents SDK: ``hooked_agent(agent, config)``.

A hooked agent is a copy whose tools, handoffs, subagents and model obey the hooks in
every run. ``HooklineRunner`` adds the hooks of the turn.

BeforeTool fires for the calls of an answer before the SDK reads it, so that what a
person approves, what runs and what is recorded is one input (decision 0118).
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import itertools
import json
import operator
from collections.abc import AsyncIterator, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast
from weakref import ref

from hookline.agent import (
    ConfigOrSession,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
    session_of,
)
from hookline.errors import MissingExtraError
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.translators.openai import OpenAITranslator

from .kit import Answer, JudgedCalls, answer_of, changed_answer, joined, with_hooks

try:
    import agents as sdk
except ImportError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

from agents import Agent, FunctionTool, Model, RunContextWrapper, agent_tool_state
from agents import tool as sdk_tool
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.result import RunResultBase
from agents.run import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext
from openai.types import responses as api

__all__ = ["HooklineRunner", "StoppedByHook", "hooked_agent"]

T = TypeVar("T")
_NAME = "openai-agents"
_UNUSED = dict.fromkeys(
    ("SessionStart", "SessionEnd", "PreCompress"), "the SDK has no such event"
)
_NO_TURN = dict.fromkeys(
    ("BeforeAgent", "AfterAgent"), "run the agent with HooklineRunner instead of Runner"
)
_MODEL_EVENTS = ("BeforeModel", "AfterModel", "BeforeToolSelection")
_LOCAL_TOOLS = (
    sdk.ShellTool,
    sdk.LocalShellTool,
    sdk.ApplyPatchTool,
    sdk.CustomTool,
    sdk.ComputerTool,
)
_PARTS = (sdk.ToolOutputText, sdk.ToolOutputImage, sdk.ToolOutputFileContent)
_TRANSLATOR = OpenAITranslator()
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "tool_choice": "tool_choice",
}
"""Settings of a request that hooks may change, and their names in the SDK."""


def hooked_agent(agent: Agent[T], config: ConfigOrSession) -> Agent[T]:
    """Copy an agent so that its tools, handoffs, subagents and model obey hooks."""
    session = session_of(config)
    if not isinstance(agent, _HookedAgent):
        return _Hooks(session).agent(agent)
    agent_session = agent.hookline.session
    is_same = agent_session.config is session.config
    if not is_same or agent_session.session_id != session.session_id:
        raise sdk.UserError(
            f"agent {agent.name!r} is hooked with another session already"
        )
    return agent


class StoppedByHook(sdk.AgentsException):
    """A hook ended the run, and the agent's output type cannot hold the reason.

    ``HooklineRunner`` returns a result instead.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class _UnseenModelError(sdk.UserError):
    """A model would be called without its hooks."""


@dataclass(eq=False)
class _Run:
    """One run of the SDK with all agents that take over; a subagent has its own."""

    session: Session
    hooked: HookedRun  # a turn, unless nobody fires the events of one
    agent: Agent[Any] | None = None
    is_model_hooked: bool = False  # whether the last call of a model was
    ended: str | None = None  # why a hook ended the run without an answer
    tools: dict[str, FunctionTool] = field(default_factory=dict)
    calls: JudgedCalls = field(default_factory=JudgedCalls)  # of the last answer
    transfer: str = ""  # what the model is told about the last handoff
    is_transfer_refused: bool = False
    successors: list[HookedTurn] = field(default_factory=list)  # by handoffs
    paused: dict[str, _Run] = field(default_factory=dict)  # subagents, by call
    # Items for each request, after the input of the run.
    inserted: list[Any] = field(default_factory=list)
    insert_at: int | None = None

    @property
    def is_plain(self) -> bool:
        return not isinstance(self.hooked, HookedTurn)

    @property
    def end_reason(self) -> str | None:
        return self.hooked.stop_reason or self.ended

    async def begin_calls(self, output: Iterable[Any], handoffs: list[Any]) -> Any:
        """Fire BeforeTool for all calls of an answer; its items with their changes."""
        self.calls = JudgedCalls()
        names = {handoff.tool_name for handoff in handoffs}

        async def begin(item: Any) -> Any:
            is_call = isinstance(item, api.ResponseFunctionToolCall)
            if not is_call or item.name not in names | self.tools.keys():
                return item  # the SDK knows no such tool
            defer = item.name not in names  # the SDK asks nobody about handoffs
            call = await self.begin_tool(item.name, item.arguments, defer=defer)
            arguments = _arguments_of(call, item.arguments)
            self.calls.add(item.call_id, call, _input_of(arguments))
            if arguments == item.arguments:
                return item
            return item.model_copy(update={"arguments": arguments})

        return await asyncio.gather(*map(begin, output))

    async def begin_tool(
        self, name: str, arguments: str, **options: Any
    ) -> HookedToolCall:
        tool = self.tools.get(name)
        origin = tool and sdk_tool.get_function_tool_origin(tool)
        server = origin and origin.mcp_server_name
        mcp = {"server_name": server, "tool_name": name} if server else None
        tool_input = _input_of(arguments)
        return await self.hooked.begin_tool(
            name, tool_input, mcp_context=mcp, **options
        )

    async def admitted(
        self, name: str, arguments: str, ctx: ToolContext[Any] | None = None
    ) -> HookedToolCall:
        """The call that the SDK makes now; of a handoff it tells only the arguments."""
        call_id = None if ctx is None else ctx.tool_call_id
        call = self.calls.take(name, _input_of(arguments), call_id)
        is_ended = self.hooked.stop_reason is not None
        if call is None or call.question is not None or (is_ended and not call.refused):
            # The SDK makes a call that hooks ask about only after a person's approval.
            approved = ctx and ctx.is_tool_approved(name, ctx.tool_call_id)
            call = await self.begin_tool(name, arguments, confirm=approved or None)
        return call

    async def refuse_model(self, origin: str) -> None:
        """Raise if a model that hooks cannot see has hooks."""
        if await with_hooks(self.session, *_MODEL_EVENTS):
            raise _UnseenModelError(
                f"the model {origin}, so that Runner calls it without its hooks: "
                "use HooklineRunner, or a Model object in the agent"
            )


_current: ContextVar[_Run | None] = ContextVar("hookline_run", default=None)
_nested: ContextVar[tuple[str, _Run | None]] = ContextVar(
    "hookline_nested_run", default=("", None)
)
"""For the run of an agent that is a tool, by the id of the call."""


def _run_of(context: Any) -> _Run | None:
    """The run of a context, also in a copy: the SDK copies contexts of paused runs."""
    return getattr(context, "hookline_run", None)


def _input_of(arguments: str) -> dict[str, Any]:
    """The input of a call; arguments that are no JSON object as they are."""
    try:
        tool_input = json.loads(arguments or "{}")
    except ValueError:
        tool_input = None
    return tool_input if isinstance(tool_input, dict) else {"arguments": arguments}


def _arguments_of(call: HookedToolCall, arguments: str) -> str:
    """The arguments to run with: those of the model unless hooks changed them."""
    if not call.changed_names:
        return arguments
    return json.dumps(call.tool_input, ensure_ascii=False)


class _Hooks:
    """What the agents, tools and models of one ``hooked_agent`` call share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._agents: dict[int, tuple[Agent[Any], Any]] = {}
        self._classes: dict[type, type] = {}

    def agent(self, agent: Agent[T]) -> Agent[T]:
        """The hooked copy of an agent, the same one each time."""
        if isinstance(agent, _HookedAgent):
            return agent
        if id(agent) not in self._agents:
            hooked = self.copied(agent, _HookedAgent)
            # Before its parts: agents hand off to each other in circles.
            self._agents[id(agent)] = agent, hooked
            hooked.hook_parts()
        return cast("Agent[T]", self._agents[id(agent)][1])

    def copied(self, original: Any, mixin: type) -> Any:
        """A copy of a subclass, so that what the SDK copies of it stays hooked."""
        kind = type(original)
        if kind not in self._classes:
            name = f"Hooked{kind.__name__}"
            self._classes[kind] = type(name, (mixin, kind), {"hookline": self})
        copied: Any = object.__new__(self._classes[kind])
        copied.__dict__.update(original.__dict__)
        return copied

    def tool(self, tool: Any) -> Any:
        """A function tool whose calls obey hooks; others as they are."""
        if isinstance(tool, _HookedTool) or not isinstance(tool, FunctionTool):
            return tool
        # The SDK has no public name for the agent that ``as_tool`` made a tool of.
        hooked, agent = self.copied(tool, _HookedTool), tool._agent_instance  # noqa: SLF001
        if agent is not None and not isinstance(agent, _HookedAgent):
            raise sdk.UserError(
                f"the agent of tool {tool.name!r} would run without its hooks: "
                "use hooked_agent(agent, config).as_tool(...)"
            )
        hooked.plain, hooked.subagent = tool, agent
        hooked.on_invoke_tool = hooked.invoke
        hooked.timeout_seconds = None  # that of the tool counts, without the hooks
        return hooked

    def handoff(self, target: Any) -> Any:
        """A handoff that obeys hooks, to a hooked agent."""
        if hasattr(target, "hookline"):
            return target
        is_handoff = isinstance(target, sdk.Handoff)
        plain = target if is_handoff else sdk.handoff(self.agent(target))
        hooked: Any = copy.copy(plain)

        async def invoke(ctx: RunContextWrapper[Any], arguments: str) -> Any:
            """Hand off if hooks allow it; else the agent goes on, with the reason."""
            run, turn = self.run(), None
            call = await run.admitted(plain.tool_name, arguments)
            if not call.refused:
                turn = await run.session.begin_subagent(
                    plain.agent_name, _prompt_of(ctx.turn_input), parent=run.hooked
                )
            run.is_transfer_refused = turn is None or turn.refused
            if turn is None or turn.refused:
                run.transfer = (
                    turn.reason if turn else call.message
                ) or BLOCKED_BY_HOOK
                return run.agent
            changed_arguments = _arguments_of(call, arguments)
            agent = self.agent(await plain.on_invoke_handoff(ctx, changed_arguments))
            outcome = await call.finish(plain.get_transfer_message(agent))
            run.transfer = joined([outcome.text, *turn.additions])
            run.successors.append(turn)
            return agent

        hooked.hookline, hooked.on_invoke_handoff = self, invoke
        hooked.get_transfer_message = lambda _agent: self.run().transfer
        hooked.input_filter = _unless_refused(plain.input_filter)
        agent_ref = getattr(plain, "_agent_ref", None)
        if agent_ref is not None and isinstance(agent_ref(), Agent):
            hooked.__dict__["_agent_ref"] = ref(self.agent(agent_ref()))
        return hooked

    def model(self, model: Any) -> Any:
        """A model whose calls obey hooks; the name of one as it is."""
        is_hooked = isinstance(model, _HookedModel) or not isinstance(model, Model)
        return model if is_hooked else _HookedModel(model, self)

    def guard(self, run_config: sdk.RunConfig | dict[str, Any] | None) -> sdk.RunConfig:
        """A run config whose models obey hooks."""
        config = run_config or sdk.RunConfig()
        if isinstance(config, dict):
            config = sdk.RunConfig(**config)
        provider: Any = config.model_provider
        if not isinstance(provider, _HookedProvider):
            provider = _HookedProvider(provider, self)
        return replace(
            config,
            model=self.model(config.model),
            model_provider=provider,
            handoff_input_filter=_unless_refused(config.handoff_input_filter),
        )

    def run(self) -> _Run:
        """The run that the present task belongs to."""
        run = _current.get()
        if run is not None and run.session.config is self.session.config:
            return run
        return _Run(self.session, self.session.begin_run())

    def bound_run(self, context: RunContextWrapper[Any]) -> _Run:
        """The run of a context, which is the one of this task from now on."""
        run = _run_of(context)
        if run is None:
            call_id, run = _nested.get()
            if run is None or getattr(context, "tool_call_id", None) != call_id:
                # What a tool runs is in the session of its caller.
                session = self.run().session
                run = _Run(session, session.begin_run())
            context.__dict__["hookline_run"] = run
        _current.set(run)
        return run


class _HookedAgent:
    """Mixed into the class of a hooked agent."""

    hookline: _Hooks
    name: str

    def __post_init__(self: Any) -> None:
        super().__post_init__()  # type: ignore[misc]
        self.hook_parts()

    def hook_parts(self: Any) -> None:
        self.tools = [self.hookline.tool(tool) for tool in self.tools]
        self.hook_others()

    def hook_others(self: Any) -> None:
        """Hook all parts but the tools, which must not change in a run."""
        hooks = self.hookline
        if not all(hasattr(handoff, "hookline") for handoff in self.handoffs):
            self.handoffs = [hooks.handoff(handoff) for handoff in self.handoffs]
        self.model = hooks.model(self.model)
        if not isinstance(self.hooks, _HookedObserver):
            observer = self.hooks or sdk.AgentHooks()
            self.hooks = hooks.copied(observer, _HookedObserver)
            self.hooks.__dict__ = observer.__dict__

    async def get_all_tools(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """All tools, hooked: also those of MCP servers."""
        run = self.hookline.bound_run(run_context)
        run.agent = getattr(self, "_agents_public_agent", self)
        run.is_model_hooked = False
        plain_tools = await super().get_all_tools(run_context)  # type: ignore[misc]
        tools = [self.hookline.tool(tool) for tool in plain_tools]
        self.hook_others()
        run.tools = {
            tool.name: tool for tool in tools if isinstance(tool, FunctionTool)
        }
        unhooked_tools = [tool for tool in tools if not isinstance(tool, _HookedTool)]
        events = ("BeforeTool", "AfterTool")
        if unhooked_tools and await with_hooks(run.session, *events):
            for tool in unhooked_tools:
                if isinstance(tool, _LOCAL_TOOLS) and getattr(tool, "executor", True):
                    raise sdk.UserError(
                        f"tool {tool.name!r} would run without its hooks: "
                        "use a function tool in its place"
                    )
            names = ", ".join(tool.name for tool in unhooked_tools)
            reasons = dict.fromkeys(events, f"it does not run the calls of {names}")
            await run.session.warn_ineffective(_NAME, reasons)
        return tools

    async def get_system_prompt(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """The instructions; refuses a run that would call a model without hooks."""
        run = self.hookline.bound_run(run_context)
        await run.session.warn_ineffective(_NAME, _UNUSED)
        if run.is_plain:
            await run.session.warn_ineffective(_NAME, _NO_TURN)
            if not isinstance(self.model, Model):
                await run.refuse_model(f"of agent {self.name!r} is given by name")
        return await super().get_system_prompt(run_context)  # type: ignore[misc]


class _HookedObserver:
    """Mixed into the class of an agent's ``hooks``, the SDK's own observers."""

    hookline: _Hooks

    async def on_llm_end(self: Any, context: Any, agent: Any, response: Any) -> None:
        """Refuse the answer of a model that took the place of the hooked one.

        The SDK tells nobody before the call that a run config has another model.
        """
        run = self.hookline.bound_run(context)
        if not run.is_model_hooked:
            await run.refuse_model("is that of the run config")
        await super().on_llm_end(context, agent, response)  # type: ignore[misc]


class _HookedTool:
    """Mixed into the class of a hooked function tool."""

    hookline: _Hooks
    plain: FunctionTool
    subagent: Any  # if it is an agent that is a tool
    name: str

    @property
    def needs_approval(self: Any) -> Any:
        """What the tool says itself, unless a hook asks about a call or refuses it."""
        policy, calls = self.__dict__["needs_approval"], self.hookline.run().calls

        async def needed(context: Any, params: Any, call_id: str) -> bool:
            call = calls.find(call_id)
            if call is not None and call.refused:
                # Nobody is asked about a call that does not run in any case.
                return call.question is not None
            if not callable(policy):
                return bool(policy)
            # As the SDK: a policy decides only about what the tool gets as it is.
            prepare = getattr(self.plain.on_invoke_tool, "prepare_arguments", None)
            prepared = prepare and prepare(json.dumps(params), self.name)
            if prepared is not None and not prepared.unchanged:
                return True
            needs_approval = policy(context, params, call_id)
            return bool(
                await needs_approval
                if inspect.isawaitable(needs_approval)
                else needs_approval
            )

        refused_calls = [call for call in calls if call.refused]
        questions = [call for call in refused_calls if call.question is not None]
        # A function would have the SDK ask about arguments that it cannot parse.
        is_mixed = questions or callable(policy) or (policy and refused_calls)
        return needed if is_mixed else policy

    @needs_approval.setter
    def needs_approval(self: Any, value: Any) -> None:
        self.__dict__["needs_approval"] = value

    async def invoke(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Run the tool as its hooks allow; what it raises goes on after its hooks."""
        run = self.hookline.run()
        call = await run.admitted(self.name, arguments, ctx)
        if call.refused:
            return await self._text(ctx, call.message)
        call_tool = self._call if self.subagent is None else self._run_agent
        try:
            value, error = await call_tool(ctx, _arguments_of(call, arguments))
        # The tool is foreign code: hooks see its failure before the SDK does.
        except Exception as raised:
            outcome = await call.finish(raised)
            if outcome.is_replaced:
                return await self._text(ctx, outcome.text)
            raise
        if _is_paused(ctx):
            run.calls.add(ctx.tool_call_id, call, _input_of(arguments))
            return value
        outcome = await call.finish(value if error is None else error)
        if outcome.is_replaced:
            return await self._text(ctx, outcome.text)
        if error is not None:
            return await self._text(ctx, joined([str(value), *outcome.additions]))
        content, added = outcome.content, joined(outcome.additions)
        if isinstance(content, str) and added:
            return await self._text(ctx, joined([content, added]))
        parts = list(content) if isinstance(content, list | tuple) else [content]
        if added and all(isinstance(part, _PARTS) for part in parts):
            return [*parts, sdk.ToolOutputText(text=added)]
        # The value of a program stays as it is: the model is told apart.
        run.hooked.note(added)
        return content

    async def _call(
        self, ctx: ToolContext[Any], arguments: str
    ) -> tuple[Any, Exception | None]:
        """Call the tool: what it gives, and the error if that tells of one."""
        tool, errors = self.plain, list[Exception]()

        def failed(ctx: Any, error: Exception) -> Any:
            errors.append(error)
            return sdk_tool.maybe_invoke_function_tool_failure_error_function(
                function_tool=tool, context=ctx, error=error
            )

        def late(ctx: Any, error: Any) -> Any:
            errors.append(error)
            if tool.timeout_error_function is not None:
                return tool.timeout_error_function(ctx, error)
            return sdk_tool.default_tool_timeout_error_message(
                tool_name=tool.name, timeout_seconds=error.timeout_seconds
            )

        plain = sdk_tool.set_function_tool_failure_error_function(
            copy.copy(tool), failed
        )
        plain.timeout_error_function = late
        value = await sdk_tool.invoke_function_tool(
            function_tool=plain, context=ctx, arguments=arguments
        )
        return value, errors[0] if errors else None

    async def _run_agent(
        self, ctx: ToolContext[Any], arguments: str
    ) -> tuple[Any, Exception | None]:
        """Run an agent that is a tool, with the events of a subagent."""
        run, call_id = self.hookline.run(), ctx.tool_call_id
        if (nested := run.paused.pop(call_id, None)) is None:
            prompt = str(_input_of(arguments).get("input", arguments))
            nested_turn = await run.session.begin_subagent(
                self.subagent.name, prompt, agent_id=call_id, parent=run.hooked
            )
            nested = _Run(run.session, nested_turn)
            nested.inserted = [_user_item(text) for text in nested_turn.additions]
        turn = cast("HookedTurn", nested.hooked)
        ctx.run_config = self.hookline.guard(ctx.run_config)
        while not turn.refused:
            _nested.set((call_id, nested))
            value, error = await self._call(ctx, arguments)
            if isinstance(error, StoppedByHook):
                value, error = error.reason, None
            if isinstance(error, _UnseenModelError):  # for a person, not for a model
                raise error
            if turn.stopped:
                break
            rejection = None
            if _is_paused(ctx):
                run.paused[call_id] = nested
            elif error is None and nested.ended is None:
                rejection = await turn.finish(str(value))
            if rejection is None and not turn.refused:
                return value, error
            answer_item = {"role": "assistant", "content": str(value)}
            earlier_items = [] if turn.clear_context else nested.inserted
            nested.inserted = [*earlier_items, answer_item, _user_item(rejection or "")]
        return turn.reason or BLOCKED_BY_HOOK, None

    async def _text(self, ctx: Any, text: str) -> str:
        """A text that the SDK does not check against the output schema of the tool."""
        if self.plain.output_json_schema is not None:
            # The SDK's own mark of a failure that it has handled; its text is not used.
            await sdk_tool.maybe_invoke_function_tool_failure_error_function(
                function_tool=sdk_tool.set_function_tool_failure_error_function(
                    copy.copy(self.plain)
                ),
                context=ctx,
                error=asyncio.CancelledError(),
            )
        return text


def _is_paused(ctx: ToolContext[Any]) -> bool:
    """Whether the agent that is a tool waits for a person's approval."""
    if ctx.tool_call is None:
        return False
    scope = agent_tool_state.get_agent_tool_state_scope(ctx)
    result = agent_tool_state.peek_agent_tool_run_result(ctx.tool_call, scope_id=scope)
    return bool(getattr(result, "interruptions", None))


def _unless_refused(input_filter: Any) -> Any:
    """A filter of handoffs that does not run where hooks refused the handoff."""

    def filtered(data: Any) -> Any:
        run = _current.get()
        is_refused = run is not None and run.is_transfer_refused
        return data if is_refused else input_filter(data)

    return input_filter and filtered


def _user_item(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _prompt_at(items: Any) -> int:
    """Where the last message of the user is."""
    roles = [item.get("role") if isinstance(item, dict) else None for item in items]
    return max((at for at, role in enumerate(roles) if role == "user"), default=0)


def _prompt_of(items: Any) -> str:
    """The text of what the user said last."""
    if isinstance(items, str) or not items:
        return items or ""
    item = items[_prompt_at(items)]
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or [] if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


class _Wrapper:
    """Looks like what it wraps: the SDK calls more than the interface."""

    def __init__(
        self, inner: Any, hooks: _Hooks, provider: sdk.ModelProvider | None = None
    ) -> None:
        self.inner, self.hooks, self.provider = inner, hooks, provider

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # a copy in the making
            raise AttributeError(name)
        return getattr(self.inner, name)


@sdk.ModelProvider.register
class _HookedProvider(_Wrapper):
    """Models by name, hooked."""

    def get_model(self, model_name: str | None) -> Any:
        model = self.inner.get_model(model_name)
        if isinstance(model, _HookedModel):
            return model
        return _HookedModel(model, self.hooks, self.inner)


_PARAMETERS = inspect.signature(Model.get_response)


@Model.register
class _HookedModel(_Wrapper):
    """A model whose calls obey hooks."""

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model, if hooks allow it."""
        call = _ModelCall(self, *args, **kwargs)
        await call.begin()
        if call.answer is not None:
            return sdk.ModelResponse(call.answer, sdk.Usage(), None)
        response = await call.model.get_response(**call.arguments)
        return replace(response, output=await call.finish(response.output))

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Call the model, if hooks allow it, and show what they leave."""
        call = _ModelCall(self, *args, **kwargs)
        await call.begin()
        if call.answer is not None:
            for event in _stream_of(_response_with(call.answer)):
                yield event
            return
        stream = call.model.stream_response(**call.arguments)
        try:
            async for event in stream:
                for visible_event in await call.visible(event):
                    yield visible_event
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()

    def renamed(self, name: Any) -> Model:
        """The model that a hook named instead."""
        if self.provider is not None:
            return self.provider.get_model(name)
        if not isinstance(getattr(self.inner, "model", None), str):
            raise sdk.UserError(
                f"a hook wants model {name!r}: this one has no other name"
            )
        other = copy.copy(self.inner)
        other.model = name
        return cast("Model", other)


class _ModelCall:
    """One call of a model by the SDK."""

    def __init__(self, hooked: _HookedModel, *args: Any, **kwargs: Any) -> None:
        self.run, self.hooked, self.model = hooked.hooks.run(), hooked, hooked.inner
        self.arguments = dict(_PARAMETERS.bind(hooked, *args, **kwargs).arguments)
        """For the model, after the hooks."""
        del self.arguments["self"]
        self.answer: list[Any] | None = None
        """Of hooks, in the model's place."""
        # What is offered is not all that the SDK would run.
        self._handoffs = self.arguments["handoffs"]
        self._call: HookedModelCall
        self._held_events: list[Any] = []
        self._items: list[Any] = []
        self._holds_all = self._holds_calls = self._is_rewritten = False

    async def begin(self) -> None:
        """Fire the hooks before the call, and apply what they say."""
        arguments, run = self.arguments, self.run
        run.is_model_hooked = True
        if run.inserted:
            items = sdk.ItemHelpers.input_to_new_input_list(arguments["input"])
            run.insert_at = len(items) if run.insert_at is None else run.insert_at
            items[run.insert_at : run.insert_at] = run.inserted
            arguments["input"] = items
        name, settings = getattr(self.model, "model", ""), arguments["model_settings"]
        offered = [tool.name for tool in arguments["tools"]]
        offered += [handoff.tool_name for handoff in self._handoffs]
        values = {key: getattr(settings, name) for key, name in _SETTINGS.items()}
        # The call as a request of the Responses API.
        request = {
            "model": name if isinstance(name, str) else "",
            "input": arguments["input"],
            "tools": [{"type": "function", "name": name} for name in offered],
            **{k: v for k, v in values.items() if isinstance(v, str | float | int)},
        }
        call = self._call = await run.hooked.begin_model(
            request, available_tools=offered, translator=_TRANSLATOR
        )
        if (answer := answer_of(call)) is not None:
            self.answer = self._output_of(answer)
            return
        self._apply(request, call)
        self._holds_all = await run.session.has_hooks("AfterModel")
        self._holds_calls = await run.session.has_hooks("BeforeTool")

    def _apply(self, request: dict[str, Any], call: HookedModelCall) -> None:
        """Give the model what hooks changed and left of the request."""
        arguments, changed, allowed = self.arguments, call.request, call.allowed_names
        arguments["input"] = changed["input"]
        settings = {
            sdk_name: changed.get(name)
            for name, sdk_name in _SETTINGS.items()
            if changed.get(name) != request.get(name)
        }
        if isinstance(choice := settings.get("tool_choice"), dict):
            # As the SDK has it; the names are in the tools that are offered.
            settings["tool_choice"] = choice.get("name") or choice.get("mode")
        if changed.get("model") != request["model"]:
            self.model = self.hooked.renamed(changed.get("model"))
        if allowed is not None:
            tools, handoffs = arguments["tools"], self._handoffs
            arguments["tools"] = [tool for tool in tools if tool.name in allowed]
            arguments["handoffs"] = [h for h in handoffs if h.tool_name in allowed]
            if not arguments["tools"] and not arguments["handoffs"]:
                # A service rejects a choice where there is nothing to choose from.
                settings["tool_choice"] = None
        if settings:
            arguments["model_settings"] = replace(
                arguments["model_settings"], **settings
            )

    def _output_of(self, answer: Answer) -> list[Any]:
        """What hooks say in the place of an answer; it may be the end of the run."""
        if answer.is_ending:
            self.run.ended = answer.text
            schema = self.arguments["output_schema"]
            if schema is not None and not schema.is_plain_text():
                try:
                    schema.validate_json(answer.text)
                except sdk.ModelBehaviorError:
                    raise StoppedByHook(answer.text) from None
        return [_message(answer.text)]

    async def finish(self, output: list[Any]) -> list[Any]:
        """Fire the hooks after the call; the items of the answer to go on with."""
        outcome = await self._call.finish({"object": "response", "output": output})
        answer = changed_answer(outcome)
        self._is_rewritten = answer is not None
        if answer is not None:
            output = self._output_of(answer)
        return list(await self.run.begin_calls(output, self._handoffs))

    async def visible(self, event: Any) -> list[Any]:
        """The events to pass on for one event of the model's stream."""
        if isinstance(event, api.ResponseCompletedEvent):
            response, events = event.response, self._held_events
            # Some services leave the items out of the last event.
            before = response.output = list(response.output or self._items)
            after = response.output = await self.finish(before)
            if self._is_rewritten:
                return list(_stream_of(response))
            if not all(map(operator.is_, before, after)):
                others = [
                    held_event for held_event in events if not _is_call(held_event)
                ]
                events = [*others, *filter(_is_call, _stream_of(response))]
            return [*events, event]
        if isinstance(event, api.ResponseOutputItemDoneEvent):
            self._items.append(event.item)
        if getattr(event, "type", "") in ("response.incomplete", "response.failed"):
            # Hooks have not seen it whole, so that nobody sees any of it.
            whole = event.response and event.response.model_copy(update={"output": []})
            empty = event.model_copy(update={"response": whole})
            return [empty if self._holds_all else event]
        if self._holds_all or (self._holds_calls and _is_call(event)):
            self._held_events.append(event)
            return []
        return [event]


def _is_call(event: Any) -> bool:
    """Whether an event of a stream shows a call of a function."""
    kind = str(getattr(event, "type", ""))
    is_item = isinstance(getattr(event, "item", None), api.ResponseFunctionToolCall)
    return is_item or kind.startswith("response.function_call")


def _message(text: str) -> Any:
    part = api.ResponseOutputText(text=text, type="output_text", annotations=[])
    return api.ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, content=[part], role="assistant", status="completed",
        type="message",
    )  # fmt: skip


def _response_with(output: list[Any]) -> api.Response:
    return api.Response.model_construct(
        id=FAKE_RESPONSES_ID, created_at=0, model="", object="response",
        output=output, parallel_tool_calls=True, tool_choice="auto", tools=[],
        status="completed",
    )  # fmt: skip


def _stream_of(response: api.Response) -> Iterator[Any]:
    """The events of a stream that gives this response."""
    numbers = itertools.count()

    def event(kind: Any, name: str, **parts: Any) -> Any:
        name, number = f"response.{name}", next(numbers)
        return kind.model_construct(type=name, sequence_number=number, **parts)

    for at, item in enumerate(response.output):
        place: dict[str, Any] = {"output_index": at, "item": item}
        yield event(api.ResponseOutputItemAddedEvent, "output_item.added", **place)
        for index, part in enumerate(getattr(item, "content", None) or []):
            yield event(
                api.ResponseTextDeltaEvent,
                "output_text.delta",
                item_id=getattr(item, "id", None),
                output_index=at,
                content_index=index,
                logprobs=[],
                delta=getattr(part, "text", ""),
            )
        yield event(api.ResponseOutputItemDoneEvent, "output_item.done", **place)
    yield event(api.ResponseCompletedEvent, "completed", response=response)


class HooklineRunner:
    """Runs hooked agents as ``Runner`` does, with the hooks of the turn.

    The starting agent, its input and all options are those of ``Runner``, by its names.
    """

    @classmethod
    async def run(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> sdk.RunResult:
        """Run an agent; the options are those of ``Runner.run``."""
        turn = _Turn(starting_agent, input, options)
        while await turn.goes_on():
            token = _current.set(turn.run)
            try:
                turn.result = await sdk.Runner.run(
                    turn.agent, turn.input, **turn.options
                )
            except sdk.AgentsException as error:
                turn.result = turn.ended(error)
            finally:
                _current.reset(token)
        return cast("sdk.RunResult", turn.result)

    @classmethod
    def run_sync(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> sdk.RunResult:
        """Run an agent from plain code; the options are those of ``Runner.run``."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError("run_sync() cannot wait in a running loop: use run()")
        turn = _Turn(starting_agent, input, options)
        while turn.hooks.session.run_sync(turn.goes_on()):
            try:
                turn.result = sdk.Runner.run_sync(
                    turn.agent, turn.input, **turn.options
                )
            except sdk.AgentsException as error:
                turn.result = turn.ended(error)
        return cast("sdk.RunResult", turn.result)

    @classmethod
    def run_streamed(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> sdk.RunResultStreaming:
        """Run an agent while ``stream_events()`` of the result is read."""
        result: _Streamed = _result(
            _Streamed,
            input=input if isinstance(input, str | list) else [],
            context_wrapper=_wrapped(options.get("context")),
            max_turns=options.get("max_turns", DEFAULT_MAX_TURNS),
            current_agent=starting_agent,
            current_turn=0,
            trace=None,
            _current_agent_output_schema=None,
        )
        result.__dict__["hookline_turn"] = _Turn(starting_agent, input, options)
        return result


class _Turn:
    """One turn: attempts of the SDK at an answer that hooks accept."""

    def __init__(self, agent: Any, run_input: Any, options: dict[str, Any]) -> None:
        if not isinstance(agent, _HookedAgent):
            raise sdk.UserError(
                "HooklineRunner runs hooked agents: hooked_agent(agent, config)"
            )
        self.agent: Any = agent
        self.hooks, self.input, self.options = agent.hookline, run_input, options
        self.run: _Run | None = None
        self.result: Any = None

    async def goes_on(self) -> bool:
        """Fire the hooks of the turn; whether the SDK shall run the agent (again)."""
        run, result = self.run, self.result
        if run is None:
            return await self._begin()
        if run.end_reason is not None:
            result.final_output = run.end_reason
        elif not result.interruptions and not getattr(result, "is_cancelled", False):
            for turn in (*reversed(run.successors), cast("HookedTurn", run.hooked)):
                rejection = await turn.finish(_answer_of(result))
                if turn.refused:
                    result.final_output = turn.reason
                    return False
                if rejection is not None:
                    await self._continue(rejection, clear=turn.clear_context)
                    return True
        return False

    async def _begin(self) -> bool:
        """Fire BeforeAgent, or go on with the turn of a state from some process."""
        options = self.options
        options |= {"run_config": self.hooks.guard(options.get("run_config"))}
        try:
            memory_id = getattr(options.get("session"), "session_id", None)
        except ValueError:  # OpenAI's own have an id after their first request
            memory_id = None
        group_id = options["run_config"].group_id
        conversation_id = options.get("conversation_id") or memory_id or group_id
        session = self.hooks.session
        if conversation_id:
            session = session.view(conversation_id)
        run_input = self.input
        if isinstance(run_input, sdk.RunState):
            context = getattr(run_input, "_context", None)
            self.run = _run_of(context)
            if self.run is None or self.run.is_plain:
                prompt = _prompt_of(getattr(run_input, "_original_input", ""))
                self.run = _Run(session, HookedTurn(session, prompt))
        else:
            turn = await session.begin_turn(_prompt_of(run_input))
            self.run = _Run(session, turn)
            context = options["context"] = _wrapped(options.get("context"))
            if turn.refused:
                is_text = isinstance(run_input, str)
                self.result = _result(
                    sdk.RunResult,
                    context_wrapper=context,
                    # The prompt is in no history.
                    input=[] if is_text else run_input[: _prompt_at(run_input)],
                    final_output=turn.reason,
                    _last_agent=self.agent,
                )
                return False
            if turn.additions and isinstance(run_input, list):
                self.input = [*run_input, _user_item(joined(turn.additions))]
            elif turn.additions:
                self.input = turn.prompt
        if context is not None:
            context.__dict__["hookline_run"] = self.run
        return True

    async def _continue(self, message: str, *, clear: bool) -> None:
        """Go on with a message after an answer."""
        result, options = self.result, self.options
        self.agent, self.input = result.last_agent, [_user_item(message)]
        memory = options.get("session")
        chains = ("previous_response_id", "auto_previous_response_id")
        options["context"] = result.context_wrapper
        if clear:
            options["previous_response_id"] = None
            if memory is not None:
                await memory.clear_session()
        elif any(options.get(name) for name in chains):
            options["previous_response_id"] = result.last_response_id
        elif not memory and not options.get("conversation_id"):
            self.input = [*result.to_input_list(), *self.input]

    def ended(self, error: sdk.AgentsException) -> sdk.RunResult:
        """The result of a run that a hook ended; other errors are raised again."""
        data = error.run_data
        if self.run is None or self.run.end_reason is None or data is None:
            raise error
        names = {field.name for field in fields(data)} & {*_RESULT_FIELDS}
        parts = {name: getattr(data, name) for name in names}
        result = _result(sdk.RunResult, **parts, _last_agent=data.last_agent)
        return cast("sdk.RunResult", result)


_RESULT_FIELDS = [field.name for field in fields(RunResultBase) if field.init]


def _result(kind: type, **parts: Any) -> Any:
    empty: dict[str, Any] = {name: [] for name in _RESULT_FIELDS}
    return kind(**empty | {"final_output": None} | parts)


def _wrapped(context: Any) -> RunContextWrapper[Any]:
    is_wrapped = isinstance(context, RunContextWrapper)
    return context if is_wrapped else RunContextWrapper(context=context)


def _answer_of(result: Any) -> str:
    """The text of the final output."""
    output = result.final_output
    if isinstance(output, str) or output is None:
        return output or ""
    return sdk.ItemHelpers.text_message_outputs(result.new_items[-1:]) or str(output)


class _Streamed(sdk.RunResultStreaming):
    """A turn that runs while its events are read.

    It has the fields of the SDK's own result of the present attempt.
    """

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller wants no more."""
        return self._cancel_mode != "none"

    async def stream_events(self) -> AsyncIterator[Any]:
        """The events of all attempts; reading them is what runs the turn."""
        turn: Any = self.__dict__.pop("hookline_turn", None)
        while turn is not None and not self.is_cancelled and await turn.goes_on():
            inner = sdk.Runner.run_streamed(turn.agent, turn.input, **turn.options)
            # A result lets go of its agents when it is collected: keep this one.
            inner.__dict__["hookline_inner"] = inner
            self.__dict__, turn.result = inner.__dict__, self
            try:
                async for event in super().stream_events():
                    yield event
            except sdk.AgentsException as error:
                turn.ended(error)
        self.is_complete = True
        if turn is not None and turn.result not in (None, self):
            self.input, self.final_output = turn.result.input, turn.result.final_output
            reason_response = _response_with([_message(self.final_output or "")])
            for event in _stream_of(reason_response):
                yield sdk.RawResponsesStreamEvent(data=event)
