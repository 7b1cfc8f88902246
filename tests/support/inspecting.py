"""``hookline inspect`` in a project with a journal.

As a user starts it where a process is the point; its pages are served by a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Page

from hookline.inspector.app import build_app
from hookline.inspector.desk import Desk
from hookline.inspector.server import InspectorServer
from tests.support import showcase
from tests.support.commandline import run_command


class Inspected:
    """A project, its settings and its journal; a test fires events there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal.sqlite"
        self.settings_file = folder / "hooks.json"
        self.address = ""
        """With the token, as the command printed it."""

    @property
    def base(self) -> str:
        """The address without the token."""
        return self.address.partition("/?")[0]

    def settings(self, hooks: dict[str, Any], **options: Any) -> None:
        """Write settings that record into the journal."""
        config = {"journal": str(self.journal), **options}
        text = json.dumps({"hooks": hooks, "hooksConfig": config})
        self.settings_file.write_text(text)

    def fire(self, event: str, session: str = "s-1", **fields: Any) -> dict[str, Any]:
        """Fire one event as a user would; it is recorded when this returns."""
        words = ("--settings", self.settings_file, "--cwd", self.folder, "--json")
        named = ("--input", "-", "--session-id", session)
        # A browser's test has an event loop in its own thread.
        with ThreadPoolExecutor(1) as thread:
            run = partial(run_command, stdin=json.dumps(fields))
            ended = thread.submit(run, "fire", event, *words, *named).result()
        verdict: dict[str, Any] = ended.json()
        return verdict

    def forget(self) -> None:
        """Remove the journal, or what a test put in its place."""
        for suffix in ("", "-wal", "-shm"):
            path = Path(f"{self.journal}{suffix}")
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)

    @contextmanager
    def running(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """Run the command until the test is done with it."""
        words = ["--journal", str(self.journal), "--cwd", str(self.folder)]
        if self.settings_file.exists():
            words += ["--settings", str(self.settings_file)]
        process = subprocess.Popen(
            [sys.executable, "-m", "hookline", "inspect", "--no-open", *words, *more],
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            self.address = process.stdout.readline().strip()
            assert "token=" in self.address, "the command did not start"
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve its pages from a thread of this process."""
        chosen = str(self.settings_file) if self.settings_file.exists() else None
        desk = Desk(str(self.folder), chosen, str(self.journal))
        loops: Queue[asyncio.AbstractEventLoop] = Queue()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
            self.address = f"http://127.0.0.1:{port}/?token={token}"
            server = InspectorServer(
                build_app(desk, token, port),
                desk,
                lambda: loops.put(asyncio.get_running_loop()),
            )
            with ThreadPoolExecutor(1) as thread:
                ended = thread.submit(asyncio.run, server.serve([listener]))
                loop = loops.get(timeout=60)
                try:
                    yield
                finally:
                    loop.call_soon_threadsafe(server.stop)
                    ended.result(timeout=60)

    @contextmanager
    def opened(self, page: Page, path: str = "") -> Iterator[None]:
        """Serve its pages, and open one of them in a browser."""
        with self.served():
            page.goto(self.address)
            if path:
                page.goto(f"{self.base}{path}")
            yield


@contextmanager
def entered(address: str) -> Iterator[httpx.Client]:
    """A client that opened the printed address, and so has the cookie."""
    parts = urlsplit(address)
    base = f"http://{parts.netloc}"
    with httpx.Client(base_url=base, follow_redirects=True, timeout=60) as client:
        assert client.get(f"/?{parts.query}").status_code == 200
        yield client


def build_showcase(inspected: Inspected) -> None:
    """Build the showcase in a thread: a browser's test has an event loop already."""
    with ThreadPoolExecutor() as thread:
        thread.submit(showcase.build, inspected.folder, inspected.journal).result()
