"""Turns and runs: what calls that belong together share (issue 14 sessions)."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.agent import Confirmation, changes
from hookline.agent.turn import MAX_REJECTIONS

Event = dict[str, Any]
STABLE: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "one", "at": 0},
        {"role": "model", "content": "two", "at": 1},
        {"role": "user", "content": "three", "at": 2},
    ],
    "config": {"temperature": 0.5, "topP": 1},
}


class Answers:
    """Hooks in this process with fixed answers, and what they saw."""

    def __init__(self, **outputs: Any) -> None:
        self.config = Config("own", ".", Settings())
        self.session = self.config.session("s")
        self.seen: list[Event] = []
        system = HookSystem(self.config)
        for event, output in outputs.items():
            system.on(HookEventName.of(event), name=event, recheck=False)(
                self._hook(output)
            )

    def _hook(self, output: Any) -> Any:
        def hook(event: Event) -> Any:
            self.seen.append(event)
            return output(event) if callable(output) else output

        return hook

    def names(self) -> list[str]:
        return [one["hook_event_name"] for one in self.seen]


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


DENY = {"decision": "deny", "reason": "no"}
STOP = {"continue": False, "stopReason": "enough"}


async def test_a_turn_without_hooks_is_the_prompt_and_its_answer() -> None:
    turn = await Answers().session.begin_turn("hi")
    assert (turn.prompt, turn.additions, turn.refused) == ("hi", [], False)
    assert (turn.blocked, turn.stopped, turn.reason) == (False, False, None)
    assert await turn.finish("yo") is None


async def test_the_prompt_holds_context_and_system_message() -> None:
    said = {"systemMessage": "be kind", **specific(additionalContext="now")}
    turn = await Answers(BeforeAgent=said).session.begin_turn("hi")
    assert turn.prompt == "hi\n\nnow\n\n[System] be kind"
    assert turn.additions == ["now", "[System] be kind"]
    assert (turn.given, turn.context, turn.system_message) == ("hi", "now", "be kind")


@pytest.mark.parametrize(
    ("output", "blocked", "stopped", "reason"),
    [(DENY, True, False, "no"), (STOP, False, True, "enough")],
    ids=["block", "stop"],
)
async def test_a_refused_turn_fires_nothing_more(
    output: Any, blocked: bool, stopped: bool, reason: str
) -> None:
    """protocol.md#callers: AfterAgent does not fire for such a turn."""
    hooks = Answers(BeforeAgent=output, AfterAgent=DENY)
    turn = await hooks.session.begin_turn("hi")
    assert (turn.blocked, turn.stopped, turn.refused) == (blocked, stopped, True)
    assert turn.reason == reason
    assert await turn.finish("yo") is None
    assert hooks.names() == ["BeforeAgent"]


async def test_a_rejected_answer_is_gone_on_with_at_most_eight_times() -> None:
    hooks = Answers(AfterAgent={**DENY, "systemMessage": "try"})
    turn = await hooks.session.begin_turn("hi")
    for _ in range(MAX_REJECTIONS):
        assert await turn.finish("yo") == "no\n\n[System] try"
        assert not turn.refused
    assert await turn.finish("yo") is None
    assert (turn.blocked, turn.reason) == (True, "no")
    active = [one["stop_hook_active"] for one in hooks.seen]
    assert active == [False] + [True] * MAX_REJECTIONS
    assert {one["prompt"] for one in hooks.seen} == {"hi"}


async def test_after_agent_may_stop_and_clear_the_context() -> None:
    said = {**STOP, **specific(clearContext=True)}
    turn = await Answers(AfterAgent=said).session.begin_turn("hi")
    assert await turn.finish("yo") is None
    assert (turn.stopped, turn.reason, turn.clear_context) == (True, "enough", True)


