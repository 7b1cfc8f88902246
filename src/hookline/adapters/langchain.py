"""Hooks for LangChain: ``create_agent(..., middleware=[HooklineMiddleware(config)])``.

What later steps of a run must know is plain data where LangGraph keeps its own: a turn
in a private key of the state, a tool call in the ``response_metadata`` of its message.
So a run that waits for a person goes on in another process, and two runs never mix.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain, takewhile
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypeVar, cast

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    Session,
    ToolOutcome,
    ToolResult,
)
from hookline.agent.decorator import Waiting, run_to_end
from hookline.errors import MissingExtraError
from hookline.protocol.values import encode, same_json
from hookline.translators.shape import LLMMessage

from .kit import (
    Sessions,
    answer_of,
    changed_answer,
    must_call_tool,
)

try:
    from langchain.agents import middleware as lc
    from langchain.agents import structured_output
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.callbacks import BaseCallbackManager
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        RemoveMessage,
        SystemMessage,
        ToolCall,
        ToolMessage,
    )
    from langchain_core.runnables.config import var_child_runnable_config
    from langgraph.config import get_config
    from langgraph.constants import TAG_NOSTREAM
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.types import Command, interrupt
    from langgraph.typing import ContextT
except ImportError as error:
    raise MissingExtraError("langchain", "langchain") from error

logger = logging.getLogger("hookline")
M = TypeVar("M", bound=BaseMessage)
Messages = Sequence[Any]
Update = dict[str, Any]
State: TypeAlias = lc.AgentState[Any]
Request: TypeAlias = lc.ModelRequest[Any]
Response: TypeAlias = lc.ModelResponse[Any]
Answer: TypeAlias = lc.ExtendedModelResponse[Any]
ToolAnswer: TypeAlias = ToolMessage | Command[Any]
Handler = Callable[[Any], Any]

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


class HooklineState(lc.AgentState[Any]):
    """The state of an agent with hooks."""

    hookline: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class HooklineMiddleware(lc.AgentMiddleware[State, ContextT, Any]):
    """Runs hooks around the turns, model calls and tools of an agent.

    Of a config each thread is a session; a session is used as it is. ``confirm``
    answers a hook that asks. Without it the run is interrupted where the agent has a
    checkpointer; elsewhere ``hooksConfig.onAsk`` decides.
    """

    state_schema: type[State] = HooklineState

    def __init__(
        self, config_or_session: ConfigOrSession, *, confirm: Confirm | None = None
    ) -> None:
        super().__init__()
        self._sessions = Sessions(config_or_session)
        self._confirm = confirm

    def _session(self) -> Session:
        """The session of the thread that runs, or the one that was given."""
        return self._sessions.of(get_config()["configurable"].get("thread_id"))

    @lc.hook_config(can_jump_to=["end"])
    def before_agent(self, state: State, runtime: Any) -> Update:
        """Fire BeforeAgent, or SubagentStart within a tool of another agent."""
        session = self._session()
        return session.run_sync(_begin(session, state))

    async def abefore_agent(self, state: State, runtime: Any) -> Update:
        """As ``before_agent``."""
        return await _begin(self._session(), state)

    @lc.hook_config(can_jump_to=["model"])
    def after_agent(self, state: State, runtime: Any) -> Update:
        """Fire AfterAgent or SubagentStop; a rejected answer goes on at the model."""
        session = self._session()
        return session.run_sync(_end(_turn(session, state), state))

    async def aafter_agent(self, state: State, runtime: Any) -> Update:
        """As ``after_agent``."""
        return await _end(_turn(self._session(), state), state)

    def wrap_model_call(self, request: Request, handler: Handler) -> Answer:
        """Fire the events around a model call."""
        return run_to_end(self._model(request, handler, is_async=False))

    def awrap_model_call(
        self, request: Request, handler: Handler
    ) -> Coroutine[Any, Any, Answer]:
        """As ``wrap_model_call``.

        Not an ``async def``: for each call of one, what LangChain wraps around it goes
        through a task and two threads, also where nothing is traced.
        """
        return self._model(request, handler, is_async=True)

    def wrap_tool_call(
        self, request: lc.ToolCallRequest, handler: Handler
    ) -> ToolAnswer:
        """Fire the events around a tool call."""
        return run_to_end(self._tool(request, handler, is_async=False))

    def awrap_tool_call(
        self, request: lc.ToolCallRequest, handler: Handler
    ) -> Coroutine[Any, Any, ToolAnswer]:
        """As ``wrap_tool_call``; no ``async def`` for the same reason."""
        return self._tool(request, handler, is_async=True)

    async def _model(
        self, request: Request, handler: Handler, *, is_async: bool
    ) -> Answer:
        turn = _turn(self._session(), request.state)
        wait = Waiting(turn.session, is_async=is_async)
        recorded = _with_inputs_that_ran(request.state["messages"])
        if recorded:
            newest = {message.id: message for message in recorded}
            messages = [newest.get(message.id, message) for message in request.messages]
            request = request.override(messages=messages)
        names = [_tool_name(tool) for tool in request.tools]
        stable = _stable_request(request)
        call = await wait.hooks(turn.begin_model(stable, available_tools=names))
        answer = answer_of(call)
        if answer is None:
            response = await _answered(wait, call, _changed(request, call), handler)
        else:
            # An answer in the model's place is an answer; a plain block ends the turn.
            turn.blocked = answer.is_ending
            response = lc.ModelResponse([AIMessage(answer.text)])
        update: Update = {"messages": recorded} if recorded else {}
        if turn.state != request.state.get(KEY):
            update[KEY] = turn.state
        command: Command[Any] | None = Command(update=update) if update else None
        return lc.ExtendedModelResponse(response, command)

    async def _tool(
        self, request: lc.ToolCallRequest, handler: Handler, *, is_async: bool
    ) -> ToolAnswer:
        turn, tool_call = _turn(self._session(), request.state), request.tool_call
        wait = Waiting(turn.session, is_async=is_async)
        step = get_config()["configurable"]
        # The keys are LangGraph's own; should one be renamed, ``onAsk`` decides.
        has_checkpointer = step.get("__pregel_checkpointer") is not None
        can_wait = self._confirm is None and has_checkpointer and _SCRATCHPAD in step
        call = await wait.hooks(
            turn.begin_tool(
                tool_call["name"],
                tool_call["args"],
                confirm=self._confirm,
                defer=can_wait,
            )
        )
        if can_wait:
            question, answer = _answer_of_person(tool_call, call)
            decision, detail = _decision(tool_call, answer)
            if question is None:
                pass
            elif decision == "respond":
                ids = {"name": tool_call["name"], "tool_call_id": tool_call["id"] or ""}
                return _extended(ToolMessage(detail, **ids), call.additions)
            elif decision == "edit":
                # The person has seen these arguments, the hooks have not.
                edited = turn.begin_tool(tool_call["name"], detail, confirm=True)
                call = await wait.hooks(edited)
            else:
                call.decide(decision == "approve", detail, earlier=question)
        if call.refused:
            return _refusal(tool_call, call.message, {"stop_reason": call.stop_reason})
        ran: ToolCall = {**tool_call, "args": call.tool_input}
        # By hooks or by a person.
        is_changed = not same_json(call.tool_input, tool_call["args"])
        marks: Update = {"tool_input": call.tool_input} if is_changed else {}
        caller = _Caller(tool_call["name"], _agent_name(), [])
        token = _caller.set(caller)
        try:
            result = await wait.value(handler(request.override(tool_call=ran)))
        except GraphBubbleUp:  # an interrupt: the call is not over
            raise
        except Exception as error:
            outcome = await wait.hooks(call.finish(error))
            if not outcome.is_replaced:
                raise
            return _result_for_model(None, tool_call, outcome, marks)
        finally:
            _caller.reset(token)
        outcome = await wait.hooks(call.finish(_shown_result(result, tool_call["id"])))
        marks["stop_reason"] = next(iter(caller.stops), None)
        return _result_for_model(result, tool_call, outcome, marks)


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


async def _begin(session: Session, state: State) -> Update:
    await session.warn_ineffective("LangChain", INEFFECTIVE)
    prompts, caller, name = _prompts(state["messages"]), _caller.get(), _agent_name()
    if caller is None:
        turn = await session.begin_turn(_text(*prompts))
    else:
        agent_type = name if name and name != caller.agent else caller.tool
        turn = await session.begin_subagent(agent_type, _text(*prompts))
    if turn.refused:
        # No later turn of the thread may send the prompt to the model either.
        hidden = [_with_content(prompt, WITHHELD_PROMPT) for prompt in prompts]
        new = [*hidden, AIMessage(turn.reason or "")]
        return {KEY: turn.state, "messages": new, "jump_to": "end"}
    if not turn.additions:
        return {KEY: turn.state}
    last = prompts[-1] if prompts else HumanMessage("")
    return {KEY: turn.state, "messages": [_extended(last, turn.additions)]}


async def _end(turn: HookedTurn, state: State) -> Update:
    """Show hooks the answer: accepted, to be tried again, or the end of the turn.

    A jump to the end leads here too, after hooks have ended the turn.
    """
    messages, answer = state["messages"], state.get("structured_response")
    new: list[BaseMessage] = _with_inputs_that_ran(messages)
    is_told = turn.refused and not isinstance(messages[-1], ToolMessage)
    text = _text(*messages[-1:]) if answer is None else encode(answer).decode()
    rejection = await turn.finish(text)
    if turn.clear_context:
        latest = [] if rejection else [*_prompts(messages), *messages[-1:]]
        new = [RemoveMessage(REMOVE_ALL_MESSAGES), *latest]
    if rejection is not None:
        new.append(HumanMessage(rejection))
        return {KEY: turn.state, "messages": new, "jump_to": "model"}
    caller = _caller.get()
    if turn.stop_reason is not None and caller is not None:
        caller.stops.append(turn.stop_reason)
    if turn.refused and not is_told:
        new.append(AIMessage(turn.reason or ""))
    update: Update = {"messages": new} if new else {}
    if turn.refused and answer is not None:
        update["structured_response"] = None
    return update


async def _answered(
    wait: Waiting, call: HookedModelCall, request: Request, handler: Handler
) -> Response:
    is_held = await wait.hooks(wait.session.has_hooks("AfterModel"))
    with _unseen() if is_held else nullcontext():
        response: Response = await wait.value(handler(request))
    message = next((m for m in response.result if isinstance(m, AIMessage)), None)
    if message is None:
        return response
    outcome = await wait.hooks(call.finish({"text": _text(message)}))
    answer = changed_answer(outcome, (call["name"] for call in message.tool_calls))
    if answer is None:
        return response
    if answer.is_ending:
        return lc.ModelResponse([AIMessage(answer.text)])
    # Nothing else of the first answer is left.
    new = AIMessage(
        answer.text,
        id=message.id,
        name=message.name,
        usage_metadata=message.usage_metadata,
    )
    if response.structured_response is None or message.tool_calls:
        return lc.ModelResponse([new])
    schema = getattr(request.response_format, "schema", request.response_format)
    try:
        spec = structured_output.ProviderStrategy(cast("Any", schema)).schema_spec
        binding = structured_output.ProviderStrategyBinding.from_schema_spec(spec)
        return lc.ModelResponse([new], binding.parse(new))
    except ValueError:
        return lc.ModelResponse([new])


@contextmanager
def _unseen() -> Iterator[None]:
    """Keep model calls out of every stream."""
    config = get_config()
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for handler in [*callbacks.handlers, *callbacks.inheritable_handlers]:
            # By these ``astream_events`` and ``stream_mode="messages"`` listen.
            if hasattr(handler, "tap_output_iter"):
                callbacks.remove_handler(handler)
    tags = [*(config.get("tags") or ()), TAG_NOSTREAM]
    # LangChain passes the config of a step to the calls in it by this variable.
    token = var_child_runnable_config.set(
        {**config, "callbacks": callbacks, "tags": tags}
    )
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _stable_request(request: Request) -> Update:
    def setting(name: str) -> Any:
        return request.model_settings.get(name, getattr(request.model, name, None))

    values = {key: setting(name) for key, name in _SETTINGS.items()}
    names = [setting("model"), setting("model_name"), type(request.model).__name__]
    return {
        "model": next(name for name in names if isinstance(name, str)),
        "messages": [
            {"role": _role(message), "content": text}
            for message in _sent(request)
            if (text := _shown_text(message))
        ],
        "config": {key: value for key, value in values.items() if value is not None},
    }


def _sent(request: Request) -> list[Any]:
    return [*filter(None, [request.system_message]), *request.messages]


def _shown_text(message: BaseMessage) -> str:
    """What hooks see of a message: they do not see results of tools."""
    return _text(message) if _role(message) else ""


def _changed(request: Request, call: HookedModelCall) -> Request:
    """The request as the hooks want it."""
    request, changes = _restricted(request, call), call.changes
    if not changes:
        return request
    system, instructions = request.system_message, list[str]()

    def edit(message: BaseMessage, text: str | None) -> BaseMessage | None:
        nothing = SystemMessage("") if message is system else None
        return _with_text(message, text) or nothing

    def new(message: LLMMessage) -> BaseMessage | None:
        if message.role != "system":
            kind = AIMessage if message.role == "model" else HumanMessage
            return kind(message.content)
        # Not every service takes system messages after the first.
        instructions.append(message.content)
        return None

    changed = changes.applied(_sent(request), text_of=_shown_text, edit=edit, make=new)
    first = SystemMessage("")
    if system is not None:
        first = next(m for m in changed if isinstance(m, SystemMessage))
    messages = [m for m in changed if m is not None and m is not first]
    first = _extended(first, instructions)
    settings = dict(request.model_settings)
    settings |= {_SETTINGS[k]: v for k, v in changes.config.items() if k in _SETTINGS}
    if changes.model is not None:
        settings["model"] = changes.model
    return request.override(
        messages=messages,
        system_message=first if first.content else None,
        model_settings={k: v for k, v in settings.items() if v is not None},
    )


def _restricted(request: Request, call: HookedModelCall) -> Request:
    """The request with the tools that hooks leave, and the mode that they want."""
    names, choice = call.allowed_names, request.tool_choice
    if must_call_tool(call):
        choice = "any"
    if names is None:
        return request if choice is None else request.override(tool_choice=choice)
    tools = [tool for tool in request.tools if _tool_name(tool) in names]
    words = {"auto", "any", "required", "none", *names}
    if not tools or (choice is not None and _tool_name(choice) not in words):
        choice = None
    return request.override(tools=tools, tool_choice=choice)


def _refusal(tool_call: Mapping[str, Any], text: str, marks: Update) -> ToolMessage:
    message = ToolMessage(
        text, name=tool_call["name"], tool_call_id=tool_call["id"] or "", status="error"
    )
    return _marked(message, marks)


def _shown_result(result: Any, call_id: str | None) -> ToolResult:
    """What hooks are shown of a result: all messages that it brings."""
    message = _message_in(result, call_id)
    contents: list[Any] = [
        # It may be a dict, a tuple or a text, as in any update of the state.
        item.content if isinstance(item, BaseMessage) else item
        for item in _messages_in(result)
    ]
    content_shown: Any = contents[0] if len(contents) == 1 else contents
    if all(isinstance(content, str) for content in contents):
        content_shown = "\n\n".join(contents)
    error = None
    if message is not None and message.status == "error":
        error = _text(message)
    return ToolResult(llm_content=content_shown, error=error)


def _result_for_model(
    result: Any, tool_call: Mapping[str, Any], outcome: ToolOutcome, marks: Update
) -> ToolAnswer:
    """The result for the model: as the tool gave it, with what hooks said."""
    message = _message_in(result, tool_call["id"])
    marks["suppress_display"] = outcome.suppress_display or None
    marks["stop_reason"] = stop = outcome.stop_reason or marks.get("stop_reason")
    if outcome.is_replaced or (stop and message is None):
        # The artifact, and a command's updates, are withheld with the text.
        return _refusal(tool_call, outcome.text, marks)
    if message is None:
        if outcome.additions:
            logger.warning("a command without a message drops %s", outcome.additions)
        return cast("ToolAnswer", result)
    new_message = _marked(_extended(message, outcome.additions), marks)
    return cast("ToolAnswer", _with_message(result, message, new_message))


def _message_in(result: Any, call_id: str | None) -> ToolMessage | None:
    """The message that answers a call: alone, in a list or in a command's update."""
    if isinstance(result, ToolMessage):
        return result if result.tool_call_id == call_id else None
    if isinstance(result, Command) and isinstance(result.update, Mapping):
        result = result.update.get("messages")
    inner = result if isinstance(result, list) else ()
    return next((m for part in inner if (m := _message_in(part, call_id))), None)


