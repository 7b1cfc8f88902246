"""The process room must behave the same under uvloop (pipes, not its sockets)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.processes.process import run_process

from .test_process import spec

uvloop = pytest.importorskip("uvloop")


def test_results_are_the_same_under_uvloop(tmp_path: Path) -> None:
    async def endings() -> list[tuple[object, ...]]:
        big = b"x" * 3_000_000
        specs = [
            spec("cat | wc -c; echo e >&2; exit 4", tmp_path, stdin=big),
            spec("kill -9 $$", tmp_path),
            spec("sleep 60 & exit 0", tmp_path),
            spec("yes", tmp_path, timeout_s=0.5, max_output_bytes=100),
            spec("readlink /proc/self/fd/0 | cut -c1-4", tmp_path),
        ]
        found = [await run_process(one) for one in specs]
        return [(o.exit_code, o.stdout[:20], o.stderr, o.timed_out) for o in found]

    assert uvloop.run(endings()) == [
        (4, b"3000000\n", b"e\n", False),
        (-9, b"", b"", False),
        (0, b"", b"", False),
        (-15, b"y\n" * 10, b"", True),
        (0, b"pipe\n", b"", False),
    ]