async def test_a_subagent_fires_its_own_events() -> None:
    """protocol.md#events: SubagentStart and SubagentStop."""
    hooks = Answers(SubagentStart=specific(additionalContext="hm"), SubagentStop=DENY)
    turn = await hooks.session.begin_subagent("reviewer", "look", agent_id="a-1")
    assert turn.prompt == "look\n\nhm"
    assert await turn.finish("done") == "no"
    start, stop = hooks.seen
    assert (start["agent_id"], start["agent_type"]) == ("a-1", "reviewer")
    assert (stop["prompt"], stop["prompt_response"]) == ("look", "done")


async def test_a_stop_in_a_subagent_stops_the_run_that_it_works_for() -> None:
    hooks = Answers(SubagentStop=STOP, BeforeTool=None)
    outer = await hooks.session.begin_turn("hi")
    helper = await hooks.session.begin_subagent("reviewer", parent=outer)
    assert await helper.finish("done") is None
    assert (helper.stop_reason, outer.stop_reason) == ("enough", "enough")
    assert (await outer.begin_tool("read", {})).reason == "Not run: enough"


async def test_no_subagent_starts_in_a_run_that_has_ended() -> None:
    """Issue 14 adapters: also if the stop comes after a subagent waited."""
    hooks = Answers(SubagentStart=None, BeforeTool=STOP)
    outer = await hooks.session.begin_turn("hi")
    inner = await hooks.session.begin_subagent("reviewer", "look", parent=outer)
    resumed = hooks.session.resume_turn(inner.state, parent=outer)
    await resumed.begin_tool("read", {})
    assert outer.stop_reason == "enough"
    late = await hooks.session.begin_subagent("reviewer", "look", parent=outer)
    assert (late.refused, late.reason) == (True, "enough")
    assert hooks.names() == ["SubagentStart", "BeforeTool"]


async def test_a_stop_by_a_tool_refuses_everything_else_of_the_run() -> None:
    hooks = Answers(AfterTool=STOP, BeforeModel=None, AfterAgent=DENY)
    turn = await hooks.session.begin_turn("hi")
    call = await turn.begin_tool("read", {"path": "a"})
    outcome = await call.finish("text")
    assert outcome.stop_reason == "enough"
    assert (turn.stopped, turn.reason) == (True, "enough")
    later = await turn.begin_tool("read", {})
    assert (later.refused, later.reason) == (True, "Not run: enough")
    model = await turn.begin_model(STABLE)
    assert (model.refused, model.stop_reason, model.text) == (True, "enough", "")
    assert await turn.finish("x") is None
    assert hooks.names() == ["AfterTool"]


async def test_only_selected_tools_may_be_called() -> None:
    chosen = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["read"]})
    hooks = Answers(BeforeToolSelection=chosen, BeforeTool=None)
    run = hooks.session.begin_run()
    model = await run.begin_model(STABLE, available_tools=["read", "write"])
    assert model.allowed_names == run.allowed_names == frozenset({"read"})
    assert hooks.seen[0]["available_tools"] == ["read", "write"]
    call = await run.begin_tool("write", {})
    assert call.refused
    assert "'write' is not allowed now (allowed: read)" in (call.reason or "")
    assert not (await run.begin_tool("read", {})).refused
    assert hooks.names() == ["BeforeToolSelection", "BeforeTool"]


async def test_a_blocked_model_call_has_the_hooks_answer() -> None:
    said = {**DENY, **specific(llm_response={"text": "mine"})}
    call = await Answers(BeforeModel=said).session.begin_model(STABLE)
    assert (call.refused, call.reason, call.text) == (True, "no", "mine")


async def test_an_answer_comes_back_in_parts() -> None:
    said = {"systemMessage": "mind", **specific(llm_response={"text": "b"})}
    hooks = Answers(AfterModel=said, BeforeModel=None)
    run = hooks.session.begin_run()
    call = await run.begin_model(STABLE)
    outcome = await call.finish({"text": "a"})
    assert (outcome.text, outcome.changed, outcome.stop_reason) == ("b", True, None)
    following = await run.begin_model(STABLE)
    assert [one.content for one in following.changes.appended] == ["mind"]
    assert hooks.seen[-1]["llm_request"]["messages"][-1]["content"] == "mind"


