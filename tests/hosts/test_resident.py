"""The resident helper keeps hooks loaded between events: its life, and what goes wrong.

Killed, stopped, replaced by another version, asked nonsense or by another user: every
event still gets the answer of its hooks, and no process is left over. The time after
which an idle helper ends is changed inside the module: ten minutes are too long here.
"""

from __future__ import annotations

import ctypes
import fcntl
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
from tests.support.processes import children
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
        assert desk.engines()
        yield client


def finish(desk: Desk, client: subprocess.Popen[bytes]) -> None:
    (desk.project.folder / "go").touch()
    stdout, stderr = client.communicate(timeout=60)
    assert (client.returncode, stdout, stderr) == desk.cold()
    assert b'"deny"' in stdout


def test_one_engine_answers_event_after_event(desk: Desk) -> None:
    desk.python_hook(WHO)
    desk.warm_up()
    assert {desk.reason() for _ in range(5)} == set(map(str, desk.engines()))


def test_a_worker_stays_warm(desk: Desk) -> None:
    source = "import os\nfrom hookline.script import block, run\n"
    source += "run(lambda event: block(str(os.getpid())))\n"
    desk.project.write(".hookline/w.py", source)
    command = "$HOOKLINE_PYTHON .hookline/w.py"
    desk.project.settings({"type": "worker", "name": "w", "command": command})
    desk.project.trust()
    desk.warm_up()
    assert len({desk.reason() for _ in range(5)}) == 1


def test_each_environment_has_its_engine_and_few_are_kept(desk: Desk) -> None:
    desk.python_hook(WHO)
    desk.warm_up()
    engines = {desk.reason(env={"NUMBER": str(number)}) for number in range(12)}
    assert len(engines) == 12
    desk.until(lambda: len(desk.engines()) <= 8)
    assert desk.reason(env={"NUMBER": "11"}) in engines


def test_a_change_of_hookline_replaces_the_helper(desk: Desk, tmp_path: Path) -> None:
    """Replaced when Hookline changes."""
    copy = tmp_path / "copy" / "hookline"
    assert hookline.__file__
    shutil.copytree(Path(hookline.__file__).parent, copy)
    desk.python_hook(WHO)
    desk.env["PYTHONPATH"] += f"{os.pathsep}{copy.parent}"
    first = desk.warm_up()
    engine = desk.reason()
    with (copy / "errors.py").open("a") as file:
        file.write("\n")
    assert desk.reason() != engine
    second = desk.until(lambda: desk.pid() if desk.pid() != first else None)
    desk.until(lambda: first not in desk.processes())
    assert desk.pid() == second
    assert int(desk.reason()) in desk.engines()


def test_an_edited_module_of_a_hook_replaces_its_engine(desk: Desk) -> None:
    module = desk.python_hook(WHO)
    pid = desk.warm_up()
    engine = int(desk.reason())
    module.write_text(WHO + "\n")
    assert int(desk.reason()) != engine
    desk.until(lambda: engine not in desk.engines())
    assert int(desk.reason()) in desk.engines()
    assert desk.pid() == pid


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
    desk.warm_up()
    assert {desk.reason() for _ in range(4)} == {desk.reason()}
    assert desk.bridge() == desk.cold()


def forbid_new_privileges() -> None:
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot tell")
def test_a_client_in_a_sandbox_does_not_reach_out_of_it(desk: Desk) -> None:
    desk.python_hook(
        "def guard(event):\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    found = [one for one in lines if one.startswith('NoNewPrivs')]\n"
        "    return {'decision': 'deny', 'reason': found[0]}\n"
    )
    pid = desk.warm_up()
    assert desk.reason() == "NoNewPrivs:\t0"
    assert desk.reason(preexec_fn=forbid_new_privileges) == "NoNewPrivs:\t1"
    assert desk.pid() == pid


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


def test_a_helper_that_is_killed_leaves_the_event_to_its_engine(desk: Desk) -> None:
    slow_guard(desk)
    with event_in_progress(desk) as client:
        pid = desk.pid()
        assert pid
        os.kill(pid, signal.SIGKILL)
        finish(desk, client)
    desk.until(lambda: not desk.processes())
    desk.bridge()
    desk.until(lambda: desk.pid() not in {None, pid})


