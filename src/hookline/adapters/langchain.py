"""Hooks for LangChain: ``create_agent(..., middleware=[HooklineMiddleware(config)])``.

What later steps of a run must know is plain data where LangGraph keeps its own: a turn
in a private key of the state, a tool call in the ``response_metadata`` of its message.
So a run that waits for a person goes on in another process, and two runs never mix.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, ContextVar
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, NotRequired, TypeVar, cast

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    ToolResult,
    session_of,
)
from hookline.errors import MissingExtraError
from hookline.log import logger
from hookline.protocol.jsontext import encode
from hookline.translators.messages import RequestChanges
from hookline.translators.stable import LLMMessage

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        ToolCallRequest,
        hook_config,
    )
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.agents.structured_output import (
        ProviderStrategy,
        ProviderStrategyBinding,
    )
    from langchain_core.callbacks import BaseCallbackManager
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.runnables.config import set_config_context
    from langgraph.config import get_config
    from langgraph.constants import TAG_NOSTREAM
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.runtime import Runtime
    from langgraph.types import Command, interrupt
    from langgraph.typing import ContextT
except ImportError as error:
    raise MissingExtraError("langchain", "langchain") from error

T = TypeVar("T")
M = TypeVar("M", bound=BaseMessage)
Messages = Sequence[Any]
Update = dict[str, Any]
Told = ToolMessage | Command[Any]

KEY = "hookline"
"""Of the state, and of the ``response_metadata`` of messages."""
WITHHELD_PROMPT = "[prompt withheld by a hook]"
INEFFECTIVE = {
    "SessionStart": "LangChain does not tell when a conversation starts",
    "SessionEnd": "LangChain does not tell when a conversation ends",
    "PreCompress": "LangChain does not tell when a history is summarized",
}
_SETTINGS = {
    "temperature": "temperature",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
}
_ROLES: dict[type[BaseMessage], str] = {
    HumanMessage: "user",
    AIMessage: "model",
    SystemMessage: "system",
}


class _Caller(NamedTuple):
    """The tool call in which an agent runs, which makes it a subagent."""

    tool: str
    agent: str | None
    stops: list[str]
    """Why hooks stopped agents in it."""


_caller: ContextVar[_Caller | None] = ContextVar("hookline_caller", default=None)


class HooklineState(AgentState[Any]):
    """The state of an agent with hooks."""

    hookline: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


@dataclass(frozen=True)
class _Plain:
    """Runs a step of a plain agent: only the hooks go to the background loop."""

    session: Session
    handler: Callable[[Any], Any]

    async def hooks(self, work: Coroutine[Any, Any, T]) -> T:
        return self.session.run_sync(work)

    async def call(self, request: Any, context: Context | None = None) -> Any:
        if context is None:
            return self.handler(request)
        return context.run(self.handler, request)


@dataclass(frozen=True)
class _Async:
    """Runs a step of an async agent."""

    session: Session
    handler: Callable[[Any], Awaitable[Any]]

    async def hooks(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def call(self, request: Any, context: Context | None = None) -> Any:
        if context is None:
            return await self.handler(request)
        work = cast("Coroutine[Any, Any, Any]", self.handler(request))
        return await asyncio.create_task(work, context=context)


_Step = _Plain | _Async


def _now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, as with ``_Plain``."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("a plain step waits for nothing")


class HooklineMiddleware(AgentMiddleware[AgentState[Any], ContextT, Any]):
    """Runs hooks around the turns, model calls and tools of an agent.

    ``confirm`` answers a hook that asks. Without it the run is interrupted where the
    agent has a checkpointer; elsewhere ``hooksConfig.onAsk`` decides.
    """

    state_schema: type[AgentState[Any]] = HooklineState

    def __init__(
        self, config_or_session: ConfigOrSession, *, confirm: Confirm | None = None
    ) -> None:
        super().__init__()
        self._own = session_of(config_or_session)
        self._is_pinned = isinstance(config_or_session, Session)
        self._confirm = confirm

    def _session(self) -> Session:
        """The session of the thread that runs, or the one that was given."""
        thread = get_config()["configurable"].get("thread_id")
        if self._is_pinned or thread is None:
            return self._own
        return self._own.view(thread)

    @hook_config(can_jump_to=["end"])
    def before_agent(
        self, state: AgentState[Any], runtime: Runtime[ContextT]
    ) -> Update:
        """Fire BeforeAgent, or SubagentStart within a tool of another agent."""
        session = self._session()
        return session.run_sync(_begin(session, state))

    async def abefore_agent(
        self, state: AgentState[Any], runtime: Runtime[ContextT]
    ) -> Update:
        """As ``before_agent``."""
        return await _begin(self._session(), state)

    @hook_config(can_jump_to=["model"])
    def after_agent(
        self, state: AgentState[Any], runtime: Runtime[ContextT]
    ) -> Update | None:
        """Fire AfterAgent or SubagentStop; a rejected answer goes on at the model."""
        session = self._session()
        return session.run_sync(_end(session, state))

    async def aafter_agent(
        self, state: AgentState[Any], runtime: Runtime[ContextT]
    ) -> Update | None:
        """As ``after_agent``."""
        return await _end(self._session(), state)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Fire the events around a model call."""
        return _now(_model(_Plain(self._session(), handler), request))

    def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Coroutine[Any, Any, ExtendedModelResponse[Any]]:
        """As ``wrap_model_call``.

        Not an ``async def``: for each call of one, what LangChain wraps around it goes
        through a task and two threads, also where nothing is traced.
        """
        return _model(_Async(self._session(), handler), request)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]
    ) -> Told:
        """Fire the events around a tool call."""
        return _now(self._tool(_Plain(self._session(), handler), request))

    def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Any]],
    ) -> Coroutine[Any, Any, Told]:
        """As ``wrap_tool_call``; no ``async def`` for the same reason."""
        return self._tool(_Async(self._session(), handler), request)

    async def _tool(self, step: _Step, request: ToolCallRequest) -> Told:
        call, asked = await self._admitted(step, request), request.tool_call
        if call.refused:
            return _marked(
                _refusal(request, call.message), stop_reason=call.stop_reason
            )
        request = request.override(tool_call={**asked, "args": call.tool_input})
        caller = _Caller(asked["name"], _agent_name(), [])
        marks: Update = {}
        if call.tool_input != asked["args"]:
            marks["tool_input"] = call.tool_input
        try:
            with _within(caller):
                result = await step.call(request)
        except GraphBubbleUp:  # an interrupt: the call is not over
            raise
        except Exception as error:
            outcome = await step.hooks(call.finish(error))
            if not (outcome.withheld or outcome.stop_reason):
                raise
            return _told(None, request, outcome, marks)
        outcome = await step.hooks(call.finish(_seen(_message_in(result, asked["id"]))))
        marks["stop_reason"] = next(iter(caller.stops), None)
        return _told(result, request, outcome, marks)

    async def _admitted(self, step: _Step, request: ToolCallRequest) -> HookedToolCall:
        """Fire BeforeTool; a hook that asks interrupts the run until it is resumed."""
        turn, asked = _turn(step.session, request.state), request.tool_call
        can_wait = self._confirm is None and _has_checkpointer()
        call = await step.hooks(
            turn.begin_tool(
                asked["name"], asked["args"], confirm=self._confirm, defer=can_wait
            )
        )
        if call.question is None:
            return call
        is_approved = _is_approval(interrupt(_approval_request(asked, call)))
        return await step.hooks(
            turn.begin_tool(asked["name"], asked["args"], confirm=is_approved)
        )


