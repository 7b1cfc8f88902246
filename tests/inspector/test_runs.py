"""Hooks that Try and Replay run end with the page that wants it, and with the server.

What they answer is in ``tests/pins/page/try.json`` and ``requests.json``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline.inspector.desk import Desk
from hookline.inspector.replay_job import MAX_KEPT, FoundChanges, PastedSettings
from hookline.settings.load import Settings
from tests.support.commandline import run_command
from tests.support.inspecting import Inspected
from tests.support.page_rows import PageProject, server_events
from tests.support.processes import STUBBORN, marked, until

WAITS = "touch started; until test -e go; do sleep 0.02; done"
FIRE = {"event": "BeforeTool", "tool": "t", "run": "mine"}


def on_tools(command: str) -> dict[str, Any]:
    hook = {"type": "command", "name": "it", "command": command}
    return {"BeforeTool": [{"hooks": [hook]}]}


class Running:
    """One inspector whose processes have a mark, and a page of it."""

    def __init__(self, inspected: Inspected, client: httpx.AsyncClient) -> None:
        self.folder = inspected.folder
        self.client = client
        self.server: subprocess.Popen[str]

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(path, json=body)

    async def start(self, kind: str, command: str) -> asyncio.Task[httpx.Response]:
        """Run a hook, in a trial or a replay, and wait until it has begun."""
        if kind == "trial":
            answer = asyncio.create_task(self.post("/api/fire", **FIRE))
        else:
            text = json.dumps({"hooks": on_tools(command)})
            assert (await self.post("/api/replays", settings_text=text)).json() == {
                "id": 1
            }
            answer = asyncio.create_task(self.client.get("/api/replays/1/stream"))
        await until(str(self.folder / "started"))
        return answer

    async def ends(self, *known: int) -> bool:
        """Whether these, and this process, are soon the only ones with the mark."""
        for _ in range(3000):
            if not {*marked(f"RUN_TEST={self.folder}")} - {*known, os.getpid()}:
                return True
            await asyncio.sleep(0.01)
        return False


Open = Callable[[str], Any]


@pytest.fixture
def running(inspected: Inspected, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Inspect a project whose hook runs this command; an event is recorded."""
    monkeypatch.setenv("RUN_TEST", str(inspected.folder))
    monkeypatch.setenv("TMPDIR", str(inspected.folder))

    @asynccontextmanager
    async def opened(command: str) -> AsyncIterator[Running]:
        inspected.settings({})
        await asyncio.to_thread(inspected.fire, "BeforeTool", tool_name="t")
        inspected.settings(on_tools(command), journal=False)
        with inspected.running() as server:
            async with httpx.AsyncClient(
                base_url=inspected.base, follow_redirects=True, timeout=60
            ) as client:
                await client.get(inspected.address)
                run = Running(inspected, client)
                run.server = server
                yield run

    return opened


def message(response: httpx.Response) -> Any:
    return response.json()["error"]["message"]


@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_cancel_ends_the_command_and_its_hooks(running: Open, text: str) -> None:
    """No process stays behind; the same run is not started twice."""
    async with running(text) as run:
        answer = await run.start("trial", text)
        again = await run.post("/api/fire", **FIRE)
        assert message(again) == "this run has started already"
        done = await run.post("/api/fire/cancel", run="mine")
        assert done.json() == {"cancelled": True}
        response = await answer
        assert response.status_code == 409
        assert message(response) == "the run was cancelled: its hooks were ended"
        assert await run.ends(run.server.pid)
        unknown = await run.post("/api/fire/cancel", run="mine")
        assert unknown.json() == {"cancelled": False}


@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_cancel_ends_a_replay_and_its_hooks(running: Open, text: str) -> None:
    """No process stays behind; what has ended can be cancelled, and that is all."""
    async with running(text) as run:
        answer = await run.start("replay", text)
        second = await run.post("/api/replays")
        assert second.status_code == 409
        assert message(second) == "a replay is running: wait for it, or cancel it"
        for _ in range(2):
            done = await run.post("/api/replays/1/cancel")
            assert done.json()["state"] == "cancelled"
        kind, status = server_events((await answer).text)[-1]
        assert (kind, status["state"]) == ("done", "cancelled")
        assert await run.ends(run.server.pid)


async def test_a_page_that_is_closed_takes_its_hooks_along(running: Open) -> None:
    text = STUBBORN["has deaf children"]
    async with running(text) as run:
        (await run.start("trial", text)).cancel()
        assert await run.ends(run.server.pid)


