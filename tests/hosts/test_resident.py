"""The resident helper keeps hooks loaded between events: its life, and what goes wrong.

Killed, stopped, replaced by another version, asked nonsense or by another user: every
event still gets the answer of its hooks, and no process is left over. The time after
which an idle helper ends is changed inside the module: ten minutes are too long here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import hookline
from hookline.hosts.client import LENGTH_BYTES
from hookline.hosts.resident import log
from tests.support.resident import WHO, Desk

NEEDS_A_MOMENT = (
    "touch started; while [ ! -e go ]; do sleep 0.01; done; echo no >&2; exit 2"
)


def connect(desk: Desk) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    folder = f"/proc/self/fd/{os.open(desk.files, os.O_RDONLY)}"
    connection.connect(f"{folder}/{desk.socket().name}")
    return connection


def slow_guard(desk: Desk) -> None:
    """A guard that waits for the file ``go``."""
    desk.project.settings(
        {"type": "command", "name": "slow", "command": NEEDS_A_MOMENT}
    )
    desk.project.trust()


@contextmanager
def event_in_progress(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """A client whose event has reached its hook."""
    desk.start_helper()
    with desk.start_client() as client:
        assert client.stdin
        client.stdin.write(desk.event())
        client.stdin.close()
        client.stdin = None
        desk.until((desk.project.folder / "started").exists)
        yield client


def finish(desk: Desk, client: subprocess.Popen[bytes]) -> None:
    (desk.project.folder / "go").touch()
    stdout, stderr = client.communicate(timeout=60)
    assert (client.returncode, stdout, stderr) == desk.cold()
    assert b'"deny"' in stdout


def test_one_helper_answers_event_after_event(desk: Desk) -> None:
    desk.python_hook(WHO)
    pid = desk.warm_up()
    assert {desk.reason() for _ in range(5)} == {str(pid)}


def test_a_worker_stays_warm(desk: Desk) -> None:
    source = "import os\nfrom hookline.script import block, run\n"
    source += "run(lambda event: block(str(os.getpid())))\n"
    desk.project.write(".hookline/w.py", source)
    command = "$HOOKLINE_PYTHON .hookline/w.py"
    desk.project.settings({"type": "worker", "name": "w", "command": command})
    desk.project.trust()
    desk.warm_up()
    assert len({desk.reason() for _ in range(5)}) == 1


def test_each_environment_has_its_helper_and_few_are_kept(desk: Desk) -> None:
    desk.python_hook(WHO)
    pids = []
    for number in range(10):
        env = {"NUMBER": str(number)}
        pids.append(desk.warm_up(env=env))
        assert desk.reason(env=env) == str(pids[-1])
    desk.until(lambda: len(desk.processes()) <= 8)
    assert desk.helpers() == pids[2:]


def test_a_change_of_hookline_replaces_the_helper(desk: Desk, tmp_path: Path) -> None:
    """Replaced when Hookline changes."""
    copy = tmp_path / "copy" / "hookline"
    assert hookline.__file__
    shutil.copytree(Path(hookline.__file__).parent, copy)
    desk.python_hook(WHO)
    desk.env["PYTHONPATH"] += f"{os.pathsep}{copy.parent}"
    first = desk.warm_up()
    assert desk.reason() == str(first)
    with (copy / "errors.py").open("a") as file:
        file.write("\n")
    assert desk.reason() != str(first)
    desk.until(lambda: first not in desk.processes())
    assert str(desk.until(desk.pid)) == desk.reason()


def test_an_edited_module_of_a_hook_replaces_the_helper(desk: Desk) -> None:
    module = desk.python_hook(WHO)
    first = desk.warm_up()
    module.write_text(WHO + "\n")
    assert desk.reason() != str(first)
    desk.until(lambda: first not in desk.processes())
    assert str(desk.until(desk.pid)) == desk.reason()


@pytest.mark.parametrize(
    "leave", ["os.environ['LEFT'] = '1'", "os.chdir('/')", "os.umask(0)"]
)
def test_what_a_hook_leaves_in_the_process_is_gone(desk: Desk, leave: str) -> None:
    desk.python_hook(
        "import os\ndef guard(event):\n"
        "    mask = os.umask(0o77); os.umask(mask)\n"
        "    found = os.getcwd(), mask, os.environ.get('LEFT')\n"
        f"    {leave}\n"
        "    return {'decision': 'deny', 'reason': repr(found)}\n"
    )
    pid = desk.warm_up()
    assert {desk.reason() for _ in range(4)} == {desk.reason()}
    assert desk.bridge() == desk.cold()
    desk.until(lambda: pid not in desk.processes())


SANDBOXED = """
import ctypes, sys
from hookline.hosts import client, resident
from hookline.hosts.failsafe import Failsafe
plain = client.rights("self")
if sys.argv[1] == "forged":
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # no new privileges
    assert client.rights("self") != plain
    client.rights = lambda process: plain
