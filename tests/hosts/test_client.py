"""The program that an agent starts for each event, and the helper that it asks.

The client loads next to nothing and hands the event to a resident helper of the same
user. It must never ask a process of somebody else, wait for one that hangs, or leave
an event unanswered because the helper is gone. The format of an answer is read with
the client's own function, because no helper sends half an answer on demand.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.hosts.client import LENGTH_BYTES, parse_answer
from tests.support.processes import STUBBORN
from tests.support.resident import SCRIPT, WHO, Desk

HEAVY = {
    *("argparse", "asyncio", "enum", "json", "msgspec", "re", "selectors", "socket"),
    *("subprocess", "typing", "hookline.cli.main", "hookline.hosts.bridge"),
}


def guarded(desk: Desk) -> None:
    """A trusted project whose guard blocks every tool."""
    desk.project.guarded()
    desk.project.trust()


def test_an_event_is_answered_with_next_to_nothing_loaded(desk: Desk) -> None:
    """The client loads next to nothing."""
    guarded(desk)
    desk.warm_up()
    argv = [sys.executable, "-X", "importtime", str(SCRIPT), "bridge", "claude"]
    done = desk.run(argv, desk.event())
    lines = done.stderr.decode().split("\n")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in lines}
    assert b'"deny"' in done.stdout
    assert "hookline.hosts.client" in loaded
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("hookline")} == {
        *("hookline", "hookline.__main__", "hookline.hosts", "hookline.hosts.client"),
        "hookline.hosts.failsafe",
    }


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("--no-resident", "claude"), {}),
        (("claude", "--no-resident"), {}),
        (("claude",), {"HOOKLINE_NO_RESIDENT": "1"}),
        (("claude", "PreToolUse", "more"), {}),
        (("--help",), {}),
    ],
)
def test_no_helper_is_started(
    desk: Desk, words: tuple[str, ...], env: dict[str, str]
) -> None:
    desk.bridge(None, *words, env=env)
    assert not desk.files.exists()
    assert desk.processes() == []


def test_the_files_are_the_users_own(desk: Desk) -> None:
    """On a socket in the runtime directory, 0600."""
    desk.warm_up()
    assert stat.S_IMODE(desk.files.stat().st_mode) == 0o700
    modes = {
        path.suffix: stat.S_IMODE(path.stat().st_mode) for path in desk.files.iterdir()
    }
    assert modes == {"": 0o600, ".lock": 0o600}


@pytest.mark.parametrize("mode", [None, 0o770, 0o702], ids=["no", "group", "others"])
def test_without_a_private_runtime_directory_it_is_in_a_folder_of_our_own(
    desk: Desk, tmp_path: Path, mode: int | None
) -> None:
    """Without one, in a 0700 folder whose owner is checked."""
    if mode is None:
        del desk.env["XDG_RUNTIME_DIR"]
    else:
        desk.runtime.chmod(mode)
    desk.env["TMPDIR"] = str(tmp_path)
    desk.files = tmp_path / f"hookline-{os.getuid()}"
    desk.warm_up()
    assert stat.S_IMODE(desk.files.stat().st_mode) == 0o700
    assert not (desk.runtime / "hookline").exists()


def another_users(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)


def a_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="takes two users")


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(another_users, marks=needs_root, id="another user's"),
        pytest.param(a_link, id="a link"),
        pytest.param(lambda folder: folder.mkdir(mode=0o750), id="open to the group"),
        pytest.param(lambda folder: folder.mkdir(mode=0o701), id="open to others"),
        pytest.param(lambda folder: folder.write_text(""), id="a file"),
    ],
)
def test_a_folder_that_others_could_change_is_not_used(
    desk: Desk, prepare: object
) -> None:
    """Another user creates the folder first."""
    guarded(desk)
    assert callable(prepare)
    prepare(desk.files)
    for _ in range(2):
        assert desk.bridge() == desk.cold()
    assert desk.processes() == []
    assert not desk.files.is_dir() or not list(desk.files.iterdir())


LISTENER = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
server.listen(8)
print("ready", flush=True)
connection, _ = server.accept()
print(len(connection.recv(100)), flush=True)
"""


