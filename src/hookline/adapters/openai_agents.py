"""Hooks in the OpenAI Agents SDK: ``hooked_agent(agent, config)``.

A hooked agent is a copy whose tools, handoffs, subagents and model obey the hooks in
every run; ``HooklineRunner`` adds the hooks of the turn. What a BeforeTool hook makes
of a call is in the model's answer before the SDK reads it, so that the SDK asks a
person about it, runs it and records it.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import operator
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import CellType, FunctionType
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, ref

from hookline.agent import (
    ConfigOrSession,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    session_of,
)
from hookline.errors import MissingExtraError
from hookline.translators.openai import OpenAITranslator

try:
    from agents import (
        Agent,
        AgentsException,
        FunctionTool,
        Handoff,
        ItemHelpers,
        Model,
        ModelBehaviorError,
        ModelProvider,
        ModelResponse,
        MultiProvider,
        RawResponsesStreamEvent,
        RunConfig,
        RunContextWrapper,
        Runner,
        RunResult,
        RunResultStreaming,
        RunState,
        Tool,
        ToolTimeoutError,
        Usage,
        UserError,
        handoff,
    )
    from agents.agent_tool_state import (
        get_agent_tool_state_scope,
        peek_agent_tool_run_result,
    )
    from agents.models.fake_id import FAKE_RESPONSES_ID
    from agents.result import RunResultBase
    from agents.run import DEFAULT_MAX_TURNS
    from agents.tool import (
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        default_tool_timeout_error_message,
        get_function_tool_origin,
        invoke_function_tool,
        maybe_invoke_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
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
except ImportError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

T = TypeVar("T")
_NAME = "openai-agents"
_UNUSED = dict.fromkeys(
    ("SessionStart", "SessionEnd", "PreCompress"), "the SDK has no such event"
)
_NO_TURN = dict.fromkeys(
    ("BeforeAgent", "AfterAgent"), "run the agent with HooklineRunner instead of Runner"
)
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


def hooked_agent(agent: Agent[T], config: ConfigOrSession) -> Agent[T]:
    """Copy an agent so that its tools, handoffs, subagents and model obey hooks."""
    session = session_of(config)
    if isinstance(agent, _HookedAgent):
        if agent.hookline.session.config is session.config:
            return agent
        raise UserError(f"agent {agent.name!r} is hooked with another config already")
    return _Hooks(session).agent(agent)


class _Hooks:
    """What hooked agents, tools and models of one ``hooked_agent`` call share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.provider: ModelProvider | None = None
        self._agents: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        self._classes: dict[type, type] = {}

    def agent(self, agent: Agent[T]) -> Agent[T]:
        """The hooked copy of an agent, the same one each time."""
        if isinstance(agent, _HookedAgent):
            return agent
        if id(agent) not in self._agents:
            hooked = self._copy(agent, _HookedAgent)
            # Before its parts: agents hand off to each other in circles.
            self._agents[id(agent)] = agent, hooked
            hooked.hook_parts()
        return self._agents[id(agent)][1]

    def tool(self, tool: Tool) -> Tool:
        """A function tool whose calls obey hooks; other tools as they are."""
        if isinstance(tool, _HookedTool) or not isinstance(tool, FunctionTool):
            return tool
        hooked = self._copy(tool, _HookedTool)
        if tool._is_agent_tool:
            hooked._agent_instance = self.agent(tool._agent_instance)
        hooked.on_invoke_tool = partial(_invoke, self, tool, hooked._agent_instance)
        hooked.plain_invoke = tool.on_invoke_tool
        hooked.timeout_seconds = None  # ``_run_tool`` keeps it, without the hooks
        return cast("Tool", hooked)

    def handoff(self, given: Any, source: Agent[Any]) -> Handoff[Any, Any]:
        """A handoff that obeys hooks, to a hooked agent."""
        if isinstance(given, _HookedHandoff):
            return given
        plain = given if isinstance(given, Handoff) else handoff(self.agent(given))
        hooked = self._copy(plain, _HookedHandoff)
        hooked.on_invoke_handoff = partial(_hand_off, self, plain, ref(source))
        hooked.input_filter = _unless_refused(plain.input_filter)
        target = plain._agent_ref and plain._agent_ref()
        if isinstance(target, Agent):
            hooked._agent_ref = ref(self.agent(target))
        return hooked

    def model(self, model: Model, provider: ModelProvider | None = None) -> Model:
        """A model whose calls obey hooks."""
        if isinstance(model, _HookedModel):
            return model
        return _HookedModel(self, model, provider)

    def guard(self, given: RunConfig | dict[str, Any] | None) -> RunConfig:
        """A run config whose models obey hooks."""
        if given is None:
            self.provider = self.provider or MultiProvider()
            given = RunConfig(model_provider=self.provider)
        config = RunConfig(**given) if isinstance(given, dict) else given
        provider, model = config.model_provider, config.model
        if not isinstance(provider, _HookedProvider):
            provider = _HookedProvider(self, provider)
        if isinstance(model, Model):
            model = self.model(model)
        filter_ = _unless_refused(config.handoff_input_filter)
        return replace(
            config, model=model, model_provider=provider, handoff_input_filter=filter_
        )

    def _copy(self, value: Any, mixin: type) -> Any:
        """A copy of a subclass, so that what the SDK copies of it stays hooked."""
        kind = type(value)
        if kind not in self._classes:
            name = f"Hooked{kind.__name__}"
            self._classes[kind] = type(name, (mixin, kind), {"hookline": self})
        copied = object.__new__(self._classes[kind])
        copied.__dict__.update(value.__dict__)
        return copied

    def run(self) -> _Run:
        """The run that this code belongs to."""
        found = _current.get()
        if found is not None and found.session.config is self.session.config:
            return found
        return _Run(self.session, self.session.begin_run(), is_plain=True)

    def run_of(self, context: RunContextWrapper[Any]) -> _Run:
        """The run of a context, and from now on the one of this task."""
        found = _runs.get(context)
        if found is None:
            call_id, nested = _nested.get()
            if nested is None or getattr(context, "tool_call_id", None) != call_id:
                session = self.run().session
                nested = _Run(session, session.begin_run(), is_plain=True)
            found = _runs[context] = nested
        _current.set(found)
        return found

    def session_for(self, options: dict[str, Any]) -> Session:
        """The session of a conversation, by the id that the SDK has for it."""
        config = options.get("run_config")
        group = config.get("group_id") if isinstance(config, dict) else config
        ids = (
            options.get("conversation_id"),
            _session_id(options.get("session")),
            getattr(group, "group_id", group if isinstance(group, str) else None),
        )
        found = next((one for one in ids if one), None)
        return self.session if found is None else self.session.view(found)


