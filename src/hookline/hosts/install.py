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
from importlib.resources import files as package_files
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import HooklineError, SettingsError
from hookline.plan import RegisteredHook
from hookline.protocol.convert import KeyPath
from hookline.protocol.events import HookEventName
from hookline.settings.places import Workspace
from hookline.settings.read import decode_text

from .failsafe import BEFORE_TOOL
from .file_changes import Change, Record, digest, load_record, read_inside
from .host import Host, HostFiles, Layout
from .host_files import (
    MARK,
    Call,
    Scope,
    base_folder,
    calls_in,
    calls_in_text,
    deadline_ms,
    file_of,
    needed_ms,
)
from .json_edit import JsonText, parse, text_of
from .registry import HOSTS


class Wanted(Struct, frozen=True):
    """One event that a host should ask the bridge about."""

    event: str
    needs_ms: float = 0
    """How long its hooks can take."""
    closed: bool = False
    """Whether the host should block where it gets no answer."""


def wanted_events(
    host: Host,
    hooks: Iterable[RegisteredHook],
    *,
    all_events: bool = False,
    fail_open: bool = False,
) -> list[Wanted]:
    """The events of a host that have hooks, in the host's order.

    Only calls of tools are blocked without an answer: at the end of a turn a guard that
    is gone would reject every answer for ever.
    """
    by_event: dict[HookEventName, list[RegisteredHook]] = {}
    for hook in hooks:
        if hook.enabled:
            by_event.setdefault(hook.event, []).append(hook)
    return [
        Wanted(
            theirs,
            needed_ms(by_event.get(ours, ())),
            closed=ours is HookEventName.BeforeTool and not fail_open,
        )
        for theirs, ours in host.events.items()
        if all_events or ours in by_event
    ]


def own_program() -> tuple[str, ...]:
    """How to start this very installation, from anywhere."""
    beside = os.path.join(os.path.dirname(sys.executable), "hookline")  # noqa: PTH118, PTH120
    called = os.path.abspath(sys.argv[0])  # noqa: PTH100
    for script in (called, beside):
        is_ours = os.path.basename(script) == "hookline"  # noqa: PTH119
        if is_ours and os.path.isfile(script) and os.access(script, os.X_OK):  # noqa: PTH113
            return (script,)
    # Without -P, Python takes a package of this name from the working directory.
    return (sys.executable, "-P", "-m", "hookline")


def is_this(program: tuple[str, ...]) -> bool:
    """Whether a command's program is this installation."""
    found = shutil.which(program[0])
    own = own_program()
    if found is None:
        return False
    same = os.path.realpath(found) == os.path.realpath(own[0])
    # Every environment has its own link to one and the same interpreter.
    return found == own[0] if len(program) > 1 else same


def program_for(scope: Scope) -> tuple[str, ...]:
    """How a host's file names this installation.

    A project's file is shared, so it names no folder of this machine if it need not.
    """
    on_path = scope is Scope.PROJECT and is_this(("hookline",))
    program = ("hookline",) if on_path else own_program()
    try:
        "".join(program).encode()
    except UnicodeEncodeError as error:
        problem = "is not UTF-8, which settings of coding agents must be"
        raise HooklineError(f"the path {program[0]!r} {problem}") from error
    return program


