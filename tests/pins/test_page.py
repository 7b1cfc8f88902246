"""What the inspector's page is answered: requests in, status and JSON out."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.support import showcase
from tests.support.inspecting import Inspected
from tests.support.journals import change, make_journal
from tests.support.page_rows import PageProject, answers, mask_answer, page_row
from tests.support.pins import PinTable

Table = Callable[[str], PinTable]
_NOT_RECORDED = {"hooksConfig": {"journal": False}}


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("view", ["damaged", "event", "hooks", "trust", "try"])
async def test_view_shows_the_state_of_a_project(
    pin_table: Table, tmp_path: Path, view: str
) -> None:
    """Credentials, links and long files of projects do not get out."""
    rows = iter(range(1000))

    async def asked(_: str, row: dict[str, Any]) -> object:
        return await page_row(row, tmp_path / str(next(rows)))

    # One after the other: the folders of state are in the environment.
    await pin_table(f"page/{view}").check(asked, at_once=1)
    gc.collect()  # replays keep what they found in files until their server ends


async def test_requests_on_one_project_and_journal(
    pin_table: Table, tmp_path: Path
) -> None:
    """Every request, and each mistake with what to do about it."""
    project = PageProject(tmp_path, settings=True)
    project.folder.mkdir()
    await asyncio.to_thread(showcase.build, project.folder, project.journal)
    # What is tried here is not recorded.
    await project.do({"settings": {"hooks": showcase.hooks(), **_NOT_RECORDED}})

    async def asked(_: str, row: dict[str, Any]) -> object:
        return await answers(project, row)

    await pin_table("page/requests").check(asked, at_once=2)
    assert not (project.folder / "ran").exists()  # counting runs nothing


@pytest.fixture(scope="module")
def journal_of_many(tmp_path_factory: pytest.TempPathFactory) -> PageProject:
    """Two thousand events, some of them with odd texts."""
    project = PageProject(tmp_path_factory.mktemp("many"))
    project.folder.mkdir()
    path = make_journal(project.journal, 2000, hooks=2)
    text = json.dumps({"tool_use_id": "call-9", "text": 'He said "Ja!"\nover\\'})
    change(path, "UPDATE events SET target = '50% of [it]_* !done' WHERE id = 7")
    change(path, "UPDATE events SET session = 's[1]' WHERE id = 8")
    change(path, "UPDATE events SET input = ?, target = 't' WHERE id = 9", text)
    change(path, "UPDATE events SET verdict = 'stopped' WHERE id = 10")
    for column in ("stderr", "error", "stdout"):
        update = f"UPDATE hooks SET {column} = 'the {column} TALKS'"
        change(path, f"{update} WHERE event_id = 11 AND position = 1")
    change(path, "UPDATE hooks SET recheck = 1 WHERE event_id = 12 AND position = 1")
    return project


async def test_search_finds_what_its_filters_say(
    pin_table: Table, journal_of_many: PageProject
) -> None:
    """Each page of the list together; an answer may stop early to be quick."""

    async def asked(_: str, row: dict[str, Any]) -> object:
        found: list[int] = []
        query = dict(row["query"])
        while True:
            page = await journal_of_many.ask(f"/api/events?{urlencode(query)}")
            if "whole" in row:
                return mask_answer(page)
            found += [event["id"] for event in page["events"]]
            if page["next"] is None or "limit" in query:
                ends = {"first": found[:5], "last": found[-1:], "count": len(found)}
                return {**ends, "next": page["next"]}
            query["before"] = page["next"]

    await pin_table("page/search").check(asked)


_HOSTILE_BODIES = {
    "<deep list>": b"[" * 100_000,
    "<deep objects>": b'{"a":' * 100_000,
    "<not UTF-8>": b"\xff",
}


class Visitor:
    """Sends single requests to a real server, with the headers that a row chooses."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.port = parts.port or 0
        token = parts.query.removeprefix("token=")
        self.cookie = f"hookline-{self.port}={token}"
        self.texts = {
            "<port>": str(self.port),
            "<other port>": str(self.port + 1),
            "<token>": token,
            "<start of the token>": token[:-1],
            "<others>": "; ".join(f"c{n}={'x' * 3000}" for n in range(60)),
        }

    def filled(self, text: str) -> str:
        for name, value in self.texts.items():
            text = text.replace(name, value)
        return text

    def ask(self, row: dict[str, Any], method: str) -> dict[str, Any]:
        body: str = row.get("body", "")
        sent = _HOSTILE_BODIES.get(body) or body.encode() or None
        headers = {name: self.filled(v) for name, v in row.get("headers", {}).items()}
        headers["Cookie"] = self.filled(row.get("cookie", self.cookie))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, self.filled(row["path"]), sent, headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        names = row.get("headers_shown", ())
        shown = {name: response.headers.get_all(name) for name in names}
        # No answer is without it, and no refusal says anything about the project.
        assert response.headers["Content-Security-Policy"]
        answer: dict[str, Any] = {"status": response.status, **shown}
        if response.status >= 400 and "<!doctype" not in text.lower():
            answer["text"] = text[:200]
        return answer

    def raw(self, request: str) -> str:
        """The status of what is sent byte by byte."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as peer:
            peer.sendall(request.encode())
            peer.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: peer.recv(65536), b"")).decode().split()[1]


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    inspected = Inspected(tmp_path_factory.mktemp("guarded"))
    with inspected.running():
        yield Visitor(inspected.address)


async def test_page_answers_its_own_browser_only(
    pin_table: Table, visitor: Visitor
) -> None:
    """Token, cookie, host (DNS rebinding), origin, methods, bodies, files."""

    def asked(_: str, row: dict[str, Any]) -> object:
        methods = row.get("methods", [row.get("method", "GET")])
        found = {method: visitor.ask(row, method) for method in methods}
        answers = found if "methods" in row else found[methods[0]]
        text = json.dumps(answers)
        for name in ("<token>", "<port>"):
            text = text.replace(visitor.texts[name], name)
        return json.loads(text)

    await pin_table("page/guard").check(asked)


@pytest.mark.parametrize("lines", ["", "Host: 127.0.0.1:<port>\r\nHost: evil\r\n"])
def test_host_must_be_there_once(visitor: Visitor, lines: str) -> None:
    for version in ("1.0", "1.1"):
        request = f"GET /api/overview HTTP/{version}\r\n{visitor.filled(lines)}"
        status = visitor.raw(f"{request}Cookie: {visitor.cookie}\r\n\r\n")
        assert status in {"400", "403"}


def test_long_body_is_refused(visitor: Visitor) -> None:
    """Before it is read, or as soon as it turns out to be too long."""
    head = (
        f"POST /api/explain HTTP/1.1\r\nHost: 127.0.0.1:{visitor.port}\r\n"
        f"Cookie: {visitor.cookie}\r\nContent-Type: application/json\r\n"
    )
    chunk = f"{65536:x}\r\n{'[' * 65536}\r\n"
    for count, status in ((17, "413"), (16, "400")):
        body = chunk * count + "0\r\n\r\n"
        assert visitor.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n{body}") == status
    assert visitor.raw(f"{head}Content-Length: 1048577\r\n\r\n") == "413"
    assert visitor.raw(f"{head}Content-Length: {'9' * 20}\r\n\r\n") in {"400", "413"}


def test_only_this_machine_can_connect(visitor: Visitor) -> None:
    def addresses(table: str) -> list[str]:
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        found = [line.split()[1] for line in lines if line.split()[3] == "0A"]
        return [one for one in found if one.endswith(f":{visitor.port:04X}")]

    assert addresses("tcp") == [f"0100007F:{visitor.port:04X}"]
    assert addresses("tcp6") == []