def test_an_engine_that_is_killed_leaves_the_event_to_the_client(desk: Desk) -> None:
    slow_guard(desk)
    with event_in_progress(desk) as client:
        (engine,) = desk.engines()
        os.kill(engine, signal.SIGKILL)
        finish(desk, client)
    assert desk.pid()


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
def test_a_hook_that_crashes_takes_only_its_engine_along(
    desk: Desk, crash: str
) -> None:
    desk.python_hook(
        "import os\ndef guard(event):\n"
        f"    if event['tool_input']['path'].endswith('boom'): {crash}\n"
        "    return {'decision': 'deny', 'reason': str(os.getpid())}\n"
    )
    pid = desk.warm_up()
    assert desk.bridge(desk.event("boom")) == desk.cold(desk.event("boom"))
    assert int(desk.reason()) in desk.engines()
    assert desk.pid() == pid


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
    assert int(desk.reason()) in desk.engines()
    assert (desk.pid(), desk.log()) == (pid, "")


def test_two_hundred_silent_clients_keep_nobody_out(desk: Desk) -> None:
    desk.python_hook(WHO)
    pid = desk.warm_up()
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connect(desk))
        desk.reason()
    assert int(desk.reason()) in desk.engines()
    assert (desk.pid(), desk.log()) == (pid, "")


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


FRONT = """
import fcntl, os, sys, time
from hookline.hosts import client, resident, resident_engine
resident.IDLE_S = resident_engine.IDLE_S = 0.5
os.makedirs(client.folder(), 0o700)
place = client.Place(client.folder())
lock = client._take_lock(place)
resident.main(time.time_ns(), lock, place.folder, place.socket)
"""


def test_an_idle_helper_ends(desk: Desk) -> None:
    """Ends after 10 idle minutes (here after half a second)."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", FRONT], env=desk.env, start_new_session=False
    ) as helper:
        desk.until(desk.pid)
        assert helper.wait(60) == 0
    assert desk.log() == ""
    assert not any(path.is_socket() for path in desk.files.iterdir())


def test_a_helper_whose_folder_is_gone_ends(desk: Desk) -> None:
    script = FRONT.replace("= 0.5", "= 600").replace("place =", LOOK + "place =")
    with subprocess.Popen([sys.executable, "-P", "-c", script], env=desk.env) as helper:
        desk.until(desk.pid)
        shutil.rmtree(desk.files)
        assert helper.wait(60) == 0


LOOK = "resident._LOOK_S = 0.1\n"


def test_idle_minutes_are_ten() -> None:
    from hookline.hosts import resident, resident_engine

    assert resident.IDLE_S == resident_engine.IDLE_S == 600


def test_a_second_helper_is_not_started_beside_a_lock(desk: Desk) -> None:
    pid = desk.warm_up()
    lock = next(desk.files.glob("*.lock"))
    desk.socket().rename(desk.files / "away")
    assert desk.bridge() == desk.cold()
    with lock.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert [pid for pid in desk.processes() if os.getsid(pid) == pid] == [pid]
    (desk.files / "away").rename(desk.files / lock.stem)
    assert desk.pid() == pid


def test_a_helper_that_cannot_start_is_not_tried_at_every_event(desk: Desk) -> None:
    desk.env["PYTHONPATH"] = str(desk.runtime)
    desk.bridge()
    desk.until(desk.pid)
    desk.stop()
    lock = next(desk.files.glob("*.lock"))
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
        for process in (pid, *children(pid)):
            open_files = {fd.readlink() for fd in Path(f"/proc/{process}/fd").iterdir()}
            assert tmp_path / "secret" not in open_files
        streams = {Path(f"/proc/{pid}/fd/{fd}").readlink() for fd in range(3)}
    assert streams == {Path(os.devnull)}
    assert os.getsid(pid) == pid


def test_status_and_stop(desk: Desk) -> None:
    assert desk.bridge(b"", "--status")[1] == b"the resident helper is not running\n"
    pid = desk.warm_up()
    shown = desk.bridge(b"", "--status")[1].decode()
    assert f"is running: process {pid}, since" in shown
    (log,) = desk.files.glob("*.log")
    assert f"its errors are in {log}\n" in shown
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
    desk.warm_up()
    for number in range(2):
        file = tmp_path / f"{number}.sh"
        event = desk.event(hook_event_name="SessionStart", source="startup")
        desk.bridge(event, env={"CLAUDE_ENV_FILE": str(file)})
        assert file.read_text() == "export A=1\n"
