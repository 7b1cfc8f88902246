"""Issue 16: one event; what its page shows, from real hooks and a real journal."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.exceptions import HTTPException

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.engine.provenance import trace_result
from hookline.inspector.desk import Desk
from hookline.inspector.event import describe_event
from tests.support.commandline import hookline

Output = dict[str, Any]


def says(name: str, output: Output, **more: Any) -> dict[str, Any]:
    text = json.dumps(output)
    command = f"cat > /dev/null; printf %s {json.dumps(text)}"
    return {"type": "command", "name": name, "command": command, **more}


def specific(**fields: Any) -> Output:
    return {"hookSpecificOutput": fields}


class Recording:
    """Hooks of one event, and its newest run as the page is told of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal.sqlite"
        self.settings = folder / "hooks.json"
        self.hooks()

    def hooks(self, *hooks: dict[str, Any], event: str = "BeforeTool") -> None:
        config = {"journal": str(self.journal)}
        groups = {event: [{"hooks": list(hooks)}]}
        self.settings.write_text(json.dumps({"hooks": groups, "hooksConfig": config}))

    def fire(
        self, event: str = "BeforeTool", **fields: Any
    ) -> tuple[dict[str, Any], ProcessedHookResult]:
        if event in {"BeforeTool", "AfterTool"}:
            fields = {"tool_name": "t", "tool_input": {"a": 1}, **fields}
        result = asyncio.run(self._fire(event, fields))
        desk = self.desk()
        with desk.read() as reader:
            newest = reader.last_id()
        return describe_event(desk, newest), result

    async def _fire(self, event: str, fields: dict[str, Any]) -> ProcessedHookResult:
        config = Config("s-1", self.folder, Settings.from_file(self.settings))
        async with HookSystem(config) as system:
            return await system.event_handler.fire(event, fields)

    def desk(self) -> Desk:
        return Desk(str(self.folder), str(self.settings))


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path)


def test_each_hook_is_shown_with_its_verdict(recording: Recording) -> None:
    recording.hooks(
        says("fine", {}),
        says("blocks", {"decision": "deny", "reason": "no"}),
        says("changes", specific(tool_input={"a": 2})),
        says("asks", {"decision": "ask", "reason": "sure?"}),
        says("stops", {"continue": False, "stopReason": "enough"}),
        says("watches", {"decision": "deny"}, mode="observe"),
        says("adds", specific(additionalContext="note")),
        {"type": "command", "name": "breaks", "command": "echo oh >&2; exit 1"},
        {"type": "command", "name": "later", "command": "true", "async": True},
    )
    shown, _ = recording.fire()
    words = {hook["name"]: hook["verdict"] for hook in shown["hooks"]}
    assert words == {
        "fine": "allowed",
        "blocks": "blocked",
        "changes": "changed",
        "asks": "ask",
        "stops": "stopped",
        "watches": "would-block",
        "adds": "allowed",
        "breaks": "failed",
        "later": "not-waited-for",
    }
    by_name = {hook["name"]: hook for hook in shown["hooks"]}
    assert by_name["watches"]["mode"] == "observe"
    assert by_name["breaks"]["stderr"] == "oh"
    assert by_name["breaks"]["error"] == "exited with status 1"
    assert shown["verdict"]["word"] == "stopped"


