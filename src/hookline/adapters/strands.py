"""Strands: ``Agent(hooks=[HooklineHooks(config)])`` obeys hooks.

Tool and turn events come from Strands' own hooks, model events from middleware around
its model calls. Agents that a hooked agent calls as tools, and the nodes of a hooked
Graph or Swarm, get the same hooks; their runs are those of subagents (decision 0120).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    ModelOutcome,
    Session,
    ToolOutcome,
    ToolResult,
    session_of,
)
from hookline.config import Config
from hookline.errors import HooklineError, MissingExtraError
from hookline.log import logger
from hookline.translators.passthrough import StableTranslator
from hookline.translators.stable import LLMMessage

try:
    from strands import Agent
    from strands.hooks import (
        AfterInvocationEvent,
        AfterMultiAgentInvocationEvent,
        AfterNodeCallEvent,
        AfterToolCallEvent,
        AfterToolsEvent,
        AgentInitializedEvent,
        BeforeInvocationEvent,
        BeforeNodeCallEvent,
        BeforeToolCallEvent,
        HookOrder,
        HookRegistry,
    )
    from strands.interventions.actions import default_evaluate
    from strands.middleware import InvokeModelStage
    from strands.multiagent.base import Status
    from strands.types.events import ModelStopReason, TypedEvent
except ModuleNotFoundError as error:
    raise MissingExtraError("strands", "strands-agents") from error
try:
    from strands._async import is_run_async_bridge as is_plain_call
except ImportError:  # then hooks of plain calls run on the loop of the call

    def is_plain_call() -> bool:
        """Whether Strands runs a plain call on an event loop made for it."""
        return False


T = TypeVar("T")
_NO_EFFECT = {
    "SessionStart": "Strands does not say when a conversation starts",
    "SessionEnd": "Strands does not say when a conversation ends",
    "PreCompress": "Strands does not say when it compresses the history",
}
_NO_EFFECT_ON_CREWS = {
    "AfterAgent": "a Graph or Swarm cannot go on; its nodes fire SubagentStop",
}
_SKIPPED = ("BeforeAgent", "BeforeToolSelection", "BeforeModel", "AfterModel")
_PAUSES = {"interrupt", "checkpoint"}
_UNFINISHED = {"cancelled", "limit_turns", "limit_output_tokens", "limit_total_tokens"}


@dataclass
class _Caller:
    """Who runs an agent as a subagent."""

    session: Session
    run: HookedRun
    agent_type: str
    agent: Any = None
    """The subagent."""
    additions: list[str] = field(default_factory=list)
    refusal: str | None = None
    own: _Caller | None = None
    """Who runs the caller."""

    def refuse(self, turn: HookedTurn) -> None:
        """Take over that hooks ended the subagent's turn, or stopped everything."""
        self.refusal = turn.reason or ""
        if turn.stop_reason is not None:
            self.run.stop(turn.stop_reason)
            if self.own is not None:
                self.own.refuse(turn)


@dataclass
class _Work:
    """One invocation of an agent."""

    session: Session
    turn: HookedTurn
    state: object
    """Strands' own state of the invocation: held, so that its id stays unique."""
    caller: _Caller | None = None
    goes_on: bool = False
    has_answer: bool = True
    questions: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Call:
    """One tool call, and the agent that it may run."""

    call: HookedToolCall
    caller: _Caller | None


_registries: WeakSet[Any] = WeakSet()
_callers: WeakKeyDictionary[Any, _Caller] = WeakKeyDictionary()


