"""An http hook against a bare client that posts the same bytes to the same service."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx

from hookline import Config, HookSystem, Settings

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed
from .processes import SMALL

GROUP = "http"
MANY = 20
SERVICE = """
import asyncio, sys
BODY = b'{"decision": "allow"}'
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(BODY), BODY)
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            fields = head.lower().partition(b"content-length:")[2]
            await reader.readexactly(int(fields.split()[0]))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    name = "the same POST by a bare httpx client"
    with _service() as url:
        async with _fired(folder, url) as hook, _posted(url) as bare:
            one = await compare(GROUP, "http hook", hook, bare, name, rounds, Bar(1.1))
        async with _fired(folder, url, MANY) as hook, _posted(url, MANY) as bare:
            few = max(9, rounds // 5)
            title = f"{MANY} http hooks at once"
            many = await compare(GROUP, title, hook, bare, name, few)
    return [one, many]


@contextmanager
def _service() -> Iterator[str]:
    """A service in a process of its own, as it would be."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/ask"
        process.terminate()


@asynccontextmanager
async def _fired(folder: Path, url: str, count: int = 1) -> AsyncIterator[Timed]:
    hooks = [{"type": "http", "url": f"{url}/{n}"} for n in range(count)]
    found = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
    async with HookSystem(Config("bench", folder, found)) as system:
        handler = system.event_handler
        yield timed(lambda: handler.fire_before_tool_event("write_file", SMALL))


@asynccontextmanager
async def _posted(url: str, count: int = 1) -> AsyncIterator[Timed]:
    event = {"tool_name": "write_file", "tool_input": SMALL, "session_id": "bench"}

    async def post() -> object:
        content = json.dumps(event).encode()
        answer = await client.post(url, content=content, headers=headers)
        return answer.json()

    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(trust_env=False) as client:
        yield timed(lambda: asyncio.gather(*(post() for _ in range(count))))
