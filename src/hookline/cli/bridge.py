"""``hookline bridge``: what a coding agent runs as its hook."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import redirect_stdout, suppress

from msgspec import structs

from hookline._internal.log import silent_log
from hookline.errors import HooklineError
from hookline.hosts.bridge import Bridge, Reply
from hookline.hosts.failsafe import MAX_EVENT_BYTES, failsafe, failure_status
from hookline.hosts.registry import HOSTS, host_of

from .options import Options, Parser

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
the agent knows no other, or of a tool about which there is no verdict: the bridge has
failed, or had no time left; 1 if it failed on any other event"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    names = ", ".join(HOSTS)
    parser.add_argument("host", metavar="HOST", nargs="?", help=names)
    text = "the agent's name of the event, if its JSON does not have it"
    parser.add_argument("event", metavar="EVENT", nargs="?", help=text)
    text = "answer within this time, in milliseconds ('install' writes it)"
    parser.add_option("--deadline MS", text, type=int)
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
    stdin = b""
    try:
        stdin = failsafe.stdin = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
        while sys.stdin.buffer.read(1 << 20):
            pass  # a host may wait until it has written everything
        with silent_log():  # what a person should know is in the reply
            reply = asyncio.run(_answer(options, stdin))
    # Whatever happened, and however late: a host must not take it for a yes.
    except BaseException as error:  # noqa: BLE001
        status = failsafe.status
        if status is None:
            status = failure_status(options.event, stdin)
        stderr = f"hookline: internal error: {error!r}\n".encode()
        reply = Reply(stderr=stderr, status=status)
    with suppress(OSError):  # nobody can be told
        sys.stderr.buffer.write(reply.stderr)
        sys.stderr.flush()
    return reply.status


async def _answer(options: Options, stdin: bytes) -> Reply:
    bridge, stdout = Bridge(one_shot=True), sys.stdout
    # A hook in this process that prints must not spoil the answer.
    with redirect_stdout(sys.stderr):
        try:
            reply = await bridge.answer(
                options.host, options.event, stdin, options.deadline
            )
            failsafe.claim()
            # The host waits for this, not for hooks that run on in the background.
            stdout.buffer.write(reply.stdout)
            stdout.flush()
            failsafe.answered(reply.status)
        finally:
            unrecorded = await bridge.close()
    if reply.status or unrecorded in reply.stderr:
        return reply  # a host hands stderr to the model if the status is not 0
    return structs.replace(reply, stderr=reply.stderr + unrecorded)


if sys.platform == "linux":

    def _show_helpers(*, stop: bool) -> int:
        from hookline.hosts.client import LOG, folder
        from hookline.hosts.resident import running
        from hookline.hosts.resident import stop as stop_helper

        helpers = list(running())
        if not helpers:
            print("the resident helper is not running")
        for pid, started_s in helpers:
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started_s))
            print(f"the resident helper is running: process {pid}, since {since}")
            print(f"its errors are in {folder()}/{LOG}")
            if stop:
                stop_helper(pid)
                print("it has been stopped")
        return 0

else:

    def _show_helpers(*, stop: bool) -> int:
        print("the resident helper runs on Linux only")
        return 0