def _messages_in(result: Any) -> Iterator[Any]:
    """The messages of a result: alone, in lists, or sent anywhere by a command."""
    if isinstance(result, BaseMessage):
        yield result
    elif isinstance(result, list):
        for part in result:
            yield from _messages_in(part)
    elif isinstance(result, Command):
        goto = result.goto if isinstance(result.goto, list | tuple) else [result.goto]
        states = [getattr(node, "arg", None) for node in goto]
        sent_items = [state.items() for state in states if isinstance(state, Mapping)]
        updates = result._update_as_tuples()  # noqa: SLF001 - reads every form
        for key, value in chain(updates, *sent_items):
            messages = getattr(value, "value", value)  # of an ``Overwrite``
            if key in ("messages", "__root__"):  # the state may be the messages
                yield from messages if isinstance(messages, list) else [messages]


def _with_message(result: Any, old: ToolMessage, new: ToolMessage) -> Any:
    if result is old:
        return new
    if isinstance(result, list):
        return [_with_message(part, old, new) for part in result]
    if isinstance(result, Command) and _message_in(result, old.tool_call_id) is old:
        update = cast("Update", result.update)
        messages = _with_message(update["messages"], old, new)
        return replace(result, update={**update, "messages": messages})
    return result


def _latest_results(messages: Messages) -> list[ToolMessage]:
    """The results since the last answer of the model."""
    later = takewhile(
        lambda message: not isinstance(message, AIMessage), reversed(messages)
    )
    return [message for message in later if isinstance(message, ToolMessage)]