def _turn(session: Session, state: Any) -> HookedTurn:
    """The turn that a step belongs to, as earlier steps left it."""
    if not isinstance(state, Mapping):  # of a graph that is not an agent's
        state = {"messages": state if isinstance(state, list) else ()}
    messages = state.get("messages", ())
    turn = session.resume_turn(state.get(KEY) or {"prompt": _text(*_prompts(messages))})
    for result in _latest_results(messages):
        if reason := _marks(result).get("stop_reason"):
            turn.stop(reason)
    return turn


async def _begin(session: Session, state: AgentState[Any]) -> Update:
    await session.warn_ineffective("LangChain", INEFFECTIVE)
    prompts, agent_type = _prompts(state["messages"]), _subagent_type()
    if agent_type is None:
        turn = await session.begin_turn(_text(*prompts))
    else:
        turn = await session.begin_subagent(agent_type, _text(*prompts))
    if turn.refused:
        # No later turn of the thread may send the prompt to the model either.
        hidden = [_with_content(one, WITHHELD_PROMPT) for one in prompts]
        new = [*hidden, AIMessage(turn.reason or "")]
        return {KEY: turn.state, "messages": new, "jump_to": "end"}
    if not turn.additions:
        return {KEY: turn.state}
    last = prompts[-1] if prompts else HumanMessage("")
    return {KEY: turn.state, "messages": [_extended(last, turn.additions)]}


