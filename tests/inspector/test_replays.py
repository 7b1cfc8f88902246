"""Issue 16, Replay: other settings on recorded events, watched from the page."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commandline import hookline
from tests.support.inspecting import Inspected, entered
from tests.support.processes import STUBBORN, marked, until

Wire = dict[str, Any]
WAITS = "touch started; until test -e go; do sleep 0.02; done"


def settings_with(*hooks: Wire) -> str:
    return json.dumps({"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}})


def command(text: str, name: str = "new") -> Wire:
    return {"type": "command", "name": name, "command": text}


NO_ENV = command(
    "if grep -q '[.]env'; then echo 'no secrets' >&2; exit 2; fi", "no-env"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Inspected:
    """A project where three events of two sessions are recorded."""
    project = Inspected(tmp_path_factory.mktemp("replayed"))
    project.settings({})
    for session, path in (("s-1", "a"), ("s-1", "b/.env"), ("s-2", "c")):
        given = {"tool_name": "write_file", "tool_input": {"path": path}}
        project.fire("BeforeTool", session, **given)
    (project.folder / "new.json").write_text(settings_with(NO_ENV))
    return project


@pytest.fixture(scope="module")
def shared(project: Inspected) -> Iterator[httpx.Client]:
    """One server for the tests that start no hooks."""
    with project.running(), entered(project.address) as client:
        yield client


@pytest.fixture
def client(
    project: Inspected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[httpx.Client]:
    """An inspector of its own, with a folder for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("REPLAY_TEST", str(tmp_path))
    for name in ("started", "go"):
        (project.folder / name).unlink(missing_ok=True)
    with project.running() as server, entered(project.address) as client:
        client.headers["X-Server"] = str(server.pid)
        yield client


def pid_of(client: httpx.Client) -> int:
    return int(client.headers["X-Server"])


def start(client: httpx.Client, **body: Any) -> int:
    response = client.post("/api/replays", json=body)
    assert response.status_code == 200, response.text
    number: int = response.json()["id"]
    return number


def said(response: httpx.Response) -> str:
    message: str = response.json()["error"]["message"]
    return message


def stream(client: httpx.Client, number: int, **params: Any) -> list[tuple[str, Wire]]:
    """All server-sent events of a replay, to its end."""
    text = client.get(f"/api/replays/{number}/stream", params=params).text
    found = []
    for part in text.split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in part.splitlines() if line[:1] != ":"
        )
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def finished(client: httpx.Client, number: int) -> Wire:
    kind, status = stream(client, number)[-1]
    assert kind in {"done", "failed"}
    return status


async def none_but(mark: str, *known: int) -> bool:
    """Whether these, and this process, are soon the only ones that have the mark."""
    for _ in range(3000):
        if not {*marked(mark)} - {*known, os.getpid()}:
            return True
        await asyncio.sleep(0.01)
    return False


def test_the_events_are_counted_before_anything_runs(
    project: Inspected, shared: httpx.Client
) -> None:
    body = {"settings_text": settings_with(command("touch ran"))}
    found = shared.post("/api/replays/count", json=body).json()
    assert (found["events"], found["hook_runs"]) == (3, 3)
    assert found["by_event"] == {"BeforeTool": 3}
    assert not (project.folder / "ran").exists()
    assert shared.get("/api/replays").json() == {"replays": []}


