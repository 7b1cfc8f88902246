"""Strands: ``Agent(hooks=[HooklineHooks(config)])`` obeys hooks.

Tool and turn events come from Strands' own hooks, model events from middleware around
its model calls. Agents that a hooked agent calls as tools, and the nodes of a hooked
Graph or Swarm, get the same hooks; their runs are those of subagents (decision 0120).
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
)
from hookline.errors import HooklineError, MissingExtraError
from hookline.protocol.values import same_json
from hookline.translators.changes import RequestChanges
from hookline.translators.shape import LLMMessage
from hookline.translators.stable import StableTranslator

from .kit import (
    Answer,
    MessageShape,
    Sessions,
    answer_of,
    changed_answer,
    must_call_tool,
    service_role,
    shown_result,
    stable_role,
    warn_of_settings,
    with_hooks,
)

try:
    from strands import hooks
    from strands.hooks import HookOrder, HookRegistry
    from strands.interventions.actions import default_evaluate
    from strands.middleware import InvokeModelStage
    from strands.multiagent.base import Status
    from strands.types.events import ModelStopReason, TypedEvent
except ModuleNotFoundError as error:
    raise MissingExtraError("strands", "strands-agents") from error

T = TypeVar("T")
_KEY = "hookline"
_REFUSED = "[System] A hook refused this prompt."
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

    run: HookedRun
    agent_type: str
    additions: list[str] = field(default_factory=list)
    turn: HookedTurn | None = None
    """That of the subagent, once it has begun."""


@dataclass
class _Work:
    """One invocation of an agent."""

    turn: HookedTurn
    state: object
    """Strands' own state of the invocation: held, so that its id stays unique."""
    goes_on: bool = False
    has_answer: bool = True
    questions: dict[str, Any] = field(default_factory=dict)


