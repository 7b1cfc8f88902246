"""The applications of ``examples/web``, in real servers with real requests.

No verdict is lost or mixed up, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.processes import marked, none_left, until

EXAMPLES = Path(__file__).parents[2] / "examples/web"
PATIENCE_S = 60.0
CHECK = """
event=$(cat)
order=${event#*'"order":"'}
order=${order%%'"'*}
case $order in
  GATE-*) touch "$order"; until [ -e go ]; do sleep 0.02; done ;;
esac
case $order in
  *C-*) echo "$order is not for $HOOKLINE_SESSION_ID" >&2; exit 2 ;;
esac
"""


def test_the_page_shows_the_code_of_the_applications() -> None:
    page = EXAMPLES.parents[1] / "docs/how-to/web-servers.md"
    blocks = re.findall(
        r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    files = [file.read_text() for file in EXAMPLES.glob("*.py")]
    assert blocks
    assert [one for one in blocks if not any(one in text for text in files)] == []


class Shop:
    """A copy of the example with one more hook, a command."""

    def __init__(self, folder: Path) -> None:
        self.folder = shutil.copytree(EXAMPLES, folder / "web")
        self.mark = f"SHOP={folder}"
        self.folder.joinpath("check.sh").write_text(CHECK)
        settings = json.loads(self.folder.joinpath("settings.json").read_text())
        hooks = settings["hooks"]["BeforeTool"][0]["hooks"]
        command = {"type": "command", "command": "sh check.sh", "onError": "block"}
        hooks.append(command)
        for hook in hooks:
            hook["env"] = {"SHOP": str(folder)}
        self.folder.joinpath("settings.json").write_text(json.dumps(settings))

    @contextmanager
    def run(self, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        """A server in its own process group, which has ended after the block."""
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(read)


def expected(order: str, amount: float, session: str) -> tuple[int, str]:
    if amount > 100:
        return 403, "over 100: ask a person"
    if order.startswith("X-"):
        return 403, f"{order} is closed"
    if "C-" in order:
        return 403, f"{order} is not for {session}"
    return 200, f"refunded {amount:g} for {order}"


CASES = [("A-", 20), ("X-", 20), ("C-", 20), ("A-", 500)]


def case(number: int) -> tuple[str, float, str]:
    kind, amount = CASES[number % len(CASES)]
    return f"{kind}{number}", amount, f"conversation-{number}"


async def ask(client: httpx.AsyncClient, number: int) -> None:
    """One request, to the plain or to the async endpoint, and its own verdict."""
    order, amount, session = case(number)
    status, text = expected(order, amount, session)
    if number % 3:
        given: dict[str, Any] = {"order": order, "amount": amount}
        answer = await client.post(f"/{session}/refund", json=given)
        assert (answer.status_code, *answer.json().values()) == (status, text)
    else:
        prompt = {"prompt": f"{order} {amount}"}
        answer = await client.post(f"/{session}/chat", json=prompt)
        assert (answer.status_code, answer.text) == (200, f"{text}\n")


async def test_fastapi_answers_many_at_once_and_ends_what_clients_give_up(
    shop: Shop,
) -> None:
    words = ("-m", "uvicorn", "fastapi_app:app", "--port", "0", "--no-access-log")
    with shop.run(*words) as server:
        url = read_until(server, r"running on (\S+)")
        limits = httpx.Limits(max_connections=50)
        async with httpx.AsyncClient(
            base_url=url, timeout=PATIENCE_S, limits=limits
        ) as client:
            await asyncio.gather(*(ask(client, number) for number in range(72)))
            refused = await client.post("/c/chat", json={"prompt": "my password"})
            assert refused.status_code == 403
            assert refused.json() == {"detail": "keep passwords to yourself"}
            # A client that goes away in the middle of a hook.
            body = {"prompt": "A-1 1\nGATE-1 1"}
            async with client.stream("POST", "/c/chat", json=body) as stream:
                await until(str(shop.folder / "GATE-1"))
                await stream.aclose()
            pid = [one for one in marked(shop.mark) if _runs(one, "check.sh")]
            async with asyncio.timeout(PATIENCE_S):
                while any(_runs(one, "check.sh") for one in pid):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            # The server is told to stop while a hook runs: its verdict counts.
            late = {"order": "GATE-C-2", "amount": 1}
            waiting = asyncio.create_task(client.post("/c/refund", json=late))
            await until(str(shop.folder / "GATE-C-2"))
            server.send_signal(signal.SIGTERM)
            shop.folder.joinpath("go").touch()
            assert (await waiting).json() == {"detail": "GATE-C-2 is not for c"}
        output, _ = await asyncio.to_thread(server.communicate, timeout=PATIENCE_S)
        assert "Application shutdown complete" in output
        assert "Traceback" not in output
    assert await none_left(shop.mark)


def _runs(pid: int, name: str) -> bool:
    try:
        return name in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


PREFORK = """
import atexit, os, signal, socketserver, sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
import django_app

