"""``hookline trust``: review and approve the hooks of projects."""

from __future__ import annotations

import os
import shlex
import sys

from hookline.errors import HooklineError
from hookline.plan import current_depth
from hookline.settings.places import find_workspace, record_path
from hookline.trust import records
from hookline.trust.review import Review, review_project
from hookline.trust.review_text import ReviewText, escaped

from .options import Options, Parser
from .terminal import paint, printable_text, show_pages

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
        print(f"{paint(escaped(approval.project), 'bold')}  since {since}")
        for event, _, hook in approval.placed_hooks():
            print(f"  {event.value}  {escaped(hook.name)}")
    return 0


def _revoke(options: Options) -> int:
    projects = _projects(options)
    trusted = [project for project in projects if _has_record(project)]
    if len(trusted) > 1:
        listed = "\n  ".join(map(escaped, trusted))
        hint = f"name the one to revoke, 'hookline trust --revoke PROJECT':\n  {listed}"
        raise HooklineError(f"several trusted projects apply here: {hint}")
    project = trusted[0] if trusted else projects[-1]
    revoked = records.remove_record(project)
    text = "trust revoked, its hooks do not run" if revoked else "was not trusted"
    print(f"{escaped(project)}: {text}")
    return 0


def _review_one_of_several(project: str, options: Options) -> int:
    """Its problems must not hide the other projects."""
    try:
        return _review(project, options, f"{escaped(project)}: ")
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
    lines = ReviewText(review, paint).lines(show=options.show or at_terminal)
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
        print(f"{escaped(project)}: record removed, the project has no hooks")
    else:
        records.save_record(review.manifest, review.copies)
        print(f"{escaped(project)}: {paint('trusted', 'green')}")
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
