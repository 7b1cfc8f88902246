"""A hook's last failures, and its expressions with values (issue 16: hooks)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from hookline.errors import JournalError
from hookline.inspector.answers import reply
from hookline.inspector.approvals import list_projects
from hookline.inspector.desk import Desk
from hookline.inspector.hooks import (
    MAX_FAILURES,
    explain_values,
    list_failures,
    list_hooks,
)
from tests.support.inspecting import Inspected, entered
from tests.support.project import Project

JOURNAL: dict[str, Any] = {"hooksConfig": {"journal": True}}


def keys(desk: Desk) -> dict[str, str]:
    return {hook["name"]: hook["key"] for hook in list_hooks(desk)["hooks"]}


async def write(project: Project, *inputs: dict[str, Any]) -> Desk:
    """Fire one event for each input, and look at what was recorded."""
    project.trust()
    async with project.system() as hooks:
        for given in inputs:
            await hooks.event_handler.fire_before_tool_event("write", given)
    return Desk(str(project.folder))


def fails(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": text, **more}


async def test_last_failures_say_what_went_wrong(project: Project) -> None:
    project.settings(
        fails("broken", "echo 'no config' >&2; exit 7"),
        fails("slow", "sleep 30", timeout=50),
        fails("missing", "exec ./no-such-program"),
        fails("fine", "true"),
        **JOURNAL,
    )
    desk = await write(project, {"path": "a"}, {"path": "b"})
    names = keys(desk)
    found = list_failures(desk, {"key": names["broken"]})["failures"]
    assert [run["event_id"] for run in found] == [2, 1]
    assert [run["stderr"].strip() for run in found] == ["no config"] * 2
    first = found[0]
    assert (first["cause"], first["exit_code"]) == ("exit code 7", 7)
    assert (first["event"], first["target"]) == ("BeforeTool", "write")
    (slow, _) = list_failures(desk, {"key": names["slow"]})["failures"]
    assert (slow["cause"], slow["error"]) == ("timed out", "timed out after 50 ms")
    missing = list_failures(desk, {"key": names["missing"]})["failures"][0]
    assert "no-such-program" in missing["stderr"]
    fine = list_failures(desk, {"key": names["fine"]})
    assert (fine["failures"], fine["complete"]) == ([], True)


async def test_a_skipped_hook_is_not_said_to_have_run(project: Project) -> None:
    project.settings(fails("slow", "sleep 30", timeout=50), **JOURNAL)
    desk = await write(project, *({"path": str(n)} for n in range(4)))
    found = list_failures(desk, {"key": keys(desk)["slow"]})["failures"]
    assert [run["cause"] for run in found] == ["skipped", *["timed out"] * 3]


async def test_failures_are_bounded(project: Project) -> None:
    project.settings(fails("loud", "seq 20000 >&2; exit 1"), **JOURNAL)
    inputs = ({"path": str(n)} for n in range(MAX_FAILURES + 3))
    desk = await write(project, *inputs)
    answer = list_failures(desk, {"key": keys(desk)["loud"]})
    assert len(answer["failures"]) == MAX_FAILURES
    assert not answer["complete"]
    assert len(json.dumps(answer)) < MAX_FAILURES * 6_000
    assert answer["failures"][0]["stderr_is_longer"]
    assert answer["failures"][0]["cut"]


async def test_a_hook_without_a_name_has_figures_whatever_its_command(
    project: Project,
) -> None:
    """Its command is its name, and may be long."""
    long = {"type": "command", "command": f"exit 1 # {'x' * 5_000}"}
    project.settings(long, **JOURNAL)
    desk = await write(project, {"path": "a"})
    (hook,) = list_hooks(desk)["hooks"]
    assert hook["figures"]["failures"] == 1
    assert len(list_failures(desk, {"key": hook["key"]})["failures"]) == 1


async def test_failures_of_other_hooks_of_the_name_stay_apart(
    project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "other", project.state)
    for one in (project, other):
        one.settings(fails("same", f"echo {one.folder.name} >&2; exit 1"), **JOURNAL)
        desk = await write(one, {"path": "a"})
    here = list_failures(desk, {"key": keys(desk)["same"]})["failures"]
    assert [run["stderr"].strip() for run in here] == ["other"]
    wanted = {"name": "same", "source": "project", "kind": "elsewhere"}
    there = list_failures(desk, wanted)["failures"]
    assert [run["stderr"].strip() for run in there] == ["project"]
    for more in ({"type": "rule"}, {"kind": "gone"}, {"cwd": str(other.folder)}):
        assert list_failures(desk, {**wanted, **more})["failures"] == []


async def test_an_expression_is_shown_with_the_values_of_an_event(
    project: Project,
) -> None:
    """Those of that event: its own folder, session and time, not the reader's."""
    when = "tool_input.path.endsWith('.env') && session_id != '' && cwd != ''"
    project.settings(
        {"type": "rule", "name": "no-env", "when": when, "if": "tool_name == 'write'"},
        **JOURNAL,
    )
    desk = await write(project, {"path": "a.py"}, {"path": "b.env"})
    key = keys(desk)["no-env"]
    found = explain_values(desk, key, 2)
    assert (found["id"], found["target"], found["ran"]) == (2, "write", ["blocked"])
    rule = found["rule"]
    assert (rule["source"], rule["outcome"]) == (when, "true")
    assert [part["outcome"] for part in rule["parts"]] == ["true"] * 3
    values = {one["path"]: json.loads(one["text"]) for one in rule["values"]}
    assert values["tool_input.path"] == "b.env"
    assert values["cwd"] == str(project.folder)
    assert values["session_id"] != desk.config.session_id
    assert found["condition"]["outcome"] == "true"
    other = explain_values(desk, key, 1)
    assert (other["rule"]["outcome"], other["ran"]) == ("false", ["did not block"])


