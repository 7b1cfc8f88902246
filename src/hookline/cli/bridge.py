"""``hookline bridge``: what a coding agent runs as its hook."""

from __future__ import annotations

import asyncio
import sys

from hookline.hosts.bridge import Bridge, Reply
from hookline.hosts.catalog import host_of
from hookline.hosts.host import HostName

from .common import Options, Parser

SUMMARY = "answer a coding agent's hook (what 'install' writes into its settings)"
DESCRIPTION = """\
Read one event of a coding agent as JSON from stdin, run the project's hooks, and answer
in the agent's own format. 'hookline install HOST' writes this command into the agent's
settings; run it by hand to see what an agent would get:

  hookline bridge claude < event.json
  hookline bridge copilot preToolUse < event.json

exit status: 0, also for a block; 2 only where the agent knows no other block"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("host", metavar="HOST", help=", ".join(HostName))
    text = "the agent's name of the event, if its JSON does not have it"
    parser.add_argument("event", metavar="EVENT", nargs="?", help=text)
    parser.add_flag("--no-resident", "do not use the resident helper")


def run(options: Options) -> int:
    """Answer one event in this process."""
    host_of(options.host)
    reply = asyncio.run(_answer(options.host, options.event, sys.stdin.buffer.read()))
    sys.stderr.buffer.write(reply.stderr)
    sys.stderr.flush()
    return reply.status


async def _answer(host: str, event: str | None, stdin: bytes) -> Reply:
    bridge = Bridge(one_shot=True)
    try:
        reply = await bridge.answer(host, event, stdin)
        # The host waits for this, not for hooks that run on in the background.
        sys.stdout.buffer.write(reply.stdout)
        sys.stdout.flush()
    finally:
        await bridge.close()
    return reply
