"""Scenarios that agents of every framework go through, read from tables.

A row says what hooks answer, what the model answers and what a person says; what came
of it is recorded per framework: the events that hooks saw, what the model was sent, and
what the caller got. Rows of several frameworks are in ``scenarios.json``; rows of one
framework are in its own table.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from hookline.agent import Confirmation, ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task, Toolbox

from .recorded_hooks import Event, RecordedHooks


class City(BaseModel):
    """A structured answer."""

    name: str
    note: str = ""


class Tools(Toolbox):
    """The tools of every agent, and some that only a few scenarios need."""

    def __init__(self) -> None:
        super().__init__()
        self.hanging = asyncio.Event()
        self._met = asyncio.Event()

    def __deepcopy__(self, memo: object) -> Tools:
        """Models keep copies of requests, which ADK gives the tools along."""
        return self

    def table(self) -> dict[str, Any]:
        """Give a result that is not text."""
        self.ran.append(("table", {}))
        return {"rows": [1, 2]}

    def shaky(self, path: str) -> str:
        """Fail the first time."""
        self.ran.append(("shaky", {"path": path}))
        if len(self.ran) == 1:
            raise OSError("busy")
        return "fine"

    def give_up(self, path: str) -> dict[str, Any]:
        """Fail with a result, as tools of Strands do."""
        return {"status": "error", "content": [{"text": f"no {path}"}]}

    async def late(self) -> str:
        """Time out."""
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return "never"

    async def hang(self) -> str:
        """Wait until the run is cancelled."""
        self.hanging.set()
        await asyncio.Event().wait()
        return "never"

    async def meet(self, path: str) -> str:
        """Wait for another call of this tool."""
        self.ran.append(("meet", {"path": path}))
        if len(self.ran) == 2:
            self._met.set()
        await self._met.wait()
        return f"met {path}"


class Scenario(Struct, kw_only=True):
    """What an agent goes through, and what was seen of it."""

    turns: list[Any] = field(default_factory=lambda: ["go"])
    replies: Sequence[ScriptedReply | Exception] = []
    """What the model answers, or how it fails; ``{"error": ...}`` in a row."""
    helper: Sequence[ScriptedReply] = []
    """The replies of an agent that is a tool of the first one."""
    agents: dict[str, Sequence[ScriptedReply]] = {}
    """The agents of a workflow, if one runs in the place of a single agent."""
    conversation: str | None = "conversation-1"
    answers: list[Any] = []
    """What a person says to one question after the other; empty if nobody is there.

    ``{"by": {...}}`` answers questions at the same time by the path that they are
    about; after the last answer the run is left waiting.
    """
    elsewhere: bool = False
    """Whether answers are given in another process, as far as this one can tell."""
    confirm: bool | None = None
    """What a callback for questions says; None if there is none."""
    is_pinned: bool = False
    """Whether the adapter gets a session in place of a config."""
    more_tools: list[str] = []
    structured: bool = False
    """Whether the answer is a ``City``; replies that are JSON are such answers."""
    output_tool: str | None = None
    """The tool by which a model gives a structured answer, where it needs one."""
    softens_errors: bool = False
    """Whether the model is told errors of tools that would end the run otherwise."""
    options: dict[str, Any] = {}
    """What only one framework knows."""
    tools: Toolbox = field(default_factory=Tools)

    requests: list[ModelRequest] = []
    helper_requests: list[ModelRequest] = []
    agent_requests: dict[str, list[ModelRequest]] = {}
    results: list[str] = []
    """What each turn came to."""
    questions: list[Any] = []
    shown: list[str] = []
    recorded: str = ""
    recorded_inputs: list[dict[str, Any]] = []
    notes: dict[str, Any] = {}
    """What only one framework has to show."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], driver: ScenarioDriver) -> Scenario:
        """What a row says, in the terms of a framework."""

        def script(replies: Sequence[Any]) -> list[Any]:
            return [_reply(reply, driver.helper_input) for reply in replies]

        names = {
            *("turns", "conversation", "answers", "elsewhere", "confirm", "is_pinned"),
            *("more_tools", "structured", "options"),
        }
        fields = {name: value for name, value in row.items() if name in names}
        return cls(
            replies=script(row.get("replies", ())),
            helper=script(row.get("helper", ())),
            agents={
                name: script(replies) for name, replies in row.get("agents", {}).items()
            },
            output_tool=driver.output_tool,
            **json.loads(json.dumps(fields)),
        )

    def __post_init__(self) -> None:
        """Give structured answers as the framework wants them."""
        if self.structured and self.output_tool and not self.options.get("native"):
            self.replies = [
                ScriptedReply(calls=((self.output_tool, json.loads(reply.text)),))
                if isinstance(reply, ScriptedReply) and reply.text.startswith("{")
                else reply
                for reply in self.replies
            ]

    def reply(self, at: int) -> ScriptedReply:
        """The answer to a request, counted from 0."""
        reply = self.replies[at] if at < len(self.replies) else ScriptedReply("the end")
        if isinstance(reply, Exception):
            raise reply
        return reply

    def helper_reply(self, at: int) -> ScriptedReply:
        """The answer to a request of the agent that is a tool."""
        return self.helper[at] if at < len(self.helper) else ScriptedReply("helped")

    def functions(self) -> list[Callable[..., Any]]:
        """The tools of the agents."""
        box = self.tools
        more_tools = [getattr(box, name) for name in self.more_tools]
        return [box.read, box.write, box.fail, *more_tools]

    def subject(self, session: Session) -> Any:
        """What the adapter is given: a config, or a session to be used as it is."""
        return session if self.is_pinned else session.config

    @property
    def callback(self) -> Any:
        """The callback that answers questions, if the row has one."""
        return None if self.confirm is None else self._confirmed

    async def _confirmed(self, question: Confirmation) -> bool:
        self.questions.append(f"{question.reason} {question.tool_input}")
        return self.confirm is True

    def take_answer(self) -> Any:
        """The answer of the person; None if the run is left waiting."""
        return self.answers.pop(0) if self.answers else None

    @property
    def ran(self) -> Ran:
        """What the shared suite looks at."""
        return Ran(
            answer=self.results[-1],
            requests=self.requests,
            shown="".join(self.shown),
            recorded=self.recorded,
            recorded_inputs=self.recorded_inputs,
        )


