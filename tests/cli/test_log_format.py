"""``--log-format json``: valid JSON on each line, whatever is logged (issue 16)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.cli.log_format import JsonFormatter, asks_for_json, fatal_line

MAIN = (sys.executable, "-m", "hookline")


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


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MAIN, *words], capture_output=True, text=True, check=False, timeout=60
    )


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_has_time_level_logger_and_message() -> None:
    before = datetime.now(UTC)
    found = written("hook %r failed", "guard")
    assert list(found) == ["time", "level", "logger", "message"]
    assert found["time"].endswith("Z")
    assert abs((datetime.fromisoformat(found["time"]) - before).total_seconds()) < 60
    assert found["level"] == "warning"
    assert found["logger"] == "hookline.test"
    assert found["message"] == "hook 'guard' failed"


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_valid_json_on_one_line(text: str) -> None:
    found = written("%s", text, hook={"stderr": text, text: 1})
    assert isinstance(found["hook"]["stderr"], str)


HOSTILE = "a\nb\r\x00\x1b[2J\u2028\u202e\x85\ud800\U0001f600</script>"


def test_hostile_text_keeps_what_json_can_hold() -> None:
    found = written(HOSTILE, "name")
    assert found["message"] == "a message that raises TypeError"  # %-formatting
    found = written("%s", HOSTILE)
    assert found["message"] == HOSTILE.replace("\ud800", "\\ud800")


def test_a_record_of_a_hook_is_an_object() -> None:
    hook = {
        "event": "BeforeTool",
        "hook": "guard",
        "duration_ms": 1.5,
        "success": False,
        "exit_code": None,
        "error": "exit status 1",
    }
    found = written("%s %s", "hook:failure", "hook='guard' ...", hook=hook)
    assert found["message"] == "hook:failure"
    assert found["hook"] == hook


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
    found = json.loads(JsonFormatter().format(made))
    assert found["exception"].endswith("\\ud800 the end")
    assert len(found["exception"]) <= 8006


def test_a_fatal_line_is_an_error() -> None:
    found = json.loads(fatal_line("no\nway", RuntimeError("deep")))
    assert (found["level"], found["message"]) == ("error", "no\nway")
    assert "RuntimeError: deep" in found["exception"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["serve", "--log-format", "json"], True),
        (["serve", "--log-format=json", "--nonsense"], True),
        (["serve", "--nonsense", "-x", "--log-f", "json"], True),
        (["serve", "--log-format", "text"], False),
        (["serve", "--log-format"], False),
        (["serve", "--", "--log-format", "json"], False),
        ([], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_json_is_asked_for_by_arguments(words: list[str], expected: bool) -> None:
    assert asks_for_json(words) is expected


def test_a_usage_error_is_json_once_that_is_asked_for() -> None:
    done = run("serve", "--nonsense", "--log-format", "json")
    assert done.returncode == 1
    assert done.stdout == ""
    (found,) = objects(done.stderr)
    assert found["level"] == "error"
    assert "--nonsense" in found["message"]
    assert "hookline serve --help" in found["message"]


def test_a_fatal_message_of_several_lines_is_one_object() -> None:
    done = run("serve", "--log-format", "json")
    assert done.returncode == 1
    (found,) = objects(done.stderr)
    assert found["message"].startswith("--bus is required")
    assert "\n" in found["message"]


def test_an_unknown_format_is_a_usage_error() -> None:
    done = run("serve", "--log-format", "xml")
    assert done.returncode == 1
    assert "--log-format" in done.stderr
    assert "json" in done.stderr


def test_messages_of_libraries_and_warnings_are_json() -> None:
    script = """
        import argparse, logging, warnings
        from hookline.cli.common import log_to_stderr

        log_to_stderr(options=argparse.Namespace(log_format="json"))
        logging.getLogger("nats").error("of a library\\nin two lines")
        warnings.warn("of Python")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    library, warning = (line["message"] for line in objects(done.stderr))
    assert library == "of a library\nin two lines"
    assert "of Python" in warning