@pytest.mark.parametrize(
    ("event", "fields", "output", "change"),
    [
        (
            "BeforeTool",
            {"tool_input": {"a": 1, "b": [1]}},
            specific(tool_input={"a": 2, "c": 3}),
            ("tool_input", {"a": 1, "b": [1]}, {"a": 2, "b": [1], "c": 3}),
        ),
        (
            "BeforeTool",
            {"tool_input": {"a": 1, "b": 2}},
            specific(tool_input={"a": 2}, replacesToolInput=True),
            ("tool_input", {"a": 1, "b": 2}, {"a": 2}),
        ),
        (
            "BeforeAgent",
            {"prompt": "hi"},
            specific(additionalContext="be kind"),
            ("prompt", "hi", "hi\n\nbe kind"),
        ),
        (
            "BeforeModel",
            {"llm_request": {"model": "m", "messages": []}},
            specific(llm_request={"model": "other"}),
            (
                "llm_request",
                {"model": "m", "messages": []},
                {"model": "other", "messages": []},
            ),
        ),
        (
            "AfterModel",
            {
                "llm_request": {"model": "m", "messages": []},
                "llm_response": {"text": "key", "candidates": []},
            },
            specific(llm_response={"text": "***"}),
            (
                "llm_response",
                {"text": "key", "candidates": []},
                {
                    "text": "***",
                    "candidates": [{"content": {"role": "model", "parts": ["***"]}}],
                },
            ),
        ),
        (
            "BeforeToolSelection",
            {"llm_request": {"model": "m", "messages": []}},
            specific(toolConfig={"mode": "ANY", "allowedFunctionNames": ["x"]}),
            ("tools", None, {"mode": "ANY", "allowedFunctionNames": ["x"]}),
        ),
        (
            "AfterTool",
            {"tool_response": {"llmContent": "key", "returnDisplay": ""}},
            specific(withholdResult=True),
            ("tool_response", {"llmContent": "key", "returnDisplay": ""}, None),
        ),
        (
            "AfterTool",
            {"tool_response": {"llmContent": "", "returnDisplay": ""}},
            specific(additionalContext="<b>"),
            ("additionalContext", None, "&lt;b&gt;"),
        ),
    ],
    ids=[
        *("keys", "replaced", "prompt", "request", "answer", "tools", "withheld"),
        "context",
    ],
)
def test_what_changed_is_told_before_and_after(
    recording: Recording,
    event: str,
    fields: dict[str, Any],
    output: Output,
    change: tuple[str, Any, Any],
) -> None:
    recording.hooks(says("changes", output), event=event)
    shown, _ = recording.fire(event, **fields)
    (found,) = shown["changes"]
    field, before, after = change
    assert found["field"] == field
    assert found.get("before", shown["input"].get(field)) == before
    assert found["after"] == after
    assert found["void"] is False


def test_a_change_of_a_blocked_event_was_not_applied(recording: Recording) -> None:
    recording.hooks(
        says("changes", specific(tool_input={"a": 2})),
        says("blocks", {"decision": "deny", "reason": "no"}),
    )
    shown, _ = recording.fire()
    assert [change["void"] for change in shown["changes"]] == [True]


def test_the_merge_names_the_hook_behind_each_field_as_the_engine_does(
    recording: Recording,
) -> None:
    recording.hooks(
        says("one", {"systemMessage": "1", **specific(tool_input={"a": 2})}),
        says("two", {"decision": "ask", "reason": "?", "systemMessage": "2"}),
        says("watch", {"decision": "deny", "reason": "w"}, mode="observe"),
        says("wrong", {"decision": "perhaps", "reason": 5, "systemMessage": "3"}),
        says("later", {"decision": "deny", "reason": "late"}, **{"async": True}),
    )
    shown, result = recording.fire()
    assert any(hook["recheck"] for hook in shown["hooks"])
    assert shown["provenance"] == msgspec.to_builtins(trace_result(result))
    said = {field["field"]: field["said"] for field in shown["provenance"]}
    assert [one["hook"] for one in said["decision"]] == ["two", "two"]
    assert "watch" not in json.dumps(shown["provenance"])


