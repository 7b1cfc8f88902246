"""``hookline trust``: review and approve the hooks of projects."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from hookline.errors import HooklineError
from hookline.plan import current_depth
from hookline.protocol.values import encode
from hookline.settings.places import find_workspace, record_path
from hookline.trust import records
from hookline.trust.pins import ABSENT, PinKind
from hookline.trust.review import (
    Change,
    Definition,
    Review,
    ReviewedHook,
    line_diff,
    review_project,
)

from .common import Options, Parser
from .terminal import paint, paint_diff, plural, printable, printable_text, show_pages

SUMMARY = "review and approve the hooks of a project"
DESCRIPTION = """\
Hooks of a project run only after you have approved them, and only while they and their
files are unchanged: everything under .hookline, the files that their commands name, and
their trustFiles. This command shows everything that is new or changed, the definition
of each hook, the options of the project and all files that are approved with it, and
asks for approval: for each project that applies in this directory, one by one.

  hookline trust             review the hooks that apply here
  hookline trust ../other    review those of another project
  hookline trust --show      with the text of new and changed files
  hookline trust --yes       approve without asking
  hookline trust --revoke    withdraw the approval
  hookline trust --list      show all trusted projects

At a terminal the review includes the files and is shown by $PAGER, or less.

exit status: 0 trusted or nothing to approve, 1 not trusted"""

AGENT_VARIABLES = (
    *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "AI_AGENT"),
    *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
    *("GEMINI_CLI", "QWEN_CODE", "QWEN_CODE_SESSION_ID"),
    *("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID", "CURSOR_AGENT", "OPENCODE"),
    *("CLINE_ACTIVE", "GOOSE_TERMINAL"),
)
"""What coding agents set for the commands of their shell tools."""
_STYLES = {Change.NEW: "yellow", Change.SAME: "green"}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "project to review (default: all that apply in the current directory)"
    parser.add_argument("path", nargs="?", metavar="PROJECT", help=text)
    parser.add_cwd("where to look for projects (default: the current directory)")
    parser.add_flag("--show", "also show the text of new and changed files")
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
    if options.yes or options.revoke:
        _require_person(options)
    if options.revoke:
        return _revoke(options)
    projects = _projects(options)
    if len(projects) == 1:
        return _review(projects[0], options)
    return max(_review_one_of_several(project, options) for project in projects)


def _projects(options: Options) -> tuple[str, ...]:
    if options.path is None:
        workspace = find_workspace(options.cwd)
        return workspace.projects or (workspace.folder,)
    if not os.path.isdir(options.path) and not _has_record(options.path):  # noqa: PTH112
        raise HooklineError(f"{options.path!r} is not a directory")
    return (os.path.realpath(options.path),)


def _has_record(project: str) -> bool:
    path = record_path(os.path.realpath(project))
    return path is not None and os.path.lexists(path)


def _list() -> int:
    approvals = records.all_approvals()
    if not approvals:
        print("no project is trusted")
    for approval in approvals:
        since = approval.trusted_at
        print(f"{paint(_escaped(approval.project), 'bold')}  since {since}")
        for event, _, hook in approval.placed_hooks():
            print(f"  {event.value}  {_escaped(hook.name)}")
    return 0


def _revoke(options: Options) -> int:
    found = _projects(options)
    trusted = [project for project in found if _has_record(project)]
    if len(trusted) > 1:
        listed = "\n  ".join(map(_escaped, trusted))
        hint = f"name the one to revoke, 'hookline trust --revoke PROJECT':\n  {listed}"
        raise HooklineError(f"several trusted projects apply here: {hint}")
    project = trusted[0] if trusted else found[-1]
    revoked = records.remove_record(project)
    text = "trust revoked, its hooks do not run" if revoked else "was not trusted"
    print(f"{_escaped(project)}: {text}")
    return 0


def _review_one_of_several(project: str, options: Options) -> int:
    """Its problems must not hide the other projects."""
    try:
        return _review(project, options, f"{_escaped(project)}: ")
    except HooklineError as error:
        print(f"hookline: {printable_text(str(error))}", file=sys.stderr)
        return 1


def _review(project: str, options: Options, label: str = "") -> int:
    review = review_project(project)
    if review.is_unchanged:
        text = "already trusted" if review.has_hooks else "this project has no hooks"
        print(f"{label}{text}")
        return 0
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    at_terminal = not options.yes and is_terminal and not _agent_variables()
    lines = _review_lines(review, show=options.show or at_terminal)
    if at_terminal:
        show_pages(lines, project)
    else:
        print(*lines, sep="\n")
    if not options.yes:
        sys.stdout.flush()  # the review must be on the screen before the question
        _require_person(options)
    if not (options.yes or _ask(review)):
        print("not trusted: nothing was changed", file=sys.stderr)
        return 1
    if not review.layers:
        records.remove_record(project)
        print(f"{_escaped(project)}: record removed, the project has no hooks")
    else:
        records.save_record(review.manifest, review.copies)
        print(f"{_escaped(project)}: {paint('trusted', 'green')}")
    return 0


def _agent_variables() -> list[str]:
    """What says that a coding agent's shell tool has started this process."""
    return [name for name in AGENT_VARIABLES if os.environ.get(name)]


