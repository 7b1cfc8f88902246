"""What goes over a bus: requests, responses, and what requesters make of answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.bus_rows import answer_row, composed_row, request_row, sent_row
from tests.support.nats import NatsServer
from tests.support.pins import PinTable, Row

Tables = Callable[[str], PinTable]


async def test_requests_are_answered_the_same_in_memory_and_over_nats(
    pin_table: Tables, tmp_path: Path, server: NatsServer
) -> None:
    """DELTA-HPAY-002, 004, DELTA-HEVT-002, 003, DELTA-HFAIL-002, 003, DELTA-HBUS-003.

    Rules C1, C2, V2; protocol.md#bus: the order of the checks, the codes, the spelling.
    """

    async def answered(_: str, row: Row) -> object:
        return await request_row(row, tmp_path, server.url)

    await pin_table("bus/requests").check(answered, at_once=8)


async def test_answers_that_are_no_verdict_are_left_to_the_requester(
    pin_table: Tables,
) -> None:
    """protocol.md#bus and #results: never an allow, never an exception."""
    await pin_table("bus/answers").check(lambda _, row: answer_row(row), at_once=8)


async def test_remote_hooks_send_what_the_handler_takes(pin_table: Tables) -> None:
    """DELTA-HPAY-003, 004."""
    await pin_table("bus/sent").check(lambda _, row: sent_row(row))


async def test_remote_and_local_hooks_are_as_hooks_of_one_plan(
    pin_table: Tables,
) -> None:
    """protocol.md#bus and #several-hooks: the strictest answer counts."""
    await pin_table("bus/remote_and_local").check(lambda _, row: composed_row(row))
