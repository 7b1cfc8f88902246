"""Agents through the public names of ``hookline.agent``: hooks in, effects out.

Tool calls, hooked functions, turns, chats, whole agents and the model triggers.
protocol.md#events, #merging, #translation and #callers.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import defaultdict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from hookline import Config
from hookline.agent import (
    Agent,
    AgentResult,
    CallStatus,
    ChatChunk,
    ChatReply,
    ChatSession,
    Confirmation,
    HookedModelCall,
    HookedToolCall,
    HookedTurn,
    ModelOutcome,
    ScriptedModel,
    ScriptedReply,
    Session,
    ToolAnswer,
    ToolCall,
    ToolOutcome,
    ToolResult,
    ToolScheduler,
    ToolSpec,
    Turn,
    changes,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
    hooked_tool,
)
from hookline.testing.loopback import AnsweringServer
from tests.support.hooked_functions import KINDS, called
from tests.support.model_calls import (
    SDKS,
    ScriptedServer,
    answer_of,
    model_of,
    wire_answer,
)
from tests.support.pins import PinTable, plain
from tests.support.recorded_events import RecordedHooks, filled, grouped, warnings_of
from tests.support.translated import dumped, sdk_objects

Row = dict[str, Any]
Pins = Callable[[str], PinTable]


# --- Tool calls -----------------------------------------------------------------------


class RecordedTool:
    """A tool, what it was called with, and a person who is asked."""

    def __init__(self, row: Row) -> None:
        self.inputs: list[Any] = []
        self.asked: list[Any] = []
        self._result = row.get("result", "wrote it")
        self._confirm = row.get("confirm")

    def __call__(self, tool_input: Row) -> Any:
        self.inputs.append(tool_input)
        if isinstance(self._result, dict) and "raise" in self._result:
            raise OSError(self._result["raise"])
        if isinstance(self._result, dict) and "llm_content" in self._result:
            return ToolResult(**self._result)
        return self._result

    def function(self) -> Any:
        def write_file(path: str, content: str = "hello") -> Any:
            return self({"path": path, "content": content})

        return write_file

    def confirm(self) -> Any:
        if self._confirm is None:
            return None

        def ask(question: Confirmation) -> Any:
            self.asked.append(
                [question.tool_name, question.tool_input, question.reason]
            )
            if self._confirm == "fails":
                raise RuntimeError("no terminal")
            return self._confirm

        return ask


def tool_result(result: Any) -> Row:
    return filled(
        {
            "content": result.llm_content,
            "text": result.text if result.text != result.llm_content else None,
            "display": result.display if result.display != result.text else "as text",
            "error": result.error,
            "stop": result.stop_reason,
            "suppressed": result.suppress_display,
        }
    )


async def by_execute(config: Config, tool: RecordedTool, tool_input: Row) -> Row:
    result = await execute_tool_with_hooks(
        config, "write_file", tool_input, tool, confirm=tool.confirm()
    )
    return tool_result(result)


async def by_scheduler(config: Config, tool: RecordedTool, tool_input: Row) -> Row:
    scheduler = ToolScheduler(config, [tool.function()], confirm=tool.confirm())
    batch = await scheduler.run([ToolCall("1", "write_file", tool_input)])
    assert (batch.should_stop, batch.stop_reason) == (
        batch.answers[0].result.stop_reason is not None,
        batch.answers[0].result.stop_reason,
    )
    return tool_result(batch.answers[0].result)


async def by_session(config: Config, tool: RecordedTool, tool_input: Row) -> Row:
    call = await config.session("s-1").begin_tool(
        "write_file", tool_input, confirm=tool.confirm()
    )
    if call.refused:
        outcome = await call.finish("not used")
    else:
        try:
            result = tool(call.tool_input)
        except OSError as error:
            result = error
        outcome = await call.finish(result)
    return tool_result(outcome.result)


async def by_function(config: Config, tool: RecordedTool, tool_input: Row) -> Row:
    hooked = hooked_tool(config, confirm=tool.confirm())(tool.function())
    try:
        return {"returned": hooked(**tool_input)}
    except OSError as error:
        return {"raised": str(error)}


WRITE_INPUT = {"path": "a", "content": "hello"}
CALLERS = {
    "execute": by_execute,
    "scheduler": by_scheduler,
    "session": by_session,
    "function": by_function,
}


async def test_tool_calls_of_every_caller_obey_their_hooks(pin_table: Pins) -> None:
    """HOOK-066; seed 004 sections 5.1, 6.2 and 9.2."""

    async def made(_: str, row: Row) -> object:
        outcomes: dict[str, Row] = {}
        for name in row.get("callers", CALLERS):
            settings = {"hooksConfig": row.get("config", {})}
            settings |= row.get("settings", {})
            hooks = RecordedHooks(row["hooks"], settings=settings)
            tool = RecordedTool(row)
            tool_input = copy.deepcopy(row.get("input", WRITE_INPUT))
            async with hooks.config:
                outcome = await CALLERS[name](hooks.config, tool, tool_input)
            outcome |= {"inputs": tool.inputs, "asked": tool.asked}
            outcome["events"] = hooks.data if row.get("whole") else hooks.names
            outcomes[name] = filled(outcome)
        return grouped("callers", outcomes)

    await pin_table("agent/tool_calls").check(made, at_once=1)


async def test_hooked_functions_of_every_kind_obey_their_hooks(pin_table: Pins) -> None:
    """protocol.md#callers; DESIGN, hooked_tool."""

    async def made(_: str, row: Row) -> object:
        outcomes: dict[str, Row] = {}
        for kind in row.get("kinds", KINDS):
            hooks = RecordedHooks(row["hooks"])
            with warnings_of() as log:
                async with hooks.config:
                    outcome = await called(kind, hooks, row)
            if row.get("log"):
                outcome["log"] = log
            outcome["events"] = hooks.data if row.get("whole") else hooks.names
            outcomes[kind] = plain(filled(outcome))
        return grouped("kinds", outcomes)

    await pin_table("agent/hooked_functions").check(made, at_once=1)