def _require_person(options: Options) -> None:
    """An approval is a person's: raise where an agent runs this."""
    if variables := _agent_variables():
        where = os.path.abspath(options.path or options.cwd or ".")  # noqa: PTH100
        raise HooklineError(
            f"a coding agent cannot approve hooks ({variables[0]} is set): in a "
            f"terminal of your own, type: cd {shlex.quote(where)} && hookline trust"
        )


def _ask(review: Review) -> bool:
    if not sys.stdin.isatty():
        hint = "review the above and run 'hookline trust --yes' to approve it"
        raise HooklineError(f"no terminal to ask on: {hint}")
    question = "Let these hooks run on this machine as you?"
    if not review.layers:
        question = "Remove the record of these hooks?"
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        return False


def _review_lines(review: Review, *, show: bool) -> Iterator[str]:
    """Everything that an approval would cover."""
    project = review.manifest.project
    yield from (paint(_escaped(project), "bold"), "")
    for warning in (text for layer in review.layers for text in layer.warnings):
        yield f"{paint('warning', 'yellow')}  {_escaped(warning)}"
    for reviewed in review.hooks():
        yield from _hook_lines(reviewed, project)
    yield from _settings_lines(review)
    yield from _pinned_lines(review)
    for file in review.files() if review.before is not None else ():
        is_new = file.before == ABSENT and file.pin.kind is PinKind.FILE
        if not file.is_different or (show and is_new):  # the text of new ones follows
            continue
        name = _escaped(_relative(file.path, project))
        yield f"{paint('changed', 'red')} {name}"
        diff = review.file_diff(name, file)
        yield from (f"  {paint_diff(line)}" for line in diff)
        yield ""
    if show:
        yield from _content_lines(review)


def _hook_lines(reviewed: ReviewedHook, project: str) -> Iterator[str]:
    definition, hook = reviewed.definition, reviewed.definition.hook
    where = f"{definition.event.value} {_escaped(definition.matcher or '*')}"
    mark = paint(f"{reviewed.change.value:8}", _STYLES.get(reviewed.change, "red"))
    name = paint(_escaped(hook.name), "bold")
    yield f"{mark} {name}  on {where}  ({hook.type.value})"
    if definition.runs:
        yield f"         runs   {_escaped(*definition.runs.values())}"
    yield from (f"         {line}" for line in _key_lines(definition))
    if reviewed.change is not Change.REMOVED:
        for path in reviewed.files:
            yield f"         pins   {_escaped(_relative(path, project))}"
    for path, note in reviewed.notes:
        name = path and f"{_escaped(_relative(path, project))} "
        yield f"         note   {name}{_escaped(note)}"
    if reviewed.before is not None:
        diff = line_diff(reviewed.before.lines(), definition.lines())
        yield from (f"         {paint_diff(line)}" for line in diff)
    yield ""


def _key_lines(definition: Definition) -> Iterator[str]:
    for key, value in definition.other_keys():
        yield f"{_escaped(key)}: {_json(value)}"
    for name, text in definition.cautions():
        yield f"{paint('caution', 'red')} {_escaped(name)} {text}"


def _settings_lines(review: Review) -> Iterator[str]:
    """What the settings files say beside their hooks."""
    for changed in review.changed_options():
        yield f"{paint('options', 'yellow')}  {_escaped(changed.file)}"
        if changed.before:
            yield from (f"         {paint_diff(line)}" for line in changed.diff())
        else:
            for key, value in changed.options.items():
                yield f"         {_escaped(key)}: {_json(value)}"
        yield ""


def _pinned_lines(review: Review) -> Iterator[str]:
    pinned = [file for file in review.files() if file.is_pinned]
    if not pinned:
        return
    yield f"approved with them, byte for byte: {plural(len(pinned), 'path')}"
    for file in pinned:
        name = _escaped(_relative(file.path, review.manifest.project))
        link = f" -> {_escaped(file.pin.link)}" if file.pin.link is not None else ""
        is_file = file.pin.kind is PinKind.FILE
        size = f"  {plural(file.pin.size, 'byte')}" if is_file else ""
        note = file.note and f"  {file.note}"
        yield f"  {file.change.value:8} {name}{link}{size}{note}"
    yield ""


def _content_lines(review: Review) -> Iterator[str]:
    for file in review.files():
        if file.pin.kind is PinKind.FILE and file.change is not Change.SAME:
            yield paint(_escaped(_relative(file.path, review.manifest.project)), "bold")
            # Each line has a mark, so that no text can pass for the review itself.
            for line in review.content_lines(file):
                yield "  | " + printable(line, keep="\t")
            yield ""


def _json(value: Any) -> str:
    return _escaped(encode(value).decode())


def _escaped(text: str) -> str:
    """Keep a text on one line, with its line breaks and long gaps visible."""
    shown = printable(text, keep="\t")
    return re.sub(r"[ \t]{9,}", lambda gap: f" [{len(gap[0])} blanks] ", shown)


def _relative(path: str, project: str) -> str:
    inside = path.startswith(f"{project}/")
    return os.path.relpath(path, project) if inside else path