async def test_masked_and_cut_inputs_are_said_to_be(project: Project) -> None:
    when = "tool_input.password != 'x' && tool_input.content.contains('x')"
    project.settings({"type": "rule", "name": "no", "when": when}, **JOURNAL)
    secret = "hunter2-is-n0t-a-password"
    given = {"password": secret, "content": "x" * 5_000_000}
    desk = await write(project, given)
    found = explain_values(desk, keys(desk)["no"], 1)
    assert (found["masked"], found["cut"]) == (True, True)
    assert found["bytes"] > 5_000_000
    sent = json.dumps(found)
    assert secret not in sent
    assert len(sent) < 20_000
    values = {one["path"]: one for one in found["rule"]["values"]}
    assert values["tool_input.password"]["text"] == '"[masked]"'
    content = values["tool_input.content"]
    assert content["chars"] > 10_000 > len(content["text"])


async def test_a_broken_expression_is_an_answer(project: Project) -> None:
    project.settings(
        {"type": "rule", "name": "odd", "when": "size(tool_input.missing) > 2"},
        {"type": "rule", "name": "fails", "when": "tool_input.path > 2"},
        **JOURNAL,
    )
    desk = await write(project, {"path": "a"})
    names = keys(desk)
    odd = explain_values(desk, names["odd"], 1)["rule"]["outcome"]
    assert odd == "false: the event has no tool_input.missing"
    assert explain_values(desk, names["fails"], 1)["rule"]["outcome"] != "true"


async def test_an_event_of_another_kind_is_refused(project: Project) -> None:
    project.settings({"type": "rule", "name": "no", "when": "true"}, **JOURNAL)
    desk = await write(project, {"path": "a"})
    async with project.system() as hooks:
        given = {"tool_name": "write", "tool_input": {}, "tool_response": {}}
        await hooks.event_handler.fire("AfterTool", given)
    key = keys(desk)["no"]
    for event, status, text in (
        (2, 400, "event 2 is AfterTool: choose one that is BeforeTool"),
        (99, 404, "there is no event 99: choose another one"),
        (None, 404, "there is no event None: choose another one"),
    ):
        with pytest.raises(HTTPException) as raised:
            explain_values(desk, key, event)
        assert (raised.value.status_code, raised.value.detail) == (status, text)


def test_mistakes_are_answered_with_what_to_do(inspected: Inspected) -> None:
    with inspected.running(), entered(inspected.address) as client:
        for path, status, text in (
            ("/api/hooks/failures", 400, "choose a hook"),
            ("/api/hooks/failures?key=x", 404, "no longer configured"),
            ("/api/hooks/failures?name=x", 503, "nothing has been recorded"),
            ("/api/hooks/values?key=x&event=1", 404, "no longer configured"),
            ("/api/hooks/values?key=x&event=-1", 400, "not a whole number"),
        ):
            answer = client.get(path)
            assert answer.status_code == status, path
            assert text in answer.json()["error"]["message"]


ODD = {
    "a time that is text": ("hooks", "duration_ms = 'soon'"),
    "a folder of bytes": ("events", "cwd = x'ff00fe'"),
    "stderr of bytes": ("hooks", "stderr = x'ff00', error = x'01'"),
    "an input that is no JSON": ("events", "input = '{'"),
    "an input that is too deep": ("events", f"input = '{'[' * 9_000}'"),
    "a huge name": ("hooks", "name = hex(zeroblob(2000000))"),
    "a huge type": ("hooks", "type = hex(zeroblob(2000000))"),
    "a huge folder": ("events", "cwd = '/' || hex(zeroblob(2000000))"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_a_damaged_journal_is_an_answer_of_bounded_size(
    project: Project, odd: tuple[str, str]
) -> None:
    """A journal is a file: its columns may hold anything."""
    rule = {"type": "rule", "name": "rule", "when": "true"}
    project.settings(fails("bad", "exit 1"), rule, **JOURNAL)
    desk = await write(project, {"path": "a"})
    known = keys(desk)
    with closing(sqlite3.connect(desk.journal)) as connection, connection:
        connection.execute(f"UPDATE {odd[0]} SET {odd[1]}")
    answers: list[Callable[[], dict[str, Any]]] = [
        lambda: list_hooks(desk),
        lambda: list_failures(desk, {"name": "bad"}),
        lambda: explain_values(desk, known["rule"], 1),
        lambda: list_projects(desk),
    ]
    for answer in answers:
        with suppress(JournalError):
            assert len(reply(answer()).body) < 100_000