class StagedCalls:
    """The tool calls of one turn, which wait for each other where their row says so.

    Each has three parts: its ``hook``, the person who may ``confirm`` it, and its
    ``tool``. A part says what it comes ``after``: a part (``0 tool``) or a state
    (``1 done``) of a call; and its ``answer``, or with what it ``fails``.
    """

    def __init__(self, row: Row) -> None:
        self.calls: list[Row] = row["calls"]
        self.is_display_broken = row.get("display") == "broken"
        self.states: dict[str, list[str]] = {}
        self.parts: list[str] = []
        self.published: list[str] = []
        self.running = self.most = 0
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def _take(self, at: int, name: str) -> Any:
        self.parts.append(f"{at} {name}")
        self._reached[f"{at} {name}"].set()
        part: Row = self.calls[at].get(name, {})
        if "after" in part:
            await self._reached[part["after"]].wait()
        if "fails" in part:
            raise ValueError(part["fails"])
        return part.get("answer")

    async def hook(self, event: Row) -> Any:
        return await self._take(event["tool_input"]["n"], "hook")

    def plain_hook(self, event: Row) -> Any:
        """A hook that never gives up the event loop."""
        at = event["tool_input"]["n"]
        self.parts.append(f"{at} hook")
        return self.calls[at]["hook"]["answer"]

    async def confirm(self, question: Confirmation) -> Any:
        at = question.tool_input["n"]
        self.parts.append(f"{at} {self.states[str(at)][-1]}")
        return await self._take(at, "confirm")

    async def work(self, n: int) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            for _ in range(3):
                await asyncio.sleep(0)  # others would start meanwhile
            return await self._take(n, "tool")
        except asyncio.CancelledError:
            self.parts.append(f"{n} cancelled")
            raise
        finally:
            self.running -= 1

    def show_status(self, call: ToolCall, status: CallStatus) -> None:
        self.states.setdefault(call.id, []).append(status.value)
        self._reached[f"{call.id} {status}"].set()
        if self.is_display_broken:
            raise RuntimeError("the display is gone")

    def publish(self, answer: ToolAnswer) -> None:
        self.published.append(answer.call.id)
        if self.is_display_broken:
            raise RuntimeError("the display is gone")


