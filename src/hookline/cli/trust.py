"""``hookline trust``: look at a project's hooks and agree to them, byte for byte."""

from __future__ import annotations

import argparse
import os
import sys

from hookline.errors import HooklineError
from hookline.executors.contract import current_depth
from hookline.trust.records import (
    TrustRecord,
    all_records,
    load_record,
    record_path,
    remove_record,
    save_record,
)
from hookline.trust.review import (
    Change,
    ReviewedHook,
    Snapshot,
    changed_files,
    definition_diff,
    file_diff,
    is_unchanged,
    real_project,
    review_hooks,
    take_snapshot,
    trusted_layer,
)

from .common import paint, plain

SUMMARY = "look at a project's hooks and agree to them"
DESCRIPTION = """\
Hooks of a project run after a person has agreed to them, and only as long as they and
their files stay as they were then: everything under .hookline, the files that their
commands name, and their trustFiles. This shows what is new or has changed, and asks.

  hookline trust             show the hooks of this project and ask
  hookline trust --yes       agree without a question
  hookline trust --revoke    take it back
  hookline trust --list      everything that is trusted

exit status: 0 trusted or nothing to do, 1 not trusted"""

_COLOURS = {
    Change.NEW: "yellow",
    Change.CHANGED: "red",
    Change.REMOVED: "red",
    Change.SAME: "green",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--cwd", metavar="DIR", default=".", help="the project (default: here)"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--yes", action="store_true", help="agree without a question")
    choice.add_argument(
        "--list", action="store_true", help="show everything that is trusted"
    )
    choice.add_argument(
        "--revoke", action="store_true", help="trust this project's hooks no more"
    )


def run(options: argparse.Namespace) -> int:
    """Do what the options say."""
    if options.list:
        return _list()
    if not os.path.isdir(options.cwd):  # noqa: PTH112 - no pathlib at start-up
        raise HooklineError(f"--cwd {options.cwd!r} is no directory")
    if current_depth():
        raise HooklineError("a hook cannot agree to hooks: run this yourself")
    project = real_project(options.cwd)
    return _revoke(project) if options.revoke else _review(project, options.yes)


def _list() -> int:
    records = all_records()
    if not records:
        print("no project is trusted")
    for record in records:
        print(f"{paint(plain(record.project), 'bold')}  since {record.trusted_at}")
        for event, groups in trusted_layer(record).groups.items():
            for hook in (hook for group in groups for hook in group.hooks):
                print(f"  {event.value}  {_line(hook.name)}")
    return 0


def _revoke(project: str) -> int:
    if remove_record(project):
        print(f"{plain(project)}: its hooks are trusted no more and will not run")
    else:
        print(f"{plain(project)}: was not trusted")
    return 0


def _review(project: str, agreed: bool) -> int:
    path = record_path(project)
    before = load_record(path) if path is not None else None
    now = take_snapshot(project)
    if is_unchanged(now, before):
        nothing = now.layer is None or not now.layer.groups
        print("there are no project hooks here" if nothing else "trusted already")
        return 0
    _show(now, before)
    if not (agreed or _ask(now)):
        print("not trusted: nothing was changed", file=sys.stderr)
        return 1
    _remember(now)
    return 0


def _remember(now: Snapshot) -> None:
    project = now.record.project
    if now.layer is None:
        remove_record(project)
        print(f"{plain(project)}: forgotten, it has no hooks any more")
    else:
        save_record(now.record, now.copies)
        print(f"{plain(project)}: {paint('trusted', 'green')}")


def _ask(now: Snapshot) -> bool:
    sys.stdout.flush()  # what is to be looked at comes before the question
    if not sys.stdin.isatty():
        raise HooklineError(
            "there is no terminal to ask at: look at the above and run "
            "'hookline trust --yes' if you agree"
        )
    question = (
        "Forget these hooks? [y/N] "
        if now.layer is None
        else "Let these hooks run on this machine, as you? [y/N] "
    )
    try:
        return input(question).strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _show(now: Snapshot, before: TrustRecord | None) -> None:
    print(f"{plain(now.record.project)}\n")
    for reviewed in review_hooks(now, before):
        _show_hook(reviewed, now.record.project)
    for path, old, new in changed_files(now, before):
        print(f"{paint('changed', 'red')} {plain(_short(path, now.record.project))}")
        for line in file_diff(_short(path, now.record.project), old, new, now.copies):
            print(f"  {_diff_line(line)}")
        print()


def _show_hook(reviewed: ReviewedHook, project: str) -> None:
    hook = reviewed.hook
    where = f"{reviewed.event.value} {_line(reviewed.matcher or '*')}"
    mark = paint(f"{reviewed.change.value:8}", _COLOURS[reviewed.change])
    print(f"{mark} {paint(_line(hook.name), 'bold')}  on {where}  ({hook.type.value})")
    if hook.command or hook.function:
        print(f"         runs   {_line(hook.command or hook.function or '')}")
    if reviewed.change is not Change.REMOVED:
        for path in reviewed.files:
            print(f"         pins   {plain(_short(path, project))}")
        if reviewed.names_nothing:
            print(
                "         note   it names no file of the project: its words are "
                "trusted, what they run can change"
            )
    if reviewed.before is not None:
        for line in definition_diff(reviewed.before, hook):
            print(f"         {_diff_line(line)}")
    print()


def _diff_line(line: str) -> str:
    style = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
    shown = plain(line)
    return shown if style is None else paint(shown, style)


def _line(text: str) -> str:
    return plain(text).replace("\n", "\\n")


def _short(path: str, project: str) -> str:
    inside = path.startswith(f"{project}/")
    return os.path.relpath(path, project) if inside else path
