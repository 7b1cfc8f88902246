"""The command line: called in this process, or started as a user starts it.

A test that only reads what a command prints calls it with ``run_command``. ``hookline``
is for what a process alone shows: signals, pipes, terminals, the exit status.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from hookline.cli.main import main

_LOGGERS = ("hookline", "hookline.hooks", "hookline.reload")
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Finished(Struct, frozen=True):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """What it printed as JSON."""
        return json.loads(self.stdout)


def run_command(
    *words: str | Path,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    stdin: str | bytes = b"",
) -> Finished:
    """Run one command in this process."""
    sent = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [_Stream(content) for content in (sent, b"", b"")]
    with (
        _process_restored(),
        contextlib.chdir(cwd or Path.cwd()),
        patch.dict(os.environ, {"NO_COLOR": "1", **(env or {})}),
        patch.object(sys, "stdin", streams[0]),
        patch.object(sys, "stdout", streams[1]),
        patch.object(sys, "stderr", streams[2]),
    ):
        status = main([str(word) for word in words])
    return Finished(status, streams[1].text(), streams[2].text())


@contextlib.contextmanager
def _process_restored() -> Iterator[None]:
    """Undo what a command changes in its process: it expects to end with it."""
    loggers = [
        (logger, list(logger.handlers), logger.level, logger.propagate)
        for logger in map(logging.getLogger, _LOGGERS)
    ]
    signals = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for logger, handlers, level, propagate in loggers:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
        for number, handler in signals.items():
            # Only the main thread may set one, and only it runs what changes them.
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


class _Stream(io.TextIOWrapper):
    """A standard stream in memory, with bytes below its text."""

    def __init__(self, content: bytes) -> None:
        self._bytes = io.BytesIO(content)
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self._bytes.getvalue().decode(errors="replace")


def hookline(
    *words: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", *words],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
