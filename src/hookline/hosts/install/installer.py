"""Write ``hookline bridge`` into the settings of a coding agent, and take it out.

``Installer.install`` and ``.uninstall`` say what they would change and change nothing.
Files of others keep everything that is not ours, to the byte; a file that cannot be
parsed is not changed, and uninstalling restores what was there.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files as package_files
from typing import Any

from msgspec import Struct

from hookline.errors import HooklineError, SettingsError
from hookline.hosts.host import Host, HostFiles, Layout
from hookline.hosts.host_files import (
    MARK,
    Scope,
    base_folder,
    deadline_ms,
    file_of,
    needed_ms,
)
from hookline.plan import RegisteredHook
from hookline.protocol.convert import KeyPath
from hookline.protocol.events import HookEventName
from hookline.settings.places import Workspace
from hookline.settings.read import decode_text

from .calls import Call, calls_in, calls_in_text
from .changes import Change, Record, digest, load_record, read_inside
from .json_edit import JsonText, parse, text_of

NO_ANSWER = (
    "hookline gave no answer, so this call is blocked. "
    "Install Hookline again, or remove its entry from"
)
"""Without a character that means something to a shell."""


class BridgedEvent(Struct, frozen=True):
    """One event that a host should ask the bridge about."""

    name: str
    needs_ms: float = 0
    """How long its hooks can take."""
    closed: bool = False
    """Whether the host should block where it gets no answer."""

    def timeout(self, files: HostFiles) -> int:
        """How long the host should wait, in its own unit."""
        needed = max(self.needs_ms, files.default_ms)
        return -int(-needed // files.unit_ms)


def bridged_events(
    host: Host,
    hooks: Iterable[RegisteredHook],
    *,
    all_events: bool = False,
    fail_open: bool = False,
) -> list[BridgedEvent]:
    """The events of a host that have hooks, in the host's order.

    Only calls of tools are blocked without an answer: at the end of a turn a guard that
    is gone would reject every answer for ever.
    """
    by_event: dict[HookEventName, list[RegisteredHook]] = {}
    for hook in hooks:
        if hook.enabled:
            by_event.setdefault(hook.event, []).append(hook)
    return [
        BridgedEvent(
            name,
            needed_ms(by_event.get(event, ())),
            closed=event is HookEventName.BeforeTool and not fail_open,
        )
        for name, event in host.events.items()
        if all_events or event in by_event
    ]


def own_program() -> tuple[str, ...]:
    """How to start this very installation, from anywhere."""
    started = os.path.abspath(sys.argv[0])  # noqa: PTH100
    beside = os.path.join(os.path.dirname(sys.executable), "hookline")  # noqa: PTH118, PTH120
    for script in (started, beside):
        is_ours = os.path.basename(script) == "hookline"  # noqa: PTH119
        if is_ours and os.path.isfile(script) and os.access(script, os.X_OK):  # noqa: PTH113
            return (script,)
    # Without -P, Python takes a package of this name from the working directory.
    return (sys.executable, "-P", "-m", "hookline")


def is_this(program: tuple[str, ...]) -> bool:
    """Whether a command's program is this installation."""
    path = shutil.which(program[0])
    this = own_program()[0]
    # Every environment has its own link to one and the same interpreter.
    if path is None or len(program) > 1:
        return path == this
    return os.path.realpath(path) == os.path.realpath(this)


def program_for(scope: Scope) -> tuple[str, ...]:
    """How a host's file names this installation.

    A project's file is shared, so it names no folder of this machine if it need not.
    """
    on_path = scope is Scope.PROJECT and is_this(("hookline",))
    return ("hookline",) if on_path else own_program()