place = client.Place(client.surroundings())
if sys.argv[1] == "start":
    resident.start(place, Failsafe())
else:
    print(client.accepted(place) is not None)
"""


def test_a_client_in_a_sandbox_does_not_reach_out_of_it(desk: Desk) -> None:
    """Not even one that claims to have the rights of the helper."""

    def run(word: str) -> bytes:
        return desk.run([sys.executable, "-c", SANDBOXED, word], b"").stdout

    run("start")
    pid = desk.until(desk.pid)
    assert [run("ask"), run("forged"), run("ask")] == [b"True\n", b"False\n", b"True\n"]
    assert desk.helpers() == [pid]


@pytest.mark.skipif(os.getuid() != 0, reason="takes two users")
def test_another_user_is_refused_before_anything_is_read(desk: Desk) -> None:
    """The peer's uid is checked, on this side too."""
    pid = desk.warm_up()
    # Root lets another user in by mistake: the helper still does not.
    desk.files.chmod(0o777)
    name = desk.socket()
    name.chmod(0o666)
    source = (
        "import os, socket, sys; os.chdir(sys.argv[1]); os.setuid(65534)\n"
        "one = socket.socket(socket.AF_UNIX); one.connect(sys.argv[2])\n"
        "print(one.recv(1))"
    )
    words = [sys.executable, "-c", source, str(desk.files), name.name]
    done = subprocess.run(words, capture_output=True, check=True)
    assert done.stdout == b"b''\n"
    desk.files.chmod(0o700)
    assert desk.pid() == pid


def test_a_helper_that_is_killed_leaves_the_event_to_the_client(desk: Desk) -> None:
    slow_guard(desk)
    with event_in_progress(desk) as client:
        pid = desk.pid()
        assert pid
        os.kill(pid, signal.SIGKILL)
        finish(desk, client)
    desk.until(lambda: not desk.processes())
    assert desk.warm_up() != pid


def test_a_helper_that_is_stopped_leaves_nothing_and_no_event(desk: Desk) -> None:
    slow_guard(desk)
    with event_in_progress(desk) as client:
        pid = desk.pid()
        assert pid
        os.kill(pid, signal.SIGTERM)
        desk.until(lambda: pid not in desk.processes())
        assert not any(path.is_socket() for path in desk.files.iterdir())
        finish(desk, client)
    assert desk.log() == ""


@pytest.mark.parametrize(
    "crash", ["os._exit(3)", "os.abort()", "os.kill(os.getpid(), 9)"]
)
def test_a_hook_that_crashes_is_one_that_crashes_without_the_helper(
    desk: Desk, crash: str
) -> None:
    desk.python_hook(
        "import os\ndef guard(event):\n"
        f"    if event['tool_input']['path'].endswith('boom'): {crash}\n"
        "    return {'decision': 'deny', 'reason': str(os.getpid())}\n"
    )
    pid = desk.warm_up()
    assert desk.bridge(desk.event("boom")) == desk.cold(desk.event("boom"))
    desk.until(lambda: pid not in desk.processes())
    assert str(desk.warm_up()) == desk.reason()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0",
        (0).to_bytes(LENGTH_BYTES),
        (1 << 60).to_bytes(LENGTH_BYTES),
        (5).to_bytes(LENGTH_BYTES) + b"hello",
        (9).to_bytes(LENGTH_BYTES) + b"a\0b\0c\0d\0e",
        (30).to_bytes(LENGTH_BYTES) + b"half",
    ],
)
def test_nonsense_is_refused_and_the_helper_goes_on(desk: Desk, sent: bytes) -> None:
    desk.python_hook(WHO)
    pid = desk.warm_up()
    with connect(desk) as connection:
        connection.sendall(sent)
        connection.settimeout(60)
        assert connection.recv(1) == b""
    assert (desk.reason(), desk.log()) == (str(pid), "")


def test_two_hundred_silent_clients_keep_nobody_out(desk: Desk) -> None:
    desk.python_hook(WHO)
    pid = desk.warm_up()
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connect(desk))
        desk.reason()
    assert (desk.reason(), desk.log()) == (str(pid), "")


def test_many_clients_at_once_are_all_answered(desk: Desk) -> None:
    desk.python_hook(WHO)
    desk.warm_up()
    clients = [desk.start_client() for _ in range(40)]
    answers = {client.communicate(desk.event())[0] for client in clients}
    assert all(b'"deny"' in stdout for stdout in answers)


def test_nested_hooks_stop_at_the_limit(desk: Desk) -> None:
    """HOOKLINE_DEPTH reaches the helper."""
    nested = f"{sys.executable} -P -m hookline bridge claude"
    command = f"echo x >> count; {nested} >&2; exit 2"
    desk.project.settings({"type": "command", "name": "nest", "command": command})
    desk.project.trust()
    desk.warm_up()
    (desk.project.folder / "count").unlink()
    warm = desk.bridge()
    counted = (desk.project.folder / "count").read_text()
    (desk.project.folder / "count").unlink()
    assert desk.cold() == warm
    assert (desk.project.folder / "count").read_text() == counted


