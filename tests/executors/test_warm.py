"""One warm process."""

from __future__ import annotations

import asyncio
import errno
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.executors.warm import WarmProcess
from hookline.processes.spawn import ProcessSpec
from hookline.processes.watcher import watcher

from .bench import open_descriptors


class LoopThatCannotWatch(asyncio.SelectorEventLoop):
    """An event loop whose selector is full."""

    # The base class ties the arguments to the callback's, which no test needs.
    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Any, *args: Any
    ) -> None:
        if len(args) == 0 and getattr(callback, "__name__", "") == "_reap":
            raise OSError(errno.ENOSPC, "no watch left")
        super().add_reader(fd, callback, *args)


@pytest.mark.skipif(sys.platform != "linux", reason="watches pidfds on Linux only")
def test_a_worker_that_cannot_be_watched_leaks_no_descriptor(tmp_path: Path) -> None:
    spec = ProcessSpec(
        argv=["/bin/sh", "-c", "cat"],
        cwd=str(tmp_path),
        env={},
        stdin=b"",
        timeout_s=1,
        max_output_bytes=1000,
    )

    async def start() -> None:
        watcher.stop()
        before = open_descriptors()
        with pytest.raises(OSError, match="no watch left"):
            WarmProcess(spec, lambda _: None)
        watcher.stop()
        assert open_descriptors() == before

    with asyncio.Runner(loop_factory=LoopThatCannotWatch) as runner:
        runner.run(start())
