"""The floor for spawns: ``floor.c`` where there is a compiler, else subprocess."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

SOURCE = Path(__file__).with_name("floor.c")


class Floors:
    """Makes floors, and keeps what they need for as long as the bench runs."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hookline-bench-")
        self._program = self._compile()
        self._open: list[subprocess.Popen[bytes]] = []

    @property
    def kind(self) -> str:
        """What the floor is, in words."""
        return "C, posix_spawn" if self._program else "subprocess.run"

    def spawn(self, argv: list[str], parallel: int = 1, payload: int = 0) -> Floor:
        """The floor for so many children at once that are fed so many bytes."""
        if self._program is None:
            return PythonFloor(argv, parallel, payload)
        words = [str(self._program), str(parallel), str(payload), *argv]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._open.append(process)
        return CompiledFloor(process)

    def __enter__(self) -> Floors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._open:
            assert process.stdin
            process.stdin.close()
            process.wait()
        self._folder.cleanup()

    def _compile(self) -> Path | None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            return None
        program = Path(self._folder.name) / "floor"
        built = subprocess.run(
            [compiler, "-O2", "-o", str(program), str(SOURCE)],
            capture_output=True,
            check=False,
        )
        return program if built.returncode == 0 else None


class Floor:
    """Runs a round and says how long it took."""

    async def __call__(self) -> float:
        """Seconds of one round."""
        raise NotImplementedError


class CompiledFloor(Floor):
    """Asks the compiled program for a round."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    async def __call__(self) -> float:
        """Seconds of one round, as the program took them."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(b"x")
        return int(self._process.stdout.readline()) / 1e9


class PythonFloor(Floor):
    """The nearest thing in Python, where nothing can be compiled."""

    def __init__(self, argv: list[str], parallel: int, payload: int) -> None:
        self._argv = argv
        self._parallel = parallel
        self._payload = b"x" * payload
        self._pool = ThreadPoolExecutor(parallel)

    async def __call__(self) -> float:
        """Seconds of one round, threads and all."""
        started = time.perf_counter()
        list(self._pool.map(self._run, range(self._parallel)))
        return time.perf_counter() - started

    def _run(self, _: int) -> None:
        subprocess.run(
            self._argv, input=self._payload, capture_output=True, check=False
        )