_hooked: WeakKeyDictionary[HookRegistry, WeakSet[HooklineHooks]] = WeakKeyDictionary()
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
        self._sessions = Sessions(config_or_session)
        self._session = self._sessions.default
        self._confirm = confirm
        self._interrupts = interrupts
        self._works: WeakKeyDictionary[Any, dict[int, _Work]] = WeakKeyDictionary()
        self._calls: WeakKeyDictionary[
            Any, list[tuple[str, HookedToolCall, _Caller | None]]
        ] = WeakKeyDictionary()
        self._crews: WeakKeyDictionary[Any, asyncio.Future[_Caller]]
        self._crews = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Register all callbacks; Strands calls this."""
        providers = _hooked.setdefault(registry, WeakSet())
        if self in providers:
            return
        providers.add(self)
        add, last = registry.add_callback, HookOrder.SDK_LAST
        # Last, so that hooks see what is sent and what runs.
        add(hooks.BeforeInvocationEvent, self._on_begin, order=last)
        add(hooks.BeforeToolCallEvent, self._on_tool, order=last)
        add(hooks.AfterToolCallEvent, self._on_result)
        add(hooks.AfterToolsEvent, self._on_results)
        add(hooks.AfterInvocationEvent, self._on_end)
        add(hooks.BeforeNodeCallEvent, self._on_node)
        add(hooks.AfterNodeCallEvent, self._on_node_end)
        add(hooks.AfterMultiAgentInvocationEvent, self._on_crew_end)

    async def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for hooks; those of a plain call outlive the event loop made for it.

        Strands makes such a loop in a thread of its own, and no public name tells it.
        """
        if threading.current_thread() is threading.main_thread():
            return await work
        return await asyncio.to_thread(self._session.run_sync, work)

    def _work(self, event: Any) -> _Work | None:
        """What an event belongs to; a tool that is called directly has none."""
        return self._works.get(event.agent, {}).get(id(event.invocation_state))

    def _run(self, event: Any) -> HookedRun:
        if (work := self._work(event)) is not None:
            return work.turn

        def stop(reason: str) -> None:
            for around in self._works.get(event.agent, {}).values():
                around.turn.stop(reason)

        session = self._sessions.of(getattr(event.agent, "session_id", None))
        return HookedRun(session, stop)

    async def _on_begin(self, event: hooks.BeforeInvocationEvent) -> None:
        agent, state = event.agent, event.invocation_state
        if event.messages is None:  # Strands' old ``structured_output()``
            for name in await self._wait(with_hooks(self._session, *_SKIPPED)):
                raise HooklineError(
                    f"structured_output() would skip the {name} hooks: call the agent "
                    "with structured_output_model=... instead"
                )
            return
        if agent not in self._works:
            self._works[agent] = {}
            agent.add_middleware(InvokeModelStage, self._on_model)
        if (work := self._work(event)) is not None and work.goes_on:
            work.goes_on = False
            return
        caller = _callers.pop(agent, None)
        parent = None if caller is None else caller.run
        session = self._sessions.of(agent.session_id, parent)
        paused = agent.state.get(_KEY)
        agent.state.delete(_KEY)
        if paused is not None and not event.messages:
            turn = session.resume_turn(paused["turn"], parent=parent)
            work = _Work(turn, state, questions=paused["questions"])
        elif event.cancel:
            return
        else:
            earlier = (_prompt_of([message]) for message in reversed(agent.messages))
            prompt = _prompt_of(event.messages) or next(filter(None, earlier), "")
            turn = await self._wait(_begin_turn(session, prompt, caller, _NO_EFFECT))
            work = _Work(turn, state)
            _add_to_prompt(event, turn, caller)
        self._works[agent][id(state)] = work
        if caller is not None:
            caller.turn = turn

    async def _on_end(self, event: hooks.AfterInvocationEvent) -> None:
        agent, result = event.agent, event.result
        works = self._works.get(agent, {})
        work = works.pop(id(event.invocation_state), None)
        if work is None:
            return
        turn = work.turn
        if result is None:
            self._calls.pop(agent, None)  # of tools that were cancelled
        elif result.stop_reason in _PAUSES:
            agent.state.set(_KEY, {"turn": turn.state, "questions": work.questions})
            return
        elif work.has_answer and result.stop_reason not in _UNFINISHED:
            answer = str(result).removesuffix("\n")
            rejection: Any = await self._wait(turn.finish(answer))
            if turn.clear_context:
                agent.messages.clear()
            if turn.refused and result.structured_output is not None:
                rejection = []  # then the refused model call gives the reason
            elif turn.refused:
                result.message["content"] = [{"text": turn.reason or ""}]
                _store(agent, result.message)
            if rejection is not None:
                event.resume, work.goes_on = rejection, True
                works[id(work.state)] = work

    async def _on_model(
        self, context: Any, send: Any
    ) -> AsyncGenerator[TypedEvent, None]:
        registry = context.agent.tool_registry
        config = context.model.get_config()
        name = config.get("model_id") if isinstance(config, Mapping) else None
        name = str(name or type(context.model).__name__)
        tools = registry.registry | registry.dynamic_tools
        names = [spec["name"] for spec in context.tool_specs]
        offered = [name for name in names if not _is_output(tools.get(name))]
        begin = self._run(context).begin_model(
            {"model": name, "messages": _MESSAGES.shown(context.messages)},
            available_tools=offered,
            translator=StableTranslator(),
        )
        call = await self._wait(begin)
        answer = answer_of(call)
        if (work := self._work(context)) is not None:
            work.has_answer = call.response is not None or not call.refused
        if answer is not None:
            usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
            for event in _answer_events(answer, usage, {"latencyMs": 0}):
                yield event
            return
        is_held = await self._wait(self._session.has_hooks("AfterModel"))
        held_events: list[TypedEvent] = []
        async for event in send(_changed_context(context, call, offered)):
            if is_held or isinstance(event, ModelStopReason):
                held_events.append(event)
            else:
                yield event
        for event in await self._wait(_finish_model(call, held_events)):
            yield event

    async def _on_tool(self, event: hooks.BeforeToolCallEvent[Any]) -> None:
        agent, tool, use = event.agent, event.selected_tool, event.tool_use
        if event.cancel_tool or _is_output(tool):
            return
        run = self._run(event)
        call = await self._begin_tool(event, run)
        if call.refused:
            event.cancel_tool = call.message
            return
        if call.changed_names:
            _record(agent, use, call.tool_input)
        caller = None
        if tool is not None and tool.tool_type == "agent":
            own_caller = _Caller(run, use["name"])
            caller = self._adopt(getattr(tool, "agent", None), own_caller)
        self._calls.setdefault(agent, []).append((use["toolUseId"], call, caller))

    async def _begin_tool(
        self, event: hooks.BeforeToolCallEvent[Any], run: HookedRun
    ) -> HookedToolCall:
        """Begin a call; raise Strands' interrupt if a person has to decide."""
        use, work = event.tool_use, self._work(event)
        tool_input = dict(use["input"]) if isinstance(use["input"], Mapping) else {}
        begin = partial(run.begin_tool, use["name"], tool_input)
        if work is None:  # Strands has no interrupts in tools that are called directly
            return await self._wait(begin(confirm=self._confirm))
        # Models repeat ids: a person decides about one tool with one input.
        questions = work.questions.setdefault(use["toolUseId"], [])
        subject = [use["name"], tool_input]
        question = next((q for q in questions if q["call"] == subject), None)
        if question is None:
            defer = self._interrupts
            call = await self._wait(begin(confirm=self._confirm, defer=defer))
            if call.question is None:
                return call
            question = {
                "call": subject,
                # Strands finds an answer by the call's id and the interrupt's name.
                "name": f"{_KEY}-{len(questions)}" if questions else _KEY,
                "reason": {
                    "reason": call.question,
                    "tool_name": use["name"],
                    "tool_input": call.tool_input,
                },
            }
            questions.append(question)
        reason = question["reason"]
        agreed = default_evaluate(event.interrupt(question["name"], reason=reason))
        call = await self._wait(begin(confirm=agreed))
        call.decide(agreed, earlier=reason["reason"])
        return call

    async def _on_result(self, event: hooks.AfterToolCallEvent[Any]) -> None:
        if event.cancel_message is not None:
            return
        use, calls = event.tool_use, self._calls.get(event.agent, [])
        entries = [entry for entry in calls if entry[0] == use["toolUseId"]]
        # Models repeat ids: the one with this input is meant.
        entries.sort(key=lambda entry: not same_json(entry[1].tool_input, use["input"]))
        if not entries:
            return
        calls.remove(entries[0])
        _, call, caller = entries[0]
        result: dict[str, Any] = dict(event.result)
        if caller is not None:
            _callers.pop(getattr(event.selected_tool, "agent", None), None)
            if caller.turn is not None and caller.turn.refused:
                result["status"] = "error"
        if result.get("cancelled") is not True:
            is_error = result["status"] == "error"
            tool_result = shown_result(result["content"], is_error=is_error)
            outcome = await self._wait(call.finish(event.exception or tool_result))
            if outcome.is_replaced:
                result["content"] = [{"text": str(outcome.content)}]
                result["status"] = "error"
            added = [{"text": text} for text in outcome.additions]
            result["content"] = [*result["content"], *added]
        if result != event.result:
            event.result = result  # type: ignore[assignment, unused-ignore]

    async def _on_results(self, event: hooks.AfterToolsEvent) -> None:
        reason = self._run(event).stop_reason
        if reason is not None:
            event.end_turn = reason

    async def _on_node(self, event: hooks.BeforeNodeCallEvent) -> None:
        source: Any = event.source
        crew = self._crews.get(source)
        if crew is None:  # several nodes may start at once
            crew = self._crews[source] = asyncio.ensure_future(self._crew(source))
        # One node may be cancelled while others wait.
        whole = await asyncio.shield(crew)
        caller = replace(whole, agent_type=event.node_id)
        self._adopt(source.nodes[event.node_id].executor, caller)

    def _on_node_end(self, event: hooks.AfterNodeCallEvent) -> None:
        source: Any = event.source
        executor = source.nodes[event.node_id].executor
        if getattr(executor, "hooks", None) in _hooked:
            _callers.pop(executor, None)  # if it has not run

    async def _crew(self, source: Any) -> _Caller:
        """Begin the turn of a whole Graph or Swarm."""
        caller = _callers.pop(source, None)
        manager = getattr(source, "session_manager", None)
        own_id = getattr(manager, "session_id", None) or f"{source.id}-{uuid.uuid4()}"
        parent = None if caller is None else caller.run
        session, task = self._sessions.of(own_id, parent), source.state.task
        is_messages = isinstance(task, list) and all("role" in item for item in task)
        prompt = _prompt_of(task) if is_messages else _text_of(task)
        turn = await self._wait(
            _begin_turn(session, prompt, caller, _NO_EFFECT_ON_CREWS)
        )
        return _Caller(turn, "", turn.additions)

    def _on_crew_end(self, event: hooks.AfterMultiAgentInvocationEvent) -> None:
        state: Any = getattr(event.source, "state", None)
        status = getattr(state, "status", None)  # a Swarm has the other one
        status = status or getattr(state, "completion_status", None)
        if status is not Status.INTERRUPTED:
            self._crews.pop(event.source, None)

    def _adopt(self, agent: Any, caller: _Caller) -> _Caller | None:
        """Make an agent obey these hooks, as a subagent of its caller."""
        registry = getattr(agent, "hooks", None)
        if not isinstance(registry, HookRegistry):
            return None
        if registry not in _hooked:
            registry.add_hook(self)
        _callers[agent] = caller
        return caller


