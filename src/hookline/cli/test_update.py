"""``hookline test --update``: write the present answers into the case files."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import structs

from hookline.errors import HooklineError
from hookline.hosts.install.changes import Change, apply, read_inside
from hookline.settings.places import find_workspace
from hookline.settings.read import decode_text
from hookline.testing.cases import HookTestFile, read_file
from hookline.testing.run import CaseResult
from hookline.testing.update import CannotEditError, edited

from .install import print_diffs
from .options import refuse_outside
from .terminal import paint, plural, printable


def refuse_in_ci() -> None:
    """Expectations that a build writes for itself check nothing."""
    if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        hint = "run it on your own machine and commit the result"
        raise HooklineError(f"--update is refused in CI (CI is set): {hint}")


class Updates:
    """What an update does with the results of a run."""

    def __init__(self, results: list[CaseResult]) -> None:
        """Edit the files of the cases whose answer is not what they expect."""
        self.updated: list[CaseResult] = []
        self.refused: list[tuple[CaseResult, str]] = []
        """Cases that failed and stay as they are, with the reason."""
        self._changes: list[Change] = []
        self._results = results
        by_file: dict[Path, list[CaseResult]] = {}
        for result in results:
            if result.update and not result.obstacles:
                by_file.setdefault(result.file, []).append(result)
            elif not result.passed:
                self.refused.append((result, result.obstacles[0]))
        for path, updates in by_file.items():
            self._edit(path, updates)

    def _edit(self, path: Path, updates: list[CaseResult]) -> None:
        refuse_outside(str(path))
        before = read_inside(str(path), find_workspace(path.parent).root) or b""
        text = decode_text(before, path)
        names = [case.name for case in read_file(path).cases]
        for result in updates:
            if names.count(result.name) > 1:
                reason = "two cases have this name: rename one"
                self.refused.append((result, reason))
                continue
            try:
                text = edited(text, names.index(result.name), result.update)
            except CannotEditError as error:
                self.refused.append((result, str(error)))
            else:
                self.updated.append(result)
        after = text.encode()
        self._changes.append(Change(path=str(path), before=before, after=after))

    def write(self, *, dry_run: bool) -> None:
        """Show the changes, and make them."""
        needed = [change for change in self._changes if change.is_needed]
        if not dry_run:
            apply(needed)
        if needed:
            print_diffs(needed, "update")
        for result, reason in self.refused:
            first_line = printable(reason.splitlines()[0])
            print(f"{paint('kept', 'yellow')}   {_case(result)}: {first_line}")

    def files(self) -> list[HookTestFile]:
        """The files with the cases that were written, to run them once more."""
        names: dict[Path, set[str]] = {}
        for result in self.updated:
            names.setdefault(result.file, set()).add(result.name)
        files = []
        for file in map(read_file, names):
            cases = (case for case in file.cases if case.name in names[file.path])
            files.append(structs.replace(file, cases=tuple(cases)))
        return files

    def print_summary(self, rerun: list[CaseResult], *, dry_run: bool) -> bool:
        """Print what was done; whether all cases are as they should be now."""
        unstable = [result for result in rerun if not result.passed]
        for result in unstable:
            hint = "its answer differs from run to run: write a pattern that fits both"
            print(f"{paint('FAIL', 'red')}   {_case(result)}: {hint}")
        passed = sum(
            result.passed and result not in self.updated for result in self._results
        )
        done = "would be updated" if dry_run else "updated"
        parts = [f"{passed} passed", f"{plural(len(self.updated), 'case')} {done}"]
        failed = len(self.refused) + len(unstable)
        parts += [f"{failed} failed"] if failed else []
        print(paint(", ".join(parts), "red" if failed else "green"))
        return not failed


def _case(result: CaseResult) -> str:
    return f"{result.file}: {printable(result.name)}"