class HooklineHooks:
    """A hook provider for agents, graphs and swarms.

    With a Config, events carry the agent's own ``session_id``; with a session, its id.
    A call that a hook asks about becomes an interrupt of Strands'; with ``confirm``
    that decides, and with ``interrupts=False`` ``hooksConfig.onAsk``.
    """

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        interrupts: bool = True,
    ) -> None:
        self._session = session_of(config_or_session)
        self._is_fixed = not isinstance(config_or_session, Config)
        self._confirm = confirm
        self._interrupts = interrupts
        self._registries: WeakSet[Any] = WeakSet()
        self._watched: WeakSet[Any] = WeakSet()
        self._works: WeakKeyDictionary[Any, dict[int, _Work]] = WeakKeyDictionary()
        self._paused: WeakKeyDictionary[Any, _Work] = WeakKeyDictionary()
        self._calls: WeakKeyDictionary[Any, dict[str, _Call]] = WeakKeyDictionary()
        self._crews: WeakKeyDictionary[Any, asyncio.Future[_Caller]]
        self._crews = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Register all callbacks; Strands calls this."""
        if registry in self._registries:
            return
        self._registries.add(registry)
        _registries.add(registry)
        add = registry.add_callback
        add(AgentInitializedEvent, self._on_initialized)
        # Last, so that hooks see what is sent and what runs.
        add(BeforeInvocationEvent, self._on_begin, order=HookOrder.SDK_LAST)
        add(BeforeToolCallEvent, self._on_tool, order=HookOrder.SDK_LAST)
        add(AfterToolCallEvent, self._on_result)
        add(AfterToolsEvent, self._on_results)
        add(AfterInvocationEvent, self._on_end)
        add(BeforeNodeCallEvent, self._on_node)
        add(AfterNodeCallEvent, self._on_node_end)
        add(AfterMultiAgentInvocationEvent, self._on_crew_end)

    def _on_initialized(self, event: AgentInitializedEvent[Any]) -> None:
        self._watch(event.agent)

    def _watch(self, agent: Any) -> None:
        """Stand around the model calls of an agent."""
        if isinstance(agent, Agent) and agent not in self._watched:
            self._watched.add(agent)
            agent.add_middleware(InvokeModelStage, self._on_model)

    async def _on_begin(self, event: BeforeInvocationEvent) -> None:
        agent, state = event.agent, event.invocation_state
        self._watch(agent)
        if event.messages is None:
            return await self._refuse_structured_output()
        works = self._works.setdefault(agent, {})
        work = works.get(id(state))
        if work is not None and work.goes_on:
            work.goes_on = False
            return None
        caller = _callers.pop(agent, None)
        paused = self._paused.pop(agent, None)
        if paused is not None and not event.messages:
            paused.state, paused.caller = state, caller
            works[id(state)] = paused
            return None
        if not event.cancel:
            prompt = _prompt_of(event.messages or _latest_prompt(agent.messages))
            session = self._session_of(agent.session_id, caller)
            turn = await self._wait(_begun(session, prompt, caller, _NO_EFFECT))
            works[id(state)] = work = _Work(session, turn, state, caller)
            _start(event, work)
        return None

    async def _refuse_structured_output(self) -> None:
        """Refuse Strands' old ``structured_output()``, which goes past the hooks."""
        for event in _SKIPPED:
            if await self._wait(self._session.has_hooks(event)):
                raise HooklineError(
                    f"structured_output() would skip the {event} hooks: call the agent "
                    "with structured_output_model=... instead"
                )

    def _session_of(self, own_id: str | None, caller: _Caller | None = None) -> Session:
        found = own_id if caller is None else caller.session.session_id
        is_own = self._is_fixed or found is None
        return self._session if is_own else self._session.view(found)

    async def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for hooks; those of a plain call outlive the event loop made for it."""
        if is_plain_call():
            return await asyncio.to_thread(self._session.run_sync, work)
        return await work

    async def _on_end(self, event: AfterInvocationEvent) -> None:
        agent, result = event.agent, event.result
        works = self._works.get(agent, {})
        work = works.pop(id(event.invocation_state), None)
        if work is None:
            return
        if result is not None and result.stop_reason in _PAUSES:
            self._paused[agent] = work
            return
        turn = work.turn
        if result is None:
            _forget_refusal(agent, turn)
            self._calls.pop(agent, None)  # of tools that were cancelled
        elif work.has_answer and result.stop_reason not in _UNFINISHED:
            again = await self._wait(turn.finish(str(result).removesuffix("\n")))
            if turn.clear_context:
                agent.messages.clear()
            if again is not None:
                event.resume, work.goes_on = again, True
                works[id(event.invocation_state)] = work
            elif turn.refused:
                result.message["content"] = [{"text": turn.reason or ""}]
                _store(agent, result.message)
        if work.caller is not None and turn.refused:
            work.caller.refuse(turn)

    async def _on_model(
        self, context: Any, send: Any
    ) -> AsyncGenerator[TypedEvent, None]:
        work = self._work(context.agent, context.invocation_state)
        call, is_held = await self._wait(_model_call(work, context))
        work.has_answer = call.response is not None or not call.refused
        if call.refused:
            for event in _answer(call):
                yield event
            return
        held: list[TypedEvent] = []
        last: ModelStopReason | None = None
        async for event in send(_changed_context(context, call)):
            if isinstance(event, ModelStopReason):
                last = event
            elif is_held:
                held.append(event)
            else:
                yield event
        if last is not None:
            for event in await self._finished(call, held, last):
                yield event

    async def _finished(
        self, call: HookedModelCall, held: list[TypedEvent], last: ModelStopReason
    ) -> list[TypedEvent]:
        if last.stop_reason == "cancelled":
            return [last]  # there is no answer to look at, nor to show
        text = _text_of(last.message["content"])
        return _applied(await self._wait(call.finish({"text": text})), held, last)

    def _work(self, agent: Any, state: object) -> _Work:
        """The invocation that an event belongs to; a direct tool call has none."""
        work = self._works.get(agent, {}).get(id(state))
        if work is not None:
            return work
        session = self._session_of(getattr(agent, "session_id", None))
        return _Work(session, HookedTurn(session, ""), state)

    async def _on_tool(self, event: BeforeToolCallEvent[Any]) -> None:
        tool, use = event.selected_tool, event.tool_use
        if event.cancel_tool or _is_output(tool):
            return
        work = self._work(event.agent, event.invocation_state)
        call = await self._asked(event, work)
        if call.refused:
            event.cancel_tool = call.message
            return
        if call.tool_input != _input_of(use):
            _record(event.agent, use, call.tool_input)
        caller = None
        if tool is not None and tool.tool_type == "agent":
            caller = _Caller(work.session, work.turn, use["name"])
            self._adopt(getattr(tool, "agent", None), caller)
        calls = self._calls.setdefault(event.agent, {})
        calls[use["toolUseId"]] = _Call(call, caller)

    async def _asked(
        self, event: BeforeToolCallEvent[Any], work: _Work
    ) -> HookedToolCall:
        """Begin a call; raise Strands' interrupt if a person has to decide."""
        use, confirm = event.tool_use, self._confirm
        answered: bool | None = None
        if (question := work.questions.get(use["toolUseId"])) is not None:
            answered = default_evaluate(event.interrupt("hookline", reason=question))
        # Strands has no interrupts in tools that are called directly.
        is_direct = "event_loop_cycle_id" not in event.invocation_state
        begin = work.turn.begin_tool
        call = await self._wait(
            begin(
                use["name"],
                _input_of(use),
                confirm=confirm if answered is None else answered,
                defer=self._interrupts and not is_direct,
            )
        )
        if call.question is None:
            return call
        question = {
            "reason": call.question,
            "tool_name": use["name"],
            "tool_input": call.tool_input,
        }
        work.questions[use["toolUseId"]] = question
        answered = default_evaluate(event.interrupt("hookline", reason=question))
        return await self._wait(begin(use["name"], _input_of(use), confirm=answered))

    async def _on_result(self, event: AfterToolCallEvent[Any]) -> None:
        calls = self._calls.get(event.agent, {})
        made = calls.pop(event.tool_use["toolUseId"], None)
        if made is None or event.cancel_message is not None:
            return
        if made.caller is not None:
            _release(made.caller.agent)
        result: dict[str, Any] = dict(event.result)
        if made.caller is not None and made.caller.refusal is not None:
            result["status"] = "error"
        if result.get("cancelled") is not True:
            given = event.exception or _given(result)
            _apply(await self._wait(made.call.finish(given)), result)
        if result != event.result:
            event.result = result  # type: ignore[assignment, unused-ignore]

    async def _on_results(self, event: AfterToolsEvent) -> None:
        turn = self._work(event.agent, event.invocation_state).turn
        if turn.stop_reason is not None:
            event.end_turn = turn.stop_reason

    async def _on_node(self, event: BeforeNodeCallEvent) -> None:
        crew = self._crews.get(event.source)
        if crew is None:  # several nodes may start at once
            crew = asyncio.ensure_future(self._crew(event.source))
            self._crews[event.source] = crew
        # One node may be cancelled while others wait.
        whole = await asyncio.shield(crew)
        source: Any = event.source
        caller = replace(whole, agent_type=event.node_id)
        self._adopt(source.nodes[event.node_id].executor, caller)

    def _on_node_end(self, event: AfterNodeCallEvent) -> None:
        source: Any = event.source
        _release(source.nodes[event.node_id].executor)

    async def _crew(self, source: Any) -> _Caller:
        """Begin the turn of a whole Graph or Swarm."""
        caller = _callers.pop(source, None)
        manager = getattr(source, "session_manager", None)
        own_id = getattr(manager, "session_id", None) or f"{source.id}-{uuid.uuid4()}"
        session = self._session_of(own_id, caller)
        begun = _begun(session, _task_of(source), caller, _NO_EFFECT_ON_CREWS)
        turn = await self._wait(begun)
        refusal = turn.reason if turn.refused else None
        return _Caller(session, turn, "", None, turn.additions, refusal, caller)

    def _on_crew_end(self, event: AfterMultiAgentInvocationEvent) -> None:
        state: Any = getattr(event.source, "state", None)
        own = getattr(state, "status", None)  # a Swarm has the other one
        if (own or getattr(state, "completion_status", None)) is not Status.INTERRUPTED:
            self._crews.pop(event.source, None)

    def _adopt(self, agent: Any, caller: _Caller) -> None:
        """Make an agent obey these hooks, as a subagent of its caller."""
        registry = getattr(agent, "hooks", None)
        if not isinstance(registry, HookRegistry):
            return
        if registry not in _registries:
            registry.add_hook(self)
            self._watch(agent)
        caller.agent = agent
        _callers[agent] = caller