@needs_root
def test_nothing_is_sent_to_a_process_of_another_user(desk: Desk) -> None:
    """The peer's uid is checked."""
    guarded(desk)
    desk.warm_up()
    name = desk.socket()
    desk.stop()
    argv = [sys.executable, "-c", LISTENER, str(name), "65534"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as fake:
        assert fake.stdout
        assert fake.stdout.readline() == "ready\n"
        assert desk.bridge() == desk.cold()
        assert fake.stdout.readline() == "0\n"


def test_a_socket_that_nobody_listens_on_is_replaced(desk: Desk) -> None:
    desk.warm_up()
    name = desk.socket()
    pid = desk.stop(signal.SIGKILL)
    assert name.is_socket()
    assert desk.bridge() == desk.cold()
    desk.until(lambda: desk.pid() not in {None, pid})


def test_a_helper_that_hangs_is_replaced(desk: Desk) -> None:
    """A stopped helper must not hang the host."""
    desk.python_hook(WHO)
    pid = desk.warm_up()
    os.kill(pid, signal.SIGSTOP)
    try:
        assert int(desk.reason()) != pid
        other = desk.until(desk.pid)
        assert int(desk.reason()) == other != pid
    finally:
        os.kill(pid, signal.SIGCONT)
    desk.until(lambda: pid not in desk.processes())
    assert desk.helpers() == [other]


def test_clients_at_once_start_one_helper(desk: Desk) -> None:
    guarded(desk)
    clients = [desk.start_client() for _ in range(10)]
    answers = {client.communicate(desk.event())[0] for client in clients}
    assert answers == {desk.cold()[1]}
    pid = desk.until(desk.pid)
    desk.until(lambda: {*desk.processes()} - desk.shells() == {pid})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_client_that_is_killed_takes_its_hooks_along(
    desk: Desk, number: signal.Signals
) -> None:
    command = STUBBORN["has deaf children"]
    desk.project.settings({"type": "command", "name": "slow", "command": command})
    desk.project.trust()
    desk.start_helper()
    client = desk.start_client()
    with client:
        assert client.stdin
        client.stdin.write(desk.event())
        client.stdin.close()
        desk.until((desk.project.folder / "started").exists)
        client.send_signal(number)
    helper = {*desk.helpers()}
    desk.until(lambda: set(desk.processes()) - desk.shells() <= helper)
    # A tool that the host lets run in spite of that would be unguarded.
    assert client.returncode == (-number if number is signal.SIGKILL else 2)


def test_an_answer_that_nobody_reads_is_no_traceback(desk: Desk) -> None:
    guarded(desk)
    desk.warm_up()
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, str(SCRIPT), "bridge", "claude"]
    for more in ([], ["--no-resident"]):
        done = desk.run([*argv, *more], desk.event(), stdout=writing)
        assert done.returncode == 2
        assert done.stderr.startswith(b"hookline: ")
        assert b"Traceback" not in done.stderr
    os.close(writing)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_not_mistaken_for_the_connection(
    desk: Desk, closed: str
) -> None:
    desk.warm_up()
    argv = f"exec {sys.executable} {SCRIPT} bridge claude {closed}"
    warm, cold = (
        desk.run(["bash", "-c", f"{argv} {more}"], desk.event())
        for more in ("", "--no-resident")
    )
    assert (warm.returncode, warm.stdout) == (cold.returncode, cold.stdout)


@given(st.integers(0, 255), st.binary(), st.binary(), st.integers(0, 40))
def test_an_answer_counts_only_as_a_whole(
    status: int, stdout: bytes, stderr: bytes, missing: int
) -> None:
    lengths = (len(part).to_bytes(LENGTH_BYTES) for part in (stdout, stderr))
    whole = b"".join((bytes([status]), *lengths, stdout, stderr))
    assert parse_answer(whole) == (status, stdout, stderr)
    assert parse_answer(whole + b"x") is None
    if missing:
        assert parse_answer(whole[:-missing]) is None


def test_a_long_path_of_the_runtime_directory_will_do(desk: Desk) -> None:
    long = desk.runtime / ("x" * 120)
    long.mkdir(mode=0o700)
    desk.env["XDG_RUNTIME_DIR"] = str(long)
    desk.files = long / "hookline"
    desk.python_hook(WHO)
    desk.warm_up()
    assert int(desk.reason()) == desk.pid()
    with (
        pytest.raises(OSError, match="path too long"),
        socket.socket(socket.AF_UNIX) as connection,
    ):
        connection.connect(str(desk.files / "x"))
