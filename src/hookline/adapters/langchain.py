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
from copy import copy
from dataclasses import replace
from itertools import takewhile
from typing import Annotated, Any, NamedTuple, NotRequired, TypeAlias, TypeVar, cast

from hookline.agent import (
    ConfigOrSession,
    Confirm,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    ModelOutcome,
    Session,
    ToolResult,
)
from hookline.agent.waiting import Waiting, run_to_end
from hookline.errors import MissingExtraError
from hookline.protocol.values import encode, same_json
from hookline.translators.shape import LLMMessage

from .kit import (
    Sessions,
    answer_of,
    changed_answer,
    changed_settings,
    extended,
    must_call_tool,
    with_text,
)

try:
    from langchain.agents import middleware as lc
    from langchain.agents import structured_output
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core import messages as msg
    from langchain_core.callbacks import BaseCallbackManager
    from langchain_core.runnables.config import var_child_runnable_config
    from langgraph.config import get_config
    from langgraph.constants import TAG_NOSTREAM
    from langgraph.errors import GraphBubbleUp
    from langgraph.graph.message import REMOVE_ALL_MESSAGES
    from langgraph.types import Command, Overwrite, Send, interrupt
    from langgraph.typing import ContextT
except ImportError as error:
    raise MissingExtraError("langchain", "langchain") from error

logger = logging.getLogger("hookline")
M = TypeVar("M", bound=msg.BaseMessage)
Update = dict[str, Any]
State: TypeAlias = lc.AgentState[Any]
Request: TypeAlias = lc.ModelRequest[Any]
Response: TypeAlias = lc.ModelResponse[Any]
Answer: TypeAlias = lc.ExtendedModelResponse[Any]
ToolAnswer: TypeAlias = msg.ToolMessage | Command[Any]
Handler = Callable[[Any], Any]

