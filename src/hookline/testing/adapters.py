"""Tests that every adapter has to pass; run them against your own.

    class TestMyAdapter(AdapterSuite):
        driver = MyDriver()

A driver runs an agent of a framework, with the framework's own fake model, and reports
what was seen. One policy with a hook for each effect is the same for all of them, so
that adapters cannot drift apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from msgspec import Struct, field

from hookline.agent.session import Session
from hookline.config import Config
from hookline.engine.system import HookSystem
from hookline.protocol.events import HookEventName
from hookline.settings.load import Settings

from .scripted import ScriptedReply


class Toolbox:
    """The tools of every agent under test; ``ran`` lists their calls."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []

    def read(self, path: str) -> str:
        """Read a file."""
        self.ran.append(("read", {"path": path}))
        return f"content of {path}"

    def write(self, path: str, text: str) -> str:
        """Write a file."""
        self.ran.append(("write", {"path": path, "text": text}))
        return f"wrote {text} to {path}"

    def fail(self, path: str) -> str:
        """Read a file that cannot be read."""
        self.ran.append(("fail", {"path": path}))
        raise OSError(f"cannot read {path}")


class Task(Struct, kw_only=True):
    """What a driver has to run."""

    prompt: str = "go"
    replies: Sequence[ScriptedReply]
    """What the fake model answers, call by call; after the last one "the end"."""
    conversation: str = "conversation-1"
    """The framework's own id of the conversation, where it has one."""
    confirm: bool | None = None
    """What a person says when asked; None if there is nobody to ask."""
    tools: Toolbox = field(default_factory=Toolbox)

    def reply(self, at: int) -> ScriptedReply:
        """The answer to a request, counted from 0."""
        return self.replies[at] if at < len(self.replies) else ScriptedReply("the end")


class ModelRequest(Struct):
    """What the fake model was sent."""

    text: str
    """All text of all messages, tool results included."""
    tools: list[str]
    """The names of the tools that it was offered."""


class Ran(Struct, kw_only=True):
    """What was seen of a run."""

    answer: str = ""
    """The result of the run: its answer, or the reason why there is none."""
    requests: list[ModelRequest] = []
    shown: str = ""
    """Everything that was streamed to the caller, if the entry point streams."""
    recorded: str = ""
    """Everything that the framework recorded: messages, states, events, as text."""
    recorded_inputs: list[dict[str, Any]] = []
    """The inputs of tool calls, as the framework recorded them."""


class Driver(Protocol):
    """Runs agents of one framework."""

    entries: Sequence[str]
    """Its entry points, such as ``async``, ``sync`` and ``stream``."""
    cannot: Mapping[str, str]
    """The effects (ids of ``EFFECTS``) that it cannot express, and why."""

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        """Build an agent with the tools of the task, and run it with its hooks.

        A framework with ids of its own gives the conversation's id to the adapter;
        any other uses the session. Without a session the agent has no hooks, which is
        what its overhead is measured against. Called in an event loop: a plain entry
        point belongs in a thread (``asyncio.to_thread``).
        """