def test_a_replay_finds_what_the_command_finds(
    project: Inspected, client: httpx.Client
) -> None:
    """Issue 16: "choose a time range and other settings, watch the progress"."""
    number = start(client, settings="new.json")
    events = stream(client, number)
    kinds = [kind for kind, _ in events]
    assert kinds[-1] == "done"
    assert "progress" in kinds
    status = events[-1][1]
    assert (status["state"], status["done"], status["total"]) == ("done", 3, 3)
    assert status["kinds"] == [
        {"before": "allowed", "after": "blocked", "apart": False, "count": 1}
    ]
    (change,) = [data for kind, data in events if kind == "change"]
    assert change["hooks"] == ["no-env"]
    words = ("--journal", str(project.journal), "--cwd", str(project.folder))
    file = str(project.folder / "new.json")
    told = hookline("replay", *words, "--settings", file, "--json", "--here").stdout
    assert json.loads(told)["changed"] == [
        {key: value for key, value in change.items() if key != "n"}
    ]
    page = client.get(f"/api/replays/{number}/changes").json()
    assert page == {"changes": [change], "next": None}
    huge = f"/api/replays/{number}/changes?kinds={'9' * 5000}"
    assert client.get(huge).status_code == 200
    for path in ("replays", "try", "events"):
        assert client.get(f"/api/{path}/{'9' * 5000}").status_code == 404


def test_hooks_know_that_it_is_a_replay_and_nothing_is_recorded(
    project: Inspected, client: httpx.Client
) -> None:
    hook = command('echo "$HOOKLINE_REPLAY" >> replayed')
    finished(client, start(client, settings_text=settings_with(hook)))
    assert (project.folder / "replayed").read_text() == "1\n" * 3
    assert len(client.get("/api/events").json()["events"]) == 3


async def test_pasted_settings_are_never_on_the_disk_nor_shown(
    project: Inspected, client: httpx.Client, tmp_path: Path
) -> None:
    number = start(client, settings_text=settings_with(command(WAITS)))
    assert not list(tmp_path.glob("hookline-*"))
    await until(str(project.folder / "started"))
    assert not list(tmp_path.glob("hookline-*"))
    listed = await asyncio.to_thread(client.get, "/api/replays")
    assert "sleep" not in listed.text
    (project.folder / "go").touch()
    status = await asyncio.to_thread(finished, client, number)
    assert (status["state"], status["wanted"]["pasted"]) == ("done", True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"hooks": [}', "the pasted settings:1:12: is not valid JSON"),
        ("[hooks\nx = 1", "the pasted settings:1:7: is not valid TOML"),
    ],
    ids=["JSON", "TOML"],
)
def test_mistakes_in_pasted_settings_come_out_as_the_command_says_them(
    shared: httpx.Client, text: str, problem: str
) -> None:
    for path in ("/api/replays/count", "/api/replays"):
        response = shared.post(path, json={"settings_text": text})
        assert response.status_code == 400
        assert problem in said(response)
    assert shared.get("/api/replays").json() == {"replays": []}


PROBLEMS = {
    "missing file": ({"settings": "nothing.json"}, "cannot be read: No such file"),
    "unknown event": ({"event": "Nope"}, "unknown event 'Nope'"),
    "no time": ({"since": "soon"}, "--since 'soon' is not a time"),
    "both": ({"settings": "x", "settings_text": "{}"}, "give the path of a settings"),
    "unknown field": ({"x": 1}, "the request is invalid"),
    "null character": ({"tool": "a\0b"}, "null characters are not allowed"),
    "no such home": ({"settings": "~nobody-here/x"}, "cannot be read: No such file"),
    "wrong type": ({"everywhere": "yes"}, "the request is invalid"),
}


@pytest.mark.parametrize(("body", "problem"), PROBLEMS.values(), ids=list(PROBLEMS))
def test_a_mistake_comes_out_as_the_command_says_it(
    shared: httpx.Client, body: Wire, problem: str
) -> None:
    response = shared.post("/api/replays/count", json=body)
    assert response.status_code == 400
    assert problem in said(response)


def test_events_are_chosen_by_time_tool_session_and_hook(shared: httpx.Client) -> None:
    def events(**body: Any) -> int:
        response = shared.post("/api/replays/count", json=body)
        assert response.status_code == 200, response.text
        number: int = response.json()["events"]
        return number

    rows = shared.get("/api/events").json()["events"][::-1]
    second = rows[1]["at"]
    assert events(since=second - 0.001) == 2
    assert events(until=second - 0.001) == 1
    assert events(since="1h") == 3
    assert events(since=time.time() + 3600) == 0
    assert events(session="s-1") == 2
    assert events(tool="write_*") == 3
    assert events(hook="nobody") == 0
    assert events(event="AfterTool") == 0
    # A value that looks like an option is still a value.
    assert events(tool="--everywhere") == 0
    assert events(session="-v") == 0
    assert events(everywhere=True) == 3