STARTER = """
from hookline.hosts import client, resident
from hookline.hosts.failsafe import Failsafe
resident.IDLE_S, resident._LOOK_S = {}, 0.1
resident.start(client.Place(client.surroundings()), Failsafe())
"""


@pytest.mark.parametrize("idle_s", [0.5, 600])
def test_a_helper_that_is_idle_or_whose_folder_is_gone_ends(
    desk: Desk, idle_s: float
) -> None:
    """Ends after 10 idle minutes (here after half a second)."""
    source = STARTER.format(idle_s)
    desk.run([sys.executable, "-P", "-c", source], b"")
    if idle_s == 600:
        desk.until(desk.pid)
        shutil.rmtree(desk.files)
    desk.until(lambda: not desk.processes())
    assert desk.log() == ""
    assert not desk.files.exists() or not [*desk.files.iterdir()]


def test_idle_minutes_are_ten() -> None:
    from hookline.hosts import resident

    assert resident.IDLE_S == 600


def test_a_second_helper_is_not_started_beside_a_lock(desk: Desk) -> None:
    pid = desk.warm_up()
    desk.socket().rename(desk.files / "away")
    assert desk.bridge() == desk.cold()
    assert desk.processes() == [pid]


def test_a_helper_that_cannot_start_is_not_tried_at_every_event(desk: Desk) -> None:
    desk.env["PYTHONPATH"] = str(desk.runtime)
    desk.start_helper()
    (lock,) = desk.locks()
    desk.stop()
    lock.write_text("starting")
    desk.bridge()
    assert desk.processes() == []
    os.utime(lock, (0, 0))
    desk.bridge()
    desk.until(desk.pid)


def test_the_helper_has_no_descriptor_of_the_host(desk: Desk, tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        desk.bridge(pass_fds=[secret.fileno()])
        pid = desk.until(desk.pid)
        desk.bridge(pass_fds=[secret.fileno()])
        open_files = {fd.readlink() for fd in Path(f"/proc/{pid}/fd").iterdir()}
        assert tmp_path / "secret" not in open_files
        streams = {Path(f"/proc/{pid}/fd/{fd}").readlink() for fd in range(3)}
    assert streams == {Path(os.devnull)}
    assert os.getsid(pid) == pid


def test_status_and_stop(desk: Desk) -> None:
    assert desk.bridge(b"", "--status")[1] == b"the resident helper is not running\n"
    pid = desk.warm_up()
    shown = desk.bridge(b"", "--status")[1].decode()
    assert f"is running: process {pid}, since" in shown
    assert f"its errors are in {desk.files}/errors.log\n" in shown
    assert desk.bridge(b"", "--stop")[1].endswith(b"it has been stopped\n")
    assert desk.processes() == []
    assert desk.bridge(b"", "--status")[1] == b"the resident helper is not running\n"


@pytest.mark.parametrize("clean", [False, True])
def test_a_hook_gets_the_file_for_variables_that_claude_code_names(
    desk: Desk, tmp_path: Path, clean: bool
) -> None:
    """HOSTS: CLAUDE_ENV_FILE at SessionStart, also through the helper."""
    command = 'echo "export A=1" >> "$CLAUDE_ENV_FILE"'
    hook = {"type": "command", "dialect": "claude", "command": command}
    policy = {"envPolicy": "clean"} if clean else {}
    desk.user_settings({**hook, **policy}, event="SessionStart")
    for number in range(2):
        file = tmp_path / f"{number}.sh"
        event = desk.event(hook_event_name="SessionStart", source="startup")
        desk.bridge(event, env={"CLAUDE_ENV_FILE": str(file)})
        assert file.read_text() == "export A=1\n"
    assert len(desk.until(desk.helpers)) == 1


def test_every_entry_of_the_log_is_one_object_on_a_line(tmp_path: Path) -> None:
    """JSON logs of every command that runs for long, one object a line."""
    folder = os.open(tmp_path, os.O_RDONLY)
    for text in ("Traceback\n  two lines", "\udc80\u2028\x00", "x" * 100_000 + "end"):
        log(folder, text)
    os.close(folder)
    lines = (tmp_path / "errors.log").read_bytes().splitlines()
    objects = [json.loads(line) for line in lines]
    assert [entry["message"][:11] for entry in objects] == [
        *("Traceback\n ", "\\udc80\u2028\x00", "xxxxxxxxxxx"),
    ]
    assert objects[2]["message"].endswith("xend")
    assert all(len(line) < 10_000 for line in lines)
    assert {entry["process"] for entry in objects} == {os.getpid()}
