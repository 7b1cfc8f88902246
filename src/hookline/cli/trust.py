"""``hookline trust``: review and approve the hooks of a project."""

from __future__ import annotations

import os
import sys

from hookline.errors import HooklineError
from hookline.executors.contract import current_depth
from hookline.settings.locations import record_path
from hookline.trust import records, review

from .common import Options, Parser
from .terminal import paint, paint_diff, printable

SUMMARY = "review and approve the hooks of a project"
DESCRIPTION = """\
Hooks of a project run only after you have approved them, and only while they and their
files are unchanged: everything under .hookline, the files that their commands name, and
their trustFiles. This command shows what is new or changed and asks for approval.

  hookline trust             review the hooks of this project
  hookline trust --yes       approve without asking
  hookline trust --revoke    withdraw the approval
  hookline trust --list      show all trusted projects

exit status: 0 trusted or nothing to approve, 1 not trusted"""

_STYLES = {review.Change.NEW: "yellow", review.Change.SAME: "green"}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_cwd()
    parser.add_exclusive_flags(
        yes="approve without asking",
        list="show all trusted projects",
        revoke="withdraw the approval",
    )


def run(options: Options) -> int:
    """Review, list or revoke."""
    if options.list:
        return _list()
    if current_depth():
        raise HooklineError("a hook cannot approve hooks: run this command yourself")
    project = os.path.realpath(options.cwd)
    return _revoke(project) if options.revoke else _review(project, options.yes)


def _list() -> int:
    trusted = records.all_records()
    if not trusted:
        print("no project is trusted")
    for record in trusted:
        print(f"{paint(printable(record.project), 'bold')}  since {record.trusted_at}")
        for event, _, hook in record.placed_hooks():
            print(f"  {event.value}  {_escaped(hook.name)}")
    return 0


def _revoke(project: str) -> int:
    revoked = records.remove_record(project)
    text = "trust revoked, its hooks do not run" if revoked else "was not trusted"
    print(f"{printable(project)}: {text}")
    return 0


def _review(project: str, approved: bool) -> int:
    path = record_path(project)
    before = records.load_record(path) if path is not None else None
    now = review.take_snapshot(project)
    if review.is_unchanged(now, before):
        print("already trusted" if now.has_hooks else "this project has no hooks")
        return 0
    _print_review(now, before)
    if not (approved or _ask(now)):
        print("not trusted: nothing was changed", file=sys.stderr)
        return 1
    _save(now)
    return 0


def _ask(now: review.Snapshot) -> bool:
    sys.stdout.flush()  # the review must be on the screen before the question
    if not sys.stdin.isatty():
        hint = "review the above and run 'hookline trust --yes' to approve it"
        raise HooklineError(f"no terminal to ask on: {hint}")
    question = "Let these hooks run on this machine as you?"
    if not now.layers:
        question = "Remove the record of these hooks?"
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _save(now: review.Snapshot) -> None:
    project = now.record.project
    if not now.layers:
        records.remove_record(project)
        print(f"{printable(project)}: record removed, the project has no hooks")
    else:
        records.save_record(now.record, now.copies)
        print(f"{printable(project)}: {paint('trusted', 'green')}")


def _print_review(now: review.Snapshot, before: records.TrustRecord | None) -> None:
    project = now.record.project
    print(f"{printable(project)}\n")
    for reviewed in review.review_hooks(now, before):
        _print_hook(reviewed, project)
    for path, old, new in review.changed_files(now, before):
        name = _relative(path, project)
        print(f"{paint('changed', 'red')} {printable(name)}")
        for line in review.file_diff(name, old, new, now.copies):
            print(f"  {paint_diff(line)}")
        print()


def _print_hook(reviewed: review.ReviewedHook, project: str) -> None:
    hook = reviewed.hook
    where = f"{reviewed.event.value} {_escaped(reviewed.matcher or '*')}"
    mark = paint(f"{reviewed.change.value:8}", _STYLES.get(reviewed.change, "red"))
    name = paint(_escaped(hook.name), "bold")
    print(f"{mark} {name}  on {where}  ({hook.type.value})")
    if hook.command or hook.function:
        print(f"         runs   {_escaped(hook.command or hook.function or '')}")
    if reviewed.change is not review.Change.REMOVED:
        for path in reviewed.files:
            print(f"         pins   {printable(_relative(path, project))}")
        if reviewed.names_nothing:
            pinned = "only the command itself is pinned, not the programs it runs"
            print(f"         note   no file of the project is named: {pinned}")
    if reviewed.before is not None:
        for line in review.definition_diff(reviewed.before, hook):
            print(f"         {paint_diff(line)}")
    print()


def _escaped(text: str) -> str:
    """Keep a command on one line, with its line breaks visible."""
    return printable(text).replace("\n", "\\n")


def _relative(path: str, project: str) -> str:
    inside = path.startswith(f"{project}/")
    return os.path.relpath(path, project) if inside else path
