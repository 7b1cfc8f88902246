"""Where the bridge is installed, and whether it would work there.

Reads files of all hosts, starts nothing, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hookline.errors import SettingsError
from hookline.executors.contract import RegisteredHook
from hookline.settings.fields import Severity
from hookline.settings.lint import Finding
from hookline.settings.locations import Workspace
from hookline.settings.read import decode_text, read_bytes

from .catalog import all_hosts
from .host import Host, HostName
from .host_files import FILES, Call, Scope
from .install import (
    Installer,
    Wanted,
    is_long_enough,
    is_this,
    timeout_for,
    wanted_events,
)


class Installed(Struct, frozen=True):
    """The files of one host, of a project or the user, that call the bridge."""

    host: HostName
    scope: Scope
    files: tuple[str, ...]
    events: tuple[str, ...]
    findings: tuple[Finding, ...]


def find_installed(
    workspace: Workspace, hooks: Iterable[RegisteredHook]
) -> list[Installed]:
    """Every installation that applies in a workspace with these hooks."""
    listed = list(hooks)
    found = []
    for host in all_hosts().values():
        wanted = wanted_events(host, listed)
        by_scope = {
            scope: _calls(host, Installer(host.name, scope, workspace))
            for scope in Scope
        }
        for scope, (calls, problems) in by_scope.items():
            if calls or problems:
                elsewhere = _elsewhere(by_scope, scope)
                findings = [*problems, *_findings(host, calls, wanted, elsewhere)]
                found.append(_installed(host.name, scope, calls, findings))
    return found


_Calls = dict[str, list[Call]]


def _installed(
    host: HostName, scope: Scope, calls: _Calls, findings: list[Finding]
) -> Installed:
    files = tuple(calls) or tuple(one.file for one in findings)
    events = dict.fromkeys(call.event for each in calls.values() for call in each)
    return Installed(host, scope, files, tuple(events), tuple(findings))


def _calls(host: Host, installer: Installer) -> tuple[_Calls, list[Finding]]:
    try:
        return installer.calls(host.events), []
    except SettingsError as error:
        if not _mentions_us(error.file):
            return {}, []
        problem = f"{host.title} cannot read it, or reads it otherwise: {error.problem}"
        file = error.file or installer.file()
        line, column = error.line, error.column
        severity = Severity.WARNING
        found = Finding(
            file=file, line=line, column=column, severity=severity, message=problem
        )
        return {}, [found]


def _mentions_us(file: str | None) -> bool:
    """Whether a broken file is of any interest here."""
    try:
        return file is not None and "hookline" in decode_text(read_bytes(file), file)
    except SettingsError:
        return False


def _elsewhere(
    by_scope: dict[Scope, tuple[_Calls, list[Finding]]], scope: Scope
) -> dict[str, str]:
    """The events of the host's other file, and that file."""
    return {
        call.event: path
        for other, (calls, _) in by_scope.items()
        for path, each in calls.items()
        for call in each
        if other is not scope
    }


def _findings(
    host: Host, calls: _Calls, wanted: list[Wanted], elsewhere: dict[str, str]
) -> Iterator[Finding]:
    needed = {one.event: one for one in wanted}
    seen: set[str] = set()
    for path, each in calls.items():
        for call in each:
            for severity, problem in _problems(host, call, needed.get(call.event)):
                yield _finding(path, call.event, severity, problem)
            if call.event in seen or call.event in elsewhere:
                where = "twice here" if call.event in seen else elsewhere[call.event]
                problem = f"also called from {where}: the hooks run twice"
                yield _finding(path, call.event, Severity.WARNING, problem)
            seen.add(call.event)
    if calls and FILES[host.name].approval:
        message = f"runs {FILES[host.name].approval}: that cannot be seen from here"
        yield _finding(next(iter(calls)), "", Severity.HINT, message)
    again = f"run 'hookline install {host.name}' again"
    for event in needed if calls else ():
        if event not in seen and event not in elsewhere:
            ours = host.events[event].value
            problem = f"not installed, though {ours} has hooks: {again}"
            yield _finding(next(iter(calls)), event, Severity.WARNING, problem)


def _problems(
    host: Host, call: Call, wanted: Wanted | None
) -> Iterator[tuple[Severity, str]]:
    files = FILES[host.name]
    again = f"run 'hookline install {host.name}' again"
    program = " ".join(call.program)
    if not call.starts:
        problem = f"{program!r} is not found: {host.title} goes on without your hooks"
        yield Severity.ERROR, f"{problem}; {again}"
    elif not call.is_launched and not is_this(call.program):
        yield Severity.WARNING, f"{program!r} is another installation of Hookline"
    if call.matcher:
        problem = f"the matcher {call.matcher!r} keeps other tools from the hooks"
        yield Severity.WARNING, problem
    if wanted is None:
        ours = host.events.get(call.event)
        about = "unknown event" if ours is None else f"{ours.value} has no hooks"
        yield Severity.HINT, f"{about}: {again} to leave it out"
        return
    needed = timeout_for(files, wanted)
    if call.timeout is not None and not is_long_enough(call.timeout, needed):
        problem = f"{host.title} waits for {call.timeout} and may miss the verdict"
        yield Severity.WARNING, f"{problem}, hooks need up to {needed}: {again}"


def _finding(file: str, where: str, severity: Severity, message: str) -> Finding:
    return Finding(file=file, where=where, severity=severity, message=message)