def _reply(reply: Any, helper_input: str) -> ScriptedReply | Exception:
    if isinstance(reply, str):
        return ScriptedReply(reply)
    if isinstance(reply, dict):
        return ConnectionError(reply["error"])
    text = reply[0] if isinstance(reply[0], str) else ""
    calls = [(name, copy(args)) for name, args in reply[bool(text) :]]
    for name, args in calls:
        if name == "helper":
            args[helper_input] = args.pop("input")
    return ScriptedReply(text, tuple(calls))


def calls(*made: tuple[str, Any], text: str = "") -> ScriptedReply:
    """A reply that calls tools."""
    return ScriptedReply(text, made)


def script(*replies: ScriptedReply | str) -> Callable[[int], ScriptedReply]:
    """The answers of a model, counted from 0, and "the end" after the last one."""
    answers = [ScriptedReply(r) if isinstance(r, str) else r for r in replies]
    return Scenario(replies=answers).reply


def answer_for(answer: Any, path: Any) -> Any:
    """What a person says to the question about one path."""
    if isinstance(answer, dict) and "by" in answer:
        return answer["by"][path]
    return answer


class ScenarioDriver:
    """Runs agents of one framework, for the shared suite and for tables."""

    entries: Sequence[str] = ("async",)
    usual_entries: Sequence[str] = ("async", "stream")
    """The entry points that most rows are run by."""
    cannot: Mapping[str, str] = {}
    offers: frozenset[str] = frozenset(
        {"model", "turns", "helper", "questions", "structured"}
    )
    """What the framework has, of that which rows may need."""
    helper_input = "input"
    """The parameter of an agent that is a tool."""
    output_tool: str | None = None
    """The tool by which a model gives a structured answer."""

    async def play(
        self, session: Session | None, scenario: Scenario, entry: str
    ) -> None:
        """Run an agent; all that is seen of it goes into the scenario."""
        raise NotImplementedError

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        """Run the task of the shared suite."""
        scenario = Scenario(
            turns=[task.prompt],
            replies=task.replies,
            conversation=task.conversation,
            answers=[] if task.confirm is None else [task.confirm] * 9,
            tools=task.tools,
            softens_errors=True,
        )
        await self.play(session, scenario, entry)
        return scenario.ran


async def observe(driver: ScenarioDriver, row: Mapping[str, Any]) -> dict[str, Any]:
    """Let agents go through a row by several entry points.

    The first one is told whole, of the others only what is different. A row may name
    its own entry points.
    """
    entries = driver.entries if row.get("every_entry") else driver.usual_entries
    entries = row.get("entries", entries)
    first = entries[0]
    whole = await _observe(driver, row, first)
    same, others = [first], dict[str, Any]()
    for entry in () if row.get("first_entry") else entries[1:]:
        result = await _observe(driver, row, entry)
        different = {
            name: result.get(name)
            for name in whole.keys() | result.keys()
            if whole.get(name) != result.get(name)
        }
        if different:
            others[entry] = dict(sorted(different.items()))
        else:
            same.append(entry)
    return {", ".join(same): whole, **others}


async def _observe(
    driver: ScenarioDriver, row: Mapping[str, Any], entry: str
) -> dict[str, Any]:
    recorded = RecordedHooks(
        row.get("hooks"),
        hooks_config=row.get("hooksConfig"),
        unheard=row.get("unheard", ()),
    )
    scenario = Scenario.from_row(row, driver)
    log = _Log()
    logging.getLogger("hookline").addHandler(log)
    error = ""
    try:
        async with recorded.config as config:
            paths = {"transcript_path": "/t.jsonl"} if scenario.is_pinned else {}
            for _ in range(row.get("plays", 1)):
                session = config.session(scenario.conversation or "own", **paths)
                play = driver.play(session, scenario, entry)
                await (_cancel(play, scenario) if row.get("cancelled") else play)
    except Exception as raised:  # noqa: BLE001  # the row records which one
        error = f"{type(raised).__name__}: {raised}"
    finally:
        logging.getLogger("hookline").removeHandler(log)
    return _described(row, scenario, recorded, log, error)