async def _begin_turn(
    session: Session, prompt: str, caller: _Caller | None, no_effect: dict[str, str]
) -> HookedTurn:
    """Begin the turn of an agent, or of a subagent that nothing has stopped."""
    await session.warn_ineffective("Strands", no_effect)
    if caller is None:
        return await session.begin_turn(prompt)
    return await session.begin_subagent(caller.agent_type, prompt, parent=caller.run)


def _add_to_prompt(event: Any, turn: HookedTurn, caller: _Caller | None) -> None:
    """Add what hooks added to the prompt, or keep a refused one out of the history.

    The history has to stay in order, as services want it, also where it is stored: so
    the refused model call answers in the place of Strands' ``cancel``.
    """
    additions = [*([] if caller is None else caller.additions), *turn.additions]
    if event.messages and turn.refused:
        event.messages = [{"role": "user", "content": [{"text": _REFUSED}]}]
    elif event.messages and additions:
        *before, last = event.messages
        added = [{"text": text} for text in additions]
        event.messages = [*before, {**last, "content": [*last["content"], *added]}]
    else:
        for text in additions:
            turn.note(text)


def _text_of(content: Any) -> str:
    """The text of content blocks, citations included."""
    if isinstance(content, str):
        return content
    texts = (
        _text_of(block.get("citationsContent", {}).get("content", []))
        or block.get("text", "")
        for block in content
    )
    return "".join(texts)


