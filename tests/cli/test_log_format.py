"""``--log-format json``: valid JSON on each line, whatever is logged.

Usage errors are in ``tests/pins/commands/mistakes.json``. The formatter is called from
inside: a hook cannot log a lone surrogate at will.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.cli.messages import JsonFormatter, json_message
from tests.support.python import run_python


def record(message: Any, *args: Any, **extra: Any) -> logging.LogRecord:
    logger = logging.Logger("hookline.test")
    return logger.makeRecord(
        "hookline.test", logging.WARNING, "f.py", 1, message, args, None, extra=extra
    )


def written(message: Any, *args: Any, **extra: Any) -> dict[str, Any]:
    line = JsonFormatter().format(record(message, *args, **extra))
    assert line.isascii()
    assert len(line.splitlines()) == 1
    parsed: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
    assert msgspec.json.decode(line) == parsed  # it refuses lone surrogates
    return parsed


def test_line_has_time_level_logger_and_message() -> None:
    before = datetime.now(UTC)
    line = written("hook %r failed", "guard")
    at = line.pop("time")
    assert at.endswith("Z")
    assert abs((datetime.fromisoformat(at) - before).total_seconds()) < 60
    assert list(line.items()) == [
        ("level", "warning"),
        ("logger", "hookline.test"),
        ("message", "hook 'guard' failed"),
    ]


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_valid_json_on_one_line(text: str) -> None:
    line = written("%s", text, hook={"stderr": text, text: 1})
    assert isinstance(line["hook"]["stderr"], str)


HOSTILE = "a\nb\r\x00\x1b[2J\u2028\u202e\x85\ud800\U0001f600</script>"


def test_hostile_text_keeps_what_json_can_hold() -> None:
    line = written(HOSTILE, "name")
    assert line["message"] == "a message that raises TypeError"  # %-formatting
    line = written("%s", HOSTILE)
    assert line["message"] == HOSTILE.replace("\ud800", "\\ud800")


class Raises:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (2**63, str(2**63)),
        ([1, {"a": 2}], "[1, {'a': 2}]"),
        (b"\xff", "b'\\xff'"),
        ("x" * 121, "x" * 117 + "..."),
        (True, True),
        (-5, -5),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_value_is_shown_as_in_text_and_no_longer(value: Any, shown: Any) -> None:
    assert written("x", hook={"value": value}) | {"time": ""} == {
        "time": "",
        "level": "warning",
        "logger": "hookline.test",
        "message": "x",
        "hook": {"value": shown},
    }


@pytest.mark.parametrize("given", [{"a": Raises()}, {Raises(): 1}, {"a": 10**5000}])
def test_a_value_that_cannot_be_shown_costs_its_record_only(given: Any) -> None:
    assert written("x", hook=given)["message"].startswith("a message that raises")


def test_a_huge_message_is_cut() -> None:
    assert len(written("%s", "x" * 5_000_000)["message"]) == 8000


def test_an_exception_is_a_field_that_keeps_its_end() -> None:
    error = ValueError("y" * 9000 + "\ud800 the end")
    made = record("failed")
    made.exc_info = (ValueError, error, None)
    line = json.loads(JsonFormatter().format(made))
    assert line["exception"].endswith("\\ud800 the end")
    assert len(line["exception"]) <= 8006


def test_a_fatal_line_is_an_error() -> None:
    line = json.loads(json_message("error", "no\nway", RuntimeError("deep")))
    assert (line["level"], line["message"]) == ("error", "no\nway")
    assert "RuntimeError: deep" in line["exception"]


def test_messages_of_libraries_and_warnings_are_json() -> None:
    script = """
        import argparse, logging, warnings
        from hookline.cli.messages import log_to_stderr

        log_to_stderr(options=argparse.Namespace(log_format="json"))
        logging.getLogger("nats").error("of a library\\nin two lines")
        warnings.warn("of Python")
    """
    lines = run_python(script).stderr.splitlines()
    library, warning = (json.loads(line)["message"] for line in lines)
    assert library == "of a library\nin two lines"
    assert "of Python" in warning