def test_the_explanation_is_what_hookline_explain_says_now(
    recording: Recording,
) -> None:
    rule = {
        "type": "rule",
        "name": "no-env",
        "when": "tool_input.path.endsWith('.env')",
        "then": {"decision": "deny", "reason": "no"},
    }
    recording.hooks(rule, says("off", {}))
    given: dict[str, Any] = {"tool_name": "t", "tool_input": {"path": ".env"}}
    shown, _ = recording.fire("BeforeTool", **given)
    file = recording.folder / "input.json"
    file.write_text(json.dumps(given))
    done = hookline(
        *("explain", "BeforeTool", "--input", str(file), "--json"),
        *("--settings", str(recording.settings), "--cwd", str(recording.folder)),
    )
    sent = json.loads(json.dumps(shown["explanation"]))
    assert sent == json.loads(done.stdout)["hooks"]
    assert shown["explanation"][0]["rule"]["outcome"] == "true"
    recording.hooks()
    assert describe_event(recording.desk(), 1)["explanation"] == []


def test_events_of_the_same_session_are_linked(recording: Recording) -> None:
    for session in ("a", "b", "a", "b", "a"):
        recording.fire(session_id=session)
    desk = recording.desk()
    links = [
        (one["previous"], one["next_event"])
        for one in (describe_event(desk, n) for n in range(1, 6))
    ]
    assert links == [(None, 3), (None, 4), (1, 5), (2, None), (3, None)]


LONG = "/" + "x" * 5000


@pytest.mark.parametrize("event_id", [0, 2, 1 << 62, 1 << 64])
def test_an_event_that_is_not_recorded_is_not_found(
    recording: Recording, event_id: int
) -> None:
    recording.fire()
    with pytest.raises(HTTPException, match="is recorded") as found:
        describe_event(recording.desk(), event_id)
    assert found.value.status_code == 404


def test_outputs_and_verdicts_of_another_shape_are_shown_as_they_are(
    recording: Recording,
) -> None:
    recording.hooks(says("one", {"decision": "deny"}))
    recording.fire()
    with sqlite3.connect(recording.journal) as connection:
        connection.execute("UPDATE events SET event = 'Unheard', cwd = ?", [LONG])
        odd = "output = '[2]', blocked = 0, stderr = CAST(x'ff' AS TEXT)"
        connection.execute(f"UPDATE hooks SET {odd}")
    connection.close()
    shown = describe_event(recording.desk(), 1)
    assert shown["hooks"][0]["stderr"] == "\ufffd"
    assert shown["hooks"][0]["output"] == [2]
    assert shown["hooks"][0]["verdict"] == "allowed"
    assert shown["explanation"] is None


@pytest.mark.parametrize("cwd", ["/" + "x" * 5000, "/a\0b", ""])
def test_a_folder_that_cannot_be_looked_at_is_left_out(
    recording: Recording, cwd: str
) -> None:
    recording.fire()
    with sqlite3.connect(recording.journal) as connection:
        connection.execute("UPDATE events SET cwd = ?", [cwd])
    connection.close()
    shown = describe_event(recording.desk(), 1)
    assert shown["row"]["cwd"] == cwd
    assert cwd not in shown["fire_command"] or not cwd


def test_an_input_that_no_hook_would_be_shown_is_not_explained(
    recording: Recording,
) -> None:
    recording.fire()
    deep = "[" * 600 + "]" * 600
    with sqlite3.connect(recording.journal) as connection:
        text = f'{{"tool_name": "t", "tool_input": {{"a": {deep}}}}}'
        connection.execute("UPDATE events SET input = ?", [text])
    connection.close()
    shown = describe_event(recording.desk(), 1)
    assert shown["explanation"] is None
    assert "nested deeper than 500 levels" in shown["unexplained"]


def test_a_huge_input_is_described_without_copies(recording: Recording) -> None:
    recording.fire()
    text = json.dumps({"tool_name": "t", "tool_input": {"a": "x" * 5_000_000}})
    with sqlite3.connect(recording.journal) as connection:
        connection.execute("UPDATE events SET input = ?", [text])
    connection.close()
    shown = describe_event(recording.desk(), 1)
    assert len(shown["input"]["tool_input"]["a"]) == 5_000_000
    assert shown["fire_command"] is None
    assert shown["case"] is None