def _with_inputs_that_ran(messages: Messages) -> list[Any]:
    """The model's last message with the inputs that its calls ran with, if changed."""
    ran: Update = {
        result.tool_call_id: _marks(result)["tool_input"]
        for result in _latest_results(messages)
        if "tool_input" in _marks(result)
    }
    answers = (
        message for message in reversed(messages) if isinstance(message, AIMessage)
    )
    message = next(answers, None) if ran else None
    if message is None:
        return []
    calls = [
        {**call, "args": ran.get(call["id"] or "", call["args"])}
        for call in message.tool_calls
    ]
    if calls == message.tool_calls:
        return []
    content = message.content
    if isinstance(content, list):
        content = [_with_input(block, ran) for block in content]
    # Some services' own copy of the calls, which is not sent where there are calls.
    extra = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    changed = {"tool_calls": calls, "content": content, "additional_kwargs": extra}
    return [message.model_copy(update=changed)]


def _with_input(block: Any, ran: Update) -> Any:
    """A content block that repeats a call, as some services have it."""
    if not isinstance(block, dict):
        return block
    key = block.get("call_id", block.get("id"))
    if key not in ran:
        return block
    text = encode(ran[key]).decode()
    new = {"input": ran[key], "args": ran[key], "arguments": text}
    return {key: new.get(key, value) for key, value in block.items()}


