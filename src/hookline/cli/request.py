"""``hookline request``: ask the workers of a bus for one verdict."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from typing import Any

from hookline.bus.contracts import (
    HookExecutionResponse,
    ResponseCode,
    failed_response,
    new_correlation_id,
)
from hookline.errors import BusConnectionError, HooklineError

from .common import print_json, read_object
from .connection import SAFE_PASSWORDS, add_connection_arguments, connect, need_bus

SUMMARY = "ask the workers of a bus for one verdict"
DESCRIPTION = f"""\
Send one event to the workers that serve a bus, and print their response.

  hookline request BeforeAgent --bus nats://localhost:4222 --input prompt.json
  echo '{{"tool_name": "write_file", "tool_input": {{"path": ".env"}}}}' |
    hookline request BeforeTool --bus nats://localhost:4222 --input - --json

The response is JSON, with --json on one line. There is always exactly one, also when
nobody answers: then it has "success": false and says why. Nothing is sent twice
unless you ask for it with --retries: hooks may have side effects.

{SAFE_PASSWORDS}

exit status: 0 allowed, 2 blocked or stopped, 3 no verdict, 1 a mistake in the call"""

_LONGEST_CONNECT_S = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("event", metavar="EVENT", help="such as BeforeTool")
    add_connection_arguments(parser)
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="the event's fields as a JSON object; '-' reads standard input",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=float,
        default=70.0,
        help="seconds to wait for the verdict (default: 70)",
    )
    parser.add_argument(
        "--retries",
        metavar="N",
        type=int,
        default=0,
        help="how often an unanswered request is sent again, in that time (default: 0)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the response on one line"
    )


def run(options: argparse.Namespace) -> int:
    """Ask, print the response, and say the verdict by the exit status."""
    need_bus(options, "request BeforeTool")
    # Not "timeout <= 0": what is no number at all would wait for ever.
    if not 0 < options.timeout < math.inf:
        raise HooklineError("--timeout must be a number of seconds above 0")
    if options.retries < 0:
        raise HooklineError("--retries must be 0 or more")
    event_input = {} if options.input is None else read_object(options.input)
    response = asyncio.run(_ask(options, event_input))
    if options.json:
        print_json(response)
    else:
        _print_indented(response)
    return _status(response)


async def _ask(
    options: argparse.Namespace, event_input: dict[str, Any]
) -> HookExecutionResponse:
    from hookline.bus.client import HookBusClient

    deadline = time.monotonic() + options.timeout
    try:
        bus = await connect(options, timeout_s=min(options.timeout, _LONGEST_CONNECT_S))
    except BusConnectionError as error:
        return failed_response(
            new_correlation_id(),
            ResponseCode.NO_RESPONDERS,
            str(error),
            stage="internal",
            event_name=options.event,
        )
    try:
        return await HookBusClient(bus).request(
            options.event,
            event_input,
            timeout_s=max(0.0, deadline - time.monotonic()),
            retries=options.retries,
        )
    finally:
        await bus.close()


def _status(response: HookExecutionResponse) -> int:
    processed = response.get("processed") or {}
    if processed.get("blocked") or processed.get("shouldStop"):
        return 2
    return 0 if response["success"] else 3


def _print_indented(response: HookExecutionResponse) -> None:
    import msgspec

    from hookline.protocol.jsontext import encode

    sys.stdout.buffer.write(msgspec.json.format(encode(response), indent=2) + b"\n")
    sys.stdout.buffer.flush()
