"""What hooks see of the model calls of each SDK, and what comes of their changes."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.pins import PinTable, Row
from tests.support.translated import choice_row, stream_row, translate_row

Tables = Callable[[str], PinTable]


async def test_requests_are_shown_as_text_only(pin_table: Tables) -> None:
    """HOOK-071, 072, 075, 076, DELTA-HPAY-004; protocol.md#translation."""
    await pin_table("translators/requests").check(_translated)


async def test_changes_of_requests_change_nothing_else(pin_table: Tables) -> None:
    """HOOK-078, 179, protocol.md#process."""
    await pin_table("translators/request_changes").check(_translated)


async def test_responses_are_shown_as_text_only(pin_table: Tables) -> None:
    """HOOK-073, 077, DELTA-HPAY-004."""
    await pin_table("translators/responses").check(_translated)


async def test_changes_of_responses_rebuild_their_text(pin_table: Tables) -> None:
    """HOOK-079, 179, protocol.md#translation."""
    await pin_table("translators/response_changes").check(_translated)


async def test_choices_of_tools_go_there_and_back(pin_table: Tables) -> None:
    """HOOK-074; ``carries_names`` tells whether the names survive."""
    await pin_table("translators/tool_choices").check(lambda _, row: choice_row(row))


async def test_streams_become_the_response_of_a_call_without_streaming(
    pin_table: Tables,
) -> None:
    await pin_table("translators/streams").check(lambda _, row: stream_row(row))


def _translated(_: str, row: Row) -> Row:
    return translate_row(row)