class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads, request_queue_size = True, 128

class Quiet(WSGIRequestHandler):
    def log_message(self, *_): ...

# As with --preload: the hooks have been used before the server forks.
tool = django_app.hooked_tool(django_app.config)(django_app.refund)
assert tool("A-1", 1) == "refunded 1 for A-1"
server = Server(("127.0.0.1", 0), Quiet)
atexit.register(server.server_close)
server.set_app(django_app.application)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
forks = []
for _ in range(2):
    if (pid := os.fork()) == 0:
        server.serve_forever()
    forks.append(pid)
print("port", server.server_port, flush=True)
try:
    signal.pause()
finally:
    for pid in forks:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
"""


def ask_django(url: str, number: int) -> None:
    order, amount, session = case(number)
    status, text = expected(order, amount, session)
    if number % 5:
        given: dict[str, Any] = {"order": order, "amount": amount}
        answer = httpx.post(f"{url}/{session}/refund", json=given, timeout=PATIENCE_S)
        assert (answer.status_code, *answer.json().values()) == (status, text)
    else:
        prompt = {"prompt": f"{order} {amount}"}
        answer = httpx.post(f"{url}/{session}/chat", json=prompt, timeout=PATIENCE_S)
        assert answer.json() == {"result": [text], "not_accepted": None}


async def test_django_answers_in_threads_of_processes_that_were_forked_later(
    shop: Shop,
) -> None:
    """Plain views, and async ones under WSGI, which get an event loop each."""
    with shop.run("-W", "error", "-c", PREFORK) as server:
        url = f"http://127.0.0.1:{read_until(server, 'port ([0-9]+)')}"

        def ask_all() -> None:
            with ThreadPoolExecutor(8) as threads:
                list(threads.map(ask_django, [url] * 24, range(24)))

        await asyncio.to_thread(ask_all)
        server.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(server.communicate, timeout=PATIENCE_S)
        assert (server.returncode, output) == (0, "")
    assert await none_left(shop.mark)


CLIENT = """
import celery_app, json
from hookline.errors import ToolBlockedError

sent = [celery_app.refund.delay(*one) for one in json.loads(input())]
for one in sent:
    try:
        print(json.dumps([200, one.get(timeout=60)]))
    except ToolBlockedError as error:
        print(json.dumps([403, error.reason]))
"""


async def test_celery_tasks_obey_their_hooks_in_the_processes_of_the_pool(
    shop: Shop,
) -> None:
    results = shop.folder / "results"
    for name in ("data_in", "control", "results"):
        shop.folder.joinpath(name).mkdir()
    shop.folder.joinpath("data_out").symlink_to("data_in")
    env = {"BROKER_URL": "filesystem://", "RESULT_BACKEND": results.as_uri()}
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    pool = ("--pool", "prefork", "--concurrency", "2", *quiet, "--loglevel", "INFO")
    worker = ("-m", "celery", "-A", "celery_app", "worker", *pool)
    calls = [(s, order, amount) for order, amount, s in map(case, range(12))]
    with shop.run(*worker, **env) as server:
        read_until(server, r"(ready)\.")
        client = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", CLIENT],
            cwd=shop.folder,
            env={**os.environ, **env},
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        told = [tuple(json.loads(line)) for line in client.stdout.splitlines()]
        assert told == [expected(*case(n)) for n in range(12)], client.stderr
        server.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(server.communicate, timeout=PATIENCE_S)
        assert server.returncode == 0, output
    assert await none_left(shop.mark)