class Installer:
    """The files of one host for one project or the user."""

    def __init__(self, host: Host, scope: Scope, workspace: Workspace) -> None:
        self.host = host
        self.scope = scope
        self.files = host.files
        self._folder = base_folder(self.files, workspace)
        self._root = workspace.root if scope is Scope.PROJECT else None

    @property
    def is_shared(self) -> bool:
        """Whether the file is for several projects."""
        return self.scope is Scope.USER or self.files.at_root

    def file(self, event: str = "") -> str:
        """The file for an event; most hosts have one for all."""
        return file_of(self.files, self.scope, self._folder, event)

    @property
    def command(self) -> str:
        """What a person types to install it."""
        user = " --user" if self.scope is Scope.USER else ""
        return f"hookline install {self.host.name}{user}"

    def calls(self) -> list[Call]:
        """Every call of the bridge in the host's files."""
        calls: list[Call] = []
        for path in self._paths():
            content = read_inside(path, self._root)
            if content is None:
                continue
            if self.files.is_strict:
                _require_strict(content, path)
            calls += calls_in_text(self.host, decode_text(content, path), path)
        return calls

    def install(
        self, events: list[BridgedEvent], program: tuple[str, ...]
    ) -> list[Change]:
        """What makes the host ask about these events and no others that it has.

        A file for several projects keeps what the others need.
        """
        for needed in (*program, self.file()):
            try:
                needed.encode()
            except UnicodeEncodeError:
                problem = "is not UTF-8, which settings of coding agents must be"
                raise HooklineError(f"the path {needed!r} {problem}") from None
        if self.is_shared:
            events = self._with_installed(events)
        by_file = {self.file(): events}
        if self.files.layout is Layout.SCRIPT:
            by_file = {self.file(event.name): [event] for event in events}
        changes = []
        for path, in_file in by_file.items():
            before = read_inside(path, self._root)
            after = self._content(path, before, in_file, program).encode()
            changes.append(self._change(path, before, after))
        if self.files.manifest is not None:
            path, after = self._manifest()
            changes.append(self._change(path, read_inside(path, self._root), after))
        # The scripts of events that have no hooks any more.
        written = {change.path for change in changes}
        removals = [change for change in self.uninstall() if change.path not in written]
        return changes + removals

    def uninstall(self) -> list[Change]:
        """What takes every call of the bridge out of the host's files."""
        changes = []
        for path in self._paths():
            before = read_inside(path, self._root)
            if before is not None:
                after = self._cleaned(path, before)
                changes.append(Change(path=path, before=before, after=after))
        return [change for change in changes if change.is_needed]

    def _with_installed(self, events: list[BridgedEvent]) -> list[BridgedEvent]:
        """With the events that the host asks about already."""
        by_name = {event.name: event for event in events}
        for call in self.calls():
            event = by_name.get(call.event)
            is_closed = call.closed and _is_before_tool(self.host, call.event)
            waits_ms = call.timeout * self.files.unit_ms if call.waits(0) else 0
            by_name[call.event] = BridgedEvent(
                call.event,
                max(waits_ms, event.needs_ms if event else 0),
                closed=event.closed if event else is_closed,
            )
        return [by_name[name] for name in self.host.events if name in by_name]

    def _content(
        self,
        path: str,
        before: bytes | None,
        events: list[BridgedEvent],
        program: tuple[str, ...],
    ) -> str:
        """A file with one call for each of these events and no other."""
        host, layout = self.host, self.files.layout
        file = path
        if self.scope is Scope.PROJECT:  # it is shared, and elsewhere for others
            file = path.removeprefix(f"{self._folder}/")
        if layout in (Layout.SCRIPT, Layout.PLUGIN):
            if before is not None and MARK.encode() not in before:
                hint = "rename it"
                if layout is Layout.SCRIPT:
                    hint = "rename yours, with another ending such as .bash"
                raise HooklineError(f"{path} is not from 'hookline install': {hint}")
            if layout is Layout.SCRIPT:
                return _script(host, events[0], program, file)
            return _plugin(host, events, program)
        if before is None:
            text = f"{json.dumps(dict(self.files.head), indent=2)}\n"
        else:
            text = text_of(before, path)
        return with_calls(host, parse(text, path), events, program, file).text

    def _change(self, path: str, before: bytes | None, after: bytes) -> Change:
        """The change of a file, with what uninstalling needs to know."""
        clean = None if before is None else self._cleaned(path, before)
        record, is_made = load_record(path), clean is None
        # Most files need no copy, which would keep secrets that are in them.
        is_restored = self._without_calls(path, after, is_made=is_made) == clean
        return Change(
            path=path,
            before=before,
            after=after,
            record=Record(
                path=path,
                digest=digest(after),
                created=is_made,
                folders=record.folders if record is not None and is_made else (),
                original=None if is_restored else clean,
            ),
            executable=self.files.layout is Layout.SCRIPT,
        )

    def _cleaned(self, path: str, content: bytes) -> bytes | None:
        """What a file was before install, as far as it is known; None: no file."""
        record = load_record(path)
        is_as_written = record is not None and record.digest == digest(content)
        if record is not None and record.original is not None and is_as_written:
            return record.original
        is_made = record is not None and record.created
        return self._without_calls(path, content, is_made=is_made)

    def _without_calls(
        self, path: str, content: bytes, *, is_made: bool
    ) -> bytes | None:
        """A file without our calls; None if nothing is left of one that we made."""
        if self.files.manifest is not None and (path, content) == self._manifest():
            return None
        if self.files.layout in (Layout.SCRIPT, Layout.PLUGIN):
            return None if MARK.encode() in content else content
        parsed = parse(text_of(content, path), path)
        cleaned = parsed
        for call in reversed(list(calls_in(self.host, parsed.value))):
            cleaned = _without(self.files, cleaned, call.path)
        if cleaned.text == parsed.text:
            return content
        is_blank = {**self.files.head, **cleaned.value} == self.files.head
        if is_blank and (is_made or self.files.is_own):
            return None
        return cleaned.text.encode()

    def _paths(self) -> list[str]:
        names = self.host.events if self.files.layout is Layout.SCRIPT else [""]
        with suppress(HooklineError):  # no home folder, so no file in it
            paths = [self.file(name) for name in names]
            return [*paths, self._manifest()[0]] if self.files.manifest else paths
        return []

    def _manifest(self) -> tuple[str, bytes]:
        """The other file that the host needs, and what is in it."""
        name, value = self.files.manifest or ("", {})
        folder = os.path.dirname(self.file())  # noqa: PTH120
        path = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118
        return path, f"{json.dumps(value, indent=2)}\n".encode()


