"""Hooks for agents of Google's Agent Development Kit (google-adk).

``HooklinePlugin`` goes into ``App(plugins=[...])`` and guards every agent of the app.
``HooklineRunner`` is a ``Runner`` that also goes on where AfterAgent hooks reject an
answer, which no plugin can do. An invocation of ADK is one turn, and the id of its
session is that of the hooks' session.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    session_of,
)
from hookline.errors import HooklineError, MissingExtraError
from hookline.translators.genai import GenerateContentRequest

try:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.runners import Runner
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as problem:
    raise MissingExtraError("google-adk", "google-adk") from problem

_NAME = "google-adk"
_NO_SEAM = "ADK has no callback for it"
_INEFFECTIVE = dict.fromkeys(("SessionStart", "SessionEnd", "PreCompress"), _NO_SEAM)
_NOT_LIVE = ("BeforeAgent", "AfterAgent", "BeforeModel", "AfterModel",
             "BeforeToolSelection")  # fmt: skip
_MAX_PAUSED = 1000
_AgentKey = tuple[str, str | None]
"""An agent's name and its branch."""


class _Invocation:
    """What hooks decided so far in one invocation of ADK."""

    def __init__(self, plugin: HooklinePlugin, context: InvocationContext) -> None:
        caller = _caller.get()
        # A run inside of a tool call, as AgentTool makes one, is part of the caller's.
        self.caller = caller if caller and caller.plugin is plugin else None
        self.plugin = plugin
        self.entry = context.agent.name if context.agent else None
        self.session = (
            self.caller.session if self.caller else plugin.session_for(context)
        )
        self.run: HookedRun = self.session.begin_run()
        self.turn: HookedTurn | None = None
        self.notes: list[str] = []
        self.is_watched = False
        self.is_blocked = False
        self.agents: dict[_AgentKey, HookedTurn] = {}
        self.answers: dict[_AgentKey, str] = {}
        self.answer = ""
        self.waiting: set[str] = set()
        """Ids of the calls that somebody outside has yet to answer."""
        self.begun: dict[str, HookedToolCall] = {}
        self.asked: set[str] = set()
        self.late: dict[str, HookedToolCall] = {}
        # By the object that all callbacks of one call share, which is kept alive here.
        self.models: dict[int, tuple[Any, HookedModelCall]] = {}
        self.tools: dict[int, tuple[Any, HookedToolCall]] = {}

    async def begin_turn(self, prompt: str) -> HookedTurn:
        self.run = self.turn = await self.session.begin_turn(prompt)
        return self.turn

    def run_of(self, agent: str, branch: str | None) -> HookedRun:
        return self.agents.get((agent, branch), self.run)

    def notes_for(self, agent: str, branch: str | None) -> list[str]:
        turn = self.agents.get((agent, branch))
        return self.notes if turn is None else turn.additions

    def stop(self, reason: str | None) -> None:
        """Refuse every further call, also of the agents around this one."""
        if reason is not None:
            for run in (self.run, *self.agents.values()):
                run.stop(reason)
            if self.caller is not None:
                self.caller.stop(reason)

    async def finish(self) -> str | None:
        """Fire AfterAgent, unless there is no answer to show."""
        if self.turn is None or self.is_blocked or self.waiting:
            return None
        return await self.turn.finish(self.answer)

    def read(self, event: Event) -> None:
        """Remember answers, and the calls that wait for somebody outside."""
        self.waiting |= set(event.long_running_tool_ids or ())
        self.waiting -= {answer.id or "" for answer in event.get_function_responses()}
        text = _text(event.content)
        if text and event.is_final_response() and event.author != "user":
            self.answer = self.answers[event.author, event.branch] = text


_caller: ContextVar[_Invocation | None] = ContextVar("hookline_adk", default=None)