async def test_tool_calls_of_one_turn_run_at_once_until_a_hook_stops_them(
    pin_table: Pins,
) -> None:
    """protocol.md#callers, seed 004 section 5.1: in call order, and no retry."""

    async def made(_: str, row: Row) -> object:
        staged, options = StagedCalls(row), row.get("options", {})
        hook = staged.plain_hook if row.get("plain") else staged.hook
        hooks = RecordedHooks({"BeforeTool": hook})
        calls = [
            ToolCall(str(at), call.get("name", "work"), {"n": at}, call.get("problem"))
            for at, call in enumerate(row["calls"])
        ]
        async with hooks.config, asyncio.timeout(60):
            scheduler = ToolScheduler(
                hooks.config,
                [staged.work],
                confirm=staged.confirm,
                on_status=staged.show_status,
                publish=staged.publish,
                **options,
            )
            batch = await scheduler.run(calls, row.get("allowed"))
        states = {
            call: {"states": ", ".join(names)} for call, names in staged.states.items()
        }
        return filled(
            {
                "contents": [answer.result.llm_content for answer in batch.answers],
                "published": staged.published,
                "stop": [batch.stop_reason] if batch.should_stop else batch.stop_reason,
                "parts": sorted(staged.parts),
                "most at once": staged.most if "max_parallel" in options else None,
                "states": grouped("calls", states),
            }
        )

    await pin_table("agent/batches").check(made)


# --- Turns ----------------------------------------------------------------------------


def described(value: Any) -> Any:
    """What a step of a session gave, as plain data."""
    names: tuple[str, ...]
    if isinstance(value, HookedTurn):
        names = ("prompt", "additions", "blocked", "stopped", "refused", "reason")
        more = {"clear": value.clear_context, "context": value.context}
        more["message"] = value.system_message
        return filled({name: getattr(value, name) for name in names} | more)
    if isinstance(value, HookedToolCall):
        names = ("refused", "reason", "message", "question", "additions")
        shown = {name: getattr(value, name) for name in names}
        shown |= {"input": value.tool_input, "changed": value.changed_names}
        return filled({**shown, "stop": value.stop_reason})
    if isinstance(value, HookedModelCall):
        allowed = value.allowed_names
        shown = {"refused": value.refused, "reason": value.reason, "text": value.text}
        shown |= {"stop": value.stop_reason, "request": value.request}
        shown = filled({**shown, "changes": changes_data(value.changes)})
        return shown if allowed is None else {**shown, "allowed": sorted(allowed)}
    if isinstance(value, ToolOutcome):
        names = ("content", "additions", "withheld", "text", "error", "changed")
        shown = {name: getattr(value, name) for name in names}
        shown |= {"replaced": value.is_replaced, "suppressed": value.suppress_display}
        return filled({**shown, "stop": value.stop_reason})
    if isinstance(value, ModelOutcome):
        shown = {"text": value.text, "changed": value.changed}
        shown |= {"response": value.response, "suppressed": value.suppress_display}
        return filled({**shown, "stop": value.stop_reason})
    return value


def changes_data(edits: Any) -> Row:
    inserted = {
        str(at): [[message.role, message.content] for message in messages]
        for at, messages in edits.inserted.items()
    }
    appended = [[message.role, message.content] for message in edits.appended]
    edited = {str(at): text for at, text in edits.edited.items()}
    shown = {"edited": edited, "removed": edits.removed, "inserted": inserted}
    return filled({**shown, "appended": appended, "config": edits.config})