def _release(agent: Any) -> None:
    """Forget who runs an agent, if it has not run."""
    if isinstance(getattr(agent, "hooks", None), HookRegistry):
        _callers.pop(agent, None)


async def _begun(
    session: Session, prompt: str, caller: _Caller | None, no_effect: dict[str, str]
) -> HookedTurn:
    """Begin the turn of an agent, or of a subagent that nothing has stopped."""
    await session.warn_ineffective("Strands", no_effect)
    if caller is None:
        return await session.begin_turn(prompt)
    reason = caller.run.stop_reason or caller.refusal
    if reason is None:
        return await session.begin_subagent(caller.agent_type, prompt)
    turn = HookedTurn(session, prompt)
    turn.stop(reason)
    return turn


async def _model_call(work: _Work, context: Any) -> tuple[HookedModelCall, bool]:
    """Begin a model call; whether its answer is held back for hooks."""
    call = await work.turn.begin_model(
        _request(context),
        available_tools=[spec["name"] for spec in _tools_of(context)],
        translator=StableTranslator(),
    )
    return call, await work.session.has_hooks("AfterModel")


def _start(event: BeforeInvocationEvent, work: _Work) -> None:
    """Refuse the turn, or add what hooks added to its prompt."""
    turn, caller = work.turn, work.caller
    if turn.refused:
        event.cancel = turn.reason or True
        return
    additions = [*([] if caller is None else caller.additions), *turn.additions]
    if event.messages and additions:
        *before, last = event.messages
        blocks: Any = [*last["content"], *({"text": text} for text in additions)]
        event.messages = [*before, {**last, "content": blocks}]
        return
    for text in additions:
        turn.note(text)