class Installer:
    """The files of one host for one project or the user."""

    def __init__(self, host: str, scope: Scope, workspace: Workspace) -> None:
        self.host = host
        self.scope = scope
        self.files = HOSTS[host].files
        self._root = workspace.root
        self._folder = base_folder(self.files, workspace)

    @property
    def is_shared(self) -> bool:
        """Whether the file is for several projects."""
        return self.scope is Scope.USER or self.files.at_root

    def file(self, event: str = "") -> str:
        """The file for an event; most hosts have one for all."""
        return file_of(self.files, self.scope, self._folder, event)

    def calls(self, events: Iterable[str]) -> dict[str, list[Call]]:
        """Every call of the bridge, by the file that it is in."""
        found = {}
        for path in self._paths(events):
            content = self._read(path)
            if content is not None:
                if self.files.is_strict:
                    _require_strict(content, path)
                text = decode_text(content, path)
                found[path] = calls_in_text(self.host, text, path)
        return {path: calls for path, calls in found.items() if calls}

    def install(
        self, wanted: list[Wanted], known: Iterable[str], program: tuple[str, ...]
    ) -> list[Change]:
        """What makes the host ask about these events and no others that it has.

        A file for several projects keeps what the others need.
        """
        if self.is_shared:
            wanted = self._with_kept(wanted, list(known))
        if self.files.layout is Layout.SCRIPT:
            return self._install_scripts(wanted, known, program)
        path = self.file()
        before = self._read(path)
        after = self._text_for(path, before, wanted, program).encode()
        changes = [Change(path=path, before=before, after=after)]
        if self.files.manifest is not None:
            name, content = self.files.manifest
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name))  # noqa: PTH118, PTH120
            text = f"{json.dumps(content, indent=2)}\n".encode()
            changes.append(Change(path=beside, before=self._read(beside), after=text))
        return [self._recorded(change) for change in changes]

    def _with_kept(self, wanted: list[Wanted], known: list[str]) -> list[Wanted]:
        merged = {one.event: one for one in wanted}
        for call in (one for found in self.calls(known).values() for one in found):
            if call.event in known:
                own = merged.get(call.event, Wanted(call.event))
                given = call.timeout if is_long_enough(call.timeout, 0) else 0
                longest = max(own.needs_ms, given * self.files.unit_ms)
                kept = call.closed and call.event in BEFORE_TOOL
                closed = own.closed if call.event in merged else kept
                merged[call.event] = Wanted(call.event, longest, closed)
        return [merged[event] for event in known if event in merged]

    def _install_scripts(
        self, wanted: list[Wanted], known: Iterable[str], program: tuple[str, ...]
    ) -> list[Change]:
        changes = []
        for one in wanted:
            path = self.file(one.event)
            before = self._read(path)
            if before is not None and MARK.encode() not in before:
                hint = "Cline takes another ending too, such as .bash: rename yours"
                raise HooklineError(f"{path} is not from 'hookline install': {hint}")
            command = bridge_command(program, self.host, one)
            run = f"exec {command}"
            if one.closed:
                # Cline reads no exit status: without an answer this is one.
                message = f"{NO_ANSWER} {self._named(path)}"
                wire = json.dumps({"cancel": True, "errorMessage": message})
                run = f"answer=$({command}) || answer={shlex.quote(wire)}\n"
                run += "printf '%s\\n' \"$answer\""
            after = f"#!/bin/sh\n# {MARK}.\n{run}\n".encode()
            changes.append(
                Change(path=path, before=before, after=after, executable=True)
            )
        events = {one.event for one in wanted}
        gone = [event for event in known if event not in events]
        return [*map(self._recorded, changes), *self.uninstall(gone)]

    def _text_for(
        self,
        path: str,
        before: bytes | None,
        wanted: list[Wanted],
        program: tuple[str, ...],
    ) -> str:
        if self.files.layout is Layout.PLUGIN:
            if before is not None and MARK.encode() not in before:
                raise HooklineError(f"{path} is not from 'hookline install': rename it")
            return _plugin(self.host, wanted, program)
        if before is None:
            text = f"{json.dumps(dict(self.files.head), indent=2)}\n"
        else:
            text = text_of(before, path)
        file = self._named(path)
        return with_calls(self.host, parse(text, path), wanted, program, file).text

    def _named(self, path: str) -> str:
        """A file in a text for people; a project's is shared, and has other folders."""
        shared = path.removeprefix(f"{self._folder}/")
        named = path if self.scope is Scope.USER else shared
        return named.encode(errors="replace").decode()

    def uninstall(self, events: Iterable[str]) -> list[Change]:
        """What takes every call of the bridge out of the host's files."""
        changes = []
        for path in self._paths(events):
            before = self._read(path)
            if before is None:
                continue
            record = load_record(path)
            after = self._without_calls(path, before, record)
            if after != before:
                changes.append(
                    Change(path=path, before=before, after=after, record=record)
                )
        return [*changes, *(self._manifest_removal() if changes else ())]

    def _without_calls(
        self, path: str, before: bytes, record: Record | None
    ) -> bytes | None:
        is_known = record is not None and record.digest == digest(before)
        if record is not None and is_known and record.restores:
            return record.original
        if self.files.layout in {Layout.SCRIPT, Layout.PLUGIN}:
            return None if MARK.encode() in before else before
        parsed = parse(text_of(before, path), path)
        left = without_calls(self.host, parsed)
        if left.text == parsed.text:
            return before
        made = self.files.is_own or (record is not None and record.created)
        is_empty = {**self.files.head, **left.value} == self.files.head
        return None if made and is_empty else left.text.encode()

    def _manifest_removal(self) -> list[Change]:
        if self.files.manifest is None:
            return []
        name, _ = self.files.manifest
        folder = os.path.dirname(self.file())  # noqa: PTH120
        path = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118
        before, record = self._read(path), load_record(path)
        if before is None or record is None or record.digest != digest(before):
            return []
        return [Change(path=path, before=before, after=record.original, record=record)]

    def _paths(self, events: Iterable[str]) -> list[str]:
        named = events if self.files.layout is Layout.SCRIPT else [""]
        try:
            return [self.file(event) for event in named]
        except HooklineError:  # no home folder, so no file in it
            return []

    def _read(self, path: str) -> bytes | None:
        return read_inside(path, self._root if self.scope is Scope.PROJECT else None)

    def _recorded(self, change: Change) -> Change:
        """With what uninstalling needs to know."""
        prior, before = load_record(change.path), change.before
        after = change.after or b""
        # As we wrote it, or with nothing but our calls in it.
        if (
            prior is not None
            and before is not None
            and (
                prior.digest == digest(before)
                or self._without_calls(change.path, before, prior) is None
            )
        ):
            record = replace(prior, digest=digest(after))
        elif before is None:
            record = Record(path=change.path, digest=digest(after), created=True)
        else:
            record = Record(path=change.path, digest=digest(after))
            if self._without_calls(change.path, after, None) != before:
                clean = self._without_calls(change.path, before, None)
                # Only what was there before our hooks is worth restoring.
                original = before if clean == before else None
                record = replace(record, original=original)
        return replace(change, record=record)