class _Watch:
    """A run of HooklineRunner's, which the plugin recognizes by its message."""

    def __init__(self, turn: HookedTurn | None = None) -> None:
        self.turn = turn
        self.invocation: _Invocation | None = None
        self.refusal: str | None = None
        """Why AfterAgent hooks ended the turn."""

    async def finish(self) -> str | None:
        """Fire AfterAgent: None, or what to go on with."""
        invocation = self.invocation
        self.turn = invocation.turn if invocation else None
        if invocation is None or self.turn is None or self.turn.refused:
            return None
        again = await invocation.finish()
        self.refusal = self.turn.reason if self.turn.refused else None
        return again


class HooklinePlugin(BasePlugin):
    """Fires the hooks around turns, agents, model calls and tools of an app.

    Put it first: a plugin that answers before it keeps the hooks from being asked.
    """

    def __init__(
        self,
        config_or_session: ConfigOrSession,
        *,
        confirm: Confirm | None = None,
        approval: bool = True,
        name: str = "hookline",
    ) -> None:
        super().__init__(name=name)
        self.session = session_of(config_or_session)
        self._has_own_id = isinstance(config_or_session, Session)
        self._confirm = confirm
        # Without a callback a person is asked by ADK's own tool confirmation.
        self._asks_by_adk = approval and confirm is None
        self._invocations: dict[tuple[str, str], _Invocation] = {}
        self._paused: dict[tuple[str, str], _Invocation] = {}
        self._watches: dict[object, _Watch] = {}

    def session_for(self, context: InvocationContext) -> Session:
        """The session of the given config with the id of ADK's session."""
        if self._has_own_id:
            return self.session
        return self.session.view(context.session.id)

    def watch(self, watch: _Watch, *keys: object) -> None:
        """Let a runner finish the turn that starts with one of these keys."""
        self._watches.update(dict.fromkeys(keys, watch))

    def unwatch(self, *keys: object) -> None:
        """Forget the keys of a run that has ended."""
        for key in keys:
            self._watches.pop(key, None)

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Fire BeforeAgent, and AfterTool for results that come late."""
        invocation = self._open(invocation_context, id(user_message))
        parts = user_message.parts or []
        if any(part.function_response for part in parts):
            return await self._with_late_results(invocation, user_message)
        if invocation.caller is not None or invocation.turn is not None:
            return None
        turn = await invocation.begin_turn(_text(user_message))
        if turn.refused:
            # ADK records the message; it must not go out with the next request.
            return _content(f"[Removed by a hook: {turn.reason}]", "user")
        added = [types.Part(text=f"\n\n{text}") for text in turn.additions]
        return types.Content(role="user", parts=[*parts, *added]) if added else None

    async def before_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> types.Content | None:
        """End the run here if a hook refused its turn."""
        invocation = self._open(invocation_context, invocation_context.invocation_id)
        await self._refuse_live(invocation_context)
        await invocation.session.warn_ineffective(_NAME, _INEFFECTIVE)
        if invocation.caller is not None:
            return None
        if invocation.turn is None:
            # Resumed after a restart, or another plugin took the message.
            await invocation.begin_turn(_prompt_of(invocation_context))
            invocation.notes = invocation.turn.additions if invocation.turn else []
        turn = invocation.turn
        return _content(turn.reason) if turn and turn.refused else None

    async def after_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> None:
        """Fire AfterAgent, unless the runner does so."""
        invocation = self._close(invocation_context)
        if invocation is None or invocation.is_watched:
            return
        reason = "a plugin cannot make the agent go on: use HooklineRunner"
        await invocation.session.warn_ineffective(_NAME, {"AfterAgent": reason})
        await invocation.finish()

    async def on_run_error_callback(
        self, *, invocation_context: InvocationContext, error: Exception
    ) -> None:
        """Forget the run."""
        self._close(invocation_context)

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """Fire SubagentStart for every agent but the one that the turn is for."""
        invocation = self._of(callback_context)
        reason = invocation.run.stop_reason
        if reason is None and _is_subagent(agent, invocation):
            reason = await self._begin_subagent(agent, callback_context, invocation)
        if invocation.run.stop_reason is not None:
            callback_context.actions.escalate = True  # a loop would go on for ever
        return None if reason is None else _content(reason)

    async def after_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """Fire SubagentStop; a rejected answer is followed by the reason."""
        invocation = self._of(callback_context)
        key = (agent.name, callback_context.branch)
        turn = invocation.agents.pop(key, None)
        task = asyncio.current_task()
        if turn is None or turn.refused or (task is not None and task.cancelling()):
            return None
        again = await turn.finish(invocation.answers.get(key, ""))
        invocation.stop(turn.stop_reason)
        reason = turn.stop_reason or again
        return None if reason is None else _content(reason)

    async def on_agent_error_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext, error: Exception
    ) -> None:
        """Forget the subagent: it has no answer."""
        key = (agent.name, callback_context.branch)
        self._of(callback_context).agents.pop(key, None)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Fire BeforeToolSelection and BeforeModel."""
        invocation = self._of(callback_context)
        who = (callback_context.agent_name, callback_context.branch)
        run = invocation.run_of(*who)
        if notes := invocation.notes_for(*who):
            llm_request.append_instructions(notes)
        request = GenerateContentRequest(
            llm_request.model or "", llm_request.contents, llm_request.config
        )
        call = await run.begin_model(
            request, available_tools=list(llm_request.tools_dict)
        )
        invocation.stop(run.stop_reason)
        if call.refused:
            return self._refused_model(call, callback_context, invocation, run)
        if call.request is not request:
            llm_request.model = call.request.model
            llm_request.contents = list(call.request.contents)
            llm_request.config = call.request.config
        if call.allowed_names is not None:
            _restrict(llm_request, call.allowed_names)
        actions = callback_context.actions
        invocation.models[id(actions)] = (actions, call)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Fire AfterModel; partial responses wait for it, and are not shown."""
        invocation = self._of(callback_context)
        _, call = invocation.models.get(id(callback_context.actions), (None, None))
        if call is None or not llm_response.content:
            return None
        if llm_response.partial:
            is_held = await invocation.session.has_hooks("AfterModel")
            return LlmResponse(partial=True) if is_held else None
        outcome = await call.finish(_response(llm_response))
        invocation.stop(outcome.stop_reason)
        if outcome.stop_reason is not None:
            return LlmResponse(content=_content(outcome.stop_reason))
        if outcome.changed:
            return LlmResponse(content=_content(outcome.text))
        if llm_response.get_function_calls():
            # Their input may change below: nobody else shares these objects then.
            llm_response.content = llm_response.content.model_copy(deep=True)
        return None

    async def on_model_error_callback(
        self,
        *,
        callback_context: CallbackContext,
        llm_request: LlmRequest,
        error: Exception,
    ) -> LlmResponse | None:
        """Forget the call: it has no answer."""
        models = self._of(callback_context).models
        models.pop(id(callback_context.actions), None)
        return None

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Fire BeforeTool before ADK records the calls, with their changed input."""
        invocation = self._open(invocation_context)
        if event.partial:
            return None
        invocation.read(event)
        run = invocation.run_of(event.author, event.branch)
        calls = [call for call in event.get_function_calls() if _is_new(call)]
        begun = await asyncio.gather(
            *(
                self._begin_tool(
                    invocation, run, call.name or "", call.args or {}, defer=True
                )
                for call in calls
            )
        )
        for call, hooked in zip(calls, begun, strict=True):
            invocation.begun[call.id or ""] = hooked
            if not hooked.refused or hooked.question:
                call.args = hooked.tool_input
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Fire BeforeTool unless that has happened, and apply what it said."""
        invocation = self._of(tool_context)
        run = invocation.run_of(tool_context.agent_name, tool_context.branch)
        call = await self._hooked_tool(invocation, run, tool, tool_args, tool_context)
        invocation.stop(run.stop_reason)
        call_id = tool_context.function_call_id or ""
        if call.question is not None:
            invocation.asked.add(call_id)
            tool_context.request_confirmation(hint=call.question)
            tool_context.actions.skip_summarization = True
        if call.refused:
            return {"error": call.message}
        problem = run.problem(tool.name) or _declined(invocation, tool_context)
        if problem is not None:
            return {"error": problem}
        tool_args.clear()
        tool_args.update(call.tool_input)
        invocation.tools[id(tool_context)] = (tool_context, call)
        _caller.set(invocation)
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,
    ) -> dict[str, Any] | None:
        """Fire AfterTool, once there is a result."""
        invocation, call = self._taken(tool_context)
        if call is None or _is_asking(tool_context):
            return None
        if not result and (tool.is_long_running or isinstance(tool, AgentTool)):
            invocation.late[tool_context.function_call_id or ""] = call
            return None
        outcome = await call.finish(result)
        invocation.stop(outcome.stop_reason)
        return _answer(outcome) if outcome.changed else None

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: BaseException,
    ) -> dict[str, Any] | None:
        """Fire AfterTool with the error; what hooks add is told to the model."""
        invocation, call = self._taken(tool_context)
        if call is None or not isinstance(error, Exception):
            return None  # a cancelled tool has no result
        outcome = await call.finish(error)
        invocation.stop(outcome.stop_reason)
        is_told = outcome.additions or outcome.withheld or outcome.stop_reason
        return _answer(outcome) if is_told else None

    async def _begin_subagent(
        self, agent: BaseAgent, context: CallbackContext, invocation: _Invocation
    ) -> str | None:
        """Fire SubagentStart; a reason if the agent must not run."""
        # ADK runs the agent of a task by the id of the call, without a tool call.
        task = invocation.begun.get(context.isolation_scope or "")
        if task is not None and task.refused:
            return task.message
        prompt = _text(context.user_content)
        turn = await invocation.session.begin_subagent(agent.name, prompt)
        invocation.stop(turn.stop_reason)
        if turn.refused:
            return turn.reason or ""
        invocation.agents[agent.name, context.branch] = turn
        return None

    def _refused_model(
        self,
        call: HookedModelCall,
        context: CallbackContext,
        invocation: _Invocation,
        run: HookedRun,
    ) -> LlmResponse:
        context.actions.escalate = True if run.stop_reason is not None else None
        if call.response is not None:
            return LlmResponse(content=_content(call.text))
        invocation.is_blocked |= run is invocation.run
        return LlmResponse(content=_content(call.reason))

    async def _begin_tool(
        self,
        invocation: _Invocation,
        run: HookedRun,
        name: str,
        args: dict[str, Any],
        *,
        defer: bool,
        confirmed: bool | None = None,
    ) -> HookedToolCall:
        # ADK cannot resume a run that is nested in a tool call.
        is_deferred = defer and self._asks_by_adk and invocation.caller is None
        confirm = self._confirm if confirmed is None else confirmed
        return await run.begin_tool(name, args, confirm=confirm, defer=is_deferred)

    async def _hooked_tool(
        self,
        invocation: _Invocation,
        run: HookedRun,
        tool: BaseTool,
        args: dict[str, Any],
        context: ToolContext,
    ) -> HookedToolCall:
        begun = invocation.begun.pop(context.function_call_id or "", None)
        said = context.tool_confirmation
        if begun is not None and said is None and begun.tool_name == tool.name:
            # Two calls may have one id: what runs is what hooks have seen.
            if begun.refused or begun.tool_input == args:
                return begun
        return await self._begin_tool(
            invocation,
            run,
            tool.name,
            args,
            defer=context.node is None and bool(context.function_call_id),
            confirmed=None if said is None else said.confirmed,
        )

    async def _with_late_results(
        self, invocation: _Invocation, message: types.Content
    ) -> types.Content | None:
        """Fire AfterTool for the results of long-running tools."""
        parts = []
        for part in message.parts or []:
            answer = part.function_response
            call = invocation.late.pop(answer.id or "", None) if answer else None
            if answer is not None and call is not None:
                outcome = await call.finish(answer.response)
                invocation.stop(outcome.stop_reason)
                if outcome.changed:
                    changed = answer.model_copy(update={"response": _answer(outcome)})
                    part = types.Part(function_response=changed)
            parts.append(part)
        is_same = all(a is b for a, b in zip(parts, message.parts or [], strict=True))
        return None if is_same else types.Content(role="user", parts=parts)

    async def _refuse_live(self, context: InvocationContext) -> None:
        """Hooks cannot hold back what a live model says: refuse to start."""
        is_cfc = context.run_config is not None and context.run_config.support_cfc
        if context.live_request_queue is None and not is_cfc:
            return
        for event in _NOT_LIVE:
            if await self.session.has_hooks(event):
                raise HooklineError(f"{event} hooks cannot guard run_live of {_NAME}")

    def _open(self, context: InvocationContext, *keys: object) -> _Invocation:
        key = (context.session.id, context.invocation_id)
        invocation = self._invocations.get(key) or self._paused.pop(key, None)
        if invocation is None:
            invocation = _Invocation(self, context)
        if key not in self._invocations:
            self._invocations[key] = invocation
            # No callback tells about a run that is cancelled.
            forget = weakref.finalize(
                context.session, self._invocations.pop, key, None
            )
            forget.atexit = False
        for watch in filter(None, map(self._watches.get, keys)):
            watch.invocation = invocation
            invocation.is_watched = True
            if watch.turn is not None:
                invocation.run = invocation.turn = watch.turn
        return invocation

    def _of(self, context: CallbackContext) -> _Invocation:
        return self._open(context.get_invocation_context())

    def _close(self, context: InvocationContext) -> _Invocation | None:
        key = (context.session.id, context.invocation_id)
        invocation = self._invocations.pop(key, None)
        if invocation is not None and invocation.waiting:
            self._paused[key] = invocation
            if len(self._paused) > _MAX_PAUSED:
                self._paused.pop(next(iter(self._paused)))
        return invocation

    def _taken(self, context: ToolContext) -> tuple[_Invocation, HookedToolCall | None]:
        invocation = self._of(context)
        _caller.set(invocation.caller)
        return invocation, invocation.tools.pop(id(context), (None, None))[1]


class HooklineRunner(Runner):
    """A Runner that goes on with the reason where AfterAgent hooks reject an answer.

    Takes the arguments of ``Runner``. The hooks are those of the given config, or of
    the app's own HooklinePlugin.
    """

    def __init__(
        self,
        config_or_session: ConfigOrSession | None = None,
        *,
        confirm: Confirm | None = None,
        approval: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        plugins = self.plugin_manager.plugins
        found = [plugin for plugin in plugins if isinstance(plugin, HooklinePlugin)]
        if not found and config_or_session is None:
            raise TypeError("HooklineRunner needs a config, or an app with its plugin")
        if found and config_or_session is not None:
            raise TypeError("the app has a HooklinePlugin: give no config as well")
        if config_or_session is not None:
            plugin = HooklinePlugin(
                config_or_session, confirm=confirm, approval=approval
            )
            found = [plugin]
        self._hookline = found[0]
        # First, so that no other plugin answers in its place.
        plugins[:] = [*found, *(p for p in plugins if p not in found)]

    async def run_async(
        self,
        *,
        user_id: str,
        session_id: str,
        new_message: types.Content | None = None,
        **options: Any,
    ) -> AsyncGenerator[Event, None]:
        """Run a turn; its last answer is shown once AfterAgent hooks accept it."""
        ids = {"user_id": user_id, "session_id": session_id}
        message, watch = _copy(new_message), _Watch()
        is_held = await self._hookline.session.has_hooks("AfterAgent")
        again: str | None = ""
        while again is not None:
            last: Event | None = None
            run = self._watched(watch, message, {**ids, **options})
            async with aclosing(run) as events:
                async for event in events:
                    if last is not None:
                        yield last
                    last = event if is_held and event.is_final_response() else None
                    if last is None:
                        yield event
            again = await watch.finish()
            if again is None:
                if watch.refusal is not None:
                    last = await self._recorded(watch.refusal, last, **ids)
                if last is not None:
                    yield last
            else:
                message, watch = _content(again, "user"), _Watch(watch.turn)
                options = {"run_config": options.get("run_config")}

    async def _watched(
        self, watch: _Watch, message: types.Content | None, options: dict[str, Any]
    ) -> AsyncGenerator[Event, None]:
        keys = [id(message), options.get("invocation_id")]
        self._hookline.watch(watch, *filter(None, keys))
        try:
            run = super().run_async(new_message=message, **options)
            async with aclosing(run) as events:
                async for event in events:
                    yield event
        finally:
            self._hookline.unwatch(*keys)

    async def _recorded(self, reason: str, last: Event | None, **ids: str) -> Event:
        """The event that ends a turn in place of its answer."""
        event = Event(
            invocation_id=last.invocation_id if last else "",
            author=last.author if last else self.agent.name,
            content=_content(reason),
        )
        session = await self.session_service.get_session(app_name=self.app_name, **ids)
        if session is not None:
            await self.session_service.append_event(session=session, event=event)
        return event


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _content(text: str | None, role: str = "model") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text or "")])


def _copy(message: types.Content | None) -> types.Content | None:
    """A message that no other run has, so that the plugin can recognize it."""
    if message is None:
        return None
    return types.Content(role="user", parts=message.parts)


def _prompt_of(context: InvocationContext) -> str:
    """The text that started an invocation."""
    mine = [e for e in context.session.events if e.author == "user"]
    texts = [_text(e.content) for e in mine if e.invocation_id == context.invocation_id]
    return next(filter(None, texts), _text(context.user_content))


def _is_subagent(agent: BaseAgent, invocation: _Invocation) -> bool:
    is_entry = agent.name == invocation.entry and agent.parent_agent is None
    return invocation.caller is not None or not is_entry


def _is_new(call: types.FunctionCall) -> bool:
    """Whether a call is for a tool, and not ADK's own way to ask a person."""
    return bool(call.id) and not (call.name or "").startswith("adk_request_")