KEY = "hookline"
"""Of the state, and of the ``response_metadata`` of messages."""
_WITHHELD_PROMPT = "[prompt withheld by a hook]"
_INEFFECTIVE = {
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
_SCRATCHPAD = "__pregel_scratchpad"


class _Caller(NamedTuple):
    """The tool call in which an agent runs, which makes it a subagent."""

    turn: HookedTurn
    tool: str
    agent: str | None


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

    @lc.hook_config(can_jump_to=["end"])
    def before_agent(self, state: State, runtime: Any) -> Update:
        """Fire BeforeAgent, or SubagentStart within a tool of another agent."""
        return self._sessions.default.run_sync(self._begin(state))

    async def abefore_agent(self, state: State, runtime: Any) -> Update:
        """As ``before_agent``."""
        return await self._begin(state)

    @lc.hook_config(can_jump_to=["model"])
    def after_agent(self, state: State, runtime: Any) -> Update:
        """Fire AfterAgent or SubagentStop; a rejected answer goes on at the model."""
        return self._sessions.default.run_sync(self._end(state))

    async def aafter_agent(self, state: State, runtime: Any) -> Update:
        """As ``after_agent``."""
        return await self._end(state)

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

    def _session(self) -> Session:
        return self._sessions.of(get_config()["configurable"].get("thread_id"))

    def _turn(self, state: Any) -> HookedTurn:
        """The turn that a step belongs to, as earlier steps left it."""
        if not isinstance(state, Mapping):  # of a graph that is not an agent's
            state = {"messages": state if isinstance(state, list) else ()}
        messages, caller = state.get("messages", ()), _caller.get()
        turn = self._session().resume_turn(
            state.get(KEY) or {"prompt": _text(*_prompts(messages))},
            parent=caller and caller.turn,
        )
        for result in _latest_results(messages):
            if reason := _marks(result).get("stop_reason"):
                turn.stop(reason)
        return turn

    async def _begin(self, state: State) -> Update:
        session, caller = self._session(), _caller.get()
        await session.warn_ineffective("LangChain", _INEFFECTIVE)
        prompts, name = _prompts(state["messages"]), _agent_name()
        if caller is None:
            turn = await session.begin_turn(_text(*prompts))
        else:
            turn = await session.begin_subagent(
                name if name and name != caller.agent else caller.tool,
                _text(*prompts),
                parent=caller.turn,
            )
        update: Update = {KEY: turn.state}
        if turn.refused:
            # No later turn of the thread may send the prompt to the model either.
            hidden = [_with_content(prompt, _WITHHELD_PROMPT) for prompt in prompts]
            answer = msg.AIMessage(turn.reason or "")
            update |= {"messages": [*hidden, answer], "jump_to": "end"}
        elif turn.additions:
            last = prompts[-1] if prompts else msg.HumanMessage("")
            update["messages"] = [_extended(last, turn.additions)]
        return update

    async def _end(self, state: State) -> Update:
        """Show hooks the answer: accepted, to be tried again, or the end of the turn.

        A jump to the end leads here too, after hooks have ended the turn.
        """
        turn, messages = self._turn(state), state["messages"]
        structured = state.get("structured_response")
        has_reason = turn.refused and not isinstance(messages[-1], msg.ToolMessage)
        answer = _text(*messages[-1:])
        if structured is not None:
            answer = encode(structured).decode()
        rejection = await turn.finish(answer)
        changed = _with_inputs_that_ran(messages)
        if turn.clear_context:
            latest = [] if rejection else [*_prompts(messages), *messages[-1:]]
            changed = [msg.RemoveMessage(REMOVE_ALL_MESSAGES), *latest]
        if rejection is not None:
            changed.append(msg.HumanMessage(rejection))
            return {KEY: turn.state, "messages": changed, "jump_to": "model"}
        if turn.refused and not has_reason:
            changed.append(msg.AIMessage(turn.reason or ""))
        update: Update = {"messages": changed} if changed else {}
        if turn.refused and structured is not None:
            update["structured_response"] = None
        return update

    async def _model(
        self, request: Request, handler: Handler, *, is_async: bool
    ) -> Answer:
        turn = self._turn(request.state)
        wait = Waiting(turn.session, is_async=is_async)
        recorded = _with_inputs_that_ran(request.state["messages"])
        update: Update = {"messages": recorded} if recorded else {}
        newest = {message.id: message for message in recorded}
        messages = [newest.get(message.id, message) for message in request.messages]
        request = request.override(messages=messages)
        names = [_tool_name(tool) for tool in request.tools]
        stable = _stable_request(request)
        call = await wait.hooks(turn.begin_model(stable, available_tools=names))
        if answer := answer_of(call):
            # An answer in the model's place is an answer; a plain block ends the turn.
            turn.blocked = answer.is_ending
            response: Response = lc.ModelResponse([msg.AIMessage(answer.text)])
        else:
            is_held = await wait.hooks(turn.session.has_hooks("AfterModel"))
            with _unseen() if is_held else nullcontext():
                response = await wait.value(handler(_changed_request(request, call)))
            answers = [m for m in response.result if isinstance(m, msg.AIMessage)]
            for message in answers[:1]:
                outcome = await wait.hooks(call.finish({"text": _text(message)}))
                response = _changed_response(request, response, message, outcome)
        if turn.state != request.state.get(KEY):
            update[KEY] = turn.state
        command: Command[Any] | None = Command(update=update) if update else None
        return lc.ExtendedModelResponse(response, command)

    async def _tool(
        self, request: lc.ToolCallRequest, handler: Handler, *, is_async: bool
    ) -> ToolAnswer:
        turn, tool_call = self._turn(request.state), request.tool_call
        wait = Waiting(turn.session, is_async=is_async)
        name, step = tool_call["name"], get_config()["configurable"]
        # The keys are LangGraph's own; should one be renamed, ``onAsk`` decides.
        has_checkpointer = step.get("__pregel_checkpointer") is not None
        can_wait = self._confirm is None and has_checkpointer and _SCRATCHPAD in step
        call = await wait.hooks(
            turn.begin_tool(
                name, tool_call["args"], confirm=self._confirm, defer=can_wait
            )
        )
        question, answer = _ask_person(tool_call, call) if can_wait else (None, None)
        if question is not None:
            decision, detail = _decision(name, answer)
            if decision == "respond":
                return _extended(
                    _result(tool_call, detail, failed=False), call.additions
                )
            if decision == "edit":
                # The person has seen these arguments, the hooks have not.
                call = await wait.hooks(turn.begin_tool(name, detail, confirm=True))
            else:
                call.decide(decision == "approve", detail, earlier=question)
        if call.refused:
            refusal = _result(tool_call, call.message, failed=True)
            return _marked(refusal, {"stop_reason": call.stop_reason})
        ran: msg.ToolCall = {**tool_call, "args": call.tool_input}
        token = _caller.set(_Caller(turn, name, _agent_name()))
        result: Any = None
        try:
            result = await wait.value(handler(request.override(tool_call=ran)))
        except GraphBubbleUp:  # an interrupt: the call is not over
            raise
        except Exception as error:
            outcome = await wait.hooks(call.finish(error))
            if not outcome.is_replaced:
                raise
        else:
            shown = _shown_result(result, tool_call)
            outcome = await wait.hooks(call.finish(shown))
        finally:
            _caller.reset(token)
        # By hooks or by a person.
        is_changed = not same_json(call.tool_input, tool_call["args"])
        marks = {
            "tool_input": call.tool_input if is_changed else None,
            "suppress_display": outcome.suppress_display or None,
            "stop_reason": turn.stop_reason,  # also by an agent in the tool
        }
        message = _answer_in(result, tool_call)
        if outcome.is_replaced or (turn.stopped and message is None):
            # The artifact, and a command's updates, are withheld with the text.
            return _marked(_result(tool_call, outcome.text, failed=True), marks)
        if message is None:
            if outcome.additions:
                logger.warning(
                    "a command without a message drops %s", outcome.additions
                )
            return cast("ToolAnswer", result)
        new_message = _marked(_extended(message, outcome.additions), marks)
        if new_message is message:
            return cast("ToolAnswer", result)

        def with_new_message(part: Any) -> Any:
            return new_message if part is message else part

        return cast("ToolAnswer", _with_messages(result, with_new_message))


# The model call.


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
            for message in [*filter(None, [request.system_message]), *request.messages]
            if (text := _shown_text(message))
        ],
        "config": {key: value for key, value in values.items() if value is not None},
    }