def _answer_of_person(
    tool_call: Mapping[str, Any], call: HookedToolCall
) -> tuple[str | None, Any]:
    """Interrupt the run until a person answers the question of a call.

    Returns what they were asked, also where hooks do not ask it again, and the answer.

    LangGraph gives answers to the interrupts of a step by their order, and the tool may
    have interrupts of its own. So the first entry among the answers is a note of what
    the hooks asked: what follows it answers that, and nothing that they ask later.
    """
    question = None
    if call.question is not None:
        question = {
            "type": "tool_approval",
            "tool_call_id": tool_call["id"],
            "name": tool_call["name"],
            "args": call.tool_input,
            "description": call.question,
        }
    step = get_config()["configurable"]
    scratchpad, note = step[_SCRATCHPAD], {KEY: question}
    at = scratchpad.interrupt_counter()
    entries = scratchpad.resume[at:]
    noted = entries[0] if entries else None
    answer = entries[1] if len(entries) > 1 else None
    if noted != note:
        if noted is not None or question is not None:
            latest = scratchpad.get_null_resume(True)
            answer = latest if answer is None else answer
        scratchpad.resume[at:] = [note]
        step["__pregel_send"]([("__resume__", [*scratchpad.resume])])
    if question is not None:
        return call.question, interrupt(question)
    if noted is None or noted[KEY] is None:
        return None, None
    return noted[KEY]["description"], answer


