"""``hookline inspect`` as a process: its address, its signals, its errors."""

from __future__ import annotations

import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.commandline import run_command
from tests.support.inspecting import Inspected, entered
from tests.support.journals import wait_until

HOOK = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}


@pytest.fixture
def inspected(tmp_path: Path) -> Inspected:
    folder = tmp_path / "inspected"
    folder.mkdir()
    return Inspected(folder)


@contextmanager
def started(*words: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """The command with all its streams caught."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hookline", "inspect", *words],
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_address_is_alone_on_standard_output_and_its_token_nowhere_else(
    inspected: Inspected,
) -> None:
    """Not in the process list, nor in messages; each start has a new one."""
    tokens = set()
    for _ in range(2):
        with started("--no-open", "--journal", str(inspected.journal)) as process:
            address = urlsplit(read_line(process))
            token = address.query.removeprefix("token=")
            for name in ("cmdline", "environ"):
                listed = Path(f"/proc/{process.pid}/{name}").read_bytes()
                assert token.encode() not in listed
            bad = http.client.HTTPConnection("127.0.0.1", address.port or 0)
            bad.request("GET", f"/?token={token}x")
            assert token not in bad.getresponse().read().decode()
            bad.close()
            with socket.create_connection(("127.0.0.1", address.port or 0)) as peer:
                peer.sendall(f"GET /?token={token} NOT-HTTP\r\n\r\n".encode())
                assert token not in peer.recv(65536).decode()
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        place = (address.scheme, address.hostname, address.path)
        assert place == ("http", "127.0.0.1", "/")
        tokens.add(token)
        assert out == ""
        assert "token=" not in err
        assert process.returncode == 0
    assert {len(token) >= 43 for token in tokens} == {True}  # 256 bits
    assert len(tokens) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_with_streams_open(
    inspected: Inspected, number: signal.Signals
) -> None:
    inspected.settings(HOOK)
    inspected.fire("BeforeTool", tool_name="a", tool_input={})
    with (
        inspected.running() as process,
        entered(inspected.address) as client,
        client.stream("GET", "/api/events/stream") as first,
        client.stream("GET", "/api/events/stream") as second,
    ):
        lines = [one.iter_lines() for one in (first, second)]
        assert [next(one) for one in lines] == [": connected"] * 2
        process.send_signal(number)
        assert process.wait(timeout=20) == 0
        assert [list(one) for one in lines] == [[""], [""]]


def test_signal_ends_it_while_a_client_reads_nothing(inspected: Inspected) -> None:
    inspected.settings(HOOK)
    with inspected.running() as process:
        parts = urlsplit(inspected.address)
        with socket.create_connection(("127.0.0.1", parts.port or 0)) as peer:
            peer.sendall(b"GET /api/events HTTP/1.1\r\nHost: ")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0


def test_port_can_be_chosen_and_one_in_use_is_explained(inspected: Inspected) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run_command("inspect", "--no-open", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"hookline: --port {port}: Address already in use: choose another port, or "
        "leave --port out\n"
    )
    with inspected.running("--port", str(port)):
        assert urlsplit(inspected.address).port == port


def test_browser_opens_with_a_token_that_works_once(
    inspected: Inspected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of the machine can read the arguments of a browser."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "chatter"; printf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    ways = {"BROWSER": f"{browser} %s", "SSH_CONNECTION": "", "SSH_TTY": ""}
    # A project's own module of this name is not what opens it.
    (tmp_path / "webbrowser.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with started("--journal", str(inspected.journal), **ways) as process:
        printed = read_line(process)
        wait_until(lambda: opened.exists() and "token=" in opened.read_text())
        given = opened.read_text()
        assert urlsplit(given).netloc == urlsplit(printed).netloc
        assert given != printed
        with entered(given):
            pass
        assert httpx.get(given).status_code == 403
        with entered(printed):
            pass
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert out == ""
    assert err == "hookline: opening the browser; Ctrl-C ends the inspector\n"


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":0"}, "SSH session"),
        ({"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}, "no display"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="displays of Linux")
def test_browser_is_not_opened_where_nobody_would_see_it(
    inspected: Inspected, variables: dict[str, str], reason: str
) -> None:
    ways = {"SSH_CONNECTION": "", "SSH_TTY": "", **variables}
    with started("--journal", str(inspected.journal), **ways) as process:
        assert "token=" in read_line(process)
        assert process.stderr is not None
        line = process.stderr.readline()
    assert reason in line
    assert "open this address in a browser" in line


def test_closed_terminal_ends_it_and_hangup_alone_does_not(
    inspected: Inspected,
) -> None:
    """SIGHUP loads the settings again, unless its window was closed."""
    inspected.settings(HOOK)
    child, terminal = pty.fork()
    if child == 0:
        journal = str(inspected.journal)
        words = ["-m", "hookline", "inspect", "--no-open", "--journal", journal]
        os.execv(sys.executable, [sys.executable, *words])
    shown = b""
    while b"Ctrl-C" not in shown:
        shown += os.read(terminal, 65536)
    address = next(one for one in shown.decode().split() if "token=" in one)
    os.kill(child, signal.SIGHUP)
    with entered(address):
        pass
    os.close(terminal)
    ended = threading.Thread(target=os.waitpid, args=(child, 0), daemon=True)
    ended.start()
    ended.join(timeout=60)
    assert not ended.is_alive()


def test_hangup_loads_the_settings_again(inspected: Inspected) -> None:
    inspected.settings(HOOK)
    with inspected.running() as process, entered(inspected.address) as client:
        with client.stream("GET", "/api/events/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": connected"
            process.send_signal(signal.SIGHUP)
            assert next(line for line in lines if line.startswith("event")) == (
                "event: settings"
            )
            assert json.loads(next(lines).removeprefix("data: ")) == {"errors": []}
        assert process.poll() is None
