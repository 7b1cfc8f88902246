"""Issue 16: the API of the timeline, on a real server and real journals."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.inspecting import Inspected, entered
from tests.support.journals import NEWEST, change, make_journal

GUARD = {"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}
WATCHER = {"type": "command", "name": "watcher", "command": "exit 2", "mode": "observe"}
ROW = {
    *("id", "at", "event", "target", "session", "cwd", "project", "verdict", "failed"),
    *("would_block", "recheck", "reason", "duration_ms", "hook_count", "blockers"),
    *("failing", "tool_use_id", "turn"),
}


HOOKS = {
    "BeforeTool": [
        {"matcher": "write_file", "hooks": [GUARD]},
        {"matcher": "read_file", "hooks": [WATCHER]},
    ]
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    inspected = Inspected(tmp_path_factory.mktemp("inspected"))
    inspected.settings(HOOKS)
    with inspected.running():
        yield inspected


@pytest.fixture
def inspected(server: Inspected) -> Inspected:
    """One server for all; each test finds no journal, and makes its own."""
    server.forget()
    return server


@pytest.fixture
def client(inspected: Inspected) -> Iterator[httpx.Client]:
    with entered(inspected.address) as client:
        yield client


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    response = client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


def test_events_of_real_hooks_are_listed(
    inspected: Inspected, client: httpx.Client
) -> None:
    inspected.fire("BeforeAgent", prompt="hello")
    inspected.fire("BeforeTool", tool_name="write_file", tool_input={}, tool_use_id="c")
    inspected.fire("BeforeTool", tool_name="read_file", tool_input={"password": "p4"})
    found = get(client, "/api/events")
    (blocked,) = get(client, "/api/events", verdict="blocked")["events"]
    assert get(client, "/api/events", text="p4")["events"] == []
    read, write, agent = found["events"]
    assert (found["next"], found["searched_to"], found["complete"]) == (
        None,
        None,
        True,
    )
    assert set(read) == ROW
    assert blocked == write
    assert (write["verdict"], write["blockers"]) == ("blocked", "guard")
    assert write["reason"] == "no"
    assert (write["tool_use_id"], write["turn"]) == ("c", agent["id"])
    assert (read["verdict"], read["would_block"]) == ("allowed", True)
    assert read["project"] == read["cwd"] == str(inspected.folder)


def test_overview_says_where_everything_is(
    inspected: Inspected, client: httpx.Client
) -> None:
    inspected.fire("BeforeTool", tool_name="write_file", tool_input={})
    found = get(client, "/api/overview")
    assert found["cwd"] == str(inspected.folder)
    assert found["journal"]["path"] == str(inspected.journal)
    assert (found["journal"]["exists"], found["journal"]["events"]) == (True, 1)
    assert found["journal"]["oldest"] == found["journal"]["newest"]
    assert found["journal"]["error"] is None
    assert found["settings"] == {
        "files": [str(inspected.settings_file)],
        "errors": [],
        "warnings": [],
    }


def test_page_works_without_a_journal(client: httpx.Client) -> None:
    found = get(client, "/api/overview")["journal"]
    assert (found["exists"], found["events"], found["error"]) == (False, 0, None)
    assert found["recording"] is True
    assert get(client, "/api/events") == {
        "events": [],
        "next": None,
        "searched_to": None,
        "complete": True,
    }
    assert get(client, "/api/facets")["of"] == 0


def test_recording_that_is_off_is_told(tmp_path: Path) -> None:
    alone = Inspected(tmp_path)
    with alone.running(), entered(alone.address) as client:
        assert get(client, "/api/overview")["journal"]["recording"] is False


def _text(path: Path) -> None:
    path.write_text("this is no journal")


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _newer(path: Path) -> None:
    make_journal(path, 3)
    change(path, "PRAGMA user_version=99")


def _damaged(path: Path) -> None:
    make_journal(path, 3000)
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)


@pytest.mark.parametrize("make", [_text, _folder, _link, _newer, _damaged])
def test_unusable_journal_is_explained(
    inspected: Inspected, client: httpx.Client, make: Any
) -> None:
    make(inspected.journal)
    error = get(client, "/api/overview")["journal"]["error"]
    answer = client.get("/api/events", params={"text": "x"})
    assert client.get("/api/facets").status_code == 503
    assert str(inspected.journal) in error
    assert (answer.status_code, answer.headers["content-type"]) == (
        503,
        "application/json",
    )
    assert str(inspected.journal) in answer.json()["error"]["message"]


def test_facets_count_the_newest_events(
    inspected: Inspected, client: httpx.Client
) -> None:
    make_journal(inspected.journal, 100)
    found = get(client, "/api/facets")
    assert found["of"] == 100
    assert found["sessions"] == [{"value": "s-0", "count": 100}]
    assert {one["value"] for one in found["hooks"]} == {f"hook-{n}" for n in range(5)}
    assert {"value": "blocked", "count": 1} in found["verdicts"]


WRONG = [
    ({"before": "x"}, "before"),
    ({"before": "-1"}, "before"),
    ({"before": "1" * 30}, "before"),
    ({"limit": "1.5"}, "limit"),
    ({"since": "yesterday"}, "since"),
    ({"until": "nan"}, "until"),
    ({"until": "inf"}, "until"),
    ({"verdict": "odd"}, "verdict"),
    ({"text": "x" * 501}, "text"),
    ({"session": "*" * 501}, "session"),
]


def test_wrong_parameters_are_explained(client: httpx.Client) -> None:
    for params, problem in WRONG:
        answer = client.get("/api/events", params=params)
        assert answer.status_code == 400, params
        assert problem in answer.json()["error"]["message"]
    for wrong in ({"after": "x"}, {"until": "nan"}, {"verdict": "odd"}):
        assert client.get("/api/events/stream", params=wrong).status_code == 400


def test_odd_parameters_do_no_harm(inspected: Inspected, client: httpx.Client) -> None:
    make_journal(inspected.journal, 20)
    odd = ["' OR 1=1 --", "\0", "\ud7ff\uffff", "[", "*" * 400, "%" * 400, "\\"]
    for text in odd:
        for name in ("project", "session", "event", "tool", "hook", "text"):
            assert get(client, "/api/events", **{name: text})["complete"]
    assert len(get(client, "/api/events", limit=0)["events"]) == 20
    assert len(get(client, "/api/events", limit=10**9)["events"]) == 20
    assert get(client, "/api/events", before=0)["events"] == []


def test_hostile_text_is_data_only(inspected: Inspected, client: httpx.Client) -> None:
    make_journal(inspected.journal, 1)
    text = "</script><img src=x onerror=alert(1)>\u2028\u202e\x07"
    change(inspected.journal, "UPDATE events SET reason = ?, session = ?", text, text)
    answer = client.get("/api/events")
    (row,) = answer.json()["events"]
    found = get(client, "/api/events", session=text)["events"]
    assert row["reason"] == row["session"] == text
    assert found == [row]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_million_events_are_searched_in_short_answers(
    inspected: Inspected, client: httpx.Client
) -> None:
    """No answer waits for the whole journal; together they reach the oldest event."""
    make_journal(inspected.journal, 1_000_000)
    change(inspected.journal, "UPDATE events SET verdict = 'stopped' WHERE id = 3")
    client.timeout = httpx.Timeout(10)
    assert get(client, "/api/overview")["journal"]["events"] == 1_000_000
    assert get(client, "/api/facets")["of"] == 10_000
    newest = get(client, "/api/events", limit=500)
    assert [row["id"] for row in newest["events"]] == [*range(10**6, 999_500, -1)]
    first = get(client, "/api/events", session="s-0", limit=1)["events"]
    assert first[0]["id"] == 499
    old = get(client, "/api/events", until=NEWEST - 999_990)["events"]
    assert [row["id"] for row in old] == [*range(10, 0, -1)]
    assert _all(client, verdict="stopped") == [3]
    assert _all(client, text="notes-5.md") == [5]
    assert _all(client, hook="no*", text="no") == []


def _all(client: httpx.Client, **wanted: str) -> list[int]:
    found: list[int] = []
    before: dict[str, int] = {}
    while True:
        page = get(client, "/api/events", **wanted, **before)
        found += [row["id"] for row in page["events"]]
        if page["next"] is None:
            return found
        assert page["next"] < before.get("before", 10**6 + 1)
        before = {"before": page["next"]}


def test_pages_are_served_by_name(client: httpx.Client) -> None:
    for path in ("/", "/events/7", "/hooks", "/try", "/replay", "/trust"):
        answer = client.get(path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "<title>Hookline" in answer.text
    script = client.get("/static/app.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    missing = client.get("/nothing")
    assert missing.status_code == 404
    assert json.loads(missing.text)["error"]["message"]