def test_a_replay_can_be_looked_at_again(client: httpx.Client) -> None:
    """Jobs survive a reload of the page; the last few are kept."""
    numbers = [start(client, settings="new.json")]
    finished(client, numbers[0])
    again = [kind for kind, _ in stream(client, numbers[0])]
    assert again == ["change", "done"]
    assert [kind for kind, _ in stream(client, numbers[0], after=0)] == ["done"]
    for _ in range(5):
        numbers.append(start(client, event="AfterTool"))
        finished(client, numbers[-1])
    known = [one["id"] for one in client.get("/api/replays").json()["replays"]]
    assert known == numbers[:0:-1]
    gone = client.get(f"/api/replays/{numbers[0]}")
    assert gone.status_code == 404
    assert "the inspector keeps the last 5" in said(gone)


async def test_one_replay_runs_at_a_time(
    project: Inspected, client: httpx.Client
) -> None:
    number = start(client, settings_text=settings_with(command(WAITS)))
    await until(str(project.folder / "started"))
    second = await asyncio.to_thread(client.post, "/api/replays", json={})
    assert second.status_code == 409
    assert said(second) == "a replay is running: wait for it, or cancel it"
    (project.folder / "go").touch()
    await asyncio.to_thread(finished, client, number)
    assert finished(client, start(client))["state"] == "done"


@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_cancel_ends_a_replay_and_its_hooks(
    project: Inspected, client: httpx.Client, tmp_path: Path, text: str
) -> None:
    """Issue 16: no process stays behind."""
    number = start(client, settings_text=settings_with(command(text)))
    await until(str(project.folder / "started"))
    path = f"/api/replays/{number}/cancel"
    done = await asyncio.to_thread(client.post, path, json={})
    assert done.json()["state"] == "cancelled"
    assert finished(client, number)["state"] == "cancelled"
    assert await none_but(f"REPLAY_TEST={tmp_path}", pid_of(client))
    # What has ended cannot be cancelled, and that is no mistake.
    again = await asyncio.to_thread(client.post, path, json={})
    assert again.json()["state"] == "cancelled"


def look_once(client: httpx.Client, number: int) -> None:
    with client.stream("GET", f"/api/replays/{number}/stream") as watched:
        assert next(watched.iter_lines()) == "event: progress"


async def test_a_replay_goes_on_when_nobody_watches_it(
    project: Inspected, client: httpx.Client
) -> None:
    number = start(client, settings_text=settings_with(command(WAITS)))
    await asyncio.to_thread(look_once, client, number)
    await until(str(project.folder / "started"))
    (project.folder / "go").touch()
    assert (await asyncio.to_thread(finished, client, number))["state"] == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_a_replay_ends_with_the_server(
    project: Inspected, client: httpx.Client, tmp_path: Path, number: signal.Signals
) -> None:
    """Issue 16: "ended with the server", however it dies."""
    start(client, settings_text=settings_with(command(STUBBORN["ignores SIGTERM"])))
    await until(str(project.folder / "started"))
    os.kill(pid_of(client), number)
    assert await none_but(f"REPLAY_TEST={tmp_path}")


def test_nothing_is_started_by_get(client: httpx.Client) -> None:
    """Issue 16: "no state change by GET"."""
    number = start(client)
    for path in ("/api/replays/count", f"/api/replays/{number}/cancel"):
        assert client.get(path).status_code in {404, 405}
    assert len(client.get("/api/replays").json()["replays"]) == 1


def test_a_journal_that_is_missing_says_so(inspected: Inspected) -> None:
    with inspected.running(), entered(inspected.address) as client:
        response = client.post("/api/replays/count", json={})
        assert response.status_code == 400
        assert str(inspected.journal) in said(response)
