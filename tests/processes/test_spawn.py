"""The cheap way to start a program keeps every promise of the public one."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hookline.processes.spawn import Program, Streams, spawn, spawn_by_popen
from tests.support.processes import children

Spawn = Callable[..., int]

LOOK = """
import json, os, signal, sys
print(json.dumps({
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "leads": os.getpid() == os.getpgrp(),
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "argv": sys.argv,
    "broken_pipe": signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL,
    "stdin": sys.stdin.read(),
}))
"""

ways = pytest.mark.parametrize("start", [spawn, spawn_by_popen])


def _run(start: Spawn, argv: list[str], cwd: Path, path: str = "") -> bytes:
    """Start a program on fresh pipes and return what it prints."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    streams: Streams = (in_read, out_write, out_write)
    try:
        env = {"PATH": os.environ["PATH"], "OWN": "\u00fc"}
        pid = start(Program(path or argv[0], argv, env), str(cwd), streams)
    except BaseException:
        os.close(in_write)
        os.close(out_read)
        raise
    finally:
        os.close(in_read)
        os.close(out_write)
    with suppress(BrokenPipeError):  # not everybody reads
        os.write(in_write, b"fed")
    os.close(in_write)
    with os.fdopen(out_read, "rb") as printed:
        found = printed.read()
    assert os.waitpid(pid, 0)[1] == 0
    return found


@ways
def test_child_gets_three_descriptors_and_a_group_of_its_own(
    start: Spawn, tmp_path: Path
) -> None:
    """protocol.md#process: no descriptor of the host's, no terminal, one group."""
    leaky = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leaky, True)
    try:
        argv = [sys.executable, "-I", "-S", "-c", LOOK, "word"]
        seen = json.loads(_run(start, argv, tmp_path))
    finally:
        os.close(leaky)
    listed = seen["descriptors"]
    assert [fd for fd in listed if int(fd) < 3] == ["0", "1", "2"]
    assert len(listed) == 4  # and the one that lists them
    assert seen["leads"]
    assert seen["cwd"] == str(tmp_path)
    assert seen["env"]["OWN"] == "\u00fc"
    assert seen["argv"][1:] == ["word"]
    assert seen["stdin"] == "fed"


@ways
def test_signals_that_python_changed_are_back_to_default(
    start: Spawn, tmp_path: Path
) -> None:
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
    argv = ["grep", "SigIgn", "/proc/self/status"]
    ignored = int(_run(start, argv, tmp_path).split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))


@ways
def test_first_word_may_differ_from_the_program(start: Spawn, tmp_path: Path) -> None:
    argv = ["another-name", "-c", "echo $0"]
    assert _run(start, argv, tmp_path, "/bin/sh") == b"another-name\n"


@ways
@pytest.mark.parametrize(
    ("argv", "folder", "error"),
    [
        (["/no/such/program"], ".", FileNotFoundError),
        (["no-such-program-on-path"], ".", FileNotFoundError),
        (["cat"], "missing", FileNotFoundError),
        (["./plain"], ".", PermissionError),
        (["cat", "nul\0byte"], ".", ValueError),
    ],
    ids=["no file", "not on PATH", "no directory", "not executable", "NUL"],
)
def test_program_that_cannot_start_is_an_error_and_leaves_nothing(
    start: Spawn,
    tmp_path: Path,
    argv: list[str],
    folder: str,
    error: type[Exception],
) -> None:
    (tmp_path / "plain").write_text("")
    descriptors, processes = os.listdir("/proc/self/fd"), children()
    with pytest.raises(error):
        _run(start, argv, tmp_path / folder)
    assert os.listdir("/proc/self/fd") == descriptors
    assert children() == processes


HOST = """
import os, sys
from hookline.processes.spawn import Program, has_terminal, spawn, spawn_by_popen
start = {"spawn": spawn, "spawn_by_popen": spawn_by_popen}[sys.argv[1]]
null = os.open(os.devnull, os.O_RDWR)
assert has_terminal()
shell = Program("/bin/sh", ["/bin/sh", "-c", "true </dev/tty"], {})
pid = start(shell, "/", (null, null, null))
os._exit(0 if os.waitpid(pid, 0)[1] else 7)
"""


@ways
def test_child_has_no_terminal_though_its_host_has_one(start: Spawn) -> None:
    """protocol.md#process: the behaviour is the same with and without a TTY."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", HOST, start.__name__])
    try:
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(master)
    assert os.waitstatus_to_exitcode(status) == 0