def _session_id(memory: Any) -> str | None:
    try:
        return getattr(memory, "session_id", None)
    except ValueError:  # OpenAI's own sessions have an id after their first request
        return None


@dataclass(eq=False)
class _Run:
    """One run of the SDK with all agents that take part; a subagent has its own."""

    session: Session
    run: HookedRun
    is_plain: bool = False
    """Whether nobody fires the events of a turn."""
    ended: str | None = None
    """Why a hook ended the run without an answer."""
    tools: dict[str, FunctionTool] = field(default_factory=dict)
    calls: dict[str, tuple[str, HookedToolCall]] = field(default_factory=dict)
    """The calls of the last answer by id, with their arguments after the hooks."""
    handoffs: dict[str, HookedToolCall] = field(default_factory=dict)
    """The handoffs of the last answer by name."""
    transfer: str | None = None
    """What the model is told in place of the SDK's message about a handoff."""
    is_refused: bool = False
    """Whether hooks refused the last handoff."""
    subagents: list[HookedTurn] = field(default_factory=list)
    """The turns of agents that took over."""
    inserted: list[Any] = field(default_factory=list)
    """Items for each request, after the input of the run."""
    insert_at: int | None = None

    @property
    def end_reason(self) -> str | None:
        """Why a hook ended the run."""
        return self.run.stop_reason or self.ended

    async def begin_calls(self, output: Iterable[Any], handoffs: list[Any]) -> Any:
        """Fire BeforeTool for all calls of an answer; its items with their changes."""
        names = {one.tool_name for one in handoffs}
        return await asyncio.gather(*(self._begin(item, names) for item in output))

    async def _begin(self, item: Any, handoffs: set[str]) -> Any:
        if not isinstance(item, ResponseFunctionToolCall):
            return item
        if item.name in handoffs:
            call = await self.run.begin_tool(item.name, _input_of(item.arguments))
            self.handoffs[item.name] = call
        elif item.name in self.tools:
            tool = self.tools[item.name]
            call = await self.begin_tool(tool, item.arguments, defer=True)
        else:
            return item  # the SDK knows no such tool
        arguments = _arguments_of(call, item.arguments)
        self.calls[item.call_id] = arguments, call
        if arguments == item.arguments:
            return item
        return item.model_copy(update={"arguments": arguments})

    async def begin_tool(
        self, tool: FunctionTool, arguments: str, **options: Any
    ) -> HookedToolCall:
        origin = get_function_tool_origin(tool)
        server = origin and origin.mcp_server_name
        mcp = {"server_name": server, "tool_name": tool.name} if server else None
        return await self.run.begin_tool(
            tool.name, _input_of(arguments), mcp_context=mcp, **options
        )

    async def admitted(
        self, tool: FunctionTool, ctx: ToolContext[Any], arguments: str
    ) -> HookedToolCall:
        """The call that the SDK makes now, if need be with a person's approval."""
        began, call = self.calls.pop(ctx.tool_call_id, (None, None))
        if call is not None and began == arguments:
            stopped = self.run.stop_reason is not None and not call.refused
            if call.question is None and not stopped:
                return call
        # The SDK makes a call that hooks ask about only after a person's approval.
        approved = ctx.is_tool_approved(tool.name, ctx.tool_call_id)
        return await self.begin_tool(tool, arguments, confirm=approved or None)

    def asks(self, name: str) -> bool:
        """Whether a hook asks about a call of a tool."""
        return any(
            call.question is not None and call.tool_name == name
            for _, call in self.calls.values()
        )


