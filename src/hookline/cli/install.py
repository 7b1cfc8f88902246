"""``hookline install``: make a coding agent ask the project's hooks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress

from hookline.config import Config
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.hosts.file_changes import Change, ChangedMeanwhileError, apply
from hookline.hosts.host import Host, Layout
from hookline.hosts.host_files import (
    Scope,
    reads_project,
    switched_off_in,
)
from hookline.hosts.install import (
    Installer,
    Wanted,
    program_for,
    wanted_events,
)
from hookline.hosts.registry import HOSTS, host_of
from hookline.plan import RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.settings.model import TrustStatus
from hookline.settings.places import Workspace, absolute, find_workspace

from .common import Options, Parser
from .terminal import paint, paint_diff, printable

_ATTEMPTS = 5
SUMMARY = "make a coding agent ask your hooks"
DESCRIPTION = f"""\
Write 'hookline bridge HOST' into the settings of a coding agent, for the events that
have hooks in this project. Everything else in the file stays as it is, comments too;
'hookline uninstall HOST' restores it. Run it again when you add hooks for other events.

  hookline install claude              in .claude/settings.json of this project
  hookline install codex --user        for all your projects
  hookline install gemini --dry-run    show the change as a diff, write nothing

If Hookline is gone, crashes or is late, the agent then blocks its tools, and says what
to do; with --fail-open it runs them. Events of other kinds never wait for Hookline.

hosts: {", ".join(HOSTS)}

exit status: 0 installed (or already was), 1 nothing written"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("host", metavar="HOST", help="the coding agent, such as claude")
    parser.add_flag("--user", "write your own settings, which apply in all projects")
    parser.add_flag("--all-events", "also for events that have no hooks yet")
    parser.add_flag("--fail-open", "let tools run where Hookline gives no answer")
    parser.add_flag("--dry-run", "show the changes as a diff and write nothing")
    parser.add_cwd()


def run(options: Options) -> None:
    """Write the host's files, and say what to do next."""
    host = host_of(options.host)
    workspace = find_workspace(options.cwd)
    scope = Scope.USER if options.user else _project_scope(host, workspace)
    settings = Config.load(options.cwd).settings
    if settings.errors:
        raise HooklineError(f"{settings.errors[0]}")
    hooks = [hook for hook in HookRegistry(settings).all_hooks() if hook.enabled]
    wanted = wanted_events(
        host, hooks, all_events=options.all_events, fail_open=options.fail_open
    )
    _require_events(host, hooks, wanted)
    other = Scope.PROJECT if scope is Scope.USER else Scope.USER
    _refuse_twice(host, Installer(host.name, other, workspace))
    installer = Installer(host.name, scope, workspace)
    if installer.files.layout is not Layout.PLUGIN:  # that is written anew
        installer.calls(host.events)  # raises where the host would ignore its file
    program = program_for(scope)
    changes = installer.install(wanted, host.events, program)
    if options.dry_run:
        print_diffs(changes, would="write")
        return
    for attempt in range(_ATTEMPTS):
        try:
            apply(change for change in changes if change.is_needed)
            break
        except ChangedMeanwhileError:
            if attempt == _ATTEMPTS - 1:
                raise
            changes = installer.install(wanted, host.events, program)
    _print_changes(changes, wanted)
    if scope is Scope.USER and not options.user:
        told = "does not trust this project, and ignores the hooks in it"
        print(f"note:  {host.title} {told}: this file is for all your projects")
    _print_notes(host, hooks, wanted, workspace)
    if os.path.isabs(program[0]) and scope is Scope.PROJECT:  # noqa: PTH117
        where = "of this machine: 'hookline' on your PATH is another one, or missing"
        print(f"note:  the file names {program[0]} {where}. Do not commit it")
    elif _is_activated(program):
        everywhere = "install Hookline with uv or pipx to have it everywhere"
        when = "if started in this virtual environment"
        print(f"note:  {host.title} finds {program[0]!r} only {when}: {everywhere}")
    _print_next(host, scope, hooks)


def _is_activated(program: tuple[str, ...]) -> bool:
    """Whether a program is on the PATH only as long as an environment is active."""
    active = os.environ.get("VIRTUAL_ENV")
    found = shutil.which(program[0])
    is_inside = bool(active and found and found.startswith(f"{active}/"))
    return is_inside and not os.path.isabs(program[0])  # noqa: PTH117


def _project_scope(host: Host, workspace: Workspace) -> Scope:
    """The project's own file, unless the host would not read it."""
    files = host.files
    is_read = files.asks_for_trust or reads_project(files, workspace.root)
    project = Installer(host.name, Scope.PROJECT, workspace)
    return Scope.PROJECT if is_read or project.calls(host.events) else Scope.USER


def _require_events(
    host: Host, hooks: list[RegisteredHook], wanted: list[Wanted]
) -> None:
    if wanted:
        return
    if not hooks:
        hint = "'hookline init' sets up a first one, --all-events installs without any"
        raise HooklineError(f"no hooks are configured here: {hint}")
    events = ", ".join(_events(hooks))
    raise HooklineError(f"{host.title} has none of the events with hooks: {events}")