def _require_strict(content: bytes, path: str) -> None:
    parse(text_of(content, path), path)  # says where it is broken
    try:
        json.loads(content.decode())
    except ValueError as error:
        problem = "has comments, trailing commas or a byte order mark"
        hint = "so the agent ignores the file: remove them"
        raise SettingsError(f"{problem}, {hint}", path) from error


def _is_before_tool(host: Host, name: str) -> bool:
    return host.events.get(name) is HookEventName.BeforeTool


def bridge_command(
    program: tuple[str, ...], host: Host, event: BridgedEvent, file: str = ""
) -> str:
    """The command of a hook, quoted for a shell.

    Where the host has no key for that, ``file`` is named in the text without an answer.
    Status 2 is the bridge's own block or failure, and has a text already.
    """
    files = host.files
    names = [event.name] if files.names_event else []
    command = shlex.join([*program, "bridge", host.name, *names])
    if files.denies_failures and not _is_before_tool(host, event.name):
        # A program that is gone must not reject every answer for ever.
        return f"sh -c {shlex.quote(f'{command} || exit 1')}"
    if not event.closed or files.closed or files.layout is Layout.PLUGIN:
        return command
    command += f" --deadline {deadline_ms(files, event.needs_ms)}"
    if files.layout is Layout.SCRIPT:
        return command
    echo = f"[ $? = 2 ] || echo {NO_ANSWER} {shlex.quote(file)} >&2"
    # Not every host runs it in a shell of this syntax: Codex takes that of the user.
    return f"sh -c {shlex.quote(f'{command} || {{ {echo}; exit 2; }}')}"