def _forget_refusal(agent: Any, turn: HookedTurn) -> None:
    """Take the reason out of the history: its prompt is not there either.

    Services want the turns of a history in order.
    """
    reason = [{"text": turn.reason}]
    if turn.refused and agent.messages and agent.messages[-1]["content"] == reason:
        agent.messages.pop()


def _is_text(block: Mapping[str, Any]) -> bool:
    return "text" in block or "citationsContent" in block


def _text_of(content: Any) -> str:
    """The text of content blocks, citations included."""
    if isinstance(content, str):
        return content
    texts = [
        _text_of(block["citationsContent"].get("content", []))
        if "citationsContent" in block
        else block.get("text", "")
        for block in content
    ]
    return "".join(texts)


def _prompt_of(messages: list[Any]) -> str:
    """What the user says in messages."""
    texts = [_text_of(m["content"]) for m in messages if m["role"] == "user"]
    return "\n\n".join(filter(None, texts))


def _latest_prompt(messages: list[Any]) -> list[Any]:
    return next(([m] for m in reversed(messages) if _prompt_of([m])), [])


def _task_of(source: Any) -> str:
    """What a Graph or Swarm was asked to do."""
    task = source.state.task
    is_messages = isinstance(task, list) and all("role" in item for item in task)
    return _prompt_of(task) if is_messages else _text_of(task)