async def _cancel(play: Any, scenario: Scenario) -> None:
    assert isinstance(scenario.tools, Tools)
    run = asyncio.ensure_future(play)
    hanging = asyncio.ensure_future(scenario.tools.hanging.wait())
    await asyncio.wait({run, hanging}, return_when=asyncio.FIRST_COMPLETED)
    hanging.cancel()
    run.cancel()
    try:
        await run
    except asyncio.CancelledError:
        scenario.results.append("cancelled")


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage().split("\n")[0])


def _described(
    row: Mapping[str, Any],
    scenario: Scenario,
    recorded: RecordedHooks,
    log: _Log,
    error: str,
) -> dict[str, Any]:
    seen = events_as_data(recorded, unordered="unordered" in row)
    if row.get("unordered"):
        seen["events"].sort()
    ran = [f"{name} {args}" for name, args in scenario.tools.ran]
    secret = row.get("secret", "s3cret")
    places = {
        "the request": [request.text for request in scenario.requests],
        "what is shown": "".join(scenario.shown),
        "the record": scenario.recorded,
    }
    parts = {
        "results": scenario.results,
        "raises": error,
        **seen,
        "ran": sorted(ran) if row.get("unordered") else ran,
        "requests": _as_lines(scenario.requests),
        "helper_requests": _as_lines(scenario.helper_requests),
        "agent_requests": {
            name: _as_lines(requests)
            for name, requests in scenario.agent_requests.items()
        },
        "inputs": scenario.recorded_inputs,
        "questions": scenario.questions,
        f"{secret} is in": [
            name for name, text in places.items() if secret in str(text)
        ],
        "log": [
            line
            for line in log.lines
            if row.get("warnings") or not _INEFFECTIVE.match(line)
        ],
        **scenario.notes,
    }
    if row.get("chunks"):
        parts["pieces shown"] = len(scenario.shown)
    described = masked({name: part for name, part in parts.items() if part})
    if row.get("unordered") and "questions" in described:
        described["questions"].sort(key=str)
    return described


def events_as_data(
    recorded: RecordedHooks, *, unordered: bool = False
) -> dict[str, Any]:
    """The events that hooks saw, each on a line, and whose they were."""
    agents: dict[str, str] = {}
    if unordered:  # else agents are numbered as they start
        ids = {event["agent_id"]: event for event in recorded.of("SubagentStart")}
        agents = {
            name: f"{event['agent_type']} for {event['prompt']}"
            for name, event in ids.items()
        }
    paths = sorted({event["transcript_path"] for event in recorded.events} - {""})
    return {
        "events": [_event_line(event, agents) for event in recorded.events],
        "sessions": sorted(recorded.sessions),
        **({"transcripts": paths} if paths else {}),
    }


_INEFFECTIVE = re.compile(r"\w+ hooks have no effect in")
"""Every event is recorded, so each run warns about those that cannot happen."""


def _as_lines(requests: Sequence[ModelRequest]) -> list[list[str]]:
    """Requests as lines; the tools where they are not those of every agent."""
    lines = [request.text.split("\n") for request in requests]
    for request, texts in zip(requests, lines, strict=True):
        if set(request.tools) != {"read", "write", "fail"}:
            texts.append(f"(tools: {' '.join(request.tools)})")
    return lines


def masked(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as JSON holds it, without ids and times that differ from run to run."""
    text = json.dumps(value, default=str).replace(str(Path.cwd()), "<folder>")
    for pattern, name in _IDS:
        text = re.sub(pattern, name, text)
    data: dict[str, Any] = json.loads(text)
    return data


_IDS = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"0x[0-9a-f]+", "<address>"),
    (r"[0-9a-f]{32}|(?<=toolu_)[0-9a-f]{24}", "<id>"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "<time>"),
]


def _event_line(event: Event, agents: dict[str, str]) -> str:
    """An event on one line, without what is the same for all events of a run."""
    values = {name: value for name, value in event.items() if name not in _COMMON}
    request = values.pop("llm_request", {})
    if event["hook_event_name"] == "BeforeModel":
        messages = [f"{m['role']}: {m['content']}" for m in request["messages"]]
        values |= {"model": request.get("model"), "messages": messages}
        values["config"] = request.get("config")
    if response := values.pop("llm_response", None):
        values["text"] = response.get("text")
    if "agent_id" in values:
        number = f"agent {len(agents) + 1}"
        values["agent_id"] = agents.setdefault(values["agent_id"], number)
    shown = [f"{name}={value!r}" for name, value in values.items() if value]
    return f"{event['hook_event_name']} {' '.join(shown)}"


_COMMON = {
    *("hook_event_name", "session_id", "transcript_path", "cwd", "timestamp"),
    *("schema_version", "event_id", "turn_id", "protocol"),
}