def _require_strict(content: bytes, path: str) -> None:
    parse(text_of(content, path), path)  # says where it is broken
    try:
        json.loads(content.decode())
    except ValueError as error:
        what = "comments, trailing commas or a byte order mark"
        problem = f"has {what}, so the agent ignores the file: remove them"
        raise SettingsError(problem, path) from error


NO_ANSWER = (
    "hookline gave no answer, so this call is blocked. "
    "Install Hookline again, or remove its entry from"
)
"""Without a character that means something to a shell."""


def bridge_command(
    program: tuple[str, ...], host: str, wanted: Wanted, file: str = ""
) -> str:
    """The command of a hook, quoted for a shell.

    Where the host has no key for that, ``file`` is named in what is told without an
    answer. Status 2 is the bridge's own block or failure, and has a text already.
    """
    files = HOSTS[host].files
    named = [wanted.event] if files.names_event else []
    words = [*program, "bridge", host, *named]
    if files.denies_failures and wanted.event not in BEFORE_TOOL:
        # A program that is gone must not reject every answer for ever.
        return f"sh -c {shlex.quote(f'{shlex.join(words)} || exit 1')}"
    if not wanted.closed or files.closed or files.layout is Layout.PLUGIN:
        return shlex.join(words)
    words += ["--deadline", str(deadline_ms(files, wanted.needs_ms))]
    if files.layout is Layout.SCRIPT:
        return shlex.join(words)
    told = f"[ $? = 2 ] || echo {NO_ANSWER} {shlex.quote(file)} >&2"
    # Not every host runs it in a shell of this syntax: Codex takes that of the user.
    return f"sh -c {shlex.quote(f'{shlex.join(words)} || {{ {told}; exit 2; }}')}"


