"""Tests that every adapter has to pass; run them against your own.

    class TestMyAdapter(AdapterSuite):
        driver = MyDriver()

A driver runs an agent of a framework, with the framework's own fake model, and reports
what was run. One policy with a hook for each effect is the same for all of them, so
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
    replies: Sequence[ScriptedReply] = ()
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
    """Add context, withhold or stop, by the path; show that errors are run."""
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
    if "read only" not in _text_sent(event):
        return None
    return _specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})


def before_model(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Block, answer or change a request."""
    text = _text_sent(event)
    if "block the model" in text:
        return {"decision": "deny", "reason": "no model for this"}
    if "answer for it" in text:
        response = {"text": "from the hook"}
        return {"decision": "deny", **_specific(llm_response=response)}
    if "colour" in text:
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


def _text_sent(event: Mapping[str, Any]) -> str:
    return " ".join(message["content"] for message in event["llm_request"]["messages"])


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


class ObservedRun(Struct, kw_only=True):
    """A run, and what its hooks saw."""

    outcome: Ran
    tools: list[tuple[str, dict[str, Any]]]
    events: list[dict[str, Any]]

    def events_of(self, name: str) -> list[dict[str, Any]]:
        """The inputs of one event."""
        return [event for event in self.events if event["hook_event_name"] == name]

    @property
    def sent(self) -> list[str]:
        """The text of each request to the model."""
        return [request.text for request in self.outcome.requests]


class Effect(Struct, frozen=True, kw_only=True):
    """One thing that hooks do, and how to see that it happens."""

    id: str
    task: dict[str, Any]
    check: Callable[[ObservedRun], None]


EFFECTS: list[Effect] = []
"""Everything that an adapter is tested for, beside ``conversations``."""
_Check = Callable[[ObservedRun], None]


def _effect(name: str, **task: Any) -> Callable[[_Check], _Check]:
    """What happens in a task is the effect of this name."""

    def add(check: _Check) -> _Check:
        EFFECTS.append(Effect(id=name, check=check, task=task))
        return check

    return add


def _call(name: str, path: str, **more: str) -> ScriptedReply:
    return ScriptedReply(calls=((name, {"path": path, **more}),))


def _write(path: str) -> ScriptedReply:
    return _call("write", path, text="x")


@_effect("tool-block", replies=[_write(".env")])
def _tool_is_blocked(run: ObservedRun) -> None:
    assert run.tools == []
    assert "no secrets in files" in run.sent[1]
    assert "the end" in run.outcome.answer


@_effect("tool-change", replies=[_write("draft.md")])
def _input_is_changed(run: ObservedRun) -> None:
    assert run.tools == [("write", {"path": "final.md", "text": "x"})]
    assert run.events_of("AfterTool")[0]["tool_input"]["path"] == "final.md"


@_effect("tool-recorded", replies=[_write("draft.md")])
def _changed_input_is_recorded(run: ObservedRun) -> None:
    paths = [tool_input["path"] for tool_input in run.outcome.recorded_inputs]
    assert paths == ["final.md"]


@_effect("tool-ask-yes", replies=[_write("ask.md")], confirm=True)
def _person_agrees(run: ObservedRun) -> None:
    assert run.tools == [("write", {"path": "ask.md", "text": "x"})]
    assert "wrote x to ask.md" in run.sent[-1]


@_effect("tool-ask-no", replies=[_write("ask.md")], confirm=False)
def _person_declines(run: ObservedRun) -> None:
    assert run.tools == []
    assert "the end" in run.outcome.answer


@_effect("tool-ask-nobody", replies=[_write("ask.md")])
def _nobody_can_be_asked(run: ObservedRun) -> None:
    assert run.tools == []
    assert "may it write ask.md?" in run.sent[-1]


@_effect("tool-stop", replies=[_write("stop.md")])
def _stopped_before_tool(run: ObservedRun) -> None:
    assert run.tools == []
    assert "stopped before the tool" in run.outcome.answer
    assert len(run.outcome.requests) == 1
    assert run.events_of("AfterAgent") == []


@_effect("result-stop", replies=[_call("read", "last.md")])
def _stopped_after_tool(run: ObservedRun) -> None:
    assert [name for name, _ in run.tools] == ["read"]
    assert "stopped after the tool" in run.outcome.answer
    assert len(run.outcome.requests) == 1


@_effect("result-context", replies=[_call("read", "note.md")])
def _result_has_additions(run: ObservedRun) -> None:
    assert "content of note.md" in run.sent[1]
    assert "mind the note" in run.sent[1]
    assert "[System] be brief" in run.sent[1]


@_effect("result-withheld", replies=[_call("read", "secret.md")])
def _result_is_withheld(run: ObservedRun) -> None:
    assert [name for name, _ in run.tools] == ["read"]
    assert "the file is confidential" in run.sent[1]
    for text in (*run.sent, run.outcome.shown, run.outcome.recorded):
        assert "content of secret.md" not in text


@_effect("result-failure", replies=[_call("fail", "x.md")])
def _failure_is_seen(run: ObservedRun) -> None:
    (event,) = run.events_of("AfterTool")
    assert "cannot read x.md" in event["tool_response"]["error"]["message"]
    assert "a hook has seen the failure" in run.sent[1]


@_effect("selection", prompt="read only, please")
def _tools_are_restricted(run: ObservedRun) -> None:
    assert run.outcome.requests[0].tools == ["read"]


