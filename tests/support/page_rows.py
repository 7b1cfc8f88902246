"""Rows about the page: a project in some state, a request, and the JSON answer.

The application answers in this process, as a browser with the token asks it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from msgspec import Struct

from hookline import Config, HookSystem, Settings
from hookline.inspector.app import build_app
from hookline.inspector.desk import Desk
from tests.support.commandline import run_command
from tests.support.journals import make_journal

PORT, TOKEN = 4711, "the-token"
_TIMES = {"at", "since", "oldest", "newest", "until", "last_at", "started", "ended"}
_TIMES |= {"searched_to"}
_SET_BY_PEOPLE = {"timeout_ms", "cooldown_ms"}
_SIZES = {"bytes", "input_bytes"}
"""They hold the path of a folder."""
_LONGEST = 400
_VARYING = {
    "<time>": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "duration_ms='<ms>'": re.compile(r"duration_ms='[\d.]+'"),
    "<session>": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
}
_SETTINGS = {"settings": "hooks.json", "project": ".hookline/settings.json"}


class PageProject(Struct):
    """A folder whose page is asked; state and user settings are its own."""

    place: Path
    settings: bool = False
    """Whether the inspector is started with ``--settings hooks.json``."""

    own_journal: bool = True
    """Whether it is beside the settings, and not that of all projects."""

    @property
    def folder(self) -> Path:
        return self.place / "project"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.sqlite"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "XDG_STATE_HOME": str(self.place / "state"),
            "XDG_CONFIG_HOME": str(self.place / "config"),
        }

    def desk(self, cwd: str = "") -> Desk:
        """What answers; started anew for each request."""
        chosen = str(self.folder / "hooks.json") if self.settings else None
        journal = str(self.journal) if self.own_journal else None
        return Desk(str(self.folder / cwd), chosen, journal)

    async def do(self, step: dict[str, Any]) -> None:
        """Write files and settings, approve them, fire events, damage the journal."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, content in step.get("files", {}).items():
            self._write(name, content)
        for name in step.get("remove", ()):
            (self.folder / name).unlink()
        for name, target in step.get("links", {}).items():
            (self.folder / name).symlink_to(self._filled(target))
        for key, name in _SETTINGS.items():
            if (content := step.get(key)) is not None:
                options = {"journal": self.journal.name}
                options |= content.get("hooksConfig", {})
                self._write(name, {**content, "hooksConfig": options})
                self.settings |= key == "settings"
        if step.get("trust"):
            await asyncio.to_thread(run_command, "trust", self.folder, "--yes")
        if step.get("fire"):
            await self._fire(step["fire"])
        if "journal" in step:
            make_journal(self.journal, step["journal"])
        for statement in step.get("sql", ()):
            with closing(sqlite3.connect(self.journal)) as connection, connection:
                connection.execute(statement)

    def _write(self, name: str, content: Any) -> None:
        """Text, an object as JSON, or text ``times`` so many."""
        if isinstance(content, dict):
            text = self._filled(json.dumps(content))
            if "times" in content:
                text = content["text"] * content["times"]
        else:
            text = self._filled(content)
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _filled(self, text: str) -> str:
        return text.replace("<place>", str(self.place))

    async def _fire(self, events: list[list[Any]]) -> None:
        if self.settings:
            settings = Settings.from_file(self.folder / "hooks.json")
            config = Config("s-1", self.folder, settings)
        else:
            config = Config.load(self.folder)
        async with HookSystem(config) as system:
            for event, fields, *times in events:
                for _ in range(*times or (1,)):
                    await system.event_handler.fire(event, fields)

    @asynccontextmanager
    async def client(self, cwd: str = "") -> AsyncIterator[httpx.AsyncClient]:
        """A browser that has the cookie of one inspector."""
        app = build_app(self.desk(cwd), TOKEN, PORT)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url=f"http://127.0.0.1:{PORT}",
            cookies={f"hookline-{PORT}": TOKEN},
        ) as client:
            yield client

    async def ask(
        self, asked: str | dict[str, Any], client: httpx.AsyncClient | None = None
    ) -> Any:
        """One request, of a page that was just opened if no other is given.

        ``<key of NAME>`` is the key of a configured hook; ``look`` is at a file.
        """
        if client is None:
            async with self.client() as opened:
                return await self.ask(asked, opened)
        request = {"get": asked} if isinstance(asked, str) else asked
        if "look" in request:
            file = self.folder / request["look"]
            return {"text": file.read_text() if file.exists() else None}
        if "post" in request:
            path = self._filled(request["post"])
            return _answer(await client.post(path, json=request.get("body", {})))
        path = self._filled(request["get"])
        for name in re.findall("<key of (.+?)>", path):
            hooks = (await client.get("/api/hooks")).json()["hooks"]
            key = next(hook["key"] for hook in hooks if hook["name"] == name)
            path = path.replace(f"<key of {name}>", key)
        return _answer(await client.get(path))