async def test_a_replay_goes_on_when_nobody_watches_it(running: Open) -> None:
    """Pasted settings are never on the disk meanwhile, nor in an answer."""
    async with running("true") as run:
        answer = await run.start("replay", WAITS)
        answer.cancel()
        assert not list(run.folder.glob("hookline-*"))
        assert "sleep" not in (await run.client.get("/api/replays")).text
        (run.folder / "go").touch()
        stream = (await run.client.get("/api/replays/1/stream")).text
        kind, status = server_events(stream)[-1]
        assert (kind, status["state"], status["wanted"]["pasted"]) == (
            *("done", "done", True),
        )
        assert (await run.post("/api/replays")).json() == {"id": 2}


@pytest.mark.parametrize("kind", ["trial", "replay"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_runs_end_with_the_server(
    running: Open, number: signal.Signals, kind: str
) -> None:
    """It ends with the server, however that dies."""
    text = STUBBORN["ignores SIGTERM"]
    async with running(text) as run:
        answer: Awaitable[httpx.Response] = await run.start(kind, text)
        run.server.send_signal(number)
        await asyncio.to_thread(run.server.wait, 60)
        with suppress(httpx.TransportError):
            assert (await answer).status_code in {409, 200}
        assert await run.ends()


async def test_only_a_few_events_run_at_once(running: Open) -> None:
    async with running(STUBBORN["sleeps"]) as run:
        body = {"event": "BeforeTool", "tool": "t"}
        runs = [asyncio.create_task(run.post("/api/fire", **body)) for _ in range(5)]
        done, _ = await asyncio.wait(runs, return_when="FIRST_COMPLETED")
        for task in runs:
            task.cancel()
        response = done.pop().result()
        assert response.status_code == 429
        assert message(response) == "4 events are being run: wait for one, or cancel it"


async def test_samples_of_all_events_can_be_fired(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    page = PageProject(tmp_path)
    page.folder.mkdir()
    for event in (await page.ask("/api/try"))["events"]:
        with subtests.test(event["name"]):
            tool = ("--tool", "my_tool") if event["takes_tool"] else ()
            words = ("fire", event["name"], *tool, "--input", "-", "--json")
            text = json.dumps(event["sample"])
            ended = await asyncio.to_thread(
                run_command, *words, cwd=page.folder, stdin=text
            )
            assert (ended.returncode, ended.stderr) == (0, "")


def test_the_folder_of_a_project_holds_no_modules_of_ours(tmp_path: Path) -> None:
    """A project that nobody approved must not run code by a file's name."""
    for name in ("hookline.py", "asyncio.py", "json.py"):
        (tmp_path / name).write_text("open('ran', 'w').close()")
    words = Desk(str(tmp_path)).command("list", "--json")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert json.loads(done.stdout) is not None
    assert not (tmp_path / "ran").exists()


def test_what_a_replay_finds_is_bounded_and_read_page_by_page() -> None:
    """From inside: a hundred thousand changes are too many to make happen here."""
    found = FoundChanges()
    for n in range(250):
        after = "ask" if n % 5 == 0 else "blocked"
        found.add({"id": n, "before": "allowed", "after": after, "apart": None})
    page, following = found.page(0, 100)
    assert ([one["id"] for one in page], following) == ([*range(100)], 100)
    page, following = found.page(200, 100)
    assert (len(page), following) == (50, None)
    page, following = found.page(0, 30, kinds=[0])
    assert {one["after"] for one in page} == {"ask"}
    page, following = found.page(following or 0, 30, kinds=[0])
    assert (len(page), following) == (20, None)
    huge = {"what": "changed input", "before": None, "after": "x" * 5_000_000}
    base = {"before": "allowed", "after": "blocked", "apart": None}
    found.add({**base, "id": 250, "changes": [huge], "reason": "y" * 5_000_000})
    (cut,), _ = found.page(250, 1)
    assert cut["changes"][0]["after"].endswith("(cut)")
    assert len(str(cut)) < 100_000
    for n in range(251, MAX_KEPT + 5):
        found.add({**base, "id": n})
    assert (len(found), found.counts.total()) == (MAX_KEPT, MAX_KEPT + 5)
    found.close()


@pytest.mark.parametrize("store", ["memory", "disk"])
@pytest.mark.parametrize(
    ("text", "content"),
    [('{"hooks": {}}', None), ("// why\n{}", None), ("[hooks]\n", '{"hooks":{}}')],
)
def test_pasted_settings_are_readable_by_their_owner_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    content: str | None,
    store: str,
) -> None:
    """In memory a server that is killed leaves nothing of them on the disk."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if store == "disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    pasted = PastedSettings(text)
    file = Path(pasted.path)
    assert file.read_text() == (content or text)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == (store == "disk")
    Settings.from_file(file)
    assert pasted.hide(f"{file}:1: bad") == "the pasted settings:1: bad"
    pasted.remove()
    pasted.remove()
    assert list(tmp_path.iterdir()) == []
    assert not file.exists()
