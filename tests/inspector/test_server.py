"""The inspector's server, where others on this machine do as they like."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.inspecting import Inspected, entered

FILES = 256


def test_idle_connections_take_no_files_from_the_page(inspected: Inspected) -> None:
    with inspected.running() as process:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        with ExitStack() as stack, entered(inspected.address) as client:
            place = ("127.0.0.1", urlsplit(inspected.address).port)
            peers = []
            for number in range(FILES + 44):
                peer = socket.create_connection(place, timeout=60)
                peers.append(stack.enter_context(peer))
                if number % 16 == 0:  # all are accepted, or the kernel makes us wait
                    assert client.get("/api/overview").status_code == 200
            for peer in peers:
                assert _is_closed(peer)
            assert client.get("/api/overview").status_code == 200


def _is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_folder_that_was_deleted_is_no_obstacle(tmp_path: Path) -> None:
    """As a shell whose folder was deleted with a session in it."""
    folder = tmp_path / "gone"
    folder.mkdir()
    start = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-m", "hookline", "inspect", "--no-open"]
    with subprocess.Popen(
        [sys.executable, "-c", start, *words],
        cwd=folder,
        env={**os.environ, "PWD": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "token=" in process.stdout.readline()
        process.terminate()