def _decision(tool_call: Mapping[str, Any], answer: Any) -> tuple[str, Any]:
    """What a person decided, with arguments or a message; only a clear yes is one.

    Questions and answers have the shape of LangChain's own human-in-the-loop
    middleware; ``True`` and "approve" will do too.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if isinstance(decisions, list | tuple) and len(decisions) == 1:
        answer = decisions[0]
    if answer is True or answer == "approve":
        return "approve", None
    if not isinstance(answer, Mapping):
        return "reject", None
    decision, message = answer.get("type"), answer.get("message")
    if decision == "edit":
        action = answer.get("edited_action")
        if (
            isinstance(action, Mapping)
            and action.get("name") == tool_call["name"]
            and isinstance(action.get("args"), Mapping)
        ):
            return "edit", dict(action["args"])
        message = "an edit has to name the same tool, with arguments"
    if decision == "approve" or (decision == "respond" and isinstance(message, str)):
        return decision, message
    return "reject", message if isinstance(message, str) else None


_SCRATCHPAD = "__pregel_scratchpad"


def _agent_name() -> str | None:
    return get_config().get("metadata", {}).get("lc_agent_name")


def _prompts(messages: Messages) -> list[Any]:
    """The last messages of the person in a row."""
    prompts: list[Any] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            prompts.insert(0, message)
        elif prompts and not isinstance(message, SystemMessage):
            break
    return prompts


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


def _marked(message: M, marks: Update) -> M:
    """Note for later steps what hooks decided."""
    set_marks = {key: value for key, value in marks.items() if value is not None}
    if not set_marks:
        return message
    metadata = {**message.response_metadata, KEY: set_marks}
    return message.model_copy(update={"response_metadata": metadata})


def _with_content(message: M, content: Any) -> M:
    return message.model_copy(update={"content": content})


def _with_text(message: M, text: str | None) -> M | None:
    """A message with another text, or without; images, calls and so on stay."""
    content: Any = message.content
    if isinstance(content, str):
        # Services reject results whose calls are gone.
        is_kept = text is not None or getattr(message, "tool_calls", None)
        return _with_content(message, text or "") if is_kept else None
    blocks = _blocks([text] if text else [])
    blocks += [b for b in content if isinstance(b, dict) and b.get("type") != "text"]
    return _with_content(message, blocks) if blocks else None


def _extended(message: M, additions: list[str]) -> M:
    """Add texts after the content of a message."""
    content: Any = message.content
    if not additions:
        return message
    if isinstance(content, str):
        return _with_content(message, "\n\n".join(filter(None, [content, *additions])))
    return _with_content(message, [*content, *_blocks(additions)])


def _blocks(texts: list[str]) -> list[Any]:
    return [{"type": "text", "text": text} for text in texts]