def _is_asking(context: ToolContext) -> bool:
    """Whether the tool waits for a person, and has no result yet."""
    asked = context.actions
    waiting = {*asked.requested_tool_confirmations, *asked.requested_auth_configs}
    return context.function_call_id in waiting


def _declined(invocation: _Invocation, context: ToolContext) -> str | None:
    """A person's no holds, even if the hooks do not ask again."""
    said = context.tool_confirmation
    is_no = said is not None and not said.confirmed
    asked = context.function_call_id in invocation.asked
    return "Declined by the user" if is_no and asked else None


def _response(response: LlmResponse) -> types.GenerateContentResponse:
    """What the translator reads; nothing but this reaches a changed answer."""
    candidate = types.Candidate(
        content=response.content, finish_reason=response.finish_reason
    )
    return types.GenerateContentResponse(
        candidates=[candidate],
        usage_metadata=response.usage_metadata,
        model_version=response.model_version,
    )


def _answer(outcome: ToolOutcome) -> dict[str, Any]:
    """A tool's result as ADK hands it to the model, with what hooks added."""
    content = outcome.content
    if outcome.error is not None:
        answer = {"error": content}
    else:
        answer = dict(content) if isinstance(content, dict) else {"result": content}
    if outcome.additions:
        answer["additional_context"] = "\n\n".join(outcome.additions)
    return answer


def _restrict(request: LlmRequest, allowed: frozenset[str]) -> None:
    """Offer only the allowed tools, whatever the model makes of a tool config."""
    tools = list(_offered(request.config.tools or [], allowed))
    update: dict[str, Any] = {"tools": tools}
    if not any(getattr(tool, "function_declarations", None) for tool in tools):
        update["tool_config"] = None  # services reject a choice of no tools
    request.config = request.config.model_copy(update=update)
    known = request.tools_dict.items()
    request.tools_dict = {name: tool for name, tool in known if name in allowed}


def _offered(tools: Any, allowed: frozenset[str]) -> Iterator[Any]:
    for tool in tools:
        declared = getattr(tool, "function_declarations", None)
        if not declared:
            yield tool
            continue
        kept = [one for one in declared if one.name in allowed]
        left = tool.model_copy(update={"function_declarations": kept or None})
        if left.model_dump(exclude_none=True):
            yield left
