"""Hooks in the OpenAI Agents SDK: ``hooked_agent(agent, config)``.

A hooked agent is a copy whose tools, handoffs, subagents and model obey the hooks in
every run. ``HooklineRunner`` adds the hooks of the turn.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from types import CellType, FunctionType
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, ref

from hookline.agent import (
    ConfigOrSession,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    session_of,
)
from hookline.errors import MissingExtraError

try:
    from agents import (
        Agent,
        AgentsException,
        FunctionTool,
        Handoff,
        ItemHelpers,
        Model,
        RawResponsesStreamEvent,
        RunConfig,
        RunContextWrapper,
        Runner,
        RunResult,
        RunResultStreaming,
        RunState,
        Tool,
        ToolTimeoutError,
        UserError,
        handoff,
    )
    from agents.agent_tool_state import (
        get_agent_tool_state_scope,
        peek_agent_tool_run_result,
    )
    from agents.result import RunResultBase
    from agents.run import DEFAULT_MAX_TURNS
    from agents.tool import (
        ToolOutputFileContent,
        ToolOutputImage,
        ToolOutputText,
        default_tool_timeout_error_message,
        invoke_function_tool,
        maybe_invoke_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
    from agents.tool_context import ToolContext
except ImportError as error:
    raise MissingExtraError("openai-agents", "openai-agents") from error

from .openai_agents_model import (
    AgentRun,
    HookedModel,
    HookedProvider,
    StoppedByHook,
    arguments_of,
    input_of,
    message_with,
    stream_of,
    with_items,
)

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


def hooked_agent(agent: Agent[T], config: ConfigOrSession) -> Agent[T]:
    """Copy an agent so that its tools, handoffs, subagents and model obey hooks."""
    session = session_of(config)
    if isinstance(agent, _HookedAgent):
        if agent.hookline.session.config is session.config:
            return agent
        raise UserError(f"agent {agent.name!r} is hooked with another config already")
    return _Hooks(session).agent(agent)


_runs: WeakKeyDictionary[RunContextWrapper[Any], AgentRun] = WeakKeyDictionary()
_current: ContextVar[AgentRun | None] = ContextVar("hookline_run", default=None)
_nested: ContextVar[tuple[str, AgentRun | None]] = ContextVar(
    "hookline_nested_run", default=("", None)
)
"""For the run of an agent that is a tool, by the id of the call."""


class _Hooks:
    """What the agents, tools and models of one ``hooked_agent`` call share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._own_config: RunConfig | None = None
        self._agents: dict[int, tuple[Agent[Any], Any]] = {}
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
        return cast("Agent[T]", self._agents[id(agent)][1])

    def tool(self, tool: Tool) -> Tool:
        """A function tool whose calls obey hooks; other tools as they are."""
        if isinstance(tool, _HookedTool) or not isinstance(tool, FunctionTool):
            return tool
        hooked = self._copy(tool, _HookedTool)
        agent = _agent_of(tool)
        if agent is not None:
            agent = hooked.__dict__["_agent_instance"] = self.agent(agent)

        async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
            return await _invoke(self, tool, agent, ctx, arguments)

        hooked.plain_invoke, hooked.on_invoke_tool = tool.on_invoke_tool, invoke
        hooked.timeout_seconds = None  # ``_run_tool`` keeps it, without the hooks
        return cast("Tool", hooked)

    def handoff(self, given: Any) -> Handoff[Any, Any]:
        """A handoff that obeys hooks, to a hooked agent."""
        if isinstance(given, _HookedHandoff):
            return cast("Handoff[Any, Any]", given)
        plain = given if isinstance(given, Handoff) else handoff(self.agent(given))
        hooked = self._copy(plain, _HookedHandoff)

        async def invoke(ctx: RunContextWrapper[Any], arguments: str) -> Any:
            return await _hand_off(self, plain, ctx, arguments)

        hooked.on_invoke_handoff = invoke
        hooked.input_filter = _unless_refused(plain.input_filter)
        target = (getattr(plain, "_agent_ref", None) or _nobody)()
        if isinstance(target, Agent):
            hooked.__dict__["_agent_ref"] = ref(self.agent(target))
        return cast("Handoff[Any, Any]", hooked)

    def guard(self, given: RunConfig | dict[str, Any] | None) -> RunConfig:
        """A run config whose models obey hooks."""
        if given is None:
            self._own_config = self._own_config or RunConfig()
        config = self._own_config if given is None else given
        config = RunConfig(**config) if isinstance(config, dict) else config
        assert config is not None
        provider = config.model_provider
        if not isinstance(provider, HookedProvider):
            provider = HookedProvider(provider, self.run)
        return replace(
            config,
            model=self.model(config.model),
            model_provider=provider,
            handoff_input_filter=_unless_refused(config.handoff_input_filter),
        )

    def model(self, model: Any) -> Any:
        """A model whose calls obey hooks; the name of one as it is."""
        is_hooked = isinstance(model, HookedModel) or not isinstance(model, Model)
        return model if is_hooked else HookedModel(model, self.run)

    def _copy(self, value: Any, mixin: type) -> Any:
        """A copy of a subclass, so that what the SDK copies of it stays hooked."""
        kind = type(value)
        if kind not in self._classes:
            name = f"Hooked{kind.__name__}"
            self._classes[kind] = type(name, (mixin, kind), {"hookline": self})
        copied: Any = object.__new__(self._classes[kind])
        copied.__dict__.update(value.__dict__)
        return copied

    def run(self) -> AgentRun:
        """The run that the present task belongs to."""
        found = _current.get()
        if found is not None and found.session.config is self.session.config:
            return found
        return AgentRun(self.session, self.session.begin_run(), is_plain=True)

    def run_of(self, context: RunContextWrapper[Any]) -> AgentRun:
        """The run of a context, which is the one of this task from now on."""
        found = _runs.get(context)
        if found is None:
            call_id, found = _nested.get()
            if found is None or getattr(context, "tool_call_id", None) != call_id:
                outer = self.run()
                session = self.session if outer.is_plain else outer.session
                found = AgentRun(session, session.begin_run(), is_plain=True)
            _runs[context] = found
        _current.set(found)
        return found

    def session_for(self, options: dict[str, Any]) -> Session:
        """The session of a conversation, by the id that the SDK has for it."""
        config = options.get("run_config")
        group = config.get("group_id") if isinstance(config, dict) else None
        ids = (
            options.get("conversation_id"),
            _session_id(options.get("session")),
            getattr(config, "group_id", group),
        )
        found = next((one for one in ids if one), None)
        return self.session if found is None else self.session.view(found)


