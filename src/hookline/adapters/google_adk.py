"""Hooks for agents of Google's Agent Development Kit (google-adk).

``HooklinePlugin`` goes into ``App(plugins=[...])`` and guards every agent of the app.
``HooklineRunner`` is a ``Runner`` that also goes on where AfterAgent hooks reject an
answer, which no plugin can do. An invocation of ADK is one turn, and the id of its
session is that of the hooks' session.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
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
)
from hookline.errors import HooklineError, MissingExtraError
from hookline.translators.genai import GenerateContentRequest

from .kit import (
    JudgedCalls,
    Sessions,
    answer_of,
    changed_answer,
    joined,
    with_hooks,
)

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
_INEFFECTIVE = dict.fromkeys(
    ("SessionStart", "SessionEnd", "PreCompress"), "ADK has no callback for it"
)
_GO_ON = {"AfterAgent": "a plugin cannot make the agent go on: use HooklineRunner"}
_NOT_LIVE = (
    "BeforeAgent", "AfterAgent", "BeforeToolSelection", "BeforeModel", "AfterModel",
)  # fmt: skip
_REFUSED = b"hookline"
_MAX_PAUSED = 1000
_Who = tuple[str, str | None]
"""An agent's name and its branch."""


class _Invocation:
    """What hooks decided so far in one invocation of ADK."""

    def __init__(
        self, context: InvocationContext, session: Session, caller: _Invocation | None
    ) -> None:
        self.key = (context.session.id, context.invocation_id)
        self.entry = context.agent.name if context.agent else None
        self.session, self.caller = session, caller
        # ADK resumes neither a live run nor one that is nested in a tool call.
        self.can_ask = caller is None and context.live_request_queue is None
        self.run = HookedRun(session, self.stop)
        self.turn: HookedTurn | None = None
        self.notes: list[str] = []
        self.is_watched = self.has_no_answer = False
        self.agents: dict[_Who, HookedTurn] = {}
        self.models: dict[_Who, HookedModelCall] = {}
        self.answers: dict[_Who, str] = {}
        self.answer = ""
        self.waiting: set[str] = set()
        """Ids of calls that somebody outside has yet to answer."""
        self.begun = JudgedCalls()
        self.late: dict[str, HookedToolCall] = {}
        self.tools: dict[ToolContext, HookedToolCall] = {}

    async def begin_turn(self, prompt: str) -> HookedTurn:
        self.run = self.turn = HookedTurn(self.session, prompt, self.stop)
        return await self.turn.begin()

    def stop(self, reason: str) -> None:
        """Refuse every further call, also of the agents around this one.

        Whichever run is stopped by a hook, this is called.
        """
        for run in (self.run, *self.agents.values()):
            run.stop(reason)
        if self.caller is not None:
            self.caller.run.stop(reason)

    async def finish(self) -> str | None:
        """Fire AfterAgent, unless there is no answer to show."""
        if self.turn is None or self.has_no_answer or self.waiting:
            return None
        return await self.turn.finish(self.answer)

    async def finish_tool(
        self, call: HookedToolCall, result: Any
    ) -> dict[str, Any] | None:
        """Fire AfterTool; a result as ADK gives it to the model if hooks changed it."""
        outcome = await call.finish(result)
        if not outcome.changed:
            return None
        content = outcome.content
        if outcome.error is not None:
            answer = {"error": content}
        else:
            answer = dict(content) if isinstance(content, dict) else {"result": content}
        if outcome.additions:
            answer["additional_context"] = joined(outcome.additions)
        return answer

    def refusal(self, context: CallbackContext, reason: str | None) -> types.Content:
        """A reason in an agent's place; a thought where ADK expects a schema's text."""
        agent, content = context.get_invocation_context().agent, _content(reason)
        if self.caller is not None or getattr(agent, "output_schema", None):
            for part in content.parts or []:
                part.thought, part.thought_signature = True, _REFUSED
        return content

    def read(self, event: Event) -> None:
        """Remember answers, and the calls that wait for somebody outside."""
        self.waiting |= set(event.long_running_tool_ids or ())
        self.waiting -= {answer.id or "" for answer in event.get_function_responses()}
        text = _text(event.content)
        for part in (event.content and event.content.parts) or []:
            if part.thought_signature == _REFUSED:
                text = part.text or ""
                if self.caller is None:
                    event.content = _content(text)
                else:
                    event.error_message = text  # what AgentTool takes then
        if text and event.is_final_response() and event.author != "user":
            self.answer = self.answers[event.author, event.branch] = text