async def _end(session: Session, state: AgentState[Any]) -> Update | None:
    turn = _turn(session, state)
    update = await (_closed if turn.refused else _judged)(turn, state)
    caller = _caller.get()
    if turn.stop_reason is not None and caller is not None:
        caller.stops.append(turn.stop_reason)
    return update


async def _closed(turn: HookedTurn, state: AgentState[Any]) -> Update | None:
    """The end of a turn that hooks ended, where a jump to the end leads too."""
    messages = state["messages"]
    new: list[BaseMessage] = _recorded(messages)
    if messages and isinstance(messages[-1], ToolMessage):
        new.append(AIMessage(turn.reason or ""))
    return {"messages": new} if new else None


async def _judged(turn: HookedTurn, state: AgentState[Any]) -> Update | None:
    """Show hooks the answer: accepted, to be tried again, or the end of the turn."""
    messages, answer = state["messages"], state.get("structured_response")
    new: list[BaseMessage] = _recorded(messages)
    text = _text(*messages[-1:]) if answer is None else encode(answer).decode()
    again = await turn.finish(text)
    if turn.clear_context:
        kept = [] if again else [*_prompts(messages), *messages[-1:]]
        new = [RemoveMessage(REMOVE_ALL_MESSAGES), *kept]
    if again is not None:
        new.append(HumanMessage(again))
        return {KEY: turn.state, "messages": new, "jump_to": "model"}
    if turn.refused:
        new.append(AIMessage(turn.reason or ""))
        return {"messages": new, "structured_response": None}
    return {"messages": new} if new else None


async def _model(step: _Step, request: ModelRequest[Any]) -> ExtendedModelResponse[Any]:
    state = request.state
    turn, recorded = _turn(step.session, state), _recorded(state["messages"])
    if recorded:
        newest = {one.id: one for one in recorded}
        messages = [newest.get(one.id, one) for one in request.messages]
        request = request.override(messages=messages)
    names = [_tool_name(tool) for tool in request.tools]
    call = await step.hooks(
        turn.begin_model(_stable_request(request), available_tools=names)
    )
    if call.refused:
        # An answer in the model's place is an answer; a plain block ends the turn.
        turn.blocked = not call.text
        response = _answer(call.text or call.reason)
    else:
        response = await _answered(step, call, _changed(request, call))
    response = replace(response, result=[*recorded, *response.result])
    is_known = turn.state == state.get(KEY)
    update: Command[Any] | None = (
        None if is_known else Command(update={KEY: turn.state})
    )
    return ExtendedModelResponse(response, update)