def _changed_request(request: Request, call: HookedModelCall) -> Request:
    """The request as the hooks want it."""
    allowed, choice = call.allowed_names, request.tool_choice
    if must_call_tool(call):
        choice = "any"
    if allowed is not None:
        tools = [tool for tool in request.tools if _tool_name(tool) in allowed]
        words = {"auto", "any", "required", "none", *allowed}
        if not tools or _tool_name(choice) not in words:
            choice = None
        request = request.override(tools=tools)
    request = request.override(tool_choice=choice)
    changes = call.changes
    if not changes:
        return request
    # Not every service takes system messages after the first: those of hooks join it.
    system, instructions = request.system_message or msg.SystemMessage(""), list[str]()

    def edit(message: Any, text: str | None) -> Any:
        nothing = msg.SystemMessage("") if message is system else None
        return _with_text(message, text) or nothing

    def make(message: LLMMessage) -> Any:
        if message.role == "model":
            return msg.AIMessage(message.content)
        if message.role == "user":
            return msg.HumanMessage(message.content)
        instructions.append(message.content)
        return None

    messages: list[Any] = [system, *request.messages]
    messages = changes.applied(messages, text_of=_shown_text, edit=edit, make=make)
    system = next(m for m in messages if isinstance(m, msg.SystemMessage))
    messages = [m for m in messages if m is not None and m is not system]
    system = _extended(system, instructions)
    model = {} if changes.model is None else {"model": changes.model}
    settings = {**request.model_settings, **model}
    return request.override(
        messages=messages,
        system_message=system if system.content else None,
        model_settings=changed_settings(settings, changes, _SETTINGS),
    )


def _changed_response(
    request: Request, response: Response, message: msg.AIMessage, outcome: ModelOutcome
) -> Response:
    """The response after its hooks; of a changed one nothing else is left."""
    answer = changed_answer(outcome, (call["name"] for call in message.tool_calls))
    if answer is None:
        return response
    if answer.is_ending:
        return lc.ModelResponse([msg.AIMessage(answer.text)])
    changed = msg.AIMessage(
        answer.text,
        id=message.id,
        name=message.name,
        usage_metadata=message.usage_metadata,
    )
    if response.structured_response is None or message.tool_calls:
        return lc.ModelResponse([changed])
    schema = getattr(request.response_format, "schema", request.response_format)
    try:
        spec = structured_output.ProviderStrategy(cast("Any", schema)).schema_spec
        binding = structured_output.ProviderStrategyBinding.from_schema_spec(spec)
        return lc.ModelResponse([changed], binding.parse(changed))
    except ValueError:
        return lc.ModelResponse([changed])