async def test_an_unchanged_answer_stays_the_very_object() -> None:
    call = await Answers(AfterModel=None).session.begin_model(STABLE)
    response = {"text": "a"}
    outcome = await call.finish(response)
    assert outcome.response is response
    assert not outcome.changed
    assert not call.changes


async def test_a_tool_call_comes_back_in_parts() -> None:
    hooks = Answers(
        BeforeTool=specific(tool_input={"path": "b"}),
        AfterTool={"systemMessage": "hm", **specific(additionalContext="more")},
    )
    call = await hooks.session.begin_tool("read", {"path": "a", "n": 1})
    assert (call.refused, call.reason, call.message) == (False, None, "")
    assert call.tool_input == {"path": "b", "n": 1}
    assert call.changed_names == ["path"]
    outcome = await call.finish({"rows": 2})
    assert outcome.content == {"rows": 2}
    changed = "[System] A hook changed the tool's input: path"
    assert outcome.additions == ["more", changed, "[System] hm"]
    assert outcome.text == f'{{"rows":2}}\n\nmore\n\n{changed}\n\n[System] hm'
    assert (outcome.withheld, outcome.changed, outcome.error) == (False, True, None)


async def test_a_withheld_result_is_the_reason() -> None:
    said = {"reason": "secret", **specific(withholdResult=True), "suppressOutput": True}
    call = await Answers(AfterTool=said).session.begin_tool("read", {})
    outcome = await call.finish("the key")
    assert (outcome.content, outcome.withheld) == ("secret", True)
    assert outcome.suppress_display
    assert "the key" not in repr(outcome)


async def test_a_tool_that_raised_is_shown_with_its_error() -> None:
    hooks = Answers(AfterTool=None)
    call = await hooks.session.begin_tool("read", {})
    outcome = await call.finish(OSError("gone"))
    assert outcome.error == "OSError: gone"
    assert hooks.seen[0]["tool_response"]["error"] == {"message": "OSError: gone"}


async def test_a_refused_call_is_not_finished() -> None:
    hooks = Answers(BeforeTool={**DENY, "systemMessage": "hm"}, AfterTool=None)
    call = await hooks.session.begin_tool("read", {})
    assert (call.reason, call.message) == ("no", "no\n\n[System] hm")
    assert (await call.finish("x")).text == "no\n\n[System] hm"
    assert hooks.names() == ["BeforeTool"]


ASK = {"decision": "ask", "reason": "sure?"}


@pytest.mark.parametrize(
    ("confirm", "refused", "reason"),
    [
        (None, True, "sure? (confirmation is not available)"),
        (True, False, None),
        (False, True, "Declined by the user: sure?"),
        (lambda _: True, False, None),
        (lambda _: False, True, "Declined by the user: sure?"),
    ],
    ids=["nobody", "agreed", "declined", "agrees", "declines"],
)
async def test_ask_goes_to_a_person(
    confirm: Any, refused: bool, reason: str | None
) -> None:
    hooks = Answers(BeforeTool=ASK, Notification=None)
    call = await hooks.session.begin_tool("read", {"a": 1}, confirm=confirm)
    assert (call.refused, call.reason, call.question) == (refused, reason, None)
    asked = [] if isinstance(confirm, bool) else ["Notification"]
    assert hooks.names() == ["BeforeTool", *asked]