@_effect("selection-refused", replies=[_write("a.md")], prompt="read only, please")
def _call_outside_is_refused(run: ObservedRun) -> None:
    assert run.tools == []
    assert run.events_of("BeforeTool") == []


@_effect("model-block", prompt="block the model")
def _model_is_blocked(run: ObservedRun) -> None:
    assert run.outcome.requests == []
    assert "no model for this" in run.outcome.answer
    assert run.events_of("AfterAgent") == []


@_effect("model-answer", prompt="answer for it")
def _hook_answers(run: ObservedRun) -> None:
    assert run.outcome.requests == []
    assert run.outcome.answer == "from the hook"


@_effect("model-change", prompt="which colour?")
def _request_is_changed(run: ObservedRun) -> None:
    assert "which color?" in run.sent[0]
    assert "colour" not in run.sent[0]


@_effect("answer-change", replies=[ScriptedReply("the s3cret is out")])
def _answer_is_changed(run: ObservedRun) -> None:
    assert run.outcome.answer == "the [redacted] is out"
    for text in (run.outcome.shown, run.outcome.recorded):
        assert "s3cret" not in text


@_effect("answer-stop", replies=[ScriptedReply("halt now", _write("a.md").calls)])
def _stopped_at_answer(run: ObservedRun) -> None:
    assert run.tools == []
    assert "stopped at the answer" in run.outcome.answer
    assert len(run.outcome.requests) == 1


@_effect("turn-block", prompt="forbidden")
def _turn_is_blocked(run: ObservedRun) -> None:
    assert run.outcome.requests == []
    assert "not this prompt" in run.outcome.answer
    assert run.events_of("AfterAgent") == []


@_effect("turn-stop", prompt="end it")
def _turn_is_stopped(run: ObservedRun) -> None:
    assert run.outcome.requests == []
    assert "stopped before the turn" in run.outcome.answer


@_effect("turn-context", prompt="what is today?")
def _turn_has_context(run: ObservedRun) -> None:
    assert "what is today?" in run.sent[0]
    assert "it is Monday" in run.sent[0]


@_effect(
    "turn-reject",
    replies=[ScriptedReply("draft answer"), ScriptedReply("proper answer")],
)
def _rejected_answer_continues(run: ObservedRun) -> None:
    assert run.outcome.answer == "proper answer"
    assert "write it properly" in run.sent[1]
    answers = run.events_of("AfterAgent")
    assert [event["stop_hook_active"] for event in answers] == [False, True]


@_effect("turn-reject-limit", replies=[ScriptedReply("draft answer")] * 20)
def _rejections_have_a_limit(run: ObservedRun) -> None:
    assert len(run.outcome.requests) == 9
    assert len(run.events_of("AfterAgent")) == 9
    assert "write it properly" in run.outcome.answer


_PARALLEL = ScriptedReply(
    calls=tuple(
        ("write", {"path": path, "text": "x"}) for path in ("a.md", ".env", "b.md")
    )
)


@_effect("tool-parallel", replies=[_PARALLEL])
def _parallel_calls_are_judged_apart(run: ObservedRun) -> None:
    assert sorted(tool_input["path"] for _, tool_input in run.tools) == ["a.md", "b.md"]
    assert "no secrets in files" in run.sent[1]
    for path in ("a.md", "b.md"):
        assert f"wrote x to {path}" in run.sent[1]


@_effect("events", replies=[_call("read", "a.md")])
def _events_are_whole(run: ObservedRun) -> None:
    assert [event["hook_event_name"] for event in run.events] == [
        "BeforeAgent",
        *("BeforeToolSelection", "BeforeModel", "AfterModel"),
        *("BeforeTool", "AfterTool"),
        *("BeforeToolSelection", "BeforeModel", "AfterModel"),
        "AfterAgent",
    ]
    assert {event["session_id"] for event in run.events} == {"conversation-1"}
    assert run.events_of("AfterAgent")[0]["prompt_response"] == "the end"


async def observe(
    driver: Driver, entry: str, *tasks: Task, settings: Mapping[str, Any] = POLICY
) -> list[ObservedRun]:
    """Run tasks at once, on sessions of one config, and collect what happened."""
    events: list[dict[str, Any]] = []

    def record(event: dict[str, Any]) -> None:
        events.append(event)

    config = Config("own-session", ".", Settings.from_mapping(settings))
    async with config:
        system = HookSystem(config)
        for name in HookEventName:
            system.on(name, name="recorder", recheck=False)(record)
        runs = [driver.run(config.session(t.conversation), t, entry) for t in tasks]
        outcomes = await asyncio.gather(*runs)
    return [
        ObservedRun(
            outcome=outcome,
            tools=task.tools.ran,
            events=[e for e in events if e["session_id"] == task.conversation],
        )
        for outcome, task in zip(outcomes, tasks, strict=True)
    ]


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
        (run,) = asyncio.run(observe(self.driver, entry, Task(**effect.task)))
        effect.check(run)

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
        for run, path in ((first, ".env"), (second, "a.md")):
            assert [
                event["tool_input"]["path"] for event in run.events_of("BeforeTool")
            ] == [path]

    def test_every_effect_that_is_left_out_is_known(self) -> None:
        """``cannot`` names effects that exist, each with a reason."""
        effects = {effect.id for effect in EFFECTS} | {"conversations"}
        assert set(self.driver.cannot) <= effects
        assert all(self.driver.cannot.values())


def _skip(reason: str) -> None:
    import pytest

    pytest.skip(reason)
