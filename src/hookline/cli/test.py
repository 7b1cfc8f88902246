"""``hookline test``: run hooktest files, or exercise a worker."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from argparse import REMAINDER
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from hookline.config import Config
from hookline.errors import HooklineError, MissingExtraError
from hookline.settings.load import Settings
from hookline.settings.model import HookType, TrustStatus
from hookline.settings.places import PROJECT_FOLDER, find_workspace
from hookline.testing.cases import HookTestFile, find_files, read_file
from hookline.testing.run import CaseResult, run_cases, write_junit

from .options import Options, Parser, at_least, file_errors, refuse_outside
from .terminal import (
    Progress,
    one_line,
    paint,
    paint_diff,
    print_json,
    printable,
    shorten,
)

if TYPE_CHECKING:
    from hookline.plan import RegisteredHook

_MAX_COMMAND = 60
_MAX_CHANGED = 5
_LOOK_MS = 200

SUMMARY = "run hook tests"
DESCRIPTION = """\
Run the cases in *.hooktest.toml files with the real hooks, in parallel, each in its own
temporary project. Without FILE the current directory is searched, and the .hookline of
the projects that apply in it.

  hookline test
  hookline test .hookline/hooks/secret_scan.hooktest.toml -v
  hookline test --junit results.xml
  hookline test --update        # write the present answers into the cases, as a diff
  hookline test --watch         # again whenever a file there changes, until Ctrl-C

With --worker the program of a worker hook is exercised instead: a command, or the name
of a worker hook in the settings. --worker comes last; only --json and -v may follow.

  hookline test --worker node guard.mjs
  hookline test --worker "python3 -u guard.py" --json

A case in such a file, which tests the script of the same name in the same directory:

  event = "BeforeTool"
  tool = "write_file"

  [[case]]
  name = "a .env file is blocked"
  tool_input = { file_path = ".env" }
  expect = "block"          # allow (the default), block, ask or stop
  message = "keep secrets"  # a regular expression

exit status: 0 all cases or checks passed, 1 one failed, or usage error"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "hooktest files, or directories"
    parser.add_argument("files", nargs="*", metavar="FILE", help=text)
    parser.add_option("-k TEXT", "only cases with this text in their name")
    text = "cases to run at the same time (default: twice the number of processors)"
    parser.add_option("--jobs N", text, type=at_least(1))
    parser.add_option("--junit FILE", "also write JUnit XML to this file")
    text = "write the present answers into cases that expect others, or nothing yet"
    parser.add_flag("--update", text)
    parser.add_flag("--dry-run", "with --update: show the changes and write nothing")
    text = "run the cases again whenever a hook or a case changes; Ctrl-C ends it"
    parser.add_flag("--watch", text)
    text = "exercise a worker: ids, bursts, cancellation, end of input"
    metavar = ("COMMAND", "ARG")
    parser.add_argument("--worker", nargs=REMAINDER, metavar=metavar, help=text)
    parser.add_flag("--json", "print a JSON list")
    parser.add_flag("-v --verbose", "also name the cases that pass")


def run(options: Options) -> int:
    """Run the cases and print those that fail."""
    # Some cases test hooks that fail on purpose.
    logging.getLogger("hookline").setLevel(logging.CRITICAL)
    if options.dry_run and not options.update:
        raise HooklineError("--dry-run works only with --update")
    for name, chosen in (("--update", options.update), ("--watch", options.watch)):
        if chosen and (options.json or options.junit or options.worker):
            raise HooklineError(f"{name} cannot be used with --json, --junit, --worker")
    if options.update:
        return _update(options)
    if options.watch:
        return _watch(options)
    if options.worker is not None:
        from hookline.testing.worker import exercise

        hook = _worker_hook(_worker_words(options))
        results = _collected(exercise(hook, str(Path.cwd())), "exercising the worker")
    else:
        results = run_files(select_cases(options), options.jobs)
    if options.junit:
        refuse_outside(options.junit)
        with file_errors(f"--junit {options.junit}"):
            write_junit(results, Path(options.junit))
    if options.json:
        print_json([_as_json(result) for result in results])
    else:
        print_results(results, options.verbose)
    return 0 if all(result.passed for result in results) else 1


def _watch(options: Options) -> int:
    try:
        from watchfiles import watch
    except ImportError as error:
        raise MissingExtraError("cli", "watchfiles") from error
    places = places_of(options.files)
    find_files(places)  # raises if one does not exist
    folders = {str(place if place.is_dir() else place.parent) for place in places}
    folders.add(str(Path()))  # hooks are where the settings say, mostly here
    with suppress(KeyboardInterrupt):
        rounds = watch(*folders, yield_on_timeout=True, rust_timeout=_LOOK_MS)
        for number, changes in enumerate(rounds):
            if number and not changes:
                continue
            paths = sorted({os.path.relpath(path) for _, path in changes})
            if paths:
                print(f"\nchanged: {printable(', '.join(paths[:_MAX_CHANGED]))}")
            try:
                results = run_files(select_cases(options), options.jobs)
                print_results(results, options.verbose)
            except HooklineError as error:  # a file may be half written
                print(f"{paint('error', 'red')}: {printable(str(error))}")
            print("watching for changes; Ctrl-C ends it", flush=True)
    return 0


