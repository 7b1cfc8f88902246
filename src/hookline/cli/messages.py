"""Messages on standard error: text, or JSON with ``serve --log-format json``.

As JSON every line is valid and in ASCII, whatever a message holds, and shows no more of
a value than the text does. Messages of libraries and warnings are written so, too; what
a hook in Python prints is not.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hookline._internal.log import logger
from hookline.config import Config
from hookline.protocol.values import printable

FIELDS = ("hook", "request", "bus", "settings")
"""Mappings that our records have as ``extra``, and that are objects in the line."""

_MAX_TEXT = 8000
_MAX_VALUE = 120  # as in the text of the record
_MAX_INTEGER = 2**63


def log_to_stderr(
    level: int = logging.WARNING, options: argparse.Namespace | None = None
) -> None:
    """Show log messages to the user, in the format that ``--log-format`` asks for."""
    handler = logging.StreamHandler(sys.stderr)
    if logs_json(options):
        handler.setFormatter(JsonFormatter())
        # To tell there that the log cannot be written would be one more line for it.
        logging.raiseExceptions = False
        logging.getLogger().addHandler(handler)  # libraries, and Python's warnings
        logging.captureWarnings(capture=True)
    else:
        handler.setFormatter(_TextFormatter("hookline: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def logs_json(options: argparse.Namespace | None) -> bool:
    """Whether messages are asked for as JSON, which ``serve`` alone offers."""
    return getattr(options, "log_format", "text") == "json"


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether arguments that may be invalid ask for JSON."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--log-format")
    try:
        return logs_json(parser.parse_known_args(arguments)[0])
    except argparse.ArgumentError:
        return False


def log_problems(config: Config) -> None:
    """Log what is wrong with the settings."""
    for problem in (*config.settings.errors, *config.settings.warnings):
        logger.warning("%s", problem)


def note(
    line: str, options: argparse.Namespace | None = None, level: str = "info"
) -> None:
    """Write a line for people, in the format asked for."""
    if logs_json(options):
        line = json_message(level, line.removeprefix("hookline: "))
    else:
        line = printable(line)
    print(line, file=sys.stderr, flush=True)


def json_message(level: str, message: str, error: BaseException | None = None) -> str:
    """A message that no logger has, as one line of JSON."""
    fields = {"message": _json_text(message)}
    if error is not None:
        fields["exception"] = _trace(error)
    return json_line(level, "hookline", fields)


def json_line(
    level: str, logger_name: str, fields: Mapping[str, Any], at: float | None = None
) -> str:
    """One line: when, how bad, who says it, then the fields."""
    import json  # not needed to fire an event

    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    at_utc = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": at_utc, "level": level, "logger": logger_name, **fields}
    # ASCII: other line ends, such as U+2028, are not in the line as they are.
    return json.dumps(line)


class _TextFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        # Only records of hooks have lines of their own, and indent them.
        line_ends = "\n\t" if record.name == "hookline.hooks" else ""
        record.message = printable(record.message, line_ends)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON; never raises."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        try:
            fields = _fields(record)
        # What was logged is foreign, and its text may raise anything.
        except Exception as error:  # noqa: BLE001
            fields = {"message": f"a message that raises {type(error).__name__}"}
        level = record.levelname.lower()
        return json_line(level, record.name, fields, record.created)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    message, values = record.getMessage(), record.args
    if hasattr(record, "hook") and isinstance(values, tuple) and values:
        message = str(values[0])  # its name; the others are fields here
    fields: dict[str, Any] = {"message": _json_text(message)}
    for name in FIELDS:
        extra = getattr(record, name, None)
        if isinstance(extra, Mapping) and extra:
            fields[name] = {_json_text(str(key)): _value(extra[key]) for key in extra}
    if record.exc_info and record.exc_info[1] is not None:
        fields["exception"] = _trace(record.exc_info[1])
    return fields


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < _MAX_INTEGER:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return _json_text(str(value), _MAX_VALUE)


def _json_text(text: str, limit: int = _MAX_TEXT) -> str:
    """Text that every JSON parser takes: no lone surrogates, and not too long."""
    short = text if len(text) <= limit else f"{text[: limit - 3]}..."
    return short.encode("utf-8", "backslashreplace").decode()


def _trace(error: BaseException) -> str:
    text = "".join(traceback.format_exception(error)).rstrip()
    if len(text) > _MAX_TEXT:
        text = f"...{text[3 - _MAX_TEXT :]}"  # its end says what it was
    return _json_text(text)