def _prompt_of(messages: list[Any]) -> str:
    """What the user says in messages."""
    texts = [_text_of(m["content"]) for m in messages if m["role"] == "user"]
    return "\n\n".join(filter(None, texts))


def _is_output(tool: Any) -> bool:
    """Whether a tool is how Strands gets structured output, no tool of the user's."""
    return tool is not None and tool.tool_type == "structured_output"


def _changed_context(context: Any, call: HookedModelCall, offered: list[str]) -> Any:
    """The model call as hooks want it."""
    changes, allowed = call.changes, call.allowed_names
    warn_of_settings("Strands", changes)
    specs, choice = context.tool_specs, context.tool_choice
    if allowed is not None:
        specs = [spec for spec in specs if spec["name"] not in {*offered} - allowed]
    if choice is None and specs and must_call_tool(call):
        choice = {"any": {}}
    return context.replace(
        messages=_changed(context.messages, changes) if changes else context.messages,
        tool_specs=specs,
        tool_choice=choice,
        dynamic_trailing_blocks=context.dynamic_trailing_blocks + len(changes.appended),
    )


def _changed(messages: list[Any], changes: RequestChanges) -> list[Any]:
    """The messages as hooks want them; services want the roles to alternate."""
    changed: list[Any] = []
    for message in _MESSAGES.changed(messages, changes):
        if changed and changed[-1]["role"] == message["role"]:
            content = [*changed[-1]["content"], *message["content"]]
            changed[-1] = {**changed[-1], "content": content}
        else:
            changed.append(message)
    return changed


