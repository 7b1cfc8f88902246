"""Hooked agents of the OpenAI Agents SDK, and how they hand off to each other."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import CellType, FunctionType
from typing import Any, TypeVar, cast
from weakref import ref

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    Handoff,
    Model,
    RunConfig,
    RunContextWrapper,
    Tool,
    ToolApprovalItem,
    UserError,
    handoff,
)
from agents.agent_tool_state import (
    get_agent_tool_state_scope,
    peek_agent_tool_run_result,
)
from agents.result import RunResultBase
from agents.tool_context import ToolContext

from hookline.agent import (
    ConfigOrSession,
    HookedTurn,
    Session,
    session_of,
)

from .model import (
    AgentRun,
    HookedModel,
    HookedProvider,
    StoppedByHook,
    arguments_of,
    input_of,
)
from .tools import (
    error_result,
    full_result,
    guarded,
    needs_approval,
    run_tool,
    text_result,
)

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
        own = agent.hookline.session
        if (own.config, own.session_id) == (session.config, session.session_id):
            return agent
        raise UserError(f"agent {agent.name!r} is hooked with another session already")
    return _Hooks(session).agent(agent)


current_run: ContextVar[AgentRun | None] = ContextVar("hookline_run", default=None)
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
        """A tool whose calls obey hooks, if it runs in this process."""
        if isinstance(tool, _HookedTool) or hasattr(tool, "is_guarded"):
            return tool
        if not isinstance(tool, FunctionTool):
            return cast("Tool", guarded(tool, self.run))
        hooked = self._copy(tool, _HookedTool)
        agent = _agent_of(tool)
        if agent is not None:
            agent = hooked.__dict__["_agent_instance"] = self.agent(agent)

        async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
            return await _invoke(self, tool, agent, ctx, arguments)

        hooked.plain_invoke, hooked.on_invoke_tool = tool.on_invoke_tool, invoke
        hooked.timeout_seconds = None  # ``run_tool`` keeps it, without the hooks
        return cast("Tool", hooked)

    def observer(self, given: Any) -> Any:
        """The SDK's observer of an agent, with the same state, that sees past calls."""
        hooked = self._copy(given, _HookedObserver)
        hooked.__dict__ = given.__dict__
        return hooked

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
        found = current_run.get()
        if found is not None and found.session.config is self.session.config:
            return found
        return AgentRun(self.session, self.session.begin_run(), is_plain=True)

    def bound_run(self, context: RunContextWrapper[Any]) -> AgentRun:
        """The run of a context, which is the one of this task from now on."""
        found = run_of(context)
        if found is None:
            call_id, found = _nested.get()
            if found is None or getattr(context, "tool_call_id", None) != call_id:
                outer = self.run()
                session = self.session if outer.is_plain else outer.session
                found = AgentRun(session, session.begin_run(), is_plain=True)
            set_run(context, found)
        current_run.set(found)
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
        if not isinstance(self.hooks, _HookedObserver):
            self.hooks = hooks.observer(self.hooks or AgentHooks())

    async def get_all_tools(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """All tools, hooked: also those of MCP servers."""
        run = self.hookline.bound_run(run_context)
        run.agent = getattr(self, "_agents_public_agent", self)
        run.is_seen = False
        found = await super().get_all_tools(run_context)  # type: ignore[misc]
        tools = [self.hookline.tool(tool) for tool in found]
        self.hook_others()
        run.tools = {one.name: one for one in tools if isinstance(one, FunctionTool)}
        unseen = [
            one.name
            for one in tools
            if not isinstance(one, _HookedTool) and not hasattr(one, "is_guarded")
        ]
        if unseen:
            reason = f"it does not run the calls of {', '.join(unseen)}"
            events = {"BeforeTool": reason, "AfterTool": reason}
            await run.session.warn_ineffective(_NAME, events)
        return tools

    async def get_system_prompt(self: Any, run_context: RunContextWrapper[Any]) -> Any:
        """The instructions; refuses a run that would call a model without hooks."""
        run = self.hookline.bound_run(run_context)
        await run.session.warn_ineffective(_NAME, _UNUSED)
        if run.is_plain:
            await run.session.warn_ineffective(_NAME, _NO_TURN)
            if not isinstance(self.model, Model):
                await _refuse_model(run, f"of agent {self.name!r} is given by name")
        return await super().get_system_prompt(run_context)  # type: ignore[misc]


async def _refuse_model(run: AgentRun, what: str) -> None:
    """Raise if a model that hooks cannot see has hooks."""
    if any([await run.session.has_hooks(event) for event in _MODEL_EVENTS]):
        raise UserError(
            f"the model {what}, so that Runner calls it without its hooks: "
            "use HooklineRunner, or a Model object in the agent"
        )


class _HookedObserver:
    """Mixed into the class of an agent's ``hooks``, the SDK's own observers."""

    hookline: _Hooks

    async def on_llm_end(self: Any, context: Any, agent: Any, response: Any) -> None:
        """Refuse the answer of a model that took the place of the hooked one."""
        run = self.hookline.bound_run(context)
        if not run.is_seen:
            await _refuse_model(run, "is that of the run config")
        await super().on_llm_end(context, agent, response)  # type: ignore[misc]


class _HookedTool:
    """Mixed into the class of a hooked function tool."""

    hookline: _Hooks

    @property
    def needs_approval(self: Any) -> Any:
        """What the tool says itself, unless a hook asks about a call."""
        own = self.__dict__["needs_approval"]

        async def needed(context: Any, params: Any, call_id: str) -> bool:
            return await needs_approval(self, own, context, params, call_id)

        # A function would have the SDK ask about arguments that it cannot parse.
        asks = self.hookline.run().asks(self.name)
        return needed if asks or callable(own) else own

    @needs_approval.setter
    def needs_approval(self: Any, value: Any) -> None:
        self.__dict__["needs_approval"] = value


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
        prompt = prompt_of(ctx.turn_input)
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
        run = current_run.get()
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
        return await text_result(tool, ctx, call.message)
    used = arguments_of(call, arguments)
    try:
        if agent is None:
            value = await run_tool(tool, ctx, used)
        else:
            value = await _run_subagent(hooks, tool, agent, ctx, used)
    # The tool is foreign code: hooks see its failure before the SDK does.
    except Exception as error:  # noqa: BLE001
        return await error_result(tool, ctx, call, error)
    if _is_paused(ctx):
        run.calls[ctx.tool_call_id] = arguments, call
        return value
    return await full_result(tool, ctx, await call.finish(value))


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
    nested = run.paused.pop(ctx.tool_call_id, None)
    if nested is None:
        turn = await run.session.begin_subagent(
            agent.name, prompt, agent_id=ctx.tool_call_id
        )
        nested = AgentRun(run.session, turn, questions=run.questions)
        nested.inserted = [user_item(text) for text in turn.additions]
    turn = cast("HookedTurn", nested.run)
    ctx.run_config = hooks.guard(ctx.run_config)
    plain = _with_agent(hooks, tool, agent)
    while not turn.refused:
        _nested.set((ctx.tool_call_id, nested))
        try:
            value = await run_tool(plain, ctx, arguments)
        except StoppedByHook as stop:
            value = stop.reason
        if turn.stopped:
            break
        if nested.ended is not None:
            return value
        if _is_paused(ctx):
            run.paused[ctx.tool_call_id] = nested
            return value
        answer = value if isinstance(value, str) else str(value)
        again = await turn.finish(answer)
        if again is None and not turn.refused:
            return value
        if turn.clear_context:
            nested.inserted.clear()
        nested.inserted += [
            {"role": "assistant", "content": answer},
            user_item(again or ""),
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


def run_of(context: Any) -> AgentRun | None:
    """The run of a context, also in a copy: the SDK copies contexts of paused runs."""
    return getattr(context, "hookline_run", None)


def set_run(context: RunContextWrapper[Any], run: AgentRun) -> None:
    """Let a context belong to a run."""
    context.__dict__["hookline_run"] = run


def user_item(text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": text}


def prompt_at(items: Any) -> int:
    """Where the last message of the user is."""
    roles = [item.get("role") if isinstance(item, dict) else None for item in items]
    return max((at for at, role in enumerate(roles) if role == "user"), default=0)


def prompt_of(given: Any) -> str:
    """The text of what the user said last."""
    if isinstance(given, str) or not given:
        return given or ""
    item = given[prompt_at(given)]
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or [] if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def question_about(result: RunResultBase, item: ToolApprovalItem) -> str | None:
    """What a hook asks about an interruption of a run; None if no hook does."""
    run = run_of(result.context_wrapper)
    return None if run is None else run.questions.get(item.call_id or "")


def hooks_of(agent: Any) -> _Hooks:
    """The hooks that an agent obeys."""
    if isinstance(agent, _HookedAgent):
        return agent.hookline
    raise UserError("HooklineRunner runs hooked agents: hooked_agent(agent, config)")