_callers: ContextVar[dict[object, _Invocation]] = ContextVar("hookline_adk")
"""The invocation whose tool is running, by plugin; ADK runs each in its own task."""


class HooklinePlugin(BasePlugin):
    """Fires the hooks around turns, agents, model calls and tools of an app.

    Of a config each session of ADK is one of ours; a session is used as it is.
    Put it first: a plugin that answers before it keeps the hooks from being asked.
    ``ask`` uses ADK's tool confirmation unless there is a ``confirm`` callback; with
    ``approval=False`` the settings decide.
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
        self._sessions = Sessions(config_or_session)
        self.session = self._sessions.default
        self._confirm = confirm
        self._is_asking_by_adk = approval and confirm is None
        self._invocations: dict[tuple[str, str], _Invocation] = {}
        self._paused: dict[tuple[str, str], _Invocation] = {}
        self.attempts: dict[object, list[_Invocation]] = {}
        """Of the turns that a runner finishes, by message or invocation id."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Fire BeforeAgent, and AfterTool for results that come late."""
        invocation = self._open(invocation_context, id(user_message))
        parts = user_message.parts or []
        if any(part.function_response for part in parts):
            changed = [await self._late_result(invocation, part) for part in parts]
            is_same = changed == parts
            return None if is_same else types.Content(role="user", parts=changed)
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
        context = invocation_context
        invocation = self._open(context, context.invocation_id)
        is_cfc = context.run_config is not None and context.run_config.support_cfc
        # Nothing could hold back what a live model says.
        unguarded = _NOT_LIVE if context.live_request_queue or is_cfc else ()
        for event in await with_hooks(self.session, *unguarded):
            problem = f"{event} hooks cannot guard a live run: use run_async"
            raise HooklineError(problem)
        await self.session.warn_ineffective(_NAME, _INEFFECTIVE)
        if invocation.caller is not None:
            return None
        turn = invocation.turn
        if turn is None:
            # Resumed after a restart, or another plugin took the message.
            prompts = [
                event
                for event in context.session.events
                if event.author == "user" and event.invocation_id == invocation.key[1]
            ]
            turn = await invocation.begin_turn(_first_text(prompts, context))
            invocation.notes = turn.additions
        return _content(turn.reason) if turn.refused else None

    async def after_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> None:
        """Fire AfterAgent, unless the runner does so."""
        key = (invocation_context.session.id, invocation_context.invocation_id)
        invocation = self._invocations.pop(key, None)
        if invocation is None or invocation.turn is None:
            return
        if invocation.waiting:
            self._paused[key] = invocation
            if len(self._paused) > _MAX_PAUSED:
                del self._paused[next(iter(self._paused))]
        invocation.has_no_answer |= invocation_context.is_aborted
        if not invocation.is_watched:
            await self.session.warn_ineffective(_NAME, _GO_ON)
            await invocation.finish()

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """Fire SubagentStart for every agent but the one that the turn is for."""
        context, invocation = callback_context, self._of(callback_context)
        run, reason = invocation.run, invocation.run.stop_reason
        is_entry = agent.name == invocation.entry and agent.parent_agent is None
        if reason is None and (invocation.caller is not None or not is_entry):
            task = await self._begin_task(invocation, context)
            if task is not None and task.refused:
                reason = task.message
            else:
                prompts = [
                    event
                    for event in reversed(context.session.events)
                    if event.author == "user" and event.branch == context.branch
                ]
                prompt = _first_text(prompts, context)
                turn = await invocation.session.begin_subagent(
                    context.agent_name, prompt, parent=run
                )
                if turn.refused:
                    reason = turn.reason or ""
                else:
                    invocation.agents[_who(context)] = turn
        if run.stop_reason is not None:
            context.actions.escalate = True  # or a loop would never end
        return None if reason is None else invocation.refusal(context, reason)

    async def after_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        """Fire SubagentStop; a rejection or a stop follows the answer."""
        invocation, who = self._of(callback_context), _who(callback_context)
        turn, task = invocation.agents.pop(who, None), asyncio.current_task()
        if turn is None or turn.refused or (task is not None and task.cancelling()):
            return None
        reason = await turn.finish(invocation.answers.get(who, "")) or turn.stop_reason
        return None if reason is None else invocation.refusal(callback_context, reason)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Fire BeforeToolSelection and BeforeModel."""
        invocation, who = self._of(callback_context), _who(callback_context)
        subagent = invocation.agents.get(who)
        run = subagent or invocation.run
        if notes := subagent.additions if subagent else invocation.notes:
            llm_request.append_instructions(notes)
        request = GenerateContentRequest(
            llm_request.model or "", llm_request.contents, llm_request.config
        )
        tools = list(llm_request.tools_dict)
        call = await run.begin_model(request, available_tools=tools)
        invocation.models[who] = call
        answer = answer_of(call)
        if answer is None:
            _apply(llm_request, request, call)
            return None
        if not answer.is_ending:
            return LlmResponse(content=_content(answer.text))
        invocation.has_no_answer |= run is invocation.run
        invocation.agents.pop(who, None)  # a subagent without an answer has no stop
        return LlmResponse(content=invocation.refusal(callback_context, answer.text))

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Fire AfterModel; partial responses wait for it, and are not shown."""
        invocation = self._of(callback_context)
        call = invocation.models.get(_who(callback_context))
        if call is None or llm_response.content is None:
            return None
        if llm_response.partial:
            is_held = await self.session.has_hooks("AfterModel")
            return LlmResponse(partial=True) if is_held else None
        # Of the response no more than this: log probabilities and the like spell it.
        candidate = types.Candidate(
            content=llm_response.content, finish_reason=llm_response.finish_reason
        )
        response = types.GenerateContentResponse(
            candidates=[candidate], usage_metadata=llm_response.usage_metadata
        )
        outcome = await call.finish(response)
        answer = changed_answer(outcome)
        if answer is not None:
            refusal = invocation.refusal(callback_context, answer.text)
            content = refusal if answer.is_ending else _content(answer.text)
            return LlmResponse(content=content)
        if llm_response.get_function_calls():
            # Their input may change below: nobody else shares these objects then.
            llm_response.content = llm_response.content.model_copy(deep=True)
        return None

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Fire BeforeTool before ADK records the calls, with their changed input."""
        if event.partial:
            return None
        invocation = self._open(invocation_context)
        invocation.read(event)
        run = invocation.agents.get((event.author, event.branch), invocation.run)
        # Some calls are ADK's own way to ask a person.
        calls = [
            call
            for call in event.get_function_calls()
            if call.id and not (call.name or "").startswith("adk_request_")
        ]
        began = [
            self._begin_tool(invocation, run, call, is_askable=True) for call in calls
        ]
        for call, hooked_call in zip(calls, await asyncio.gather(*began), strict=True):
            if not hooked_call.refused or hooked_call.question is not None:
                call.args = hooked_call.tool_input
            invocation.begun.add(call.id, hooked_call, call.args or {})
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Apply what BeforeTool said; fires it for a call that was not recorded."""
        invocation = self._of(tool_context)
        confirmation = tool_context.tool_confirmation
        run = invocation.agents.get(_who(tool_context), invocation.run)
        call_id = tool_context.function_call_id
        call = invocation.begun.take(tool.name, tool_args, call_id or "")
        if confirmation is not None:
            call = await run.begin_tool(
                tool.name, tool_args, confirm=confirmation.confirmed
            )
        elif call is None:
            # Two calls may have one id: what runs is what hooks have seen.
            function_call = types.FunctionCall(name=tool.name, args=tool_args)
            is_askable = tool_context.node is None and bool(call_id)
            call = await self._begin_tool(
                invocation, run, function_call, is_askable=is_askable
            )
        if call.question is not None:
            tool_context.request_confirmation(hint=call.question)
            tool_context.actions.skip_summarization = True
        problem = call.message if call.refused else run.problem(tool.name)
        if confirmation and not confirmation.confirmed and _was_held(tool_context):
            # It holds even if the hooks do not ask again.
            problem = problem or "Declined by the user"
        if problem is not None:
            return {"error": problem}
        tool_args.clear()
        tool_args.update(call.tool_input)
        invocation.tools[tool_context] = call
        _callers.set({**_callers.get({}), self: invocation})
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_context: ToolContext, result: Any, **_: Any
    ) -> dict[str, Any] | None:
        """Fire AfterTool, once there is a result."""
        invocation = self._of(tool_context)
        call = invocation.tools.pop(tool_context, None)
        actions, call_id = tool_context.actions, tool_context.function_call_id or ""
        waiting = {
            *actions.requested_tool_confirmations,
            *actions.requested_auth_configs,
        }
        if call is None or call_id in waiting:
            return None
        if not result and (tool.is_long_running or isinstance(tool, AgentTool)):
            invocation.late[call_id] = call
            return None
        return await invocation.finish_tool(call, result)

    async def on_tool_error_callback(
        self, *, tool_context: ToolContext, error: BaseException, **_: Any
    ) -> dict[str, Any] | None:
        """Fire AfterTool with the error; what hooks add is told to the model."""
        invocation = self._of(tool_context)
        call = invocation.tools.pop(tool_context, None)
        if call is None or not isinstance(error, Exception):
            return None  # a cancelled tool has no result
        return await invocation.finish_tool(call, error)

    async def _begin_task(
        self, invocation: _Invocation, context: CallbackContext
    ) -> HookedToolCall | None:
        """The call that an agent of mode "task" works on: no tool runs for it.

        ADK starts such an agent by the id of the call, in later turns again.
        """
        scope = context.isolation_scope
        task = invocation.begun.find(scope) if scope else None
        if scope and (task is None or task.question is not None):
            events = context.session.events
            for call in (c for event in events for c in event.get_function_calls()):
                if call.id == scope:
                    task = await self._begin_tool(invocation, invocation.run, call)
                    invocation.begun.add(scope, task, call.args or {})
        return task

    async def _begin_tool(
        self,
        invocation: _Invocation,
        run: HookedRun,
        call: types.FunctionCall,
        *,
        is_askable: bool = False,
    ) -> HookedToolCall:
        defer = is_askable and self._is_asking_by_adk and invocation.can_ask
        name, args = call.name or "", call.args or {}
        return await run.begin_tool(name, args, confirm=self._confirm, defer=defer)

    async def _late_result(
        self, invocation: _Invocation, part: types.Part
    ) -> types.Part:
        """Fire AfterTool for the result of a long-running tool."""
        answer = part.function_response or types.FunctionResponse()
        invocation.waiting.discard(answer.id or "")
        call = invocation.late.pop(answer.id or "", None)
        response = call and await invocation.finish_tool(call, answer.response)
        if not response:
            return part
        answer = answer.model_copy(update={"response": response})
        return types.Part(function_response=answer)

    def _open(self, context: InvocationContext, start: object = None) -> _Invocation:
        key = (context.session.id, context.invocation_id)
        if key not in self._invocations:
            # A run inside of a tool call, as AgentTool makes one, is its caller's.
            caller = _callers.get({}).get(self)
            around = None if caller is None else caller.run
            session = self._sessions.of(context.session.id, around)
            invocation = self._paused.pop(key, None)
            invocation = invocation or _Invocation(context, session, caller)
            invocation.is_watched = False
            self._invocations[key] = invocation
            # No callback tells about a run that is cancelled.
            forget = weakref.finalize(context.session, self._invocations.pop, key, None)
            forget.atexit = False
        invocation = self._invocations[key]
        attempts = self.attempts.get(start)
        if attempts is not None and invocation not in attempts:
            invocation.is_watched = True
            if attempts and (turn := attempts[-1].turn) is not None:
                invocation.run = invocation.turn = turn
            attempts.append(invocation)
        return invocation

    def _of(self, context: CallbackContext) -> _Invocation:
        invocation = self._open(context.get_invocation_context())
        caller = invocation.caller
        if caller is not None and caller.run.stop_reason is not None:
            invocation.stop(caller.run.stop_reason)
        return invocation


