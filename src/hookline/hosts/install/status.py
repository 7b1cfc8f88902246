"""Where the bridge is installed, and whether it would work there.

Reads files of all hosts, starts nothing, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from hookline.errors import SettingsError
from hookline.hosts.host import Host
from hookline.hosts.host_files import Scope, reads_project, switched_off_in
from hookline.hosts.registry import HOSTS
from hookline.plan import RegisteredHook
from hookline.settings.check import Finding
from hookline.settings.model import Severity
from hookline.settings.places import Workspace
from hookline.settings.read import read_text

from .calls import Call
from .installer import BridgedEvent, Installer, bridged_events, is_this

_ERROR, _WARNING, _HINT = Severity.ERROR, Severity.WARNING, Severity.HINT


class Installed(Struct, frozen=True):
    """The files of one host, of a project or the user, that call the bridge."""

    host: str
    scope: Scope
    files: tuple[str, ...]
    events: tuple[str, ...]
    findings: tuple[Finding, ...]
    missing: tuple[str, ...] = ()
    """Our events that have hooks and are not installed."""


def find_installed(
    workspace: Workspace, hooks: Iterable[RegisteredHook]
) -> list[Installed]:
    """Every installation that applies in a workspace with these hooks."""
    hooks = list(hooks)
    return [
        installed
        for host in HOSTS.values()
        for installed in _installed(host, workspace, bridged_events(host, hooks))
    ]


def _installed(
    host: Host, workspace: Workspace, events: list[BridgedEvent]
) -> Iterator[Installed]:
    calls: dict[Scope, list[Call]] = {}
    broken: dict[Scope, Finding] = {}
    for scope in Scope:
        try:
            calls[scope] = Installer(host, scope, workspace).calls()
        except SettingsError as error:
            calls[scope] = []
            if finding := _unreadable(host, error):
                broken[scope] = finding
    for scope in Scope:
        if scope in broken:
            file = broken[scope].file
            yield Installed(host.name, scope, (file,), (), (broken[scope],))
        if not calls[scope]:
            continue
        elsewhere = [call for x in Scope if x is not scope for call in calls[x]]
        covered = {call.event for call in (*calls[scope], *elsewhere)}
        missing = [event.name for event in events if event.name not in covered]
        installer = Installer(host, scope, workspace)
        yield Installed(
            host.name,
            scope,
            tuple(dict.fromkeys(call.file for call in calls[scope])),
            tuple(dict.fromkeys(call.event for call in calls[scope])),
            (
                *_call_findings(installer, calls[scope], elsewhere, events),
                *_missing_findings(installer, calls[scope][0].file, missing),
                *_host_findings(host, scope, calls[scope][0].file, workspace),
            ),
            tuple(dict.fromkeys(host.events[event].value for event in missing)),
        )


def _unreadable(host: Host, error: SettingsError) -> Finding | None:
    """What is wrong with a broken file, if it is of any interest here."""
    if error.file is None:
        return None
    with suppress(SettingsError):
        if "hookline" in read_text(error.file):
            reason = f"cannot read it, or reads it otherwise: {error.problem}"
            return Finding(
                file=error.file,
                line=error.line,
                column=error.column,
                severity=_WARNING,
                message=f"{host.title} {reason}",
            )
    return None


def _finding(file: str, where: str, severity: Severity, message: str) -> Finding:
    return Finding(file=file, where=where, severity=severity, message=message)


def _call_findings(
    installer: Installer,
    calls: list[Call],
    elsewhere: list[Call],
    events: list[BridgedEvent],
) -> Iterator[Finding]:
    event_by_name = {event.name: event for event in events}
    other_file = {call.event: call.file for call in elsewhere}
    covered: set[str] = set()
    for call in calls:
        problems = _problems(installer, call, event_by_name.get(call.event))
        for severity, problem in problems:
            yield _finding(call.file, call.event, severity, problem)
        if call.event in covered or call.event in other_file:
            where = "twice here" if call.event in covered else other_file[call.event]
            problem = f"also called from {where}: the hooks run twice"
            yield _finding(call.file, call.event, _WARNING, problem)
        covered.add(call.event)


def _problems(
    installer: Installer, call: Call, event: BridgedEvent | None
) -> Iterator[tuple[Severity, str]]:
    host = installer.host
    reinstall = f"run '{installer.command}' again"
    program = " ".join(call.program)
    if not call.starts:
        effect = "blocks every call" if call.closed else "goes on without your hooks"
        yield _ERROR, f"{program!r} is not found: {host.title} {effect}; {reinstall}"
    elif not call.is_launched and not is_this(call.program):
        yield _WARNING, f"{program!r} is another installation of Hookline"
    if not call.is_safe:
        problem = "lets files of the project take Hookline's place: write -P before -m"
        yield _WARNING, f"{program!r} {problem}"
    if call.matcher:
        problem = f"the matcher {call.matcher!r} keeps other tools from the hooks"
        yield _WARNING, problem
    if event is None:
        our_event = host.events.get(call.event)
        if our_event is None:
            yield _HINT, f"unknown event: {reinstall} to leave it out"
        elif not installer.is_shared:
            yield _HINT, f"{our_event.value} has no hooks: {reinstall} to leave it out"
        return
    if event.closed and not call.closed:
        problem = f"{host.title} runs the tool if it gets no answer: {reinstall}"
        yield _HINT, f"{problem} without --fail-open"
    needed = event.timeout(installer.files)
    if call.timeout is not None and not call.waits(needed):
        problem = f"{host.title} waits for {call.timeout} and may miss the verdict"
        yield _WARNING, f"{problem}, hooks need up to {needed}: {reinstall}"


def _missing_findings(
    installer: Installer, file: str, missing: list[str]
) -> Iterator[Finding]:
    """One for each of our events that the host should ask about and does not."""
    by_event: dict[str, list[str]] = {}
    for name in missing:
        by_event.setdefault(installer.host.events[name].value, []).append(name)
    for event, names in by_event.items():
        reinstall = f"run '{installer.command}' again"
        problem = f"not installed, though {event} has hooks: {reinstall}"
        yield _finding(file, ", ".join(names), _WARNING, problem)


def _host_findings(
    host: Host, scope: Scope, file: str, workspace: Workspace
) -> Iterator[Finding]:
    """What keeps a host from running any hook."""
    files = host.files
    off = switched_off_in(files, workspace)
    if off is not None:
        message = f"hooks are switched off here: {host.title} runs none"
        yield _finding(off, "", _WARNING, message)
    if scope is Scope.PROJECT and not reads_project(files, workspace.root):
        message = f"{host.title} does not trust this folder, and ignores the file"
        yield _finding(file, "", _HINT if files.asks_for_trust else _WARNING, message)
    if files.approval:
        message = f"runs {files.approval}: that cannot be seen from here"
        yield _finding(file, "", _HINT, message)