def before_tool(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Block, change, ask or stop, by the path."""
    return {
        ".env": {"decision": "deny", "reason": "no secrets in files"},
        "draft.md": _specific(tool_input={"path": "final.md"}),
        "ask.md": {"decision": "ask", "reason": "may it write ask.md?"},
        "stop.md": {"continue": False, "stopReason": "stopped before the tool"},
    }.get(event["tool_input"].get("path", ""))


def after_tool(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Add context, withhold or stop, by the path; show that errors are seen."""
    if event["tool_response"].get("error"):
        return _specific(additionalContext="a hook has seen the failure")
    return {
        "note.md": {
            "systemMessage": "be brief",
            **_specific(additionalContext="mind the note"),
        },
        "secret.md": {
            "reason": "the file is confidential",
            **_specific(withholdResult=True),
        },
        "last.md": {"continue": False, "stopReason": "stopped after the tool"},
    }.get(event["tool_input"].get("path", ""))


def before_selection(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Offer only ``read`` where the prompt says so."""
    if "read only" not in _sent(event):
        return None
    return _specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})


def before_model(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Block, answer or change a request."""
    sent = _sent(event)
    if "block the model" in sent:
        return {"decision": "deny", "reason": "no model for this"}
    if "answer for it" in sent:
        response = {"text": "from the hook"}
        return {"decision": "deny", **_specific(llm_response=response)}
    if "colour" in sent:
        messages = [
            {**message, "content": message["content"].replace("colour", "color")}
            for message in event["llm_request"]["messages"]
        ]
        return _specific(llm_request={"messages": messages})
    return None


def after_model(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Change an answer, or stop."""
    text = event["llm_response"].get("text") or ""
    if "s3cret" in text:
        changed = {"text": text.replace("s3cret", "[redacted]")}
        return _specific(llm_response=changed)
    if "halt" in text:
        return {"continue": False, "stopReason": "stopped at the answer"}
    return None


def before_agent(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Block or stop a turn, or add context."""
    prompt = event["prompt"]
    if "forbidden" in prompt:
        return {"decision": "deny", "reason": "not this prompt"}
    if "end it" in prompt:
        return {"continue": False, "stopReason": "stopped before the turn"}
    if "today" in prompt:
        return _specific(additionalContext="it is Monday")
    return None


def after_agent(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Reject drafts."""
    if "draft answer" in event["prompt_response"]:
        return {"decision": "deny", "reason": "write it properly"}
    return None


def _specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


def _sent(event: Mapping[str, Any]) -> str:
    return " ".join(one["content"] for one in event["llm_request"]["messages"])


_FUNCTIONS = {
    "BeforeTool": "before_tool",
    "AfterTool": "after_tool",
    "BeforeToolSelection": "before_selection",
    "BeforeModel": "before_model",
    "AfterModel": "after_model",
    "BeforeAgent": "before_agent",
    "AfterAgent": "after_agent",
}
POLICY: dict[str, Any] = {
    "hooks": {
        event: [{"hooks": [{"type": "python", "function": f"{__name__}:{name}"}]}]
        for event, name in _FUNCTIONS.items()
    }
}
"""The settings of every run."""


class Seen(Struct, kw_only=True):
    """A run, and what its hooks saw."""

    ran: Ran
    tools: list[tuple[str, dict[str, Any]]]
    events: list[dict[str, Any]]

    def events_of(self, name: str) -> list[dict[str, Any]]:
        """The inputs of one event."""
        return [one for one in self.events if one["hook_event_name"] == name]

    @property
    def sent(self) -> list[str]:
        """The text of each request to the model."""
        return [request.text for request in self.ran.requests]


class Effect(Struct, frozen=True, kw_only=True):
    """One thing that hooks do, and how to see that it happens."""

    id: str
    task: dict[str, Any]
    check: Callable[[Seen], None]


def _call(name: str, path: str, **more: str) -> ScriptedReply:
    return ScriptedReply(calls=((name, {"path": path, **more}),))


def _write(path: str) -> ScriptedReply:
    return _call("write", path, text="x")


def _tool_is_blocked(seen: Seen) -> None:
    assert seen.tools == []
    assert "no secrets in files" in seen.sent[1]
    assert "the end" in seen.ran.answer


def _input_is_changed(seen: Seen) -> None:
    assert seen.tools == [("write", {"path": "final.md", "text": "x"})]
    assert seen.events_of("AfterTool")[0]["tool_input"]["path"] == "final.md"


def _changed_input_is_recorded(seen: Seen) -> None:
    assert [one["path"] for one in seen.ran.recorded_inputs] == ["final.md"]


def _person_agrees(seen: Seen) -> None:
    assert seen.tools == [("write", {"path": "ask.md", "text": "x"})]
    assert "wrote x to ask.md" in seen.sent[-1]


def _person_declines(seen: Seen) -> None:
    assert seen.tools == []
    assert "the end" in seen.ran.answer


def _nobody_can_be_asked(seen: Seen) -> None:
    assert seen.tools == []
    assert "may it write ask.md?" in seen.sent[-1]


def _stopped_before_tool(seen: Seen) -> None:
    assert seen.tools == []
    assert "stopped before the tool" in seen.ran.answer
    assert len(seen.ran.requests) == 1
    assert seen.events_of("AfterAgent") == []


def _stopped_after_tool(seen: Seen) -> None:
    assert [name for name, _ in seen.tools] == ["read"]
    assert "stopped after the tool" in seen.ran.answer
    assert len(seen.ran.requests) == 1


def _result_has_additions(seen: Seen) -> None:
    assert "content of note.md" in seen.sent[1]
    assert "mind the note" in seen.sent[1]
    assert "[System] be brief" in seen.sent[1]


def _result_is_withheld(seen: Seen) -> None:
    assert [name for name, _ in seen.tools] == ["read"]
    assert "the file is confidential" in seen.sent[1]
    for text in (*seen.sent, seen.ran.shown, seen.ran.recorded):
        assert "content of secret.md" not in text


def _failure_is_seen(seen: Seen) -> None:
    (event,) = seen.events_of("AfterTool")
    assert "cannot read x.md" in event["tool_response"]["error"]["message"]
    assert "a hook has seen the failure" in seen.sent[1]


def _tools_are_restricted(seen: Seen) -> None:
    assert seen.ran.requests[0].tools == ["read"]


def _call_outside_is_refused(seen: Seen) -> None:
    assert seen.tools == []
    assert seen.events_of("BeforeTool") == []


def _model_is_blocked(seen: Seen) -> None:
    assert seen.ran.requests == []
    assert "no model for this" in seen.ran.answer


def _hook_answers(seen: Seen) -> None:
    assert seen.ran.requests == []
    assert seen.ran.answer == "from the hook"


def _request_is_changed(seen: Seen) -> None:
    assert "which color?" in seen.sent[0]
    assert "colour" not in seen.sent[0]


def _answer_is_changed(seen: Seen) -> None:
    assert seen.ran.answer == "the [redacted] is out"
    for text in (seen.ran.shown, seen.ran.recorded):
        assert "s3cret" not in text


def _stopped_at_answer(seen: Seen) -> None:
    assert seen.tools == []
    assert "stopped at the answer" in seen.ran.answer
    assert len(seen.ran.requests) == 1


def _turn_is_blocked(seen: Seen) -> None:
    assert seen.ran.requests == []
    assert "not this prompt" in seen.ran.answer
    assert seen.events_of("AfterAgent") == []


def _turn_is_stopped(seen: Seen) -> None:
    assert seen.ran.requests == []
    assert "stopped before the turn" in seen.ran.answer


def _turn_has_context(seen: Seen) -> None:
    assert "what is today?" in seen.sent[0]
    assert "it is Monday" in seen.sent[0]


def _rejected_answer_continues(seen: Seen) -> None:
    assert seen.ran.answer == "proper answer"
    assert "write it properly" in seen.sent[1]
    active = [one["stop_hook_active"] for one in seen.events_of("AfterAgent")]
    assert active == [False, True]


def _rejections_have_a_limit(seen: Seen) -> None:
    assert len(seen.ran.requests) == 9
    assert len(seen.events_of("AfterAgent")) == 9
    assert "write it properly" in seen.ran.answer


def _parallel_calls_are_judged_apart(seen: Seen) -> None:
    assert sorted(one["path"] for _, one in seen.tools) == ["a.md", "b.md"]
    assert "no secrets in files" in seen.sent[1]
    for path in ("a.md", "b.md"):
        assert f"wrote x to {path}" in seen.sent[1]


def _events_are_whole(seen: Seen) -> None:
    assert [one["hook_event_name"] for one in seen.events] == [
        "BeforeAgent",
        *("BeforeToolSelection", "BeforeModel", "AfterModel"),
        *("BeforeTool", "AfterTool"),
        *("BeforeToolSelection", "BeforeModel", "AfterModel"),
        "AfterAgent",
    ]
    assert {one["session_id"] for one in seen.events} == {"conversation-1"}
    assert seen.events_of("AfterAgent")[0]["prompt_response"] == "the end"


_PARALLEL = ScriptedReply(
    calls=tuple(
        ("write", {"path": path, "text": "x"}) for path in ("a.md", ".env", "b.md")
    )
)
_TASKS: list[tuple[str, Callable[[Seen], None], dict[str, Any]]] = [
    ("tool-block", _tool_is_blocked, {"replies": [_write(".env")]}),
    ("tool-change", _input_is_changed, {"replies": [_write("draft.md")]}),
    ("tool-recorded", _changed_input_is_recorded, {"replies": [_write("draft.md")]}),
    ("tool-ask-yes", _person_agrees, {"replies": [_write("ask.md")], "confirm": True}),
    (
        "tool-ask-no",
        _person_declines,
        {"replies": [_write("ask.md")], "confirm": False},
    ),
    ("tool-ask-nobody", _nobody_can_be_asked, {"replies": [_write("ask.md")]}),
    ("tool-stop", _stopped_before_tool, {"replies": [_write("stop.md")]}),
    ("tool-parallel", _parallel_calls_are_judged_apart, {"replies": [_PARALLEL]}),
    ("result-context", _result_has_additions, {"replies": [_call("read", "note.md")]}),
    ("result-withheld", _result_is_withheld, {"replies": [_call("read", "secret.md")]}),
    ("result-failure", _failure_is_seen, {"replies": [_call("fail", "x.md")]}),
    ("result-stop", _stopped_after_tool, {"replies": [_call("read", "last.md")]}),
    (
        "selection",
        _tools_are_restricted,
        {"replies": [], "prompt": "read only, please"},
    ),
    (
        "selection-refused",
        _call_outside_is_refused,
        {"replies": [_write("a.md")], "prompt": "read only, please"},
    ),
    ("model-block", _model_is_blocked, {"replies": [], "prompt": "block the model"}),
    ("model-answer", _hook_answers, {"replies": [], "prompt": "answer for it"}),
    ("model-change", _request_is_changed, {"replies": [], "prompt": "which colour?"}),
    (
        "answer-change",
        _answer_is_changed,
        {"replies": [ScriptedReply("the s3cret is out")]},
    ),
    (
        "answer-stop",
        _stopped_at_answer,
        {"replies": [ScriptedReply("halt now", _write("a.md").calls)]},
    ),
    ("turn-block", _turn_is_blocked, {"replies": [], "prompt": "forbidden"}),
    ("turn-stop", _turn_is_stopped, {"replies": [], "prompt": "end it"}),
    ("turn-context", _turn_has_context, {"replies": [], "prompt": "what is today?"}),
    (
        "turn-reject",
        _rejected_answer_continues,
        {"replies": [ScriptedReply("draft answer"), ScriptedReply("proper answer")]},
    ),
    (
        "turn-reject-limit",
        _rejections_have_a_limit,
        {"replies": [ScriptedReply("draft answer")] * 20},
    ),
    ("events", _events_are_whole, {"replies": [_call("read", "a.md")]}),
]
EFFECTS = [Effect(id=name, check=check, task=task) for name, check, task in _TASKS]
"""Everything that an adapter is tested for, beside ``conversations``."""


async def observe(
    driver: Driver, entry: str, *tasks: Task, settings: Mapping[str, Any] = POLICY
) -> list[Seen]:
    """Run tasks at once, on sessions of one config, and collect what was seen."""
    events: list[dict[str, Any]] = []

    def record(event: dict[str, Any]) -> None:
        events.append(event)

    config = Config("own-session", ".", Settings.from_mapping(settings))
    async with config:
        system = HookSystem(config)
        for name in HookEventName:
            system.on(name, name="recorder", recheck=False)(record)
        runs = [driver.run(config.session(t.conversation), t, entry) for t in tasks]
        ran = await asyncio.gather(*runs)
    return [
        Seen(ran=one, tools=task.tools.ran, events=_of_session(events, task))
        for one, task in zip(ran, tasks, strict=True)
    ]


def _of_session(events: list[dict[str, Any]], task: Task) -> list[dict[str, Any]]:
    return [one for one in events if one["session_id"] == task.conversation]


class AdapterSuite:
    """A test class: one test for each effect and entry point of a driver."""

    driver: ClassVar[Driver]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Parametrise the tests below."""
        if "effect" in metafunc.fixturenames:
            metafunc.parametrize("effect", EFFECTS, ids=lambda effect: effect.id)
        if "entry" in metafunc.fixturenames:
            metafunc.parametrize("entry", self.driver.entries)

    def test_effect(self, effect: Effect, entry: str) -> None:
        """One effect, as far as the framework can express it."""
        if effect.id in self.driver.cannot:
            _skip(self.driver.cannot[effect.id])
        (seen,) = asyncio.run(observe(self.driver, entry, Task(**effect.task)))
        effect.check(seen)

    def test_two_conversations_at_once_stay_apart(self, entry: str) -> None:
        """Each has its own session, and only its own turn is blocked."""
        if "conversations" in self.driver.cannot:
            _skip(self.driver.cannot["conversations"])
        tasks = [
            Task(conversation=name, replies=[_write(path)])
            for name, path in (("one", ".env"), ("two", "a.md"))
        ]
        first, second = asyncio.run(observe(self.driver, entry, *tasks))
        assert first.tools == []
        assert second.tools == [("write", {"path": "a.md", "text": "x"})]
        for seen, path in ((first, ".env"), (second, "a.md")):
            assert [
                one["tool_input"]["path"] for one in seen.events_of("BeforeTool")
            ] == [path]

    def test_every_effect_that_is_left_out_is_known(self) -> None:
        """``cannot`` names effects that exist, each with a reason."""
        known = {effect.id for effect in EFFECTS} | {"conversations"}
        assert set(self.driver.cannot) <= known
        assert all(self.driver.cannot.values())


def _skip(reason: str) -> None:
    import pytest

    pytest.skip(reason)