async def _answered(
    step: _Step, call: HookedModelCall, request: ModelRequest[Any]
) -> ModelResponse[Any]:
    is_held = await step.hooks(step.session.has_hooks("AfterModel"))
    with _unseen() if is_held else nullcontext() as context:
        response: ModelResponse[Any] = await step.call(request, context)
    message = next((m for m in response.result if isinstance(m, AIMessage)), None)
    if message is None:
        return response
    outcome = await step.hooks(call.finish({"text": _text(message)}))
    if outcome.stop_reason is not None:
        return _answer(outcome.stop_reason)
    if outcome.changed:
        return _rewritten(message, outcome.text, request, response)
    return response


def _answer(text: str | None) -> ModelResponse[Any]:
    return ModelResponse([AIMessage(text or "")])


def _rewritten(
    old: AIMessage, text: str, request: ModelRequest[Any], response: ModelResponse[Any]
) -> ModelResponse[Any]:
    """The answer that hooks made: nothing else of the first one is left (HOOK-079)."""
    if old.tool_calls:
        names = ", ".join(call["name"] for call in old.tool_calls)
        logger.warning("an AfterModel hook changed an answer: %s not called", names)
    new = AIMessage(text, id=old.id, name=old.name, usage_metadata=old.usage_metadata)
    if response.structured_response is None or old.tool_calls:
        return ModelResponse([new])
    schema = getattr(request.response_format, "schema", request.response_format)
    try:
        spec = ProviderStrategy(cast("Any", schema)).schema_spec
        parsed = ProviderStrategyBinding.from_schema_spec(spec).parse(new)
    except ValueError:
        return ModelResponse([new])
    return ModelResponse([new], parsed)


def _unseen() -> AbstractContextManager[Context]:
    """A context whose model calls appear in no stream."""
    config = get_config()
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for handler in [*callbacks.handlers, *callbacks.inheritable_handlers]:
            # By these ``astream_events`` and ``stream_mode="messages"`` listen.
            if hasattr(handler, "tap_output_iter"):
                callbacks.remove_handler(handler)
    tags = [*(config.get("tags") or ()), TAG_NOSTREAM]
    return set_config_context({**config, "callbacks": callbacks, "tags": tags})


def _stable_request(request: ModelRequest[Any]) -> Update:
    model, given = request.model, request.model_settings
    values = {
        key: given.get(name, getattr(model, name, None))
        for key, name in _SETTINGS.items()
    }
    named = [
        given.get("model"),
        *(getattr(model, n, None) for n in ("model_name", "model")),
    ]
    return {
        "model": next((n for n in named if isinstance(n, str)), type(model).__name__),
        "messages": [
            {"role": _role(one), "content": text}
            for one in request.messages
            if (text := _shown_text(one))
        ],
        "config": {key: value for key, value in values.items() if value is not None},
    }


def _shown_text(message: BaseMessage) -> str:
    """What hooks see of a message: they do not see results of tools."""
    return _text(message) if _role(message) else ""


def _changed(request: ModelRequest[Any], call: HookedModelCall) -> ModelRequest[Any]:
    """The request as the hooks want it."""
    request, changes = _restricted(request, call), call.changes
    if not changes:
        return request
    instructions: list[str] = []

    def new(message: LLMMessage) -> BaseMessage | None:
        if message.role == "model":
            return AIMessage(message.content)
        if message.role == "user":
            return HumanMessage(message.content)
        # Not every service takes system messages after the first.
        instructions.append(message.content)
        return None

    given: Messages = request.messages
    messages = changes.applied(given, text_of=_shown_text, edit=_with_text, make=new)
    system = request.system_message
    if instructions:
        system = _extended(system or SystemMessage(""), instructions)
    return request.override(
        messages=[one for one in messages if one is not None],
        system_message=system,
        model_settings=_settings(request.model_settings, changes),
    )


def _settings(given: Update, changes: RequestChanges) -> Update:
    wanted = {_SETTINGS[k]: v for k, v in changes.config.items() if k in _SETTINGS}
    if changes.model is not None:
        wanted["model"] = changes.model
    return {k: v for k, v in {**given, **wanted}.items() if v is not None}