def _agent_of(tool: FunctionTool) -> Any:
    """The agent that ``as_tool`` made a tool of; the SDK has no public name for it."""
    return getattr(tool, "_agent_instance", None)


def _nobody() -> None:
    return None


def _session_id(memory: Any) -> str | None:
    try:
        return cast("str | None", getattr(memory, "session_id", None))
    except ValueError:  # OpenAI's own sessions have an id after their first request
        return None


class _HookedAgent:
    """Mixed into the class of a hooked agent."""

    hookline: _Hooks
    name: str

    def __post_init__(self: Any) -> None:
        super().__post_init__()  # type: ignore[misc]
        self.hook_parts()

    def hook_parts(self: Any) -> None:
        """Hook whatever the agent was given."""
        self.tools = [self.hookline.tool(tool) for tool in self.tools]
        self.hook_others()

    def hook_others(self: Any) -> None:
        """Hook all parts but the tools, which must not change in a run."""
        hooks = self.hookline
        if not all(isinstance(one, _HookedHandoff) for one in self.handoffs):
            self.handoffs = [hooks.handoff(one) for one in self.handoffs]
        self.model = hooks.model(self.model)

    async def get_all_tools(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """All tools, hooked: also those of MCP servers."""
        run = self.hookline.run_of(run_context)
        run.agent = getattr(self, "_agents_public_agent", self)
        found = await super().get_all_tools(run_context)  # type: ignore[misc]
        tools = [self.hookline.tool(tool) for tool in found]
        self.hook_others()
        run.tools = {one.name: one for one in tools if isinstance(one, FunctionTool)}
        unseen = [one.name for one in tools if not isinstance(one, FunctionTool)]
        if unseen:
            reason = f"it does not run the calls of {', '.join(unseen)}"
            events = {"BeforeTool": reason, "AfterTool": reason}
            await run.session.warn_ineffective(_NAME, events)
        return tools

    async def get_system_prompt(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """The instructions; refuses a run that would call a model without hooks."""
        run = self.hookline.run_of(run_context)
        await run.session.warn_ineffective(_NAME, _UNUSED)
        if run.is_plain:
            await run.session.warn_ineffective(_NAME, _NO_TURN)
            if not isinstance(self.model, Model) and await _has_model_hooks(run):
                raise UserError(
                    f"the model of agent {self.name!r} is given by name, and Runner "
                    "would call it without hooks: use HooklineRunner, or a Model object"
                )
        return await super().get_system_prompt(run_context)  # type: ignore[misc]


async def _has_model_hooks(run: AgentRun) -> bool:
    return any([await run.session.has_hooks(event) for event in _MODEL_EVENTS])


class _HookedTool:
    """Mixed into the class of a hooked function tool."""

    hookline: _Hooks

    @property
    def needs_approval(self: Any) -> Any:
        """What the tool says itself, unless a hook asks about a call."""
        own = self.__dict__["needs_approval"]

        async def needed(context: Any, params: Any, call_id: str) -> bool:
            return await _needs_approval(self, own, context, params, call_id)

        # A function would have the SDK ask about arguments that it cannot parse.
        asks = self.hookline.run().asks(self.name)
        return needed if asks or callable(own) else own

    @needs_approval.setter
    def needs_approval(self: Any, value: Any) -> None:
        self.__dict__["needs_approval"] = value


async def _needs_approval(
    tool: Any, own: Any, context: Any, params: Any, call_id: str
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
    return bool(await _awaited(own(context, params, call_id)))


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class _HookedHandoff:
    """Mixed into the class of a hooked handoff."""

    hookline: _Hooks

    def get_transfer_message(self: Any, agent: Agent[Any]) -> str:
        """What the model is told about the handoff."""
        said = self.hookline.run().transfer
        own: str = super().get_transfer_message(agent)  # type: ignore[misc]
        return own if said is None else said


async def _hand_off(
    hooks: _Hooks, plain: Handoff[Any, Any], ctx: RunContextWrapper[Any], arguments: str
) -> Any:
    """Hand off if hooks allow it; else the same agent goes on, with the reason."""
    run = hooks.run()
    call = run.handoffs.pop(plain.tool_name, None)
    if call is None or (run.run.stop_reason is not None and not call.refused):
        call = await run.run.begin_tool(plain.tool_name, input_of(arguments))
    turn = None
    if not call.refused:
        prompt = _prompt_of(ctx.turn_input)
        turn = await run.session.begin_subagent(plain.agent_name, prompt)
    run.is_refused = turn is None or turn.refused
    if turn is None:
        run.transfer = call.message
    elif turn.refused:
        run.transfer = _ended_subagent(run, turn)
    if turn is None or turn.refused:
        return run.agent
    used = arguments_of(call, arguments)
    agent = hooks.agent(await plain.on_invoke_handoff(ctx, used))
    outcome = await call.finish(plain.get_transfer_message(agent))
    run.transfer = "\n\n".join([outcome.text, *turn.additions])
    run.subagents.append(turn)
    return agent


def _unless_refused(input_filter: Any) -> Any:
    """A filter of handoffs that does not run where hooks refused the handoff."""
    is_ready = input_filter is None or isinstance(input_filter, _Filter)
    return input_filter if is_ready else _Filter(input_filter)


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
    used = arguments_of(call, arguments)
    try:
        if agent is None:
            value = await _run_tool(tool, ctx, used)
        else:
            value = await _run_subagent(hooks, tool, agent, ctx, used)
    # The tool is foreign code: hooks see its failure before the SDK does.
    except Exception as error:  # noqa: BLE001
        return await _failed(tool, ctx, call, error)
    if _is_paused(ctx):
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
    tool: FunctionTool,
    agent: Agent[Any],
    ctx: ToolContext[Any],
    arguments: str,
) -> Any:
    """Run an agent that is a tool, with the events of a subagent."""
    run, given = hooks.run(), input_of(arguments).get("input")
    prompt = given if isinstance(given, str) else arguments
    turn = await run.session.begin_subagent(
        agent.name, prompt, agent_id=ctx.tool_call_id
    )
    nested = AgentRun(run.session, turn, inserted=list(map(_user, turn.additions)))
    ctx.run_config = hooks.guard(ctx.run_config)
    plain = _with_agent(hooks, tool, agent)
    while not turn.refused:
        _nested.set((ctx.tool_call_id, nested))
        try:
            value = await _run_tool(plain, ctx, arguments)
        except StoppedByHook as stop:
            value = stop.reason
        if turn.stopped:
            break
        if nested.ended is not None or _is_paused(ctx):
            return value
        answer = value if isinstance(value, str) else str(value)
        again = await turn.finish(answer)
        if again is None and not turn.refused:
            return value
        if turn.clear_context:
            nested.inserted.clear()
        nested.inserted += [
            {"role": "assistant", "content": answer},
            _user(again or ""),
        ]
    return _ended_subagent(run, turn)


def _ended_subagent(run: AgentRun, turn: HookedTurn) -> str:
    if turn.stopped:
        run.run.stop(turn.stop_reason)
    return turn.reason or "Blocked by hook"


def _with_agent(hooks: _Hooks, tool: FunctionTool, agent: Agent[Any]) -> FunctionTool:
    """A copy of an agent's tool that runs the hooked agent."""
    if _agent_of(tool) is agent:
        return tool
    # ``as_tool`` gives no other access to the agent that its function runs.
    work = getattr(tool.on_invoke_tool, "_invoke_tool_impl", None)
    names = work.__code__.co_freevars if isinstance(work, FunctionType) else ()
    if work is None or not {"self", "run_config"} <= set(names):
        raise UserError(
            f"cannot hook the agent of tool {tool.name!r}: "
            "use hooked_agent(agent, config).as_tool(...)"
        )
    cells = dict(zip(names, work.__closure__ or (), strict=True))
    config = cells["run_config"].cell_contents
    cells["self"] = CellType(agent)
    cells["run_config"] = CellType(None if config is None else hooks.guard(config))
    plain = copy.copy(tool)
    plain.on_invoke_tool = FunctionType(
        work.__code__, work.__globals__, work.__name__, None, tuple(cells.values())
    )
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
    """What the model gets from a tool that raised, unless the tool raises on."""
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
        return await _timeout_message(tool, ctx, error, tool.timeout_seconds)
    # A tool that was made by hand lets its errors end the run.
    if not hasattr(tool.on_invoke_tool, "__agents_bind_function_tool__"):
        return None
    return await maybe_invoke_function_tool_failure_error_function(
        function_tool=tool, context=ctx, error=error
    )


async def _timeout_message(
    tool: FunctionTool, ctx: ToolContext[Any], error: ToolTimeoutError, seconds: float
) -> str | None:
    if tool.timeout_behavior == "raise_exception":
        return None
    if tool.timeout_error_function is not None:
        return str(await _awaited(tool.timeout_error_function(ctx, error)))
    text = default_tool_timeout_error_message(
        tool_name=tool.name, timeout_seconds=seconds
    )
    return await _text(tool, ctx, text)


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
    """A text that the SDK does not check against the output schema of the tool."""
    if tool.output_json_schema is not None:
        # The SDK's own mark of a failure that it has handled; its text is not used.
        await maybe_invoke_function_tool_failure_error_function(
            function_tool=_DEFAULTS, context=ctx, error=asyncio.CancelledError()
        )
    return text


async def _no_tool(_ctx: ToolContext[Any], _arguments: str) -> None:
    return None


_DEFAULTS = FunctionTool("default", "", {}, _no_tool, strict_json_schema=False)


class HooklineRunner:
    """Runs hooked agents as ``Runner`` does, with the hooks of the turn."""

    @classmethod
    async def run(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResult:
        """Run an agent; the options are those of ``Runner.run``."""
        steps = _turn(starting_agent, input, options)
        value = None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            value = await (step.run() if isinstance(step, _Attempt) else step)

    @classmethod
    def run_sync(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResult:
        """Run an agent from plain code; the options are those of ``Runner.run``."""
        steps = _turn(starting_agent, input, options)
        session, value = _hooks_of(starting_agent).session, None
        while True:
            try:
                step = steps.send(value)
            except StopIteration as end:
                return cast("RunResult", end.value)
            is_attempt = isinstance(step, _Attempt)
            value = step.run_sync() if is_attempt else session.run_sync(step)

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Agent[Any],
        input: Any,  # noqa: A002  # as the SDK names it
        **options: Any,
    ) -> RunResultStreaming:
        """Run an agent while ``stream_events()`` of the result is read."""
        return _Streamed.waiting(starting_agent, input, options)


def _hooks_of(agent: Any) -> _Hooks:
    if isinstance(agent, _HookedAgent):
        return agent.hookline
    raise UserError("HooklineRunner runs hooked agents: hooked_agent(agent, config)")


_Steps = Generator[Any, Any, Any]


def _turn(agent: Agent[Any], given: Any, options: dict[str, Any]) -> _Steps:
    """One turn, as steps to wait for: hooks, and attempts at an answer."""
    hooks = _hooks_of(agent)
    session = hooks.session_for(options)
    if isinstance(given, RunState):  # a turn that goes on
        turn = HookedTurn(session, _prompt_of(getattr(given, "_original_input", "")))
    else:
        turn = yield session.begin_turn(_prompt_of(given))
    if turn.refused:
        return _refused(agent, given, options, turn)
    options = {**options, "run_config": hooks.guard(options.get("run_config"))}
    run = AgentRun(session, turn)
    attempt = _Attempt(agent, _with_additions(given, turn), options, run)
    while True:
        result = yield attempt
        if _is_over(run, result):
            return result
        judge, again = yield from _judged(run, turn, result)
        if again is None:
            return result
        memory = options.get("session")
        if judge.clear_context and memory is not None:
            yield memory.clear_session()
        attempt = attempt.again(result, again, clear=judge.clear_context)


def _is_over(run: AgentRun, result: Any) -> bool:
    """Whether the result has no answer that hooks could judge."""
    if run.end_reason is not None:
        result.final_output = run.end_reason
        return True
    return bool(result.interruptions) or getattr(result, "is_cancelled", False)


def _judged(run: AgentRun, turn: HookedTurn, result: Any) -> _Steps:
    """Show an answer to the hooks of the agents that took over, then of the turn."""
    for judge in (*reversed(run.subagents), turn):
        again = yield judge.finish(_answer_of(result))
        if judge.refused:
            result.final_output = judge.reason
        if again is not None or judge.refused:
            return judge, again
    return turn, None


@dataclass(frozen=True)
class _Attempt:
    """One run of the SDK within a turn."""

    agent: Agent[Any]
    given: Any
    options: dict[str, Any]
    hooked_run: AgentRun

    def ready(self) -> dict[str, Any]:
        """The options, with a context by which the run is found again."""
        known = getattr(self.given, "_context", None)  # of a ``RunState``
        context = _wrapped(self.options.get("context")) if known is None else known
        _runs[context] = self.hooked_run
        return self.options | ({"context": context} if known is None else {})

    async def run(self) -> RunResult:
        """Run the agent."""
        token = _current.set(self.hooked_run)
        try:
            return await Runner.run(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)
        finally:
            _current.reset(token)

    def run_sync(self) -> RunResult:
        """Run the agent in plain code."""
        try:
            return Runner.run_sync(self.agent, self.given, **self.ready())
        except AgentsException as error:
            return self.ended(error)

    def ended(self, error: AgentsException) -> RunResult:
        """The result of a run that a hook ended; other errors are raised again."""
        data = error.run_data
        if self.hooked_run.end_reason is None or data is None:
            raise error
        own = {one.name for one in fields(data)} & {one.name for one in _RESULT_FIELDS}
        return _result(data.last_agent, **{name: getattr(data, name) for name in own})

    def again(self, result: Any, message: str, *, clear: bool) -> _Attempt:
        """Go on with a message after an answer."""
        options = {**self.options, "context": result.context_wrapper}
        given = [_user(message)]
        chains = ("previous_response_id", "auto_previous_response_id")
        if clear:
            options |= {"previous_response_id": None}
        elif any(options.get(name) for name in chains):
            options |= {"previous_response_id": result.last_response_id}
        elif not options.get("session") and not options.get("conversation_id"):
            given = [*result.to_input_list(), *given]
        return _Attempt(result.last_agent, given, options, self.hooked_run)


_RESULT_FIELDS = [one for one in fields(RunResultBase) if one.init]


def _result(agent: Agent[Any], **parts: Any) -> RunResult:
    empty: dict[str, Any] = {one.name: [] for one in _RESULT_FIELDS}
    return RunResult(**empty | {"final_output": None} | parts, _last_agent=agent)


def _wrapped(context: Any) -> RunContextWrapper[Any]:
    is_wrapped = isinstance(context, RunContextWrapper)
    return context if is_wrapped else RunContextWrapper(context=context)


def _refused(
    agent: Agent[Any], given: Any, options: dict[str, Any], turn: HookedTurn
) -> RunResult:
    """The result of a turn that hooks refused: the prompt is not in its history."""
    before = [] if isinstance(given, str) else list(given)[: _prompt_at(given)]
    context = _wrapped(options.get("context"))
    return _result(
        agent, context_wrapper=context, input=before, final_output=turn.reason
    )


class _Streamed(RunResultStreaming):
    """A turn that runs while its events are read.

    It has the fields of the SDK's own result of the present attempt.
    """

    @classmethod
    def waiting(
        cls, agent: Agent[Any], given: Any, options: dict[str, Any]
    ) -> _Streamed:
        """The result of a turn that has not begun."""
        parts: dict[str, Any] = {one.name: [] for one in _RESULT_FIELDS}
        parts["input"] = given if isinstance(given, str | list) else []
        parts["context_wrapper"] = _wrapped(options.get("context"))
        parts["max_turns"] = options.get("max_turns", DEFAULT_MAX_TURNS)
        made = cls(
            **parts | {"final_output": None, "current_agent": agent, "trace": None},
            current_turn=0,
            _current_agent_output_schema=None,
        )
        made.__dict__["hookline_steps"] = _turn(agent, given, options)
        return made

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller wants no more."""
        return self._cancel_mode != "none"

    def _become(self, attempt: _Attempt) -> None:
        inner = Runner.run_streamed(attempt.agent, attempt.given, **attempt.ready())
        # A result lets go of its agents when it is collected: keep this one.
        inner.__dict__["hookline_inner"] = inner
        self.__dict__ = inner.__dict__

    async def stream_events(self) -> AsyncIterator[Any]:
        """The events of all attempts; reading them is what runs the turn."""
        steps, value = self.__dict__.get("hookline_steps"), None
        while steps is not None and not self.is_cancelled:
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
        if result is None or result is self:
            return
        self.input, self.final_output = result.input, result.final_output
        for event in stream_of(with_items([message_with(self.final_output or "")])):
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