async def test_ask_can_wait_for_a_frameworks_own_approval() -> None:
    call = await Answers(BeforeTool=ASK).session.begin_tool("read", {}, defer=True)
    assert (call.refused, call.question) == (True, "sure?")


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_decides_without_asking_hooks_again(approved: bool) -> None:
    """Issue 14 adapters: as for a framework that waits within a step."""
    changed = {**ASK, "hookSpecificOutput": {"tool_input": {"a": 2}}}
    hooks = Answers(BeforeTool=changed, Notification=None)
    call = await hooks.session.begin_tool("read", {"a": 1}, defer=True)
    call.decide(approved)
    assert (call.refused, call.question) == (not approved, None)
    assert call.reason == (None if approved else "Declined by the user: sure?")
    assert call.tool_input == {"a": 2}
    told = "[System] A hook changed the tool's input: a"
    assert call.additions == ([told] if approved else [])
    assert hooks.names() == ["BeforeTool", "Notification"]


async def test_nobody_can_approve_what_no_hook_asked_about() -> None:
    """Issue 14 adapters."""
    block = {"decision": "deny", "reason": "no"}
    call = await Answers(BeforeTool=block).session.begin_tool("read", {}, defer=True)
    call.decide(True)
    assert (call.refused, call.reason) == (True, "no")


async def test_the_question_names_tool_and_input() -> None:
    asked: list[Confirmation] = []

    async def confirm(question: Confirmation) -> bool:
        asked.append(question)
        return True

    await Answers(BeforeTool=ASK).session.begin_tool("read", {"a": 1}, confirm=confirm)
    (question,) = asked
    assert (question.tool_name, question.tool_input) == ("read", {"a": 1})


def with_messages(*texts: str) -> dict[str, Any]:
    roles = ["user", "model", "user", "system"]
    messages = [
        {"role": role, "content": text}
        for role, text in zip(roles, texts, strict=False)
    ]
    return {**STABLE, "messages": messages}


def test_nothing_changed_is_no_change() -> None:
    assert not changes(STABLE, STABLE)
    assert not changes(STABLE, {**STABLE})


def test_changes_of_messages_and_settings_are_told_apart() -> None:
    modified = with_messages("one", "two", "THREE", "be kind")
    modified["config"] = {"temperature": 0.1, "maxOutputTokens": 9}
    found = changes(STABLE, modified)
    assert found.edited == {2: "THREE"}
    assert [(one.role, one.content) for one in found.appended] == [
        ("system", "be kind")
    ]
    assert found.removed == []
    assert found.inserted == {}
    assert found.config == {"temperature": 0.1, "topP": None, "maxOutputTokens": 9}
    assert found


def test_removed_and_inserted_messages_have_their_place() -> None:
    modified = {
        **STABLE,
        "messages": [
            {"role": "system", "content": "first"},
            STABLE["messages"][0],
            STABLE["messages"][2],
        ],
    }
    found = changes(STABLE, modified)
    assert found.removed == [1]
    assert [one.content for one in found.inserted[0]] == ["first"]
    assert found.appended == []


async def test_changes_of_an_sdks_request_are_found_too() -> None:
    said = specific(llm_request={"messages": [{"role": "user", "content": "bye"}]})
    request = {"model": "m", "contents": "hi", "config": {"temperature": 1}}
    call = await Answers(BeforeModel=said).session.begin_model(request)
    assert call.changes.edited == {0: "bye"}
    assert call.request is not request


def test_changes_are_applied_to_a_frameworks_own_messages() -> None:
    """Those without text keep their places; hooks did not see them."""
    own = ["<call>", "one", "<image>", "two", "three", "<result>"]
    modified = {
        **STABLE,
        "messages": [
            STABLE["messages"][0],
            {"role": "system", "content": "new"},
            {"role": "user", "content": "three!"},
            {"role": "user", "content": "last"},
        ],
    }
    changed = changes(STABLE, modified).applied(
        own,
        text_of=lambda item: None if item.startswith("<") else item,
        edit=lambda _, text: text,
        make=lambda message: f"+{message.content}",
    )
    assert changed[:3] == ["<call>", "one", "<image>"]
    assert changed[-3:] == ["three!", "<result>", "+last"]
    assert "+new" in changed
    assert "two" not in changed