class HooklineRunner(Runner):
    """A Runner that goes on with the reason where AfterAgent hooks reject an answer.

    Takes the arguments of ``Runner``. The hooks are those of ``config_or_session``,
    or of the app's own HooklinePlugin, which also explains ``confirm`` and
    ``approval``.
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
        own_plugins = [p for p in plugins if isinstance(p, HooklinePlugin)]
        if config_or_session is not None:
            if own_plugins:
                raise TypeError("the app has a HooklinePlugin: give no config as well")
            own_plugins.append(
                HooklinePlugin(config_or_session, confirm=confirm, approval=approval)
            )
        if not own_plugins:
            raise TypeError("HooklineRunner needs a config, or an app with its plugin")
        self._hookline = own_plugins[0]
        # First, so that no other plugin answers in its place.
        plugins[:] = [*own_plugins, *(p for p in plugins if p not in own_plugins)]

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
        # A copy that no other run has, so that the plugin can recognize it.
        message = new_message and types.Content(role="user", parts=new_message.parts)
        attempts: list[_Invocation] = []
        is_held = await self._hookline.session.has_hooks("AfterAgent")
        rejection: str | None = ""
        while rejection is not None:
            last_events: list[Event] = []
            keys = [id(message), options.get("invocation_id")]
            self._hookline.attempts |= dict.fromkeys(filter(None, keys), attempts)
            run = super().run_async(new_message=message, **ids, **options)
            try:
                async with aclosing(run) as events:
                    async for event in events:
                        if event.content is not None:
                            for held_event in last_events:
                                yield held_event
                            last_events = []
                        is_last = (
                            event.content is not None and event.is_final_response()
                        )
                        # Events without content may follow the answer.
                        if last_events or (is_held and is_last):
                            last_events.append(event)
                        else:
                            yield event
            finally:
                for key in keys:
                    self._hookline.attempts.pop(key, None)
            rejection = await self._finish(attempts, last_events, **ids)
            for event in last_events:
                yield event
            message = _content(rejection, "user")
            for name in ("invocation_id", "state_delta", "yield_user_message"):
                options.pop(name, None)

    async def _finish(
        self, attempts: list[_Invocation], last_events: list[Event], **ids: str
    ) -> str | None:
        """Fire AfterAgent: what to go on with; takes a rejected answer out."""
        turn = attempts[-1].turn if attempts else None
        if turn is None or turn.refused:
            return None
        rejection = await attempts[-1].finish()
        if rejection is None and turn.ended is None:
            return None
        author = last_events.pop(0).author if last_events else self.agent.name
        if rejection is None:
            event = Event(
                invocation_id=attempts[-1].key[1],
                author=author,
                content=_content(turn.reason),
            )
            service = self.session_service
            session = await service.get_session(app_name=self.app_name, **ids)
            if session is not None:
                await service.append_event(session=session, event=event)
            last_events.append(event)
        return rejection


def _who(context: CallbackContext) -> _Who:
    return context.agent_name, context.branch


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _content(text: str | None, role: str = "model") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text or "")])


def _first_text(
    events: list[Event], context: InvocationContext | CallbackContext
) -> str:
    """The first text of these events; the user's message if they have none."""
    texts = (_text(event.content) for event in events)
    return next(filter(None, texts), _text(context.user_content))


def _was_held(context: ToolContext) -> bool:
    """Whether a call did not run so far; a tool that asks by itself answers."""
    events, call_id = context.session.events, context.function_call_id
    answers = [answer for event in events for answer in event.get_function_responses()]
    results = [
        answer.response
        for answer in answers
        if answer.id == call_id and answer.response
    ]
    return any("error" in response for response in results)


def _apply(
    request: LlmRequest, sdk_request: GenerateContentRequest, call: HookedModelCall
) -> None:
    """Change a request of ADK's in place."""
    changed, allowed = call.request, call.allowed_names
    if allowed is not None:
        # Not every model of ADK's reads the names in a tool config.
        changed = call.translator.limit_tools(changed, allowed)
        tools = request.tools_dict.items()
        request.tools_dict = {name: tool for name, tool in tools if name in allowed}
    if changed is not sdk_request:
        request.model, request.config = changed.model, changed.config
        request.contents = list(changed.contents)
    if allowed is not None and not request.config.tools:
        # Services reject a choice of no tools.
        request.config = request.config.model_copy(update={"tool_config": None})
