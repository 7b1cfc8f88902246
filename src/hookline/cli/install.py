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
from hookline.hosts.host import Host, Layout
from hookline.hosts.host_files import (
    Scope,
    reads_project,
    switched_off_in,
)
from hookline.hosts.install.changes import Change, ChangedMeanwhileError, apply
from hookline.hosts.install.installer import (
    BridgedEvent,
    Installer,
    bridged_events,
    program_for,
)
from hookline.hosts.registry import HOSTS, host_of
from hookline.plan import RegisteredHook
from hookline.settings.model import TrustStatus
from hookline.settings.places import Workspace, absolute, find_workspace

from .options import Options, Parser
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
    installer = Installer(host, Scope.USER, workspace)
    other = Installer(host, Scope.PROJECT, workspace)
    files = installer.files
    is_read = files.asks_for_trust or reads_project(files, workspace.root)
    if not options.user and (is_read or other.calls()):
        installer, other = other, installer
    hooks = _enabled_hooks(options.cwd)
    events = bridged_events(
        host, hooks, all_events=options.all_events, fail_open=options.fail_open
    )
    if not events:
        names = ", ".join(dict.fromkeys(hook.event for hook in hooks))
        problem = f"{host.title} has none of the events with hooks: {names}"
        if not hooks:
            hint = "'hookline init' sets up a first one, --all-events installs without"
            problem = f"no hooks are configured here: {hint} any"
        raise HooklineError(problem)
    for call in other.calls():
        problem = "calls the hooks already, so they would run twice"
        hint = f"run '{other.command}' to update it"
        first = f"or 'hookline uninstall {host.name}' first"
        raise HooklineError(f"{shown_path(call.file)} {problem}: {hint}, {first}")
    if files.layout is not Layout.PLUGIN:  # that is written anew
        installer.calls()  # raises where the host would ignore its file
    program = program_for(installer.scope)
    changes = installer.install(events, program)
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
            changes = installer.install(events, program)
    needed = [change for change in changes if change.is_needed]
    for change in needed:
        done = "removed" if change.after is None else "wrote"
        print(f"{paint(done, 'green')}  {printable(shown_path(change.path))}")
    if not needed:
        path = printable(shown_path(changes[0].path))
        print(f"{paint('already installed', 'green')} in {path}")
    print(f"events: {', '.join(event.name for event in events)}")
    if installer.scope is Scope.USER and not options.user:
        ignored = "does not trust this project, and ignores the hooks in it"
        print(f"note:  {host.title} {ignored}: this file is for all your projects")
    for note in (
        *_host_notes(host, hooks, events, workspace),
        *_program_notes(host, installer.scope, program),
    ):
        print(printable(f"note:  {note}"))
    steps = [*_next_steps(installer, hooks)]
    if steps:
        print("\nnext:", *steps, sep="\n  ")


def _enabled_hooks(folder: str) -> list[RegisteredHook]:
    settings = Config.load(folder).settings
    if settings.errors:
        raise HooklineError(f"{settings.errors[0]}")
    return [hook for hook in HookRegistry(settings).all_hooks() if hook.enabled]


def print_diffs(changes: list[Change], would: str) -> None:
    """Print what would be changed."""
    from difflib import unified_diff

    for change in changes:
        contents = (change.before, change.after)
        texts = ((content or b"").decode(errors="replace") for content in contents)
        # Other breaks are part of a line.
        before, after = (re.findall(r".*\n|.+", text) for text in texts)
        path = shown_path(change.path)
        names = ["/dev/null" if content is None else path for content in contents]
        for line in unified_diff(before, after, names[0], names[1]):
            text = line.rstrip("\r\n")
            print(paint_diff(text))
            if text == line:
                print(paint_diff("\\ No newline at end of file"))
    if not any(change.is_needed for change in changes):
        print(f"nothing to {would}: all files are as they should be")


def shown_path(path: str) -> str:
    """A path as seen from here, or from the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 - a string
    below = path.removeprefix(f"{absolute('.')}/")
    return below if below != path else path.replace(f"{home}/", "~/", 1)


def _host_notes(
    host: Host,
    hooks: list[RegisteredHook],
    events: list[BridgedEvent],
    workspace: Workspace,
) -> Iterator[str]:
    """What the host cannot do, and what changes for hosts that read its file."""
    files = host.files
    off_file = switched_off_in(files, workspace)
    if off_file is not None:
        yield f"hooks are switched off in {shown_path(off_file)}: none will run"
    if host.tested is None:
        yield f"untested: written by the documentation of {host.title} alone"
    hooked = dict.fromkeys(hook.event for hook in hooks)
    for event in hooked:
        if event not in host.events.values():
            never = f"{host.title} has no such event, its hooks never run"
            yield f"{event.value}: {never}"
    for event in hooked:
        for effect, text in host.limits.get(event, {}).items():
            yield f"{event.value}: {effect.value}: {text}"
    if files.timeout_key is None and files.default_ms:
        longer = [event.name for event in events if event.needs_ms > files.default_ms]
        if longer:
            limit = f"{host.title} ends a hook after {files.default_ms // 1000} s"
            slow = f"the hooks of {', '.join(longer)} may take longer"
            yield f"{limit} and goes on: {slow}"
    # hosts/README.md#rules 9
    if files.readers:
        readers = ", ".join(HOSTS[reader].title for reader in files.readers)
        unless = "unless they have a 'hookline install' of their own"
        yield f"the file also serves {readers}, {unless}"
    for other in HOSTS.values():
        for scope in Scope if host.name in other.files.readers else ():
            with suppress(HooklineError):  # nobody can read it, so nobody calls it
                calls = Installer(other, scope, workspace).calls()
                for file in dict.fromkeys(call.file for call in calls):
                    silent = f"stays silent in {host.title} from now on"
                    yield f"the call in {shown_path(file)} {silent}"
    if any(event.closed for event in events):
        ways = "then install Hookline again, or remove its entry from the file"
        yield f"{host.title} blocks tools if Hookline gives no answer: {ways}"


def _program_notes(host: Host, scope: Scope, program: tuple[str, ...]) -> Iterator[str]:
    """Where the program that the file names is not found."""
    is_absolute = os.path.isabs(program[0])  # noqa: PTH117
    environment = os.environ.get("VIRTUAL_ENV")
    path = shutil.which(program[0]) or ""
    if is_absolute and scope is Scope.PROJECT:
        where = "of this machine: 'hookline' on your PATH is another one, or missing"
        yield f"the file names {program[0]} {where}. Do not commit it"
    elif not is_absolute and environment and path.startswith(f"{environment}/"):
        everywhere = "install Hookline with uv or pipx to have it everywhere"
        when = "if started in this virtual environment"
        yield f"{host.title} finds {program[0]!r} only {when}: {everywhere}"


def _next_steps(installer: Installer, hooks: list[RegisteredHook]) -> Iterator[str]:
    """What a person does before the hooks run."""
    if any(hook.trust is not TrustStatus.TRUSTED for hook in hooks):
        yield "hookline trust   # the project's hooks do not run before that"
    if installer.files.next_step:
        yield installer.files.next_step
    if installer.scope is Scope.USER:
        reason = "if other projects have hooks for other events"
        yield f"{installer.command} --all-events   # {reason}"
