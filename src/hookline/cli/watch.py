"""``hookline watch``: run tests and an event again whenever a hook changes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hookline.errors import HooklineError
from hookline.inspector.own_command import CommandEnd, OwnCommand
from hookline.protocol.events import HookEventName
from hookline.settings.watch import RETURN_S, FileState, file_state
from hookline.testing.cases import find_files
from hookline.trust.pins import Pin, take_pin

from . import fire
from .common import Options, Parser
from .terminal import paint, plural, printable
from .test import places_of
from .watch_round import Finding, Plan

SUMMARY = "run tests and an event again when a hook changes"
DESCRIPTION = """\
Run the hook tests, and a chosen event as 'hookline fire' does, at once and again
whenever a hook, its test, its settings or a module of it changes. Shows what changed,
what fails, the verdict, and what differs from the last time. Ctrl-C ends it.

  hookline watch
  hookline watch BeforeTool --tool write_file --tool-input '{"path": ".env"}'
  hookline watch .hookline/hooks BeforeAgent --input prompt.json

The hooks of this project run as they are, approved or not: start it in a project of
yours, not in one that you have not reviewed. Agents run only what 'hookline trust'
approved.

exit status: 0 ended with Ctrl-C, 1 usage error"""

LOOK_S = 0.2
"""How often the known files are looked at."""
REST_S = 0.1
"""How long they must be left alone before a round starts."""
_LONGEST_WAIT_S = 2.0
_SEARCH_S = 1.0
"""How often new case files are searched for, if that is quick."""
_SHARE = 20
"""Searching takes at most one part in this many of the time."""
_MAX_WRITTEN = 5
_MAX_NAMED = 4
_CODE = (
    *(".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".lua"),
    *(".toml", ".cedar", ".rego"),
)


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.in_any_order = True
    fire.add_event_arguments(parser, optional=True)
    text = "hooktest files, or directories (default: as 'hookline test')"
    parser.add_argument("files", nargs="*", metavar="FILE", help=text)
    parser.add_option("-k TEXT", "only cases with this text in their name")
    text = "fire the event with only this settings file"
    parser.add_option("--settings FILE", text)


def run(options: Options) -> int:
    """Run rounds until somebody ends it."""
    _sort_words(options)
    plan = _plan(options)
    find_files(places_of(plan.files))  # raises if one does not exist
    if options.input == "-":
        options.input, options.given = None, plan.input
    if plan.event is not None:
        told = "agents still need 'hookline trust'"
        print(f"note: hooks of this project run here without approval; {told}\n")
    with suppress(KeyboardInterrupt):
        asyncio.run(_Rounds(options).run())
    return 0


def _sort_words(options: Options) -> None:
    """Tell the event and files apart: they can come in any order."""
    words = [word for word in (options.event, *options.files) if word is not None]
    is_file = {word: os.path.lexists(word) or os.sep in word for word in words}
    options.files = [word for word in words if is_file[word]]
    events = [word for word in words if not is_file[word]]
    if len(events) > 1:
        raise HooklineError(f"only one event at a time, got {' and '.join(events)}")
    options.event = events[0] if events else None
    given = (options.tool, options.tool_input, options.input, options.settings)
    if options.event is None and any(one is not None for one in given):
        raise HooklineError("name the event to fire, such as BeforeTool")


def _plan(options: Options) -> Plan:
    coloured = paint("x", "red") != "x"
    common = Plan(files=options.files, text=options.k, coloured=coloured)
    if options.event is None:
        return common
    event = HookEventName.of(options.event)
    given = getattr(options, "given", None)
    return msgspec.structs.replace(
        common,
        event=event.value,
        input=given or fire.read_event_input(options, event),
        session_id=options.session_id,
        settings=options.settings,
    )


class FileWatch:
    """Notices that files changed: those it is told of, and new ones beside them."""

    def __init__(self, places: list[Path]) -> None:
        self._places = places
        self._files: dict[str, None] = {}
        self._folders: tuple[str, ...] = ()
        self._ignored: set[str] = set()
        self._search_due = 0.0
        self._tests: list[str] = []
        self._seen: dict[str, FileState] = {}
        self._pins: dict[str, Pin] = {}
        self.follow([], [])

    @property
    def count(self) -> int:
        """How many files there are."""
        return sum(isinstance(state, tuple) for state in self._seen.values())

    def follow(self, files: list[str], folders: list[str]) -> None:
        """Watch these from now on; what is known already keeps its state."""
        self._files = dict.fromkeys(files)
        self._folders = tuple(folders)
        now = self._look()
        self._seen = {path: self._seen.get(path, now[path]) for path in now}
        known = self._pins
        self._pins = {p: known[p] if p in known else take_pin(p) for p in now}

    def ignore(self, path: str) -> None:
        """Stop watching a file."""
        self._ignored.add(path)

    async def changed(self) -> list[str]:
        """Wait until files have changed and rest again; which ones."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._look() != self._seen:
                await self._rest()
                self._seen = self._look()
                paths = [
                    *self._seen,
                    *(p for p in self._pins if p not in self._seen),
                ]
                now = {path: take_pin(path) for path in paths}
                changed = [p for p in now if now[p] != self._pins.get(p)]
                self._pins = now
                if changed:
                    return changed

    async def _rest(self) -> None:
        """Editors write several times, and replace files: wait for the last."""
        start, before = time.monotonic(), self._look()
        while (waited := time.monotonic() - start) < _LONGEST_WAIT_S:
            await asyncio.sleep(REST_S)
            now = self._look()
            is_lost = any(
                isinstance(state, tuple) and not isinstance(now.get(path), tuple)
                for path, state in self._seen.items()
            )
            if now == before and not (is_lost and waited < RETURN_S):
                return
            before = now

    def _look(self) -> dict[str, FileState]:
        listed = (one for folder in self._folders for one in _code_in(folder))
        paths = dict.fromkeys((*self._files, *listed, *self._search()))
        return {p: file_state(p) for p in paths if p not in self._ignored}

    def _search(self) -> list[str]:
        start = time.monotonic()
        if start >= self._search_due:
            with suppress(HooklineError, OSError):  # it changes while it is read
                self._tests = [str(p.resolve()) for p in find_files(self._places)]
            end = time.monotonic()
            self._search_due = end + max(_SEARCH_S, _SHARE * (end - start))
        return self._tests