def _request(context: Any) -> dict[str, Any]:
    """The stable shape of a model call; ``at`` is the place in Strands' own list."""
    messages = [
        {
            "role": "model" if message["role"] == "assistant" else "user",
            "content": text,
            "at": at,
        }
        for at, message in enumerate(context.messages)
        if (text := _text_of(message["content"]))
    ]
    config = context.model.get_config()
    model = config.get("model_id") if isinstance(config, Mapping) else None
    return {"model": str(model or type(context.model).__name__), "messages": messages}


def _is_output(tool: Any) -> bool:
    """Whether a tool is how Strands gets structured output, no tool of the user's."""
    return tool is not None and tool.tool_type == "structured_output"


def _tools_of(context: Any) -> list[Any]:
    registry = context.agent.tool_registry
    tools = {**registry.registry, **registry.dynamic_tools}
    return [s for s in context.tool_specs if not _is_output(tools.get(s["name"]))]


def _changed_context(context: Any, call: HookedModelCall) -> Any:
    """The model call as hooks want it."""
    changes, allowed = call.changes, call.allowed_names
    if changes.config or changes.model:
        logger.warning(
            "a hook's change of model or settings has no effect in Strands: %s",
            ", ".join([*changes.config, *(["model"] if changes.model else [])]),
        )
    specs, choice = context.tool_specs, context.tool_choice
    if allowed is not None:
        refused = [s for s in _tools_of(context) if s["name"] not in allowed]
        specs = [spec for spec in specs if spec not in refused]
    if choice is None and specs and _mode_of(call.request) == "ANY":
        choice = {"any": {}}
    return context.replace(
        messages=_edited(context.messages, call),
        tool_specs=specs,
        tool_choice=choice,
        dynamic_trailing_blocks=context.dynamic_trailing_blocks + len(changes.appended),
    )


def _mode_of(request: Any) -> Any:
    chosen = request.get("toolConfig") if isinstance(request, Mapping) else None
    return chosen.get("mode") if isinstance(chosen, Mapping) else None


def _edited(messages: list[Any], call: HookedModelCall) -> list[Any]:
    changes = call.changes
    if not changes:
        return messages
    number = {shown["at"]: n for n, shown in enumerate(call.given["messages"])}
    edited: list[Any] = []
    for at, message in enumerate(messages):
        n = number.get(at, -1)
        for new in changes.inserted.get(n, []):
            _add(edited, new)
        if n in changes.edited or n in changes.removed:
            kept = _with_text(message, changes.edited.get(n))
        else:
            kept = message
        if kept["content"]:
            edited.append(kept)
    for new in changes.appended:
        _add(edited, new)
    return edited