_runs: WeakKeyDictionary[RunContextWrapper[Any], _Run] = WeakKeyDictionary()
_nested: ContextVar[tuple[str, _Run | None]] = ContextVar(
    "hookline_nested_run", default=("", None)
)
"""For the run of an agent that is a tool, by the id of the call."""
_current: ContextVar[_Run | None] = ContextVar("hookline_run", default=None)


class _HookedAgent:
    """Mixed into the class of a hooked agent."""

    hookline: _Hooks

    def __post_init__(self: Any) -> None:
        super().__post_init__()  # type: ignore[misc]
        self.hook_parts()

    def hook_parts(self: Any) -> None:
        hooks = self.hookline
        self.tools = [hooks.tool(tool) for tool in self.tools]
        self.handoffs = [hooks.handoff(one, self) for one in self.handoffs]
        if isinstance(self.model, Model):
            self.model = hooks.model(self.model)

    async def get_all_tools(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """All tools, with those that came later or from MCP servers hooked too."""
        hooks, run = self.hookline, self.hookline.run_of(run_context)
        found = await super().get_all_tools(run_context)  # type: ignore[misc]
        tools = [hooks.tool(tool) for tool in found]
        run.tools = {one.name: one for one in tools if isinstance(one, _HookedTool)}
        if not all(isinstance(handoff_, _HookedHandoff) for handoff_ in self.handoffs):
            self.handoffs = [hooks.handoff(one, self) for one in self.handoffs]
        if isinstance(self.model, Model):
            self.model = hooks.model(self.model)
        unseen = [one.name for one in tools if not isinstance(one, FunctionTool)]
        if unseen:
            reason = f"it does not see these tools: {', '.join(unseen)}"
            await run.session.warn_ineffective(
                _NAME, {"BeforeTool": reason, "AfterTool": reason}
            )
        return tools

    async def get_system_prompt(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """The instructions; refuses a run that would call a model without hooks."""
        run = self.hookline.run_of(run_context)
        await run.session.warn_ineffective(_NAME, _UNUSED)
        if run.is_plain:
            await run.session.warn_ineffective(_NAME, _NO_TURN)
            if not isinstance(self.model, Model) and await _has_model_hooks(run):
                raise UserError(
                    f"the model of agent {self.name!r} is given by name, so that hooks "
                    "cannot see it here: use HooklineRunner, or give a Model object"
                )
        return await super().get_system_prompt(run_context)  # type: ignore[misc]


async def _has_model_hooks(run: _Run) -> bool:
    events = ("BeforeModel", "AfterModel", "BeforeToolSelection")
    return any([await run.session.has_hooks(event) for event in events])


class _HookedTool:
    """Mixed into the class of a hooked function tool."""

    hookline: _Hooks

    @property
    def needs_approval(self: Any) -> Any:
        """What the tool says itself, unless a hook asks about a call."""
        own = self.__dict__["needs_approval"]
        # A function would have the SDK ask about arguments that it cannot parse.
        asks = self.hookline.run().asks(self.name)
        return partial(_needs_approval, self, own) if asks or callable(own) else own

    @needs_approval.setter
    def needs_approval(self: Any, value: Any) -> None:
        self.__dict__["needs_approval"] = value


async def _needs_approval(
    tool: Any, own: Any, context: RunContextWrapper[Any], params: Any, call_id: str
) -> bool:
    arguments, call = tool.hookline.run().calls.get(call_id, (None, None))
    if call is not None and call.question is not None:
        return True
    if not callable(own):
        return bool(own)
    prepare = getattr(tool.plain_invoke, "prepare_arguments", None)
    prepared = prepare and prepare(arguments or json.dumps(params), tool.name)
    # As the SDK: a policy decides only about arguments that the tool gets as they are.
    if prepared is not None and not prepared.unchanged:
        return True
    decision = own(context, params, call_id)
    return bool(await decision if inspect.isawaitable(decision) else decision)


class _HookedHandoff:
    """Mixed into the class of a hooked handoff."""

    hookline: _Hooks

    def get_transfer_message(self: Any, agent: Agent[Any]) -> str:
        """What the model is told about the handoff."""
        said = self.hookline.run().transfer
        own = super().get_transfer_message(agent)  # type: ignore[misc]
        return own if said is None else said


async def _hand_off(
    hooks: _Hooks,
    plain: Handoff[Any, Any],
    source: Callable[[], Agent[Any] | None],
    ctx: RunContextWrapper[Any],
    arguments: str,
) -> Any:
    """Hand off if hooks allow it; else the same agent goes on, with the reason."""
    run = hooks.run()
    run.transfer, run.is_refused = None, False
    given = _input_of(arguments)
    call = run.handoffs.pop(plain.tool_name, None)
    if call is None or (run.run.stop_reason and not call.refused):
        call = await run.run.begin_tool(plain.tool_name, given)
    turn = None
    if not call.refused:
        prompt = _prompt_of(ctx.turn_input)
        turn = await run.session.begin_subagent(plain.agent_name, prompt)
    if turn is None or turn.refused:
        run.is_refused = True
        run.transfer = (
            call.message if turn is None else turn.reason or "Blocked by hook"
        )
        if turn is not None and turn.stopped:
            run.run.stop(turn.stop_reason)
        return source()
    agent = hooks.agent(await plain.on_invoke_handoff(ctx, arguments))
    outcome = await call.finish(plain.get_transfer_message(agent))
    run.transfer = "\n\n".join([outcome.text, *turn.additions])
    run.subagents.append(turn)
    return agent


def _unless_refused(input_filter: Any) -> Any:
    """A handoff's filter, which does not run where the handoff did not happen."""
    if input_filter is None or isinstance(input_filter, _Filter):
        return input_filter
    return _Filter(input_filter)


@dataclass(frozen=True)
class _Filter:
    inner: Callable[[Any], Any]

    def __call__(self, data: Any) -> Any:
        run = _current.get()
        return data if run is not None and run.is_refused else self.inner(data)


async def _invoke(
    hooks: _Hooks,
    tool: FunctionTool,
    agent: Agent[Any] | None,
    ctx: ToolContext[Any],
    arguments: str,
) -> Any:
    """Run a tool as its hooks allow."""
    run = hooks.run()
    call = await run.admitted(tool, ctx, arguments)
    if call.refused:
        return await _text(tool, ctx, call.message)
    used = _arguments_of(call, arguments)
    try:
        if agent is None:
            value = await _run_tool(tool, ctx, used)
        else:
            value = await _run_subagent(hooks, run, tool, agent, ctx, used)
    # The tool is foreign code: hooks see its failure, then the SDK.
    except Exception as error:  # noqa: BLE001
        return await _failed(tool, ctx, call, error)
    if _is_paused(ctx):
        run.calls[ctx.tool_call_id] = arguments, call
        return value
    return await _given(tool, ctx, await call.finish(value))


async def _run_tool(tool: FunctionTool, ctx: ToolContext[Any], arguments: str) -> Any:
    """Run a tool with its timeout; whatever fails is raised."""
    plain = set_function_tool_failure_error_function(copy.copy(tool), None)
    plain.timeout_behavior = "raise_exception"
    return await invoke_function_tool(
        function_tool=plain, context=ctx, arguments=arguments
    )


async def _run_subagent(
    hooks: _Hooks,
    run: _Run,
    tool: FunctionTool,
    agent: Agent[Any],
    ctx: ToolContext[Any],
    arguments: str,
) -> Any:
    """Run an agent that is a tool, with the events of a subagent."""
    given = _input_of(arguments).get("input")
    prompt = given if isinstance(given, str) else arguments
    turn = await run.session.begin_subagent(
        agent.name, prompt, agent_id=ctx.tool_call_id
    )
    if turn.refused:
        return _ended_subagent(run, turn)
    nested = _Run(run.session, turn, inserted=[_user(text) for text in turn.additions])
    ctx.run_config = hooks.guard(ctx.run_config)
    plain = _with_agent(hooks, tool, agent)
    while True:
        _nested.set((ctx.tool_call_id, nested))
        try:
            value = await _run_tool(plain, ctx, arguments)
        except StoppedByHook as stop:
            value = stop.reason
        if turn.stopped:
            return _ended_subagent(run, turn)
        if _is_paused(ctx) or nested.ended is not None:
            return value
        answer = value if isinstance(value, str) else str(value)
        again = await turn.finish(answer)
        if turn.refused:
            return _ended_subagent(run, turn)
        if again is None:
            return value
        if turn.clear_context:
            nested.inserted = []
        nested.inserted += [{"role": "assistant", "content": answer}, _user(again)]


def _ended_subagent(run: _Run, turn: HookedTurn) -> str:
    if turn.stopped:
        run.run.stop(turn.stop_reason)
    return turn.reason or "Blocked by hook"


def _with_agent(hooks: _Hooks, tool: FunctionTool, agent: Agent[Any]) -> FunctionTool:
    """A copy of an agent's tool that runs the hooked agent."""
    if tool._agent_instance is agent:
        return tool
    # ``as_tool`` gives no other access to the agent that its function runs.
    work = getattr(tool.on_invoke_tool, "_invoke_tool_impl", None)
    names = work.__code__.co_freevars if isinstance(work, FunctionType) else ()
    if work is None or "self" not in names or "run_config" not in names:
        raise UserError(
            f"cannot hook the agent of tool {tool.name!r}: "
            "use hooked_agent(agent, config).as_tool(...)"
        )
    cells = dict(zip(names, work.__closure__ or (), strict=True))
    config = cells["run_config"].cell_contents
    cells["self"] = CellType(agent)
    cells["run_config"] = CellType(config and hooks.guard(config))
    made = FunctionType(
        work.__code__, work.__globals__, work.__name__, None, tuple(cells.values())
    )
    plain = copy.copy(tool)
    plain.on_invoke_tool = made
    return plain


def _is_paused(ctx: ToolContext[Any]) -> bool:
    """Whether the agent that is a tool waits for a person's approval."""
    if ctx.tool_call is None:
        return False
    result = peek_agent_tool_run_result(
        ctx.tool_call, scope_id=get_agent_tool_state_scope(ctx)
    )
    return bool(getattr(result, "interruptions", None))


async def _failed(
    tool: FunctionTool, ctx: ToolContext[Any], call: HookedToolCall, error: Exception
) -> Any:
    """What the model gets from a tool that raised; or the error, if the tool says so."""
    outcome = await call.finish(error)
    if outcome.withheld or outcome.stop_reason:
        return await _text(tool, ctx, outcome.text)
    message = await _error_message(tool, ctx, error)
    if message is None:
        raise error
    return "\n\n".join([message, *outcome.additions])


async def _error_message(
    tool: FunctionTool, ctx: ToolContext[Any], error: Exception
) -> str | None:
    if isinstance(error, ToolTimeoutError) and tool.timeout_seconds is not None:
        if tool.timeout_behavior == "raise_exception":
            return None
        if tool.timeout_error_function is None:
            await _mark_error(ctx)
            return default_tool_timeout_error_message(
                tool_name=tool.name, timeout_seconds=tool.timeout_seconds
            )
        message = tool.timeout_error_function(ctx, error)
        return str(await message if inspect.isawaitable(message) else message)
    # A tool that was made by hand lets its errors end the run.
    if not hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__"):
        return None
    return await maybe_invoke_function_tool_failure_error_function(
        function_tool=tool, context=ctx, error=error
    )


async def _given(
    tool: FunctionTool, ctx: ToolContext[Any], outcome: ToolOutcome
) -> Any:
    """What the model gets from a tool."""
    content, additions = outcome.content, outcome.additions
    if outcome.withheld or outcome.stop_reason:
        return await _text(tool, ctx, outcome.text)
    if not additions:
        return content
    parts = list(content) if isinstance(content, list | tuple) else [content]
    kinds = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
    added = "\n\n".join(additions)
    if all(isinstance(part, kinds) for part in parts):
        return [*parts, ToolOutputText(text=added)]
    return await _text(tool, ctx, f"{content}\n\n{added}")


async def _text(tool: FunctionTool, ctx: ToolContext[Any], text: str) -> str:
    """A text that the SDK does not check against the tool's output schema."""
    if tool.output_json_schema is not None:
        await _mark_error(ctx)
    return text


async def _mark_error(ctx: ToolContext[Any]) -> None:
    await maybe_invoke_function_tool_failure_error_function(
        function_tool=_DEFAULTS, context=ctx, error=asyncio.CancelledError()
    )


async def _nothing(_ctx: ToolContext[Any], _arguments: str) -> None:
    return None


_DEFAULTS = FunctionTool("none", "", {}, _nothing, strict_json_schema=False)
"""A tool with the SDK's default way to handle failures."""


def _input_of(arguments: str) -> dict[str, Any]:
    """The input of a call; arguments that are no JSON object as they are."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"arguments": arguments}


def _arguments_of(call: HookedToolCall, given: str) -> str:
    """The arguments to run with: those given unless hooks changed them."""
    if call.tool_input == _input_of(given):
        return given
    return json.dumps(call.tool_input, ensure_ascii=False)


class _HookedProvider(ModelProvider):
    """Models by name, hooked."""

    def __init__(self, hooks: _Hooks, inner: ModelProvider) -> None:
        self.hooks, self.inner = hooks, inner

    def get_model(self, model_name: str | None) -> Model:
        return self.hooks.model(self.inner.get_model(model_name), self.inner)

    async def aclose(self) -> None:
        await self.inner.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


_ARGUMENTS = inspect.signature(Model.get_response)


class _HookedModel(Model):
    """A model whose calls obey hooks."""

    def __init__(
        self, hooks: _Hooks, inner: Model, provider: ModelProvider | None
    ) -> None:
        self.hooks, self.inner, self.provider = hooks, inner, provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        await self.inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self.inner.get_retry_advice(request)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        given = _ARGUMENTS.bind(self, *args, **kwargs).arguments
        call = _ModelCall(self, self.hooks.run(), given)
        await call.begin()
        if call.answer is not None:
            return ModelResponse(call.answer, Usage(), None)
        response = await call.model.get_response(**call.given)
        output = await call.finish(_response(response.output))
        return replace(response, output=output)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        given = _ARGUMENTS.bind(self, *args, **kwargs).arguments
        call = _ModelCall(self, self.hooks.run(), given)
        await call.begin()
        if call.answer is not None:
            for event in _events(_response(call.answer)):
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


class _ModelCall:
    """One call of a model by the SDK."""

    def __init__(self, hooked: _HookedModel, run: _Run, given: dict[str, Any]) -> None:
        self.run = run
        self.model = hooked.inner
        self.given = {name: one for name, one in given.items() if name != "self"}
        self.answer: list[Any] | None = None
        """What hooks answer in the model's place."""
        self._provider = hooked.provider
        self._call: HookedModelCall
        self._held: list[Any] = []
        self._done: list[Any] = []
        self._holds_all = self._holds_calls = self._is_rewritten = False

    async def begin(self) -> None:
        """Fire the hooks before the call, and apply what they say."""
        run, given = self.run, self.given
        self._insert()
        request = self._request()
        names = [one["name"] for one in request["tools"]]
        self._call = await run.run.begin_model(
            request, available_tools=names, translator=_TRANSLATOR
        )
        if self._call.refused:
            self.answer = self._refusal()
            return
        if self._call.request is not request:
            self._apply(request, self._call.request)
        allowed = self._call.allowed_names
        if allowed is not None:
            given["tools"] = [one for one in given["tools"] if one.name in allowed]
            given["handoffs"] = [
                one for one in given["handoffs"] if one.tool_name in allowed
            ]
        self._holds_all = await run.session.has_hooks("AfterModel")
        self._holds_calls = await run.session.has_hooks("BeforeTool")

    def _insert(self) -> None:
        run = self.run
        if run.inserted:
            items = ItemHelpers.input_to_new_input_list(self.given["input"])
            run.insert_at = len(items) if run.insert_at is None else run.insert_at
            items[run.insert_at : run.insert_at] = run.inserted
            self.given["input"] = items

    def _request(self) -> dict[str, Any]:
        """The call as a request of the Responses API."""
        given, settings = self.given, self.given["model_settings"]
        offered = [one.name for one in given["tools"]]
        offered += [one.tool_name for one in given["handoffs"]]
        request = {
            "model": _name_of(self.model),
            "input": given["input"],
            "tools": [{"type": "function", "name": name} for name in offered],
        }
        for name, own in _SETTINGS.items():
            value = getattr(settings, own)
            if value is not None and (own != "tool_choice" or isinstance(value, str)):
                request[name] = value
        return request

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

    def _refusal(self) -> list[Any]:
        call, schema = self._call, self.given["output_schema"]
        if call.response is not None and call.stop_reason is None:
            return _made_up(getattr(call.response, "output", None), call.text)
        return self._ending(call.stop_reason or call.reason or "", schema)

    def _ending(self, reason: str, schema: Any) -> list[Any]:
        """The last answer of a run that a hook ended."""
        self.run.ended = reason
        if schema is not None and not schema.is_plain_text():
            try:
                schema.validate_json(reason)
            except ModelBehaviorError:
                raise StoppedByHook(reason) from None
        return [_message(reason)]

    async def finish(self, response: Response) -> list[Any]:
        """Fire the hooks after the call; the items of the answer to go on with."""
        outcome = await self._call.finish(response)
        self._is_rewritten = outcome.changed or outcome.stop_reason is not None
        if outcome.stop_reason is not None:
            return self._ending(outcome.stop_reason, self.given["output_schema"])
        output = response.output
        if outcome.changed:
            output = _made_up(getattr(outcome.response, "output", None), outcome.text)
        return list(await self.run.begin_calls(output, self.given["handoffs"]))

    async def shown(self, event: Any) -> list[Any]:
        """The events to pass on for one event of the model's stream."""
        kind = str(getattr(event, "type", ""))
        if isinstance(event, ResponseOutputItemDoneEvent):
            self._done.append(event.item)
        if isinstance(event, ResponseCompletedEvent):
            return await self._completed(event)
        if kind in ("response.incomplete", "response.failed"):
            # What hooks have not seen whole is not shown.
            self._held.clear()
            return [_without_output(event)] if self._holds_all else [event]
        if self._holds_all or (self._holds_calls and _is_call(event)):
            self._held.append(event)
            return []
        return [event]

    async def _completed(self, event: ResponseCompletedEvent) -> list[Any]:
        response = event.response
        # Some services leave the items out of the last event.
        before = response.output = list(response.output or self._done)
        after = response.output = await self.finish(response)
        if self._is_rewritten:
            return list(_events(response))
        if all(map(operator.is_, before, after)):
            return [*self._held, event]
        others = [one for one in self._held if not _is_call(one)]
        made = [one for one in _events(response) if _is_call(one)]
        return [*others, *made, event]


def _name_of(model: Model) -> str:
    name = getattr(model, "model", "")
    return name if isinstance(name, str) else ""


def _renamed(model: Model, provider: ModelProvider | None, name: Any) -> Model:
    """The model that a hook named instead."""
    if provider is not None:
        return provider.get_model(name)
    if not _name_of(model):
        raise UserError(f"a hook wants model {name!r}, but this one has no name")
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
    item = getattr(event, "item", None)
    return kind.startswith("response.function_call") or isinstance(
        item, ResponseFunctionToolCall
    )


def _without_output(event: Any) -> Any:
    response = event.response and event.response.model_copy(update={"output": []})
    return event.model_copy(update={"response": response})


def _response(output: list[Any]) -> Response:
    return Response.model_construct(
        id=FAKE_RESPONSES_ID, created_at=0, model="", object="response",
        output=list(output), parallel_tool_calls=True, tool_choice="auto", tools=[],
        status="completed",
    )  # fmt: skip


def _message(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, content=[part], role="assistant", status="completed",
        type="message",
    )  # fmt: skip


def _made_up(output: Any, text: str) -> list[Any]:
    """The items of an answer that a hook wrote, with ids that no service knows."""
    if output is None:
        return [_message(text)]
    return [item.model_copy(update={"id": FAKE_RESPONSES_ID}) for item in output]


def _events(response: Response) -> Iterator[Any]:
    """The events of a stream that gives this response."""
    numbers = iter(range(1_000_000))

    def made(kind: Any, name: str, **more: Any) -> Any:
        return kind.model_construct(
            type=f"response.{name}", sequence_number=next(numbers), **more
        )

    empty = response.model_copy(update={"output": [], "status": "in_progress"})
    yield made(ResponseCreatedEvent, "created", response=empty)
    for at, item in enumerate(response.output):
        place = {"output_index": at, "item": item}
        yield made(ResponseOutputItemAddedEvent, "output_item.added", **place)
        for index, part in enumerate(getattr(item, "content", None) or []):
            where = {"item_id": item.id, "output_index": at, "content_index": index}
            yield made(
                ResponseContentPartAddedEvent, "content_part.added", part=part, **where
            )
            if text := getattr(part, "text", None):
                yield made(
                    ResponseTextDeltaEvent, "output_text.delta", delta=text,
                    logprobs=[], **where,
                )  # fmt: skip
                yield made(
                    ResponseTextDoneEvent, "output_text.done", text=text,
                    logprobs=[], **where,
                )  # fmt: skip
            yield made(
                ResponseContentPartDoneEvent, "content_part.done", part=part, **where
            )
        yield made(ResponseOutputItemDoneEvent, "output_item.done", **place)
    yield made(ResponseCompletedEvent, "completed", response=response)


class HooklineRunner:
    """Runs hooked agents as ``Runner`` does, with the hooks of the turn."""

    @classmethod
    async def run(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> RunResult:
        """Run an agent; the options are those of ``Runner.run``."""
        steps, value = _turn(starting_agent, input, options), None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            value = await (step.run() if isinstance(step, _Attempt) else step)

    @classmethod
    def run_sync(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> RunResult:
        """Run an agent from plain code; the options are those of ``Runner.run_sync``."""
        session = _hooks_of(starting_agent).session
        steps, value = _turn(starting_agent, input, options), None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            if isinstance(step, _Attempt):
                value = step.run_sync()
            else:
                value = session.run_sync(step)

    @classmethod
    def run_streamed(
        cls, starting_agent: Agent[Any], input: Any, **options: Any
    ) -> RunResultStreaming:
        """Run an agent while ``stream_events()`` of the result is read."""
        steps = _turn(starting_agent, input, options)
        return _Streamed.waiting(starting_agent, input, options, steps)


def _hooks_of(agent: Any) -> _Hooks:
    if isinstance(agent, _HookedAgent):
        return agent.hookline
    raise UserError("HooklineRunner runs hooked agents: hooked_agent(agent, config)")


def _turn(agent: Agent[Any], given: Any, options: dict[str, Any]) -> _Steps:
    """One turn, as steps to wait for: hooks, and attempts at an answer."""
    hooks = _hooks_of(agent)
    session = hooks.session_for(options)
    if isinstance(given, RunState):  # a turn that goes on
        turn = HookedTurn(session, _prompt_of(given._original_input))
    else:
        turn = yield session.begin_turn(_prompt_of(given))
    if turn.refused:
        return _refused(agent, given, options, turn)
    run = _Run(session, turn)
    options = {**options, "run_config": hooks.guard(options.get("run_config"))}
    attempt = _Attempt(agent, _with_additions(given, turn), options, run)
    while True:
        result = yield attempt
        if run.end_reason is not None:
            result.final_output = run.end_reason
            return result
        if result.interruptions or getattr(result, "is_cancelled", False):
            return result
        again, judge = None, turn
        for judge in (*reversed(run.subagents), turn):
            again = yield judge.finish(_answer_of(result))
            if again is not None or judge.refused:
                break
        if judge.refused:
            result.final_output = judge.reason
        if again is None:
            return result
        memory = options.get("session")
        if judge.clear_context and memory is not None:
            yield memory.clear_session()
        attempt = attempt.again(result, again, clear=judge.clear_context)


_Steps = Generator[Any, Any, Any]


@dataclass(frozen=True)
class _Attempt:
    """One run of the SDK within a turn."""

    agent: Agent[Any]
    given: Any
    options: dict[str, Any]
    hooked_run: _Run

    def ready(self) -> dict[str, Any]:
        """The options, with a context by which the run is found again."""
        context = self.options.get("context")
        if isinstance(self.given, RunState) and self.given._context is not None:
            _runs[self.given._context] = self.hooked_run
            return self.options
        if not isinstance(context, RunContextWrapper):
            context = RunContextWrapper(context=context)
        _runs[context] = self.hooked_run
        return {**self.options, "context": context}

    async def run(self) -> RunResult:
        try:
            return await Runner.run(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)

    def run_sync(self) -> RunResult:
        try:
            return Runner.run_sync(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)

    def ended(self, error: AgentsException) -> RunResult:
        """The result of a run that a hook ended; other errors are raised again."""
        data = error.run_data
        if self.hooked_run.end_reason is None or data is None:
            raise error
        return _result(
            data.last_agent,
            data.context_wrapper,
            input=data.input,
            new_items=data.new_items,
            raw_responses=data.raw_responses,
            input_guardrail_results=data.input_guardrail_results,
            output_guardrail_results=data.output_guardrail_results,
        )

    def again(self, result: Any, message: str, *, clear: bool) -> _Attempt:
        """Go on with a message after an answer."""
        given, options = [_user(message)], self.options
        is_kept = options.get("session") or options.get("conversation_id")
        chained = options.get("previous_response_id") or options.get(
            "auto_previous_response_id"
        )
        if chained and not clear:
            options = {**options, "previous_response_id": result.last_response_id}
        elif not is_kept and not clear:
            given = [*result.to_input_list(), *given]
        options = {**options, "context": result.context_wrapper}
        return _Attempt(result.last_agent, given, options, self.hooked_run)


def _result(agent: Agent[Any], context: Any, **parts: Any) -> RunResult:
    empty: dict[str, Any] = {
        "input": [], "new_items": [], "raw_responses": [], "final_output": None,
        "input_guardrail_results": [], "output_guardrail_results": [],
        "tool_input_guardrail_results": [], "tool_output_guardrail_results": [],
    }  # fmt: skip
    return RunResult(**empty | parts, context_wrapper=context, _last_agent=agent)


def _refused(
    agent: Agent[Any], given: Any, options: dict[str, Any], turn: HookedTurn
) -> RunResult:
    """The result of a turn that hooks refused: no history has the prompt."""
    context = options.get("context")
    if not isinstance(context, RunContextWrapper):
        context = RunContextWrapper(context=context)
    before = [] if isinstance(given, str) else list(given)[: _prompt_at(given)]
    return _result(agent, context, input=before, final_output=turn.reason)


class _Streamed(RunResultStreaming):
    """A turn that runs while its events are read.

    It has the fields of the SDK's result of the current attempt.
    """

    @classmethod
    def waiting(
        cls, agent: Agent[Any], given: Any, options: dict[str, Any], steps: _Steps
    ) -> _Streamed:
        started = _result(agent, RunContextWrapper(context=options.get("context")))
        made = cls(
            current_agent=agent, current_turn=0, trace=None,
            max_turns=options.get("max_turns", DEFAULT_MAX_TURNS),
            _current_agent_output_schema=None,
            **{one.name: getattr(started, one.name) for one in fields(RunResultBase)
               if one.init},
        )  # fmt: skip
        made.input = given if isinstance(given, str | list) else []
        made.__dict__["hookline_steps"] = steps
        return made

    @property
    def is_cancelled(self) -> bool:
        return self._cancel_mode != "none"

    def _become(self, attempt: _Attempt) -> None:
        steps = self.__dict__["hookline_steps"]
        inner = Runner.run_streamed(attempt.agent, attempt.given, **attempt.ready())
        # The SDK lets go of its agents when a result is collected: keep this one.
        inner.__dict__ |= {"hookline_steps": steps, "hookline_inner": inner}
        self.__dict__ = inner.__dict__

    async def stream_events(self) -> AsyncIterator[Any]:
        steps, value = self.__dict__["hookline_steps"], None
        while not self.is_cancelled:
            try:
                step = steps.send(value)
            except StopIteration as end:
                for event in self._close(end.value):
                    yield event
                return
            if not isinstance(step, _Attempt):
                value = await step
                continue
            self._become(step)
            try:
                async for event in super().stream_events():
                    yield event
            except AgentsException as error:
                step.ended(error)
            value = self

    def _close(self, result: Any) -> Iterator[Any]:
        self.is_complete = True
        if result is not None and result is not self:
            self.input, self.final_output = result.input, result.final_output
            for event in _events(_response([_message(result.final_output or "")])):
                yield RawResponsesStreamEvent(data=event)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _prompt_at(items: Any) -> int:
    """Where the last message of the user is."""
    roles = [item.get("role") if isinstance(item, dict) else None for item in items]
    return max((at for at, role in enumerate(roles) if role == "user"), default=0)


def _prompt_of(given: Any) -> str:
    """The text of what the user said last."""
    if isinstance(given, str) or not given:
        return given or ""
    item = given[_prompt_at(given)]
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or [] if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _with_additions(given: Any, turn: HookedTurn) -> Any:
    """The input of a run with what hooks added to the prompt."""
    if not turn.additions:
        return given
    if isinstance(given, str):
        return turn.prompt
    return [*given, _user("\n\n".join(turn.additions))]


def _answer_of(result: Any) -> str:
    """The text of the final output."""
    output = result.final_output
    if isinstance(output, str) or output is None:
        return output or ""
    return ItemHelpers.text_message_outputs(result.new_items[-1:]) or str(output)