def _answer(response: httpx.Response) -> Any:
    if response.headers["content-type"].startswith("text/event-stream"):
        return {"messages": server_events(response.text)}
    if response.status_code == 200:
        return response.json()
    return {
        "status": response.status_code,
        "error": response.json()["error"]["message"],
    }


def server_events(text: str) -> list[list[Any]]:
    """What a stream sent, without how far it was at some time."""
    messages = []
    for part in text.split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in part.splitlines() if line[:1] != ":"
        )
        if lines and lines["event"] != "progress":
            messages.append([lines["event"], json.loads(lines["data"])])
    return messages


async def page_row(row: dict[str, Any], place: Path) -> Any:
    """Bring a new project into the state of a row, and ask its page."""
    project = PageProject(place)
    with patch.dict(os.environ, {**project.environment, **row.get("env", {})}):
        os.environ.pop("HOOKLINE_DEPTH", None)
        for step in (row, *row.get("steps", ())):
            await project.do(step)
        return await answers(project, row)


async def answers(project: PageProject, row: dict[str, Any]) -> Any:
    """What the page says to each question of a row, or the ``show`` of it."""
    asked = row["ask"] if isinstance(row["ask"], list) else [row["ask"]]
    found = []
    async with project.client(row.get("cwd", "")) as client:
        for one in asked:
            text = json.dumps(await project.ask(one, client))
            for name, path in (("project", project.folder), ("place", project.place)):
                text = text.replace(str(path), f"<{name}>")
            answer = json.loads(text)
            if isinstance(answer, dict) and "status" not in answer and "show" in row:
                shown = [path for path in row["show"] if path.split(".")[0] in answer]
                found.append({path: picked(answer, path) for path in shown})
            else:
                found.append(mask_answer(answer))
    return found if isinstance(row["ask"], list) else found[0]


def picked(value: Any, path: str) -> Any:
    """``hooks.*.name|verdict``: of each hook these two, masked."""
    name, _, rest = path.partition(".")
    if name == "*":
        return [picked(one, rest) for one in value or ()]
    if "|" in name:
        return [mask_answer(value.get(one), one) for one in name.split("|")]
    inner = value[int(name)] if isinstance(value, list) else value.get(name)
    if rest and inner is not None:
        return picked(inner, rest)
    return mask_answer(inner, name)


def mask_answer(value: Any, name: str = "") -> Any:
    """Without times and durations; histograms as their sums; long texts cut."""
    if isinstance(value, dict):
        found = {key: mask_answer(one, key) for key, one in value.items()}
        if "key" in found and "event" in found:
            found["key"] = "<key>"
        if "histogram" in found:
            found["histogram"] = sum(one["count"] for one in value["histogram"])
        return found
    if isinstance(value, list):
        return [mask_answer(one) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name in _TIMES:
            return "<time>"
        if name in _SIZES:
            return "<bytes>"
        is_duration = name.endswith("_ms") and name not in _SET_BY_PEOPLE
        return "<ms>" if is_duration else value
    if not isinstance(value, str):
        return value
    if name == "version":
        return "<version>"
    if len(value) > _LONGEST:
        return f"{value[:60]}… ({len(value)} characters)"
    for mask, pattern in _VARYING.items():
        value = pattern.sub(mask, value)
    return value
