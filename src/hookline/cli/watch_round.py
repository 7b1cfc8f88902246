"""One round of ``hookline watch``: fire the event, run the tests, and name their files.

It is a process of its own, so that modules of Python hooks are new each time and a
round can be ended. The plan comes as JSON on standard input; each finding is a line of
JSON on standard output. Hooks of the project need no approval here (decision 0155).
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from hookline.errors import HooklineError
from hookline.posix import SIGHUP
from hookline.protocol.events import HookEventName
from hookline.protocol.jsontext import encode
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings, SettingsOrigin
from hookline.settings.locations import PROJECT_FOLDER, find_workspace, is_within
from hookline.settings.watch import settings_files
from hookline.shelltext.uses import Role
from hookline.testing.cases import HookTestFile, find_files, read_file
from hookline.testing.tester import script_settings
from hookline.trust.gate import run_as_author
from hookline.trust.pins import named_paths

from . import fire, test
from .common import end_hooks_on_signals, load_config, log_to_stderr

_TIMES = re.compile(r", [\d.,]+ m?s\b|\x1b\[[0-9;]*m")


class Plan(Struct, frozen=True, kw_only=True):
    """What to do in one round."""

    files: list[str] = []
    text: str | None = None
    """Only cases with this in their name."""
    event: str | None = None
    input: dict[str, Any] = {}
    session_id: str | None = None
    settings: str | None = None
    coloured: bool = False


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of what a round found."""

    text: str = ""
    """To be printed."""
    verdict: list[str] | None = None
    """The lines about the event, without times."""
    cases: dict[str, bool] | None = None
    """Which cases passed."""
    files: list[str] | None = None
    """Files to watch."""
    folders: list[str] = []
    """Folders in which new files of code count."""
    problem: str = ""


class _Page(io.StringIO):
    """Output for the terminal of another process."""

    def __init__(self, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured

    def isatty(self) -> bool:
        return self._coloured


def main() -> None:
    """Do one round."""
    end_hooks_on_signals(signal.SIGTERM, SIGHUP)
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    # What hooks in this process print must not get between the findings.
    with os.fdopen(os.dup(1), "wb", buffering=0) as out:
        os.dup2(2, 1)
        _do(plan, out)


def _do(plan: Plan, out: BinaryIO) -> None:
    workspace = find_workspace(".")
    project = workspace.project_dir
    if project is not None and is_within(project, workspace.root):
        run_as_author(project)
    log_to_stderr()
    logging.getLogger("hookline.hooks").setLevel(logging.ERROR)
    steps: list[Callable[[Plan], Finding]] = [_files]
    steps += [_fire, _test] if plan.event is not None else [_test]
    for step in steps:
        try:
            found = step(plan)
        except HooklineError as error:
            found = Finding(problem=str(error))
        out.write(encode(msgspec.to_builtins(found)) + b"\n")


def _fire(plan: Plan) -> Finding:
    options = Namespace(settings=plan.settings, cwd=".")
    config = load_config(options, plan.session_id)
    event = HookEventName.of(plan.event or "")
    page = _Page(plan.coloured)

    def show(result: ProcessedHookResult) -> None:
        with redirect_stdout(page):
            fire.print_verdict(event, result)

    fire.fire_once(config, event, dict(plan.input), show)
    lines = [_TIMES.sub("", line) for line in page.getvalue().splitlines()]
    return Finding(text=page.getvalue(), verdict=lines)


def _test(plan: Plan) -> Finding:
    # Some cases test hooks that fail on purpose.
    logging.getLogger("hookline").setLevel(logging.CRITICAL)
    if plan.event is not None and not find_files(test.places_of(plan.files)):
        return Finding()
    options = Namespace(files=plan.files, k=plan.text)
    results = asyncio.run(test.run_files(test.select_cases(options), None))
    page = _Page(plan.coloured)
    with redirect_stdout(page):
        test.print_results(results, verbose=False)
    cases = {f"{one.file}: {one.name}": one.passed for one in results}
    return Finding(text=page.getvalue(), cases=cases)


def _files(plan: Plan) -> Finding:
    found = dict.fromkeys(settings_files(SettingsOrigin.around(".")))
    found |= dict.fromkeys(_named(Settings.load(".")))
    if plan.settings is not None:
        found[os.path.abspath(plan.settings)] = None  # noqa: PTH100
    with suppress(HooklineError):  # one of them was deleted: running them says so
        for path in find_files(test.places_of(plan.files)):
            found |= dict.fromkeys(_of_test(path))
    own = [f"{one}/{PROJECT_FOLDER}" for one in find_workspace(".").projects]
    here = os.path.realpath(".")
    code = {os.path.dirname(one) for one in found if is_within(one, here)}  # noqa: PTH120
    return Finding(files=list(found), folders=sorted({*own, *code}))


def _of_test(path: Path) -> Iterator[str]:
    yield str(path.resolve())
    try:
        file: HookTestFile = read_file(path)
    except HooklineError:
        return  # running it says what is wrong with it
    if file.settings not in {None, "project"}:
        yield str((path.parent / str(file.settings)).resolve())
    yield from map(str, file.hooks)
    if file.hooks:
        yield from _named(script_settings(file.hooks, {}, file))


def _named(settings: Settings) -> Iterator[str]:
    """The code that hooks name: scripts, what they import, policies."""
    for layer in settings.layers:
        # A hook can be registered for many events.
        hooks = {repr(hook): hook for _, _, hook in layer.hooks()}
        folder = layer.project or os.path.realpath(".")
        for hook in hooks.values():
            roles = named_paths(hook, folder).roles
            yield from (path for path, role in roles.items() if role is Role.CODE)


if __name__ == "__main__":
    main()
