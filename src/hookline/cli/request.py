"""``hookline request``: send one event to the workers of a bus."""

from __future__ import annotations

import asyncio
import math
import time

from hookline.bus.client import HookBusClient
from hookline.bus.contracts import (
    HookExecutionResponse,
    ResponseCode,
    failed_response,
)
from hookline.errors import BusConnectionError, HooklineError
from hookline.protocol.events import HookEventName

from . import connection
from .options import Options, Parser, at_least, read_input
from .terminal import print_json, verdict_output

SUMMARY = "send one event to the workers of a bus"
DESCRIPTION = f"""\
Send one event to the workers of a bus and print the response.

  hookline request BeforeAgent --bus nats://localhost:4222 --input prompt.json
  echo '{{"tool_name": "write_file", "tool_input": {{"path": ".env"}}}}' |
    hookline request BeforeTool --bus nats://localhost:4222 --input - --json

The response is a JSON object, on one line with --json. If no worker answers, it has
"success": false and an error. A request is sent once, because hooks can have side
effects; --retries allows more.

{connection.SAFE_PASSWORDS}

exit status: 0 allowed, 2 blocked or stopped, 3 no verdict, 1 usage error"""

_MAX_CONNECT_S = 3.0


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("event", metavar="EVENT", help="such as BeforeTool")
    connection.add_connection_arguments(parser)
    parser.add_input()
    text = "seconds to wait for the verdict (default: 70)"
    parser.add_option("--timeout S", text, type=float, default=70.0)
    text = "times to resend an unanswered request within --timeout (default: 0)"
    parser.add_option("--retries N", text, type=at_least(0), default=0)
    parser.add_flag("--json", "print the response on one line")


def run(options: Options) -> int:
    """Send the event and print the response."""
    connection.require_bus(options, "request BeforeTool")
    # Not "timeout <= 0": NaN would wait forever.
    if not 0 < options.timeout < math.inf:
        raise HooklineError("--timeout must be a number of seconds above 0")
    HookEventName.of(options.event)  # raises for an unknown one
    response = asyncio.run(_request(options))
    with verdict_output():
        print_json(response, pretty=not options.json)
    verdict = response.get("processed")
    if verdict and (verdict["blocked"] or verdict["shouldStop"]):
        return 2
    return 0 if response["success"] else 3


async def _request(options: Options) -> HookExecutionResponse:
    event_input = read_input(options)
    deadline = time.monotonic() + options.timeout
    try:
        timeout_s = min(options.timeout, _MAX_CONNECT_S)
        bus = await connection.connect(options, timeout_s=timeout_s)
    except BusConnectionError as error:
        request, code = {"eventName": options.event}, ResponseCode.NO_RESPONDERS
        return failed_response(request, code, error)
    try:
        return await HookBusClient(bus).request(
            options.event,
            event_input,
            timeout_s=max(0.0, deadline - time.monotonic()),
            retries=options.retries,
        )
    finally:
        await bus.close()