def _with_text(message: Any, text: str | None) -> Any:
    """A message with another text, or without; tool calls and results stay."""
    names = {"text", "citationsContent"}
    blocks = [block for block in message["content"] if names.isdisjoint(block)]
    text_blocks = [] if text is None else [{"text": text}]
    return (
        {**message, "content": [*text_blocks, *blocks]}
        if text_blocks or blocks
        else None
    )


def _new(new: LLMMessage) -> dict[str, Any]:
    if new.role == "system":  # Strands has no such messages
        return {"role": "user", "content": [{"text": f"[System] {new.content}"}]}
    return {"role": service_role(new.role), "content": [{"text": new.content}]}


_MESSAGES: MessageShape[Any] = MessageShape(
    role_of=lambda message: stable_role(message["role"]),
    text_of=lambda message: _text_of(message["content"]),
    with_text=_with_text,
    new=_new,
)


def _answer_events(answer: Answer, usage: Any, metrics: Any) -> list[TypedEvent]:
    """The events of what hooks say in the place of an answer."""
    text, is_ending = answer
    stop: Any = "guardrail_intervened" if is_ending else "end_turn"
    message: Any = {"role": "assistant", "content": [{"text": text}]}
    text_event = TypedEvent({"data": text, "delta": {"text": text}})
    return [text_event, ModelStopReason(stop, message, usage, metrics)]


async def _finish_model(
    call: HookedModelCall, held_events: list[Any]
) -> list[TypedEvent]:
    """The events of an answer after its hooks; nothing that they removed is left."""
    last = next(
        (e for e in reversed(held_events) if isinstance(e, ModelStopReason)), None
    )
    if last is None or last.stop_reason == "cancelled":
        return [] if last is None else [last]  # there is no answer to look at
    outcome = await call.finish({"text": _text_of(last.message["content"])})
    # A service's own order to redact the history has to arrive.
    orders = [
        event for event in held_events if "redactContent" in event.get("event", {})
    ]
    uses = [block["toolUse"] for block in last.message["content"] if "toolUse" in block]
    answer = changed_answer(outcome, (use["name"] for use in uses))
    if answer is None:
        return [*orders, last] if outcome.suppress_display else held_events
    events = _answer_events(answer, last.usage, last.metrics)
    return [*orders, *(events[1:] if outcome.suppress_display else events)]


def _record(agent: Any, use: Any, tool_input: dict[str, Any]) -> None:
    """Change the input of a call where it runs and in the history."""
    last = agent.messages[-1] if agent.messages else {"content": []}
    for block in last["content"]:
        if block.get("toolUse") == use:  # others may have the same id
            block["toolUse"]["input"] = tool_input
            _store(agent, last)
            break
    use["input"] = tool_input


def _store(agent: Any, message: Any) -> None:
    """Store the latest message again: session managers had it before the change."""
    # Strands has no public name for the manager (1.62.0), and no event for a change.
    manager = getattr(agent, "_session_manager", None)
    if manager is not None and agent.messages and agent.messages[-1] is message:
        manager.redact_latest_message(message, agent)