class SessionSteps:
    """The steps of a row, which name what they made with ``as``."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: dict[str, Any] = {}

    async def take(self, step: Row) -> Any:
        options = dict(step)
        name, label = options.pop("do"), options.pop("as", "")
        target = self._made.get(options.pop("on", ""), self._session)
        if "parent" in options:
            options["parent"] = self._made[options["parent"]]
        if "fails" in options:
            options["result"] = OSError(options.pop("fails"))
        if name == "begin_run":
            value = self._session.begin_run()
        elif name == "decide":
            value = target
            target.decide(options["approved"])
        elif name == "resume":
            state = json.loads(json.dumps(target.state))
            other = self._session.view("other")
            value = other.resume_turn(state, **options)
        else:
            value = await getattr(target, name)(*options.pop("given", ()), **options)
        if name == "finish" and isinstance(target, HookedTurn):
            return [value, described(target)]
        self._made[label] = value
        return described(value) if name != "begin_run" else None


async def test_sessions_and_turns_share_what_their_hooks_said(pin_table: Pins) -> None:
    """protocol.md#callers."""

    async def made(_: str, row: Row) -> object:
        hooks = RecordedHooks(row["hooks"])
        steps = SessionSteps(hooks.config.session("s-1"))
        async with hooks.config:
            outcomes = [await steps.take(step) for step in row["steps"]]
        return {"steps": outcomes, "events": hooks.data}

    await pin_table("agent/turns").check(made)


async def test_changes_of_requests_are_told_apart(pin_table: Pins) -> None:
    def made(_: str, row: Row) -> object:
        edits = changes(row["request"], row["modified"])
        applied = edits.applied(
            row.get("messages", []),
            text_of=lambda item: None if item.startswith("<") else item,
            edit=lambda _, text: text,
            make=lambda message: f"+{message.content}",
        )
        return {"changes": changes_data(edits), "any": bool(edits), "applied": applied}

    await pin_table("agent/request_changes").check(made)


# --- Chats and agents -----------------------------------------------------------------


def scripted(answers: list[Any]) -> ScriptedModel:
    made: list[Any] = []
    for answer in copy.deepcopy(answers):
        if isinstance(answer, dict) and "fails" in answer:
            made.append(_failing(answer["fails"]))
        elif isinstance(answer, dict):
            calls = tuple((name, arguments) for name, arguments in answer["calls"])
            made.append(ScriptedReply(answer.get("text", ""), calls))
        else:
            made.append(answer)
    return ScriptedModel(made)


def _failing(message: str) -> Callable[[Row], str]:
    def fail(_: Row) -> str:
        raise ConnectionError(message)

    return fail


def turn_data(turn: Any) -> list[Any]:
    calls = [[call.name, call.input] for call in turn.calls]
    answers = [answer.result.text for answer in turn.answers]
    parts = [turn.text, *([calls] if calls else []), *([answers] if answers else [])]
    return [turn.role.value, *parts]


def reply_data(reply: ChatReply) -> Row:
    names = ("text", "blocked", "reason", "should_stop", "stop_reason")
    shown = {name: getattr(reply, name) for name in names}
    shown |= {"suppressed": reply.suppress_display}
    shown["calls"] = [[call.name, call.input, call.problem] for call in reply.calls]
    shown = filled(shown)
    if reply.allowed_names is not None:
        shown["allowed"] = sorted(reply.allowed_names)
    return shown


@pytest.mark.parametrize("models", ["scripted", "sdks"])
async def test_chats_obey_their_hooks_with_every_model(
    pin_table: Pins,
    model_server: ScriptedServer,
    wire_server: AnsweringServer,
    models: str,
) -> None:
    """Seed 004 sections 6.2 and 11; protocol.md#process, #translation, #callers."""

    async def talked(row: Row, sdk: str) -> Row:
        hooks = RecordedHooks(row["hooks"])
        specs = [ToolSpec(name=name) for name in row.get("tools", ())]
        if sdk == "scripted":
            model: Any = scripted(row["answers"])
            return await conversation(row, hooks, model, specs, lambda: model.requests)
        answers = copy.deepcopy(row.get("answers", []))
        model_server.answers(*map(answer_of, answers))
        server: Any = model_server
        if "wire" in row:
            wire_server.answer = wire_answer(row["wire"])
            server = wire_server
        async with model_of(sdk, server) as model:
            return await conversation(
                row, hooks, model, specs, lambda: model_server.received
            )

    async def made(_: str, row: Row) -> object:
        names = row.get("models", SDKS)
        if models == "scripted":
            names = ["scripted"]
        outcomes = {sdk: plain(await talked(row, sdk)) for sdk in names}
        return grouped("models", outcomes)

    await pin_table(f"agent/chats_{models}").check(made, at_once=1)