def _update(options: Options) -> int:
    from .test_update import Updates, refuse_in_ci

    if not options.dry_run:
        refuse_in_ci()
    results = run_files(select_cases(options), options.jobs)
    updates = Updates(results)
    updates.write(dry_run=options.dry_run)
    rerun = [] if options.dry_run else run_files(updates.files(), options.jobs)
    return 0 if updates.print_summary(rerun, dry_run=options.dry_run) else 1


def _worker_words(options: Options) -> list[str]:
    """The words of ``--worker`` without the options behind them."""
    words = list(options.worker)
    if words[:1] == ["--"]:
        del words[0]
    elif not words:  # behind "--"
        words, options.files = options.files, []
    while len(words) > 1 and words[-1] in {"--json", "-v", "--verbose"}:
        options.json = words.pop() == "--json" or options.json
    if not words or not words[0].strip():
        raise HooklineError("--worker needs a command, or the name of a worker hook")
    if options.files or options.k or options.jobs:
        raise HooklineError("--worker cannot be used with FILE, -k or --jobs")
    options.verbose = True
    return words


def _worker_hook(words: list[str]) -> RegisteredHook:
    """A worker hook of the settings, or one made of the command."""
    from hookline.engine.system import HookSystem

    command = words[0] if len(words) == 1 else shlex.join(words)
    for hook in HookSystem(Config.load()).get_all_hooks():
        if hook.config.type is HookType.WORKER and hook.name == command:
            if hook.trust is TrustStatus.TRUSTED:
                return hook
            if hook.config.command != command:  # else it is what the user typed
                hint = "review it with 'hookline trust'"
                raise HooklineError(f"hook {hook.name!r} is not trusted: {hint}")
    name = shorten(one_line(command), _MAX_COMMAND)
    worker = {"type": "worker", "command": command, "name": name}
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [worker]}]}})
    return HookSystem(Config(None, ".", settings)).get_all_hooks()[0]


def _collected(
    results: AsyncIterator[CaseResult], label: str, total: int | None = None
) -> list[CaseResult]:
    """Wait for all results, with their progress on the terminal."""

    async def collect() -> list[CaseResult]:
        collected = []
        with Progress(label, total) as progress:
            async for result in results:
                collected.append(result)
                progress.step()
        return collected

    return asyncio.run(collect())


def select_cases(options: Options) -> list[HookTestFile]:
    """The cases that the options name; raises if there are none."""
    files = [read_file(path) for path in find_files(places_of(options.files))]
    where = ", ".join(options.files) or "this directory"
    if not any(file.cases for file in files):
        hint = "'hookline init' writes one to start from"
        raise HooklineError(f"no *.hooktest.toml in {where}: {hint}")
    if not options.k:
        return files
    selected = []
    for file in files:
        cases = (case for case in file.cases if options.k.lower() in case.name.lower())
        selected.append(structs.replace(file, cases=tuple(cases)))
    if not any(file.cases for file in selected):
        raise HooklineError(f"no case with {options.k!r} in its name in {where}")
    return selected


def places_of(names: list[str]) -> list[Path]:
    """Where to search: as named, or this directory and the projects that apply here."""
    if names:
        return [Path(name) for name in names]
    workspace = find_workspace(".")
    outer = (project for project in workspace.projects if project != workspace.folder)
    folders = (Path(project, PROJECT_FOLDER) for project in outer)
    return [Path(), *filter(Path.is_dir, folders)]


def run_files(files: list[HookTestFile], jobs: int | None) -> list[CaseResult]:
    """Run cases; their results in the order of the files."""
    order = [(file.path, case.name) for file in files for case in file.cases]

    positions = {case: position for position, case in enumerate(order)}
    results = _collected(run_cases(files, jobs), "testing hooks", len(order))
    return sorted(results, key=lambda result: positions[(result.file, result.name)])


def print_results(results: list[CaseResult], verbose: bool) -> None:
    """Print the cases that fail, and how many pass."""
    for result in results:
        case = f"{result.file}: {printable(result.name)}"
        if not result.passed:
            print(f"{paint('FAIL', 'red')}  {case}")
            for line in "\n".join(result.problems).splitlines():
                print(f"      {paint_diff(line)}".rstrip())
        elif verbose:
            print(f"{paint('ok', 'green')}    {case}")
        for warning in result.warnings:
            print(f"{paint('warning', 'yellow')}: {case}: {printable(warning)}")
    failed = sum(not result.passed for result in results)
    summary = f"{len(results) - failed} passed"
    summary += f", {failed} failed" if failed else ""
    print(paint(summary, "red" if failed else "green"))


def _as_json(result: CaseResult) -> dict[str, object]:
    return {
        "file": str(result.file),
        "name": result.name,
        "kind": result.kind,
        "passed": result.passed,
        "problems": list(result.problems),
        "warnings": list(result.warnings),
        "duration_ms": round(result.duration_ms, 3),
    }