def _script(
    host: Host, event: BridgedEvent, program: tuple[str, ...], file: str
) -> str:
    command = bridge_command(program, host, event)
    line = f"exec {command}"
    if event.closed:
        # Cline reads no exit status: without an answer this is one.
        answer = host.refuse(f"{NO_ANSWER} {file}").stdout.decode().rstrip()
        line = f"answer=$({command}) || answer={shlex.quote(answer)}\n"
        line += "printf '%s\\n' \"$answer\""
    return f"#!/bin/sh\n# {MARK}.\n{line}\n"


def _plugin(host: Host, events: list[BridgedEvent], program: tuple[str, ...]) -> str:
    setup = {
        "command": [*program, "bridge", host.name],
        "events": [event.name for event in events],
        "closed": [event.name for event in events if event.closed],
        "timeoutMs": {event.name: event.timeout(host.files) for event in events},
    }
    name = f"{host.name}_plugin.js"
    template = package_files("hookline.hosts").joinpath(name).read_text("utf-8")
    empty = "const SETUP = null;"
    return template.replace(empty, f"const SETUP = {json.dumps(setup)};")


def with_calls(
    host: Host,
    parsed: JsonText,
    events: list[BridgedEvent],
    program: tuple[str, ...],
    file: str,
) -> JsonText:
    """A host's settings with one call for each of these events and no other.

    Of a call that is there a longer timeout is kept, and everything that is not ours.
    """
    files = host.files
    has_triggers = files.layout is Layout.TRIGGERS
    by_name = {event.name: event for event in events}
    if has_triggers:
        parsed.require(files.keys, list, "a list")
    else:
        parsed.require(files.keys, dict, "an object")
        for name in by_name:
            parsed.require((*files.keys, name), list, "a list")
    calls = list(calls_in(host, parsed.value))
    first = {call.event: call.path for call in reversed(calls)}
    for call in reversed(calls):
        if call.event not in by_name or call.path != first[call.event]:
            parsed = _without(files, parsed, call.path)
    for call in calls_in(host, parsed.value):
        event = by_name.pop(call.event)
        launcher = call.program if call.is_launched else program
        command = bridge_command(launcher, host, event, file)
        timeout = event.timeout(files)
        # How another program starts Hookline is not ours to change, but what it means.
        is_kept = call.is_launched and (files.closed or call.closed == event.closed)
        if call.command != command and not is_kept:
            path = (*call.path, "action") if has_triggers else call.path
            parsed = parsed.replaced((*path, files.command_key), command)
        if files.timeout_key and not call.waits(timeout):
            parsed = parsed.replaced((*call.path, files.timeout_key), timeout)
        for key, value in files.closed.items():
            if event.closed and call.hook.get(key) != value:
                parsed = parsed.replaced((*call.path, key), value)
            elif not event.closed and call.hook.get(key) == value:
                parsed = parsed.removed((*call.path, key))
    for event in by_name.values():
        place: KeyPath = (*files.keys, event.name)
        entry: dict[str, Any] = {
            files.command_key: bridge_command(program, host, event, file)
        }
        timeouts: dict[str, Any] = {}
        if files.timeout_key:
            timeouts = {files.timeout_key: event.timeout(files)}
        if has_triggers:
            place = files.keys
            about = {"name": f"hookline-{event.name}", "trigger": event.name}
            entry = {**about, "action": {"type": "command", **entry}, **timeouts}
        else:
            entry = {**files.extra, **entry, **timeouts}
            entry |= files.closed if event.closed else {}
        if files.layout is Layout.GROUPS:
            entry = {"hooks": [entry]}
        parsed = parsed.appended(place, entry)
    return parsed


def _without(files: HostFiles, parsed: JsonText, path: KeyPath) -> JsonText:
    """Without one hook, and without what holds nothing any more."""
    parsed = parsed.removed(path)
    if files.layout is Layout.GROUPS:
        group = path[:-2]
        if not parsed.is_blank((*group, "hooks")):
            return parsed
        parsed, path = parsed.removed(group), group
    while len(path) > 1 and parsed.is_blank(path[:-1]):
        path = path[:-1]
        parsed = parsed.removed(path)
    return parsed
