"""Events as they happen, whatever becomes of the journal meanwhile."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline.journal.store import open_for_writing
from tests.support.inspecting import Inspected, entered
from tests.support.journals import change, make_journal, wait_until

GUARD = {"type": "command", "name": "guard", "command": "exit 2"}
HOOKS = {"BeforeTool": [{"matcher": "write_*", "hooks": [GUARD]}]}
COPY = "INSERT INTO events SELECT NULL, {} FROM events ORDER BY id DESC LIMIT 1"


class Stream:
    """What one page gets."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        assert next(self._lines) == ": connected"

    def next(self) -> tuple[str, Any]:
        """The next event, whatever it is."""
        kind = next(line for line in self._lines if line.startswith("event: "))
        line = next(line for line in self._lines if line.startswith("data: "))
        return kind.removeprefix("event: "), json.loads(line.removeprefix("data: "))

    def next_id(self) -> int:
        kind, row = self.next()
        assert kind == "event"
        number: int = row["id"]
        return number

    def wait_for(self, event_id: int) -> None:
        """Until this event comes; those of a new journal may come before it.

        Whoever looks between its creation and its first event gets that one, too.
        """
        while self.next_id() != event_id:
            pass


@contextmanager
def listening(
    client: httpx.Client, last_id: int | None = None, **params: Any
) -> Iterator[Stream]:
    headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
    with client.stream(
        "GET", "/api/events/stream", params=params, headers=headers
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield Stream(response)


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


def record(journal: Path, **values: Any) -> None:
    """Record another event like the newest one."""
    columns = _columns(journal)
    given = [f"'{values[name]}'" if name in values else name for name in columns]
    change(journal, COPY.format(", ".join(given)))


def _columns(journal: Path) -> list[str]:
    with closing(open_for_writing(str(journal))) as connection:
        rows = connection.execute("PRAGMA table_info(events)").fetchall()
    return [row[1] for row in rows if row[1] != "id"]


def test_live_event_is_there_within_a_second_of_the_fire(
    inspected: Inspected, client: httpx.Client
) -> None:
    """The guard against hanging is generous; the figure is in the decision record."""
    inspected.fire("BeforeTool", tool_name="read_file", tool_input={})
    with listening(client) as stream:
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={})
        recorded = time.monotonic()
        kind, row = stream.next()
        assert time.monotonic() - recorded < 10
    assert (kind, row["verdict"], row["blockers"]) == ("event", "blocked", "guard")
    assert client.get("/api/events", params={"limit": 1}).json()["events"] == [row]


def test_stream_has_what_the_page_does_not_have_and_wants(
    inspected: Inspected, client: httpx.Client
) -> None:
    """A browser that reconnects says itself which event was the last one."""
    make_journal(inspected.journal, 10)
    change(inspected.journal, "UPDATE events SET failed = 7 WHERE id = 9")
    with listening(client, after=7) as stream:
        rows = [stream.next()[1] for _ in range(3)]
    # A damaged event stops no stream.
    words = [(row["id"], row["verdict"]) for row in rows]
    assert words == [(8, "allowed"), (9, "damaged"), (10, "allowed")]
    with listening(client, last_id=9, after=7) as stream:
        assert stream.next_id() == 10
    with listening(client, session="wanted*", text="needle") as stream:
        record(inspected.journal, session="other", reason="needle")
        record(inspected.journal, session="wanted-1", reason="nothing")
        record(inspected.journal, session="wanted-1", reason="a NEEDLE")
        assert stream.next_id() == 13
    # Of a journal that is gone: the ids started again.
    with listening(client, last_id=500) as stream:
        assert stream.next()[0] == "reset"
        record(inspected.journal)
        assert stream.next_id() == 14


def test_many_pages_get_every_event_and_too_many_are_refused(
    tmp_path: Path,
) -> None:
    """A page that reads nothing delays nobody."""
    # A server of its own: another may not know yet that an earlier page was closed.
    inspected = Inspected(tmp_path)
    make_journal(inspected.journal, 20_000)
    with (
        inspected.served(),
        entered(inspected.address) as client,
        entered(inspected.address) as idle_client,
        ExitStack() as pages,
    ):
        # Only its head is read: the other 20,000 events stay where they are.
        pages.enter_context(idle_client.stream("GET", "/api/events/stream?after=0"))
        streams = [pages.enter_context(listening(client)) for _ in range(63)]
        refused = client.get("/api/events/stream")
        assert refused.status_code == 503
        message = "too many pages are open: close some"
        assert refused.json()["error"]["message"] == message
        assert client.get("/api/overview").status_code == 200
        for _ in range(3):
            record(inspected.journal)
        for stream in streams:
            assert [stream.next_id() for _ in range(3)] == [20_001, 20_002, 20_003]
        pages.close()
        wait_until(lambda: _is_open(client))


def _is_open(client: httpx.Client) -> bool:
    with client.stream("GET", "/api/events/stream") as response:
        return response.is_success


def test_journal_that_is_made_later_or_moved_away_is_followed(
    inspected: Inspected, client: httpx.Client
) -> None:
    """A page that is open does not keep the journal from being moved."""
    with listening(client) as stream:
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={})
        assert stream.next()[0] == "reset"
        inspected.fire("BeforeTool", tool_name="read_file", tool_input={})
        stream.wait_for(2)
        inspected.journal.rename(inspected.journal.with_suffix(".old"))
        assert stream.next()[0] == "reset"
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={})
        assert stream.next()[0] == "reset"
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={})
        stream.wait_for(2)


def test_journal_that_is_replaced_or_repaired_starts_anew(
    inspected: Inspected, client: httpx.Client, tmp_path: Path
) -> None:
    make_journal(inspected.journal, 50)
    whole = make_journal(tmp_path / "whole.sqlite", 60)
    with listening(client) as stream:
        shutil.copy(whole, tmp_path / "copy")
        (tmp_path / "copy").replace(inspected.journal)
        assert stream.next()[0] == "reset"
        record(inspected.journal)
        assert stream.next_id() == 61
        inspected.forget()
        inspected.journal.write_bytes(b"damaged")
        assert stream.next()[0] == "reset"
        assert client.get("/api/overview").json()["journal"]["error"]
        shutil.copy(whole, inspected.journal)
        assert stream.next()[0] == "reset"
        assert client.get("/api/overview").json()["journal"]["events"] == 60


def test_changed_settings_are_loaded_and_told(
    inspected: Inspected, client: httpx.Client
) -> None:
    """A broken file leaves the earlier settings in effect, with the reason."""
    with listening(client) as stream:
        inspected.settings(HOOKS, maxOutputBytes=4096)
        assert stream.next() == ("settings", {"errors": []})
        inspected.settings_file.write_text("{ broken")
        kind, told = stream.next()
        assert kind == "settings"
        assert str(inspected.settings_file) in told["errors"][0]
        found = client.get("/api/overview").json()["settings"]
        assert found["errors"] == told["errors"]
        assert found["files"] == [str(inspected.settings_file)]
        inspected.settings(HOOKS)
        assert stream.next() == ("settings", {"errors": []})
