"""What the log says about a connection.

``ConnectionLog`` is called for what a server cannot be made to do in a test: a thousand
errors, and each kind of address.
"""

from __future__ import annotations

import logging

import pytest

from hookline.bus.connection_log import ConnectionLog, without_password


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> ConnectionLog:
    caplog.set_level(logging.DEBUG, "hookline.bus")
    return ConnectionLog()


def test_an_address_is_shown_without_credentials() -> None:
    for address, public in (
        ("nats://me:secret@bus:4222", "nats://bus:4222"),
        ("nats://token@bus:4222", "nats://bus:4222"),
        ("me:se@cret@bus:4222", "nats://bus:4222"),
        ("tls://bus", "tls://bus"),
    ):
        assert without_password(address) == public


def test_an_error_is_logged_once_in_a_while_however_often_it_happens(
    log: ConnectionLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.note_connected("nats://bus")
    for number in range(1000):
        log.note_error("nats: slow consumer, messages dropped")
        log.note_error(f"refused {number % 2}", of_network=True)
    assert [record.getMessage() for record in caplog.records] == [
        "nats: slow consumer, messages dropped",
        "nats: refused 0",
        "nats: refused 1",
    ]
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.WARNING, logging.INFO, logging.INFO]


def test_errors_that_differ_each_time_are_not_kept_for_ever(
    log: ConnectionLog,
) -> None:
    for number in range(1000):
        log.note_error("x" * 10_000 + str(number))
        log.note_error(f"{number}")
    assert len(log._errors) <= 32
    assert max(map(len, log._errors)) <= 300


def test_a_loss_is_told_once_and_its_end_says_how_long_it_took(
    log: ConnectionLog, caplog: pytest.LogCaptureFixture
) -> None:
    """What happens before the first connection is for the caller."""
    log.note_lost("before there was one")
    log.note_error("connection refused")
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]
    caplog.clear()
    log.note_connected("nats://me:secret@bus:4222")
    log.note_lost("unexpected EOF")
    log.note_lost("unexpected EOF")
    log.note_connected("nats://me:secret@other:4222")
    lost, regained = caplog.records
    assert lost.getMessage() == (
        "connection to nats://bus:4222 lost (unexpected EOF): reconnecting"
    )
    assert regained.getMessage().startswith("connected to nats://other:4222 again")
    assert {lost.levelno, regained.levelno} == {logging.WARNING}
    assert vars(regained)["bus"]["gone_s"] >= 0
    assert "secret" not in caplog.text