async def test_models_take_a_history_without_the_objects_of_their_sdk(
    pin_table: Pins, model_server: ScriptedServer
) -> None:
    """As a host may have kept it."""

    async def made(_: str, row: Row) -> Row:
        turns = msgspec.convert(row["turns"], list[Turn])
        requests: Row = {}
        for sdk in row["models"]:
            async with model_of(sdk, model_server) as model:
                requests[sdk] = dumped(model.build(turns, [], row["system"]))
        return requests

    await pin_table("agent/histories").check(made)


async def conversation(
    row: Row, hooks: RecordedHooks, model: Any, specs: Any, requests: Any
) -> Row:
    chunks: list[str] = []
    replies: list[Any] = []
    with warnings_of() as log:
        async with hooks.config:
            chat = ChatSession(
                hooks.config, model, tools=specs, **row.get("options", {})
            )
            for prompt in row.get("prompts", ["hi"]):
                try:
                    async for piece in chat.stream(prompt):
                        if isinstance(piece, ChatChunk):
                            chunks.append(piece.text)
                        else:
                            replies.append(piece)
                except Exception as error:  # noqa: BLE001 - the row says which
                    replies.append(f"{type(error).__name__}: {error}")
    answers = [reply for reply in replies if isinstance(reply, ChatReply)]
    outcome = {
        "chunks": chunks,
        "replies": [
            reply_data(reply) if isinstance(reply, ChatReply) else reply
            for reply in replies
        ],
        "types": sorted({type(reply.response).__name__ for reply in answers}),
        "history": [turn_data(turn) for turn in chat.history],
        "requests": requests(),
        "events": hooks.data if row.get("whole") else hooks.names,
        "log": [message[:90] for message in log],
    }
    words = [word for word in row.get("words", []) if word in f"{replies} {outcome}"]
    if outcome["types"] == ["dict"]:
        outcome["requests"] = [asked["messages"] for asked in requests()]
        outcome["configs"] = [asked.get("config") for asked in requests()]
        outcome["tools"] = [asked.get("toolConfig") for asked in requests()]
        outcome |= {"configs": [], "tools": []} if not row.get("whole") else {}
    return filled({**outcome, "shows": words})


def agent_result(result: AgentResult) -> Row:
    shown = {"ending": result.ending.value, "text": result.text}
    return filled(
        {**shown, "reason": result.reason, "suppressed": result.suppress_display}
    )


async def test_agents_obey_their_hooks_in_every_position(pin_table: Pins) -> None:
    """Seed 004 section 9: fail-open in every position; protocol.md#events."""

    async def made(_: str, row: Row) -> object:
        hooks = RecordedHooks(row["hooks"])
        model = scripted(row["answers"])
        chunks: list[str] = []

        def look(path: str) -> str:
            """Look at a file."""
            return f"text of {path}"

        outcomes: list[Any] = []
        async with hooks.config:
            agent = Agent(
                hooks.config,
                model,
                [look],
                on_chunk=chunks.append,
                **row.get("options", {}),
            )
            for prompt in row["prompts"]:
                try:
                    if prompt.startswith("/"):
                        await getattr(agent, prompt[1:])()
                    else:
                        outcomes.append(agent_result(await agent.run(prompt)))
                except ConnectionError as error:
                    outcomes.append(f"ConnectionError: {error}")
        return filled(
            {
                "results": outcomes,
                "chunks": chunks,
                "requests": [asked["messages"] for asked in model.requests],
                "history": [turn_data(turn) for turn in agent.chat.history],
                "events": hooks.data if row.get("whole") else hooks.names,
            }
        )

    await pin_table("agent/agents").check(made)