# The tool call.


def _ask_person(
    tool_call: msg.ToolCall, call: HookedToolCall
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
    entries: list[Any] = [*scratchpad.resume[at:], None, None]
    earlier_note, answer = entries[:2]
    if earlier_note != note:
        if earlier_note is not None or question is not None:
            latest_answer = scratchpad.get_null_resume(True)
            answer = latest_answer if answer is None else answer
        scratchpad.resume[at:] = [note]
        step["__pregel_send"]([("__resume__", [*scratchpad.resume])])
    if question is not None:
        return call.question, interrupt(question)
    earlier_question = earlier_note and earlier_note[KEY]
    return earlier_question and earlier_question["description"], answer


def _decision(tool_name: str, answer: Any) -> tuple[str, Any]:
    """What a person decided, with arguments or a message; only a clear yes is one.

    Questions and answers have the shape of LangChain's own human-in-the-loop
    middleware; ``True`` and "approve" will do too.
    """
    match answer:
        case {"decisions": [decision]}:
            answer = decision
    match answer:
        case True | "approve" | {"type": "approve"}:
            return "approve", None
        case {"type": "respond", "message": str(message)}:
            return "respond", message
        case {
            "type": "edit",
            "edited_action": {"name": name, "args": Mapping() as args},
        } if name == tool_name:
            return "edit", dict(args)
        case {"type": "edit"}:
            return "reject", "an edit has to name the same tool, with arguments"
        case {"message": str(message)}:
            return "reject", message
    return "reject", None


def _result(tool_call: msg.ToolCall, text: str, *, failed: bool) -> msg.ToolMessage:
    """A result in place of the tool's own."""
    status: Any = "error" if failed else "success"
    names = {"name": tool_call["name"], "tool_call_id": tool_call["id"] or ""}
    return msg.ToolMessage(text, status=status, **names)


def _shown_result(result: Any, tool_call: msg.ToolCall) -> ToolResult:
    """What hooks are shown of a result: all messages that it brings."""
    contents: list[Any] = [
        # It may be a dict, a tuple or a text, as in any update of the state.
        item.content if isinstance(item, msg.BaseMessage) else item
        for item in _messages_in(result)
    ]
    content: Any = contents[0] if len(contents) == 1 else contents
    if all(isinstance(part, str) for part in contents):
        content = "\n\n".join(contents)
    message = _answer_in(result, tool_call)
    failed = message is not None and message.status == "error"
    return ToolResult(llm_content=content, error=_text(message) if failed else None)


def _answer_in(result: Any, tool_call: msg.ToolCall) -> msg.ToolMessage | None:
    """The message of a result that answers a call."""
    results = (m for m in _messages_in(result) if isinstance(m, msg.ToolMessage))
    return next((m for m in results if m.tool_call_id == tool_call["id"]), None)


def _messages_in(result: Any) -> list[Any]:
    messages: list[Any] = []
    _with_messages(result, messages.append)
    return messages


def _with_messages(value: Any, change: Callable[[Any], Any]) -> Any:
    """A result with its messages changed: alone, in lists, or sent by a command."""

    def changed(part: Any) -> Any:
        return _with_messages(part, change)

    match value:
        case msg.BaseMessage():
            return change(value)
        case list():
            return [changed(part) for part in value]
        case Command(update=update, goto=goto):
            nodes: Any = [*goto] if isinstance(goto, tuple) else goto
            return replace(value, update=changed(update), goto=changed(nodes))
        case Send():
            sent = copy(value)
            sent.arg = changed(value.arg)
            return sent
        case {"messages": Overwrite(value=messages)}:
            messages = changed({"messages": messages})["messages"]
            return {**value, "messages": Overwrite(messages)}
        case {"messages": messages}:
            items = messages if isinstance(messages, list) else [messages]
            return {**value, "messages": [change(item) for item in items]}
    return value


# What a step notes for later ones.


def _latest_results(messages: Sequence[Any]) -> list[msg.ToolMessage]:
    """The results since the last answer of the model."""
    latest = takewhile(lambda m: not isinstance(m, msg.AIMessage), reversed(messages))
    return [message for message in latest if isinstance(message, msg.ToolMessage)]


def _with_inputs_that_ran(messages: Sequence[Any]) -> list[Any]:
    """The model's last message with the inputs that its calls ran with, if changed."""
    ran: Update = {
        result.tool_call_id: _marks(result)["tool_input"]
        for result in _latest_results(messages)
        if "tool_input" in _marks(result)
    }
    answers = (m for m in reversed(messages) if isinstance(m, msg.AIMessage))
    message = next(answers, None) if ran else None
    if message is None:
        return []
    calls = [
        {**call, "args": ran.get(call["id"] or "", call["args"])}
        for call in message.tool_calls
    ]
    if calls == message.tool_calls:
        return []
    content: Any = message.content
    # Some services repeat the calls in blocks, and in a copy of their own, which is not
    # sent where there are calls.
    for at, block in enumerate(content) if isinstance(content, list) else ():
        key = block.get("call_id", block.get("id")) if isinstance(block, dict) else None
        if key in ran:
            text = encode(ran[key]).decode()
            new = {"input": ran[key], "args": ran[key], "arguments": text}
            repeated = {name: new.get(name, value) for name, value in block.items()}
            content = [*content[:at], repeated, *content[at + 1 :]]
    extra = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    changed = {"tool_calls": calls, "content": content, "additional_kwargs": extra}
    return [message.model_copy(update=changed)]


def _marks(message: msg.BaseMessage) -> Mapping[str, Any]:
    marks = message.response_metadata.get(KEY)
    return marks if isinstance(marks, Mapping) else {}


def _marked(message: msg.ToolMessage, marks: Update) -> msg.ToolMessage:
    """Note for later steps what hooks decided."""
    set_marks = {key: value for key, value in marks.items() if value is not None}
    if not set_marks:
        return message
    metadata = {**message.response_metadata, KEY: set_marks}
    return message.model_copy(update={"response_metadata": metadata})


# Messages and tools of LangChain.


def _agent_name() -> str | None:
    return get_config().get("metadata", {}).get("lc_agent_name")


def _tool_name(tool: Any) -> str:
    """The name of a tool, of a service's own tool, or of a tool choice."""
    if not isinstance(tool, dict):
        return str(getattr(tool, "name", tool))
    function = tool.get("function", tool)
    return str(function.get("name") or tool.get("type") or "")


def _prompts(messages: Sequence[Any]) -> list[Any]:
    """The last messages of the person in a row."""
    prompts: list[Any] = []
    for message in reversed(messages):
        if isinstance(message, msg.HumanMessage):
            prompts.insert(0, message)
        elif prompts and not isinstance(message, msg.SystemMessage):
            break
    return prompts


def _text(*messages: Any) -> str:
    # ``text`` is a subclass of str.
    return "\n\n".join(str(message.text) for message in messages)


def _role(message: Any) -> str:
    match message:
        case msg.HumanMessage():
            return "user"
        case msg.AIMessage():
            return "model"
        case msg.SystemMessage():
            return "system"
    return ""


def _shown_text(message: Any) -> str:
    """What hooks see of a message: they do not see results of tools."""
    return _text(message) if _role(message) else ""


def _with_content(message: M, content: Any) -> M:
    return message.model_copy(update={"content": content})


def _with_text(message: M, text: str | None) -> M | None:
    """A message with another text, or without; images, calls and so on stay."""
    content = with_text(message.content, text)
    is_emptied = text is not None and isinstance(content, str)
    # Services reject results whose calls are gone.
    stays = content or is_emptied or getattr(message, "tool_calls", None)
    return _with_content(message, content) if stays else None


def _extended(message: M, additions: list[str]) -> M:
    """A message with texts after its content."""
    if not additions:
        return message
    return _with_content(message, extended(message.content, additions))
