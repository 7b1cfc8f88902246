"""``hookline test --update``: write the present answers into the case files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from msgspec import Struct, structs

from hookline.errors import HooklineError
from hookline.hosts.install.changes import Change, apply, read_inside
from hookline.settings.places import find_workspace
from hookline.settings.read import decode_text
from hookline.testing.cases import HookTestFile, read_file
from hookline.testing.run import CaseResult
from hookline.testing.update import CannotEditError, edited

from .common import refuse_outside
from .install import print_diffs
from .terminal import paint, plural, printable


class Updates(Struct):
    """What an update does with the results of a run."""

    changes: list[Change] = []
    updated: list[CaseResult] = []
    refused: list[tuple[CaseResult, str]] = []
    """Cases that failed and stay as they are, with the reason."""


def refuse_in_ci() -> None:
    """Expectations that a build writes for itself check nothing."""
    if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        hint = "run it on your own machine and commit the result"
        raise HooklineError(f"--update is refused in CI (CI is set): {hint}")


def plan_updates(results: list[CaseResult]) -> Updates:
    """Edit the files of the cases whose answer is not what they expect."""
    found = Updates()
    by_file: dict[Path, list[CaseResult]] = {}
    for result in results:
        by_file.setdefault(result.file, []).append(result)
    for path, own in by_file.items():
        wanted = [one for one in own if one.update and not one.obstacles]
        stuck = (one for one in own if not one.passed and one not in wanted)
        found.refused += ((one, one.obstacles[0]) for one in stuck)
        if wanted:
            _edit(path, wanted, found)
    return found


def _edit(path: Path, wanted: list[CaseResult], found: Updates) -> None:
    refuse_outside(str(path))
    before = read_inside(str(path), find_workspace(path.parent).root) or b""
    text = decode_text(before, path)
    names = [case.name for case in read_file(path).cases]
    twice = {name for name, count in Counter(names).items() if count > 1}
    for result in wanted:
        if result.name in twice:
            found.refused.append((result, "two cases have this name: rename one"))
            continue
        try:
            text = edited(text, names.index(result.name), result.update)
        except CannotEditError as error:
            found.refused.append((result, str(error)))
        else:
            found.updated.append(result)
    found.changes.append(Change(path=str(path), before=before, after=text.encode()))


def write_updates(updates: Updates, *, dry_run: bool) -> None:
    """Show the changes, and make them."""
    needed = [change for change in updates.changes if change.is_needed]
    if not dry_run:
        apply(needed)
    if needed:
        print_diffs(needed, "update")
    for result, reason in updates.refused:
        first = printable(reason.splitlines()[0])
        place = f"{result.file}: {printable(result.name)}"
        print(f"{paint('kept', 'yellow')}   {place}: {first}")


def updated_cases(updates: Updates) -> list[HookTestFile]:
    """The cases that were written, to run them once more."""
    names: dict[Path, set[str]] = {}
    for result in updates.updated:
        names.setdefault(result.file, set()).add(result.name)
    files = [read_file(path) for path in names]
    return [
        structs.replace(
            file, cases=tuple(one for one in file.cases if one.name in names[file.path])
        )
        for file in files
    ]


def print_update(
    updates: Updates, again: list[CaseResult], passed: int, *, dry_run: bool
) -> bool:
    """Print what was done; whether all cases are as they should be now."""
    unstable = [result for result in again if not result.passed]
    for result in unstable:
        place = f"{result.file}: {printable(result.name)}"
        hint = "its answer differs from run to run: write a pattern that fits both"
        print(f"{paint('FAIL', 'red')}   {place}: {hint}")
    done = "would be updated" if dry_run else "updated"
    parts = [f"{passed} passed", f"{plural(len(updates.updated), 'case')} {done}"]
    failed = len(updates.refused) + len(unstable)
    parts += [f"{failed} failed"] if failed else []
    print(paint(", ".join(parts), "red" if failed else "green"))
    return not failed