def timeout_for(files: HostFiles, wanted: Wanted) -> int:
    """How long the host should wait, in its own unit."""
    needed = max(wanted.needs_ms, files.default_ms)
    return -int(-needed // files.unit_ms)


def with_calls(
    host: str,
    parsed: JsonText,
    wanted: list[Wanted],
    program: tuple[str, ...],
    file: str,
) -> JsonText:
    """A host's settings with one call for each of these events and no other."""
    files = HOSTS[host].files
    needed = {one.event: one for one in wanted}
    if files.layout is Layout.TRIGGERS:
        parsed.require(files.keys, list, "a list")
    else:
        parsed.require(files.keys, dict, "an object")
        for event in needed:
            parsed.require((*files.keys, event), list, "a list")
    seen: set[str] = set()
    calls = list(calls_in(host, parsed.value))
    first = {call.event: call.path for call in reversed(calls)}
    for call in reversed(calls):
        if call.event not in needed or call.path != first[call.event]:
            parsed = _without(files, parsed, call.path)
    for call in calls_in(host, parsed.value):
        seen.add(call.event)
        starts = call.program if call.is_launched else program
        command = bridge_command(starts, host, needed[call.event], file)
        parsed = _updated(files, parsed, call, needed[call.event], command)
    for event, one in needed.items():
        if event not in seen:
            command = bridge_command(program, host, one, file)
            parsed = parsed.appended(*_entry(files, one, command))
    return parsed


def _updated(
    files: HostFiles, parsed: JsonText, call: Call, wanted: Wanted, command: str
) -> JsonText:
    """A call as it should be; a longer timeout is kept, and everything else."""
    # How another program starts Hookline is not ours to change, but what it means.
    is_kept = call.is_launched and (files.closed or call.closed == wanted.closed)
    if call.command != command and not is_kept:
        inner = ("action",) if files.layout is Layout.TRIGGERS else ()
        parsed = parsed.replaced((*call.path, *inner, files.command_key), command)
    needed = timeout_for(files, wanted)
    if files.timeout_key and not is_long_enough(call.timeout, needed):
        parsed = parsed.replaced((*call.path, files.timeout_key), needed)
    for key, value in files.closed.items():
        path = (*call.path, key)
        if wanted.closed and parsed.get(path) != value:
            parsed = parsed.replaced(path, value)
        elif not wanted.closed and parsed.get(path) == value:
            parsed = parsed.removed(path)
    return parsed


def is_long_enough(given: Any, needed: int) -> bool:
    """Whether a host's timeout leaves the hooks their time."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return is_number and given >= needed


def _entry(
    files: HostFiles, wanted: Wanted, command: str
) -> tuple[KeyPath, dict[str, Any]]:
    """Where a new call goes, and what it looks like."""
    key = files.timeout_key
    shown: dict[str, Any] = {key: timeout_for(files, wanted)} if key else {}
    closed = files.closed if wanted.closed else {}
    run = {files.command_key: command}
    if files.layout is Layout.TRIGGERS:
        about = {"name": f"hookline-{wanted.event}", "trigger": wanted.event}
        return files.keys, {**about, "action": {"type": "command", **run}, **shown}
    hook = {**files.extra, **run, **shown, **closed}
    item = {"hooks": [hook]} if files.layout is Layout.GROUPS else hook
    return (*files.keys, wanted.event), item


def without_calls(host: str, parsed: JsonText) -> JsonText:
    """A host's settings without our calls."""
    for call in reversed(list(calls_in(host, parsed.value))):
        parsed = _without(HOSTS[host].files, parsed, call.path)
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


def _plugin(host: str, wanted: list[Wanted], program: tuple[str, ...]) -> str:
    files = HOSTS[host].files
    setup = {
        "command": [*program, "bridge", host],
        "events": [one.event for one in wanted],
        "closed": [one.event for one in wanted if one.closed],
        "timeoutMs": {one.event: timeout_for(files, one) for one in wanted},
    }
    name = f"{host}_plugin.js"
    template = package_files("hookline.hosts").joinpath(name).read_text("utf-8")
    empty = "const SETUP = null;"
    return template.replace(empty, f"const SETUP = {json.dumps(setup)};")