# --- Model triggers -------------------------------------------------------------------

ANSWER_TYPES: dict[str, Any] = {
    "chat": ChatCompletion,
    "responses": Response,
    "anthropic": Message,
    "genai": GenerateContentResponse,
}


def trigger_data(result: Any) -> Row:
    names = ["blocked", "reason", "modified_request", "should_stop", "stop_reason"]
    names += ("system_message", "suppress_output", "ask", "tool_config", "tools")
    shown = {name: dumped(getattr(result, name, None)) for name in names}
    for name in ("response", "synthetic_response"):
        value: Any = getattr(result, name, None)
        if hasattr(value, "model_dump"):
            dump = value.model_dump(mode="json", exclude_none=True, warnings=False)
            value = {type(value).__name__: dump}
        shown[name] = value
    shown = filled(shown)
    if getattr(result, "allowed_names", None) is not None:
        shown["allowed"] = sorted(result.allowed_names)
    return shown


def without_times(value: Any) -> Any:
    """The value without the times at which answers were made here."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: "<time>" if name.startswith("created") and item != 1 else item
        for name, item in ((key, without_times(entry)) for key, entry in value.items())
    }


async def test_model_triggers_give_their_callers_what_hooks_left(
    pin_table: Pins,
) -> None:
    """For those who call their model themselves: protocol.md#callers."""

    async def made(_: str, row: Row) -> object:
        settings = {"hooksConfig": row.get("config", {})}
        settings |= row.get("settings", {})
        hooks = RecordedHooks(row["hooks"], settings=settings, **row.get("options", {}))
        request: Any = row["request"]
        if row.get("request objects"):
            request = sdk_objects("genai", "request", request)
        before = copy.deepcopy(request)
        response: Any = row.get("response")
        if "object" in row:
            response = ANSWER_TYPES[row["object"]].model_construct(**response)
        elif row.get("proxy"):
            response = MappingProxyType(response)
        outcome: Row = {}
        async with hooks.config:
            events: list[str] = row.get("events") or list(row["hooks"])
            for event in events:
                if event == "BeforeModel":
                    fired: Any = await fire_before_model_hook(hooks.config, request)
                elif event == "AfterModel":
                    fired = await fire_after_model_hook(hooks.config, request, response)
                else:
                    fired = await fire_before_tool_selection_hook(hooks.config, request)
                outcome[event] = trigger_data(fired)
                if event == "AfterModel" and fired.response is response:
                    outcome[event]["response"] = "the same"
        assert request == before
        outcome = without_times(outcome)
        return {**outcome, **({"saw": hooks.data} if row.get("whole") else {})}

    await pin_table("agent/model_triggers").check(made)


JUNK: list[Any] = [[], {}, 5, "5", None, [5], {"x": "sk-1"}, ["sk-1"], True]


async def test_broken_answers_are_replaced_whatever_is_broken(pin_table: Pins) -> None:
    """With ``onError: block`` nothing is shown of an answer that a guard cannot see.

    Each row is tried with all junk in its place: as a dict, as another mapping and as
    the SDK's own object.
    """

    async def made(_: str, row: Row) -> object:
        text, api = json.dumps(row["response"]), row["object"]
        hooks = RecordedHooks({"AfterModel": {"$raise": "oh no", "onError": "block"}})
        replaced, shown = 0, []
        async with hooks.config as config:
            for junk in JUNK:
                answer = json.loads(text.replace('"<junk>"', json.dumps(junk)))
                sdk_object = ANSWER_TYPES[api].model_construct(**answer)
                for form in (answer, MappingProxyType(answer), sdk_object):
                    after = await fire_after_model_hook(config, row["request"], form)
                    answered = str(after.response)
                    is_reason = "onError" in answered or "Blocked" in answered
                    if is_reason and "sk-1" not in answered:
                        replaced += 1
                    else:
                        shown.append([type(form).__name__, junk, answered])
        return filled({"replaced": replaced, "shown": shown})

    await pin_table("agent/broken_answers").check(made)