def _events(hooks: list[RegisteredHook]) -> dict[HookEventName, None]:
    return dict.fromkeys(hook.event for hook in hooks)


def _refuse_twice(host: Host, other: Installer) -> None:
    for path in other.calls(host.events):
        shown = shown_path(path)
        problem = f"{shown} calls the hooks already, so they would run twice"
        own = " --user" if other.scope is Scope.USER else ""
        hint = f"run 'hookline install {host.name}{own}' to update it"
        first = f"or 'hookline uninstall {host.name}' first"
        raise HooklineError(f"{problem}: {hint}, {first}")


def print_diffs(changes: list[Change], would: str) -> None:
    """Print what would be changed."""
    for change in changes:
        for line in _diff(change):
            print(paint_diff(line))
    if not any(change.is_needed for change in changes):
        print(f"nothing to {would}: all files are as they should be")


def _diff(change: Change) -> Iterator[str]:
    from difflib import unified_diff

    contents = (change.before, change.after)
    texts = ((content or b"").decode(errors="replace") for content in contents)
    # Other breaks are part of a line.
    before, after = (re.findall(r".*\n|.+", text) for text in texts)
    names = [
        "/dev/null" if content is None else shown_path(change.path)
        for content in contents
    ]
    for line in unified_diff(before, after, names[0], names[1]):
        text = line.rstrip("\r\n")
        yield text
        if text == line:
            yield "\\ No newline at end of file"


def shown_path(path: str) -> str:
    """A path as seen from here, or from the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 - a string
    below = path.removeprefix(f"{absolute('.')}/")
    return below if below != path else path.replace(f"{home}/", "~/", 1)


def _print_changes(changes: list[Change], wanted: list[Wanted]) -> None:
    events = ", ".join(one.event for one in wanted)
    needed = [change for change in changes if change.is_needed]
    for change in needed:
        done = "removed" if change.after is None else "wrote"
        print(f"{paint(done, 'green')}  {printable(shown_path(change.path))}")
    if not needed:
        path = shown_path(changes[0].path)
        print(f"{paint('already installed', 'green')} in {printable(path)}")
    print(f"events: {events}")


def _print_notes(
    host: Host,
    hooks: list[RegisteredHook],
    wanted: list[Wanted],
    workspace: Workspace,
) -> None:
    unknown = [event for event in _events(hooks) if event not in host.events.values()]
    never = f"{host.title} has no such event, its hooks never run"
    notes = [f"{event.value}: {never}" for event in unknown]
    for event in _events(hooks):
        limits = host.limits.get(event, {}).items()
        notes += [f"{event.value}: {effect.value}: {text}" for effect, text in limits]
    notes += [*_short(host, wanted), *_shared(host, workspace)]
    if any(one.closed for one in wanted):
        ways = "then install Hookline again, or remove its entry from the file"
        notes.append(f"{host.title} blocks tools if Hookline gives no answer: {ways}")
    if host.tested is None:
        notes.insert(0, f"untested: written by the documentation of {host.title} alone")
    off = switched_off_in(host.files, workspace)
    if off is not None:
        notes.insert(0, f"hooks are switched off in {shown_path(off)}: none will run")
    for note in notes:
        print(printable(f"note:  {note}"))


def _short(host: Host, wanted: list[Wanted]) -> Iterator[str]:
    files = host.files
    if files.timeout_key is None and files.default_ms:
        long = [one.event for one in wanted if one.needs_ms > files.default_ms]
        if long:
            limit = f"{host.title} ends a hook after {files.default_ms // 1000} s"
            yield f"{limit} and goes on: the hooks of {', '.join(long)} may take longer"


def _shared(host: Host, workspace: Workspace) -> Iterator[str]:
    """What happens where one host reads the file of another.

    hosts/README.md#rules 9
    """
    known = HOSTS
    readers = [known[one].title for one in host.files.readers if one in known]
    if readers:
        unless = "unless they have a 'hookline install' of their own"
        yield f"the file also serves {', '.join(readers)}, {unless}"
    for other in known.values():
        for scope in Scope if host.name in other.files.readers else ():
            with suppress(HooklineError):  # nobody can read it, so nobody calls it
                for path in Installer(other.name, scope, workspace).calls(other.events):
                    silent = f"stays silent in {host.title} from now on"
                    yield f"the call in {shown_path(path)} {silent}"


def _print_next(host: Host, scope: Scope, hooks: list[RegisteredHook]) -> None:
    steps = []
    if any(hook.trust is not TrustStatus.TRUSTED for hook in hooks):
        steps.append("hookline trust   # the project's hooks do not run before that")
    if host.files.next_step:
        steps.append(host.files.next_step)
    if scope is Scope.USER:
        again = f"hookline install {host.name} --user --all-events"
        steps.append(f"{again}   # if other projects have hooks for other events")
    if steps:
        print("\nnext:")
        for step in steps:
            print(f"  {step}")