def _code_in(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (one.path for one in entries if one.name.endswith(_CODE))


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - a string
    except OSError:
        return 0


class _Rounds:
    """Rounds one after the other, each compared with the last."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._watch = FileWatch(places_of(options.files))
        self._verdict: list[str] | None = None
        self._cases: dict[str, bool] = {}
        self._written: Counter[str] = Counter()

    async def run(self) -> None:
        changed: list[str] = []
        while True:
            if changed:
                print(f"\n{paint('changed', 'blue')}: {_named(changed)}", flush=True)
            waiting = asyncio.create_task(self._watch.changed())
            start = time.time()
            try:
                await self._round(waiting)
                end = time.time()
                changed = await waiting
            finally:
                waiting.cancel()
            self._leave_out(path for path in changed if start < _mtime(path) < end)

    async def _round(self, waiting: asyncio.Task[list[str]]) -> None:
        """Run once; a change ends it, and the next one starts."""
        try:
            plan = _plan(self._options)
        except HooklineError as error:  # of --input, which may be half written
            _say(str(error))
            return
        findings: list[Finding] = []
        command = OwnCommand(
            [sys.executable, "-P", "-m", "hookline.cli.watch_round"],
            msgspec.json.encode(plan),
            lambda line: self._take(line, findings),
        )
        running = asyncio.create_task(command.wait())
        try:
            await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not running.done():
                await command.end()
        end = await running
        if not end.cancelled:
            self._report(findings, end)

    def _take(self, line: bytes, findings: list[Finding]) -> None:
        found = msgspec.json.decode(line, type=Finding)
        if found.files is not None:
            given = self._options.input
            own = [os.path.abspath(given)] if given else []  # noqa: PTH100
            self._watch.follow(own + found.files, found.folders)
        else:
            findings.append(found)

    def _leave_out(self, written: Iterable[str]) -> None:
        """Files that the rounds themselves write would start rounds without end."""
        self._written = Counter({path: self._written[path] + 1 for path in written})
        for path, rounds in self._written.items():
            if rounds == _MAX_WRITTEN:
                self._watch.ignore(path)
                _say(f"{_shown(path)} changes in every round: it is no longer watched")

    def _report(self, findings: list[Finding], end: CommandEnd) -> None:
        for message in end.messages if findings else [end.message]:
            print(printable(message))
        for found in findings:
            if found.problem:
                _say(found.problem)
            print(found.text, end="")
            if found.verdict is not None:
                self._compare_verdict(found.verdict)
            if found.cases is not None:
                self._compare_cases(found.cases)
        files = plural(self._watch.count, "file")
        print(paint(f"watching {files}, Ctrl-C ends it", "dim"), flush=True)

    def _compare_verdict(self, lines: list[str]) -> None:
        before, self._verdict = self._verdict, lines
        for line in before or ():
            if line not in lines:
                print(f"  {paint('was', 'dim')}: {printable(line.strip())}")

    def _compare_cases(self, cases: dict[str, bool]) -> None:
        before, self._cases = self._cases, cases
        failing = [name for name, passed in cases.items() if not passed]
        new = [name for name in failing if before.get(name)]
        for name, passed in cases.items():
            if passed and before.get(name) is False:
                print(f"{paint('fixed', 'green')}: {printable(name)}")
        # Without others it is plain which ones are new.
        for name in new if len(new) < len(failing) else ():
            print(f"{paint('broken', 'red')}: {printable(name)}")


def _say(message: str) -> None:
    print(f"hookline: {printable(message)}", flush=True)


def _named(paths: list[str]) -> str:
    more = len(paths) - _MAX_NAMED
    shown = ", ".join(map(_shown, sorted(paths)[:_MAX_NAMED]))
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(path: str) -> str:
    here = os.path.realpath(".")
    return printable(path.removeprefix(f"{here}/"))
