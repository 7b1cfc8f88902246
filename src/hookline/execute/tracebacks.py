"""The traceback of a hook in this process, as its author needs it.

It starts at the author's own file: the frames that lead there, of Hookline, asyncio and
importlib, are left out. They are only shown where the log is at debug level.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from traceback import FrameSummary, StackSummary, TracebackException

from hookline.plan import UnapprovedModuleError

from .project_modules import PREFIX

_HERE = os.path.dirname(__file__)  # noqa: PTH120
_IMPORTING = (
    "<frozen importlib",
    os.path.dirname(importlib.__file__),  # noqa: PTH120
    os.path.join(_HERE, "project_modules.py"),  # noqa: PTH118
)
_LEADING = (
    *_IMPORTING,
    os.path.dirname(_HERE),  # noqa: PTH120
    os.path.dirname(asyncio.__file__),  # noqa: PTH120
)


def author_traceback(error: BaseException) -> str:
    """Format an exception and those behind it; empty if no code of the author ran."""
    return without_prefix("".join(_lines(error)))


def _lines(error: BaseException) -> Iterable[str]:
    trace = TracebackException.from_exception(error)
    if logging.getLogger("hookline.hooks").isEnabledFor(logging.DEBUG):
        return trace.format()
    for one in _chain(trace):
        one.stack = StackSummary.from_list(_shown(one.stack))
    if not any(one.stack for one in _chain(trace)):
        is_syntax = isinstance(error, SyntaxError)
        return trace.format_exception_only() if is_syntax else ()
    return trace.format()


def without_prefix(text: str) -> str:
    """The names of a project's modules as their author knows them."""
    return re.sub(rf"{PREFIX}\d+\.", "", text)


def one_line(error: BaseException) -> str:
    """An exception in one line, with the place of a syntax error."""
    if isinstance(error, UnapprovedModuleError):
        return str(error)
    trace = TracebackException.from_exception(error)
    trace.__notes__ = None  # they would come last
    *_, text = trace.format_exception_only()
    text = without_prefix(text)
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{text.strip()} ({error.filename}, line {error.lineno})"
    return text.strip()


def _chain(trace: TracebackException) -> Iterator[TracebackException]:
    waiting = [trace]
    while waiting:
        one = waiting.pop()
        yield one
        more = (one.__cause__, one.__context__, *(one.exceptions or ()))
        waiting += [found for found in more if found is not None]


def _shown(stack: StackSummary) -> list[FrameSummary]:
    frames = list(stack)
    while frames and frames[0].filename.startswith(_LEADING):
        del frames[0]
    return [frame for frame in frames if not frame.filename.startswith(_IMPORTING)]
