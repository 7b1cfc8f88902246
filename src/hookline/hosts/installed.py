"""Where the bridge is installed, and whether it would work there.

Reads files of all hosts, starts nothing, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from hookline.errors import SettingsError
from hookline.plan import RegisteredHook
from hookline.settings.check import Finding
from hookline.settings.model import Severity
from hookline.settings.places import Workspace
from hookline.settings.read import decode_text, read_bytes

from .host import Host
from .host_files import Call, Scope, reads_project, switched_off_in
from .install import (
    Installer,
    Wanted,
    is_long_enough,
    is_this,
    timeout_for,
    wanted_events,
)
from .registry import HOSTS


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
    listed = list(hooks)
    found = []
    for host in HOSTS.values():
        wanted = wanted_events(host, listed)
        installers = {scope: Installer(host.name, scope, workspace) for scope in Scope}
        by_scope = {scope: _calls(host, one) for scope, one in installers.items()}
        for scope, (calls, problems) in by_scope.items():
            if calls or problems:
                elsewhere = _elsewhere(by_scope, scope)
                own = _findings(host, installers[scope], calls, wanted, elsewhere)
                general = _host_findings(host, scope, calls, workspace)
                findings = [*problems, *own, *general]
                missing = tuple(_missing(host, calls, wanted, elsewhere))
                one = _installed(host.name, scope, calls, findings)
                found.append(structs.replace(one, missing=missing))
    return found


_Calls = dict[str, list[Call]]


def _installed(
    host: str, scope: Scope, calls: _Calls, findings: list[Finding]
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


def _host_findings(
    host: Host, scope: Scope, calls: _Calls, workspace: Workspace
) -> Iterator[Finding]:
    """What keeps a host from running any hook."""
    if not calls:
        return
    files = host.files
    off = switched_off_in(files, workspace)
    if off is not None:
        message = f"hooks are switched off here: {host.title} runs none"
        yield _finding(off, "", Severity.WARNING, message)
    path = next(iter(calls))
    if scope is Scope.PROJECT and not reads_project(files, workspace.root):
        message = f"{host.title} does not trust this folder, and ignores the file"
        severity = Severity.HINT if files.asks_for_trust else Severity.WARNING
        yield _finding(path, "", severity, message)
    if files.approval:
        message = f"runs {files.approval}: that cannot be seen from here"
        yield _finding(path, "", Severity.HINT, message)


def _findings(
    host: Host,
    installer: Installer,
    calls: _Calls,
    wanted: list[Wanted],
    elsewhere: dict[str, str],
) -> Iterator[Finding]:
    needed = {one.event: one for one in wanted}
    seen: set[str] = set()
    for path, each in calls.items():
        for call in each:
            problems = _problems(host, installer, call, needed.get(call.event))
            for severity, problem in problems:
                yield _finding(path, call.event, severity, problem)
            if call.event in seen or call.event in elsewhere:
                where = "twice here" if call.event in seen else elsewhere[call.event]
                problem = f"also called from {where}: the hooks run twice"
                yield _finding(path, call.event, Severity.WARNING, problem)
            seen.add(call.event)
    for ours, events in _missing(host, calls, wanted, elsewhere).items():
        problem = f"not installed, though {ours} has hooks: {_again(installer)}"
        yield _finding(next(iter(calls)), ", ".join(events), Severity.WARNING, problem)


def _missing(
    host: Host, calls: _Calls, wanted: list[Wanted], elsewhere: dict[str, str]
) -> dict[str, list[str]]:
    """The host's events that should call the bridge and do not, by ours."""
    seen = {call.event for each in calls.values() for call in each}
    missing: dict[str, list[str]] = {}
    for event in (one.event for one in wanted if calls):
        if event not in seen and event not in elsewhere:
            missing.setdefault(host.events[event].value, []).append(event)
    return missing


def _again(installer: Installer) -> str:
    own = " --user" if installer.scope is Scope.USER else ""
    return f"run 'hookline install {installer.host}{own}' again"


def _problems(
    host: Host, installer: Installer, call: Call, wanted: Wanted | None
) -> Iterator[tuple[Severity, str]]:
    again = _again(installer)
    program = " ".join(call.program)
    if not call.starts:
        then = "blocks every call" if call.closed else "goes on without your hooks"
        problem = f"{program!r} is not found: {host.title} {then}"
        yield Severity.ERROR, f"{problem}; {again}"
    elif not call.is_launched and not is_this(call.program):
        yield Severity.WARNING, f"{program!r} is another installation of Hookline"
    if not call.is_safe:
        problem = f"{program!r} lets files of the project take Hookline's place"
        yield Severity.WARNING, f"{problem}: write -P before -m"
    if call.matcher:
        problem = f"the matcher {call.matcher!r} keeps other tools from the hooks"
        yield Severity.WARNING, problem
    if wanted is None:
        ours = host.events.get(call.event)
        about = "unknown event" if ours is None else f"{ours.value} has no hooks"
        if ours is None or not installer.is_shared:
            yield Severity.HINT, f"{about}: {again} to leave it out"
        return
    if wanted.closed and not call.closed:
        problem = f"{host.title} runs the tool if it gets no answer: {again}"
        yield Severity.HINT, f"{problem} without --fail-open"
    needed = timeout_for(installer.files, wanted)
    if call.timeout is not None and not is_long_enough(call.timeout, needed):
        problem = f"{host.title} waits for {call.timeout} and may miss the verdict"
        yield Severity.WARNING, f"{problem}, hooks need up to {needed}: {again}"


def _finding(file: str, where: str, severity: Severity, message: str) -> Finding:
    return Finding(file=file, where=where, severity=severity, message=message)
