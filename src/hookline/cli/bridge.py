"""``hookline bridge``: what a coding agent runs as its hook."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import redirect_stdout

from msgspec import structs

from hookline.errors import HooklineError
from hookline.hosts.bridge import Bridge, Reply
from hookline.hosts.catalog import host_of
from hookline.hosts.host import HostName

from .common import Options, Parser

SUMMARY = "answer a coding agent's hook ('install' writes this command)"
DESCRIPTION = """\
Read one event of a coding agent as JSON from stdin, run the project's hooks, and answer
in the agent's own format. 'hookline install HOST' writes this command into the agent's
settings; run it by hand to see what an agent would get:

  hookline bridge claude < event.json
  hookline bridge copilot preToolUse < event.json

On Linux a resident helper keeps hooks loaded between events. It starts with the
first event and ends after 10 idle minutes; without it (--no-resident, or the variable
HOOKLINE_NO_RESIDENT=1) the answers are the same, but slower:

  hookline bridge --status    is it running, since when?
  hookline bridge --stop      end it, and the hooks that it runs

exit status: 0, also for a block; 1 for an unknown HOST or option; 2 is a block where
the agent knows no other, or of an event that could not be read"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    names = ", ".join(HostName)
    parser.add_argument("host", metavar="HOST", nargs="?", help=names)
    text = "the agent's name of the event, if its JSON does not have it"
    parser.add_argument("event", metavar="EVENT", nargs="?", help=text)
    parser.add_flag("--no-resident", "do not use the resident helper")
    parser.add_exclusive_flags(
        status="show the resident helper", stop="end the resident helper"
    )


def run(options: Options) -> int:
    """Answer one event in this process."""
    if options.status or options.stop:
        return _show_helpers(stop=options.stop)
    if options.host is None:
        raise HooklineError("HOST is missing; see 'hookline bridge --help'")
    host_of(options.host)
    reply = asyncio.run(_answer(options.host, options.event, sys.stdin.buffer.read()))
    sys.stderr.buffer.write(reply.stderr)
    sys.stderr.flush()
    return reply.status


async def _answer(host: str, event: str | None, stdin: bytes) -> Reply:
    bridge, stdout = Bridge(one_shot=True), sys.stdout
    # A hook in this process that prints must not spoil the answer.
    with redirect_stdout(sys.stderr):
        try:
            reply = await bridge.answer(host, event, stdin)
            # The host waits for this, not for hooks that run on in the background.
            stdout.buffer.write(reply.stdout)
            stdout.flush()
        finally:
            unrecorded = await bridge.close()
    if reply.status or unrecorded in reply.stderr:
        return reply  # a host hands stderr to the model if the status is not 0
    return structs.replace(reply, stderr=reply.stderr + unrecorded)


if sys.platform == "linux":

    def _show_helpers(*, stop: bool) -> int:
        from hookline.hosts.resident_files import running
        from hookline.hosts.resident_files import stop as stop_helper

        helpers = list(running())
        if not helpers:
            print("the resident helper is not running")
        for helper in helpers:
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(helper.since))
            print(
                f"the resident helper is running: process {helper.pid}, since {since}"
            )
            print(f"its errors are in {helper.log}")
            if stop and not stop_helper(helper):
                raise HooklineError(f"process {helper.pid} does not end")
            if stop:
                print("it has been stopped")
        return 0

else:

    def _show_helpers(*, stop: bool) -> int:
        print("the resident helper runs on Linux only")
        return 0