def _restricted(request: ModelRequest[Any], call: HookedModelCall) -> ModelRequest[Any]:
    """The request with the tools that hooks leave, and the mode that they want."""
    names, choice = call.allowed_names, request.tool_choice
    if call.request.get("toolConfig", {}).get("mode") == "ANY":
        choice = "any"
    if names is None:
        return request if choice is None else request.override(tool_choice=choice)
    tools = [tool for tool in request.tools if _tool_name(tool) in names]
    words = {"auto", "any", "required", "none", *names}
    if not tools or (choice is not None and _tool_name(choice) not in words):
        choice = None
    return request.override(tools=tools, tool_choice=choice)


def _refusal(request: ToolCallRequest, text: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(
        text, name=call["name"], tool_call_id=call["id"] or "", status="error"
    )


def _seen(message: ToolMessage | None) -> ToolResult:
    """What hooks are shown of a result; a command need not hold a message."""
    if message is None:
        return ToolResult()
    error = _text(message) if message.status == "error" else None
    return ToolResult(llm_content=message.content, error=error)


def _told(
    result: Any, request: ToolCallRequest, outcome: ToolOutcome, marks: Update
) -> Told:
    """The result for the model: as the tool gave it, with what hooks said."""
    message = _message_in(result, request.tool_call["id"])
    if outcome.suppress_display:
        marks["suppress_display"] = True
    if outcome.stop_reason is not None:
        marks["stop_reason"] = outcome.stop_reason
    is_lost = message is None and marks.get("stop_reason") is not None
    if outcome.withheld or outcome.stop_reason is not None or is_lost:
        # The artifact, and a command's updates, are withheld with the text.
        return _marked(_refusal(request, outcome.text), **marks)
    if message is None:
        if outcome.additions:
            logger.warning("a command without a message drops %s", outcome.additions)
        return cast("Told", result)
    told = _marked(_extended(message, outcome.additions), **marks)
    return cast("Told", _with_message(result, message, told))


def _message_in(result: Any, call_id: str | None) -> ToolMessage | None:
    """The message that answers a call: alone, in a list or in a command's update."""
    if isinstance(result, ToolMessage):
        return result if result.tool_call_id == call_id else None
    if isinstance(result, Command):
        update = result.update
        result = update.get("messages") if isinstance(update, Mapping) else None
    if not isinstance(result, list):
        return None
    return next((m for one in result if (m := _message_in(one, call_id))), None)


def _with_message(result: Any, old: ToolMessage, new: ToolMessage) -> Any:
    if result is old:
        return new
    if isinstance(result, list):
        return [_with_message(one, old, new) for one in result]
    if isinstance(result, Command) and _message_in(result, old.tool_call_id) is old:
        update = cast("Update", result.update)
        messages = _with_message(update["messages"], old, new)
        return replace(result, update={**update, "messages": messages})
    return result


def _latest_results(messages: Messages) -> list[ToolMessage]:
    """The results since the last answer of the model."""
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            found.append(message)
    return found


def _recorded(messages: Messages) -> list[Any]:
    """The model's last message with the inputs that its calls ran with, if changed."""
    marks = {one.tool_call_id: _marks(one) for one in _latest_results(messages)}
    ran: Update = {
        key: one["tool_input"] for key, one in marks.items() if "tool_input" in one
    }
    message = next(
        (one for one in reversed(messages) if isinstance(one, AIMessage)), None
    )
    if message is None or not ran:
        return []
    calls = [
        {**one, "args": ran.get(one["id"] or "", one["args"])}
        for one in message.tool_calls
    ]
    if calls == message.tool_calls:
        return []
    content = message.content
    if isinstance(content, list):
        content = [_with_input(block, ran) for block in content]
    # Some services' own copy of the calls, which is not sent where there are calls.
    others = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    changed = {"tool_calls": calls, "content": content, "additional_kwargs": others}
    return [message.model_copy(update=changed)]


def _with_input(block: Any, ran: Mapping[str, Any]) -> Any:
    """A content block that repeats a call, as some services have it."""
    if not isinstance(block, dict) or block.get("id") not in ran:
        return block
    new = dict.fromkeys(("input", "args"), ran[block["id"]])
    return {key: new.get(key, value) for key, value in block.items()}


def _approval_request(asked: Mapping[str, Any], call: HookedToolCall) -> Update:
    """In the shape of LangChain's own human-in-the-loop middleware."""
    return {
        "type": "tool_approval",
        "tool_call_id": asked["id"],
        "name": asked["name"],
        "args": call.tool_input,
        "description": call.question,
    }


def _is_approval(answer: Any) -> bool:
    """Only a clear yes: true, "approve", or LangChain's own decision."""
    if isinstance(answer, Mapping) and len(answer.get("decisions", ())) == 1:
        answer = answer["decisions"][0]
    if isinstance(answer, Mapping):
        answer = answer.get("type")
    return answer is True or answer == "approve"


def _has_checkpointer() -> bool:
    # The key is LangGraph's own; should it be renamed, ``onAsk`` decides.
    return get_config()["configurable"].get("__pregel_checkpointer") is not None


def _subagent_type() -> str | None:
    """The name of the agent that starts here, or of its tool; None outside of tools."""
    caller, name = _caller.get(), _agent_name()
    if caller is None:
        return None
    return caller.tool if name is None or name == caller.agent else name


def _agent_name() -> str | None:
    return get_config().get("metadata", {}).get("lc_agent_name")


@contextmanager
def _within(caller: _Caller) -> Iterator[None]:
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def _prompts(messages: Messages) -> list[Any]:
    """The last messages of the person in a row."""
    found: list[Any] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            found.insert(0, message)
        elif found:
            break
    return found


def _text(*messages: BaseMessage) -> str:
    # ``text`` is a subclass of str.
    return "\n\n".join(str(message.text) for message in messages)


def _role(message: BaseMessage) -> str | None:
    return next((r for kind, r in _ROLES.items() if isinstance(message, kind)), None)


def _tool_name(tool: Any) -> str:
    """The name of a tool, of a service's own tool, or of a tool choice."""
    if not isinstance(tool, dict):
        return str(getattr(tool, "name", tool))
    inner = tool.get("function", tool)
    return str(inner.get("name") or tool.get("type") or "")


def _marks(message: BaseMessage) -> Mapping[str, Any]:
    marks = message.response_metadata.get(KEY)
    return marks if isinstance(marks, Mapping) else {}


def _marked(message: M, **marks: Any) -> M:
    """Note for later steps what hooks decided."""
    known = {key: value for key, value in marks.items() if value is not None}
    if not known:
        return message
    metadata = {**message.response_metadata, KEY: known}
    return message.model_copy(update={"response_metadata": metadata})


def _with_content(message: M, content: Any) -> M:
    return message.model_copy(update={"content": content})


def _with_text(message: BaseMessage, text: str | None) -> BaseMessage | None:
    """A message with another text, or without; images, calls and so on stay."""
    content: Any = message.content
    if isinstance(content, str):
        # Services reject results whose calls are gone.
        is_kept = text is not None or getattr(message, "tool_calls", None)
        return _with_content(message, text or "") if is_kept else None
    others = [one for one in content if _is_no_text(one)]
    blocks = [*_blocks([text] if text else []), *others]
    return _with_content(message, blocks) if blocks else None


def _is_no_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") != "text"


def _extended(message: M, additions: list[str]) -> M:
    """Add texts after the content of a message."""
    content: Any = message.content
    if not additions:
        return message
    if isinstance(content, str):
        return _with_content(message, "\n\n".join(filter(None, [content, *additions])))
    return _with_content(message, [*content, *_blocks(additions)])


def _blocks(texts: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]