def _with_text(message: Any, text: str | None) -> Any:
    """A message with another text, or without; tool calls and results stay."""
    blocks = [block for block in message["content"] if not _is_text(block)]
    said = [] if text is None else [{"text": text}]
    return {**message, "content": [*said, *blocks]}


def _add(messages: list[Any], new: LLMMessage) -> None:
    """Add a message; services want the roles to alternate."""
    text = f"[System] {new.content}" if new.role == "system" else new.content
    role = "assistant" if new.role == "model" else "user"
    if messages and messages[-1]["role"] == role:
        last = messages.pop()
        messages.append({**last, "content": [*last["content"], {"text": text}]})
    else:
        messages.append({"role": role, "content": [{"text": text}]})


def _answer(call: HookedModelCall) -> list[TypedEvent]:
    """What hooks answer in the model's place."""
    is_answer = call.response is not None and call.stop_reason is None
    usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    return _said(
        (call.text if is_answer else "") or call.stop_reason or call.reason or "",
        "end_turn" if is_answer else "guardrail_intervened",
        usage,
        {"latencyMs": 0},
    )


def _said(text: str, stop: Any, usage: Any, metrics: Any) -> list[TypedEvent]:
    message: Any = {"role": "assistant", "content": [{"text": text}]}
    shown = TypedEvent({"data": text, "delta": {"text": text}})
    return [shown, ModelStopReason(stop, message, usage, metrics)]


def _applied(
    outcome: ModelOutcome, held: list[TypedEvent], last: ModelStopReason
) -> list[TypedEvent]:
    """The events of an answer after its hooks; nothing that they removed is left."""
    # A service's own order to redact the history has to arrive.
    orders = [event for event in held if "redactContent" in event.get("event", {})]
    if not outcome.changed and outcome.stop_reason is None:
        return [*(orders if outcome.suppress_display else held), last]
    if any("toolUse" in block for block in last.message["content"]):
        logger.warning("a hook's change of an answer drops the tool calls in it")
    stop = "end_turn" if outcome.stop_reason is None else "guardrail_intervened"
    text = outcome.text if outcome.stop_reason is None else outcome.stop_reason
    events = _said(text, stop, last.usage, last.metrics)
    return [*orders, *(events[1:] if outcome.suppress_display else events)]


def _input_of(use: Any) -> dict[str, Any]:
    return dict(use["input"]) if isinstance(use["input"], Mapping) else {}


def _record(agent: Any, use: Any, tool_input: dict[str, Any]) -> None:
    """Change the input of a call where it runs and in the history."""
    use["input"] = tool_input
    last = agent.messages[-1] if agent.messages else {"content": []}
    for block in last["content"]:
        if block.get("toolUse", {}).get("toolUseId") == use["toolUseId"]:
            block["toolUse"]["input"] = tool_input
            _store(agent, last)


def _store(agent: Any, message: Any) -> None:
    """Store the latest message again: session managers had it before the change."""
    manager = getattr(agent, "_session_manager", None)
    if manager is not None and agent.messages and agent.messages[-1] is message:
        manager.redact_latest_message(message, agent)


def _given(result: Mapping[str, Any]) -> ToolResult:
    """What a tool returned, for its hooks."""
    blocks = result["content"]
    is_text = all("text" in block for block in blocks)
    content: Any = "\n".join(b["text"] for b in blocks) if is_text else blocks
    if result["status"] != "error":
        return ToolResult(llm_content=content)
    return ToolResult(llm_content=content, error=content if is_text else "Error")


def _apply(outcome: ToolOutcome, result: dict[str, Any]) -> None:
    """Put what hooks said into a tool's result."""
    if outcome.withheld or outcome.stop_reason is not None:
        result["content"] = [{"text": str(outcome.content)}]
        result["status"] = "error"
    added = [{"text": text} for text in outcome.additions]
    if added:
        result["content"] = [*result["content"], *added]
