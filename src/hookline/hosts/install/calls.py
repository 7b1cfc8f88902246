"""Which hooks in a coding agent's files call ``hookline bridge``.

Nothing is written here. ``is_installed`` is asked by the bridge on every event that
came through another agent's file, so this module loads little.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from hookline.errors import HooklineError, SettingsError
from hookline.hosts.host import Host, Layout
from hookline.hosts.host_files import (
    MARK,
    Scope,
    base_folder,
    file_of,
    reads_project,
    switched_off_in,
    value_at,
)
from hookline.protocol.convert import KeyPath
from hookline.settings.places import find_workspace
from hookline.settings.read import decode_text, parse_text, read_bytes

from .changes import digest, load_record

_MODULE_OPTIONS = (("-m",), ("-P", "-m"), ("-Pm",), ("-I", "-m"), ("-Im",))
"""Options of Python that start a module."""
_PLACES: Mapping[Layout, KeyPath] = {
    Layout.GROUPS: ("*", 0, "hooks", 0),
    Layout.ENTRIES: ("*", 0),
    Layout.TRIGGERS: (0,),
}
"""Where hooks are below the key of all of them; see ``_objects_at``."""
_LAUNCHERS = frozenset({"uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye"})


class Call(Struct, frozen=True, kw_only=True):
    """A hook in a host's file that runs ``hookline bridge``."""

    event: str
    command: str
    program: tuple[str, ...]
    """The words before ``bridge``."""
    file: str = ""
    path: KeyPath = ()
    """Where the hook is in the file."""
    hook: Mapping[str, Any] = {}
    """The hook as it is in the file."""
    group: Mapping[str, Any] = {}
    """What else the host has for the hooks of its group."""
    timeout: Any = None
    matcher: str = ""
    """What its tools must match; empty where it is called for all."""
    closed: bool = False
    """Whether the host blocks where it gets no answer."""

    @property
    def starts(self) -> bool:
        """Whether its program can be started from here."""
        return shutil.which(self.program[0]) is not None

    @property
    def is_launched(self) -> bool:
        """Whether another program finds Hookline for it, as in ``uv run hookline``."""
        return self.program[0] in _LAUNCHERS

    @property
    def is_safe(self) -> bool:
        """Whether no file of the working directory is run in place of Hookline."""
        return "-m" not in self.program or not {"-P", "-I"}.isdisjoint(self.program)

    def waits(self, duration: int) -> bool:
        """Whether its timeout leaves the hooks this time, in the host's own unit."""
        is_number = isinstance(self.timeout, int | float)
        is_number = is_number and not isinstance(self.timeout, bool)
        return is_number and self.timeout >= duration


def bridge_program(command: object, host: str) -> tuple[str, ...] | None:
    """The program of a command that runs ``hookline bridge HOST``, else None."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
        if words[:2] == ["sh", "-c"] and len(words) == 3:
            words = shlex.split(words[2])
    except ValueError:
        return None
    starts = range(1, len(words) - 1)
    bridge = ["bridge", host]
    length = next((at for at in starts if words[at : at + 2] == bridge), 0)
    program = tuple(words[:length])
    if program[1:-1] in _MODULE_OPTIONS:
        is_hookline = program[-1] in {"hookline", "hookline.cli.main"}
    elif program:
        name = os.path.basename(program[-1]).removesuffix(".exe")  # noqa: PTH119
        is_started = len(program) == 1 or program[0] in _LAUNCHERS
        is_hookline = name == "hookline" and is_started
    else:
        is_hookline = False
    return program if is_hookline else None


def calls_in(host: Host, settings: Any, file: str = "") -> Iterator[Call]:
    """Every hook in a host's JSON that calls the bridge for this host."""
    files = host.files
    layout = files.layout
    for path, hook in _objects_at(settings, (*files.keys, *_PLACES[layout])):
        runs = hook.get("action") if layout is Layout.TRIGGERS else hook
        command = runs.get(files.command_key) if isinstance(runs, dict) else None
        program = bridge_program(command, host.name)
        if program is None:
            continue
        event = path[len(files.keys)] if files.layout is not Layout.TRIGGERS else None
        group = value_at(settings, path[:-2]) if layout is Layout.GROUPS else {}
        matcher = str((group or hook).get("matcher") or "").strip()
        is_closed = " || { " in str(command)
        if files.closed:
            is_closed = files.closed.items() <= hook.items()
        yield Call(
            event=str(hook.get("trigger") if event is None else event),
            command=str(command),
            program=program,
            file=file,
            path=path,
            hook=hook,
            group={key: value for key, value in group.items() if key != "hooks"},
            timeout=hook.get(files.timeout_key or ""),
            matcher="" if matcher in {"*", ".*"} else matcher,
            closed=is_closed,
        )


def _objects_at(
    value: Any, pattern: KeyPath, path: KeyPath = ()
) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """The objects at paths like this: ``*`` is every member of one, 0 every item."""
    if not pattern and isinstance(value, dict):
        yield path, value
    for step in pattern[:1]:
        items: Iterable[tuple[str | int, Any]] = ()
        if step == 0 and isinstance(value, list):
            items = enumerate(value)
        elif step != 0 and isinstance(value, dict):
            items = value.items()
        for key, item in items:
            if step in (0, "*", key):
                yield from _objects_at(item, pattern[1:], (*path, key))


def calls_in_text(host: Host, text: str, file: str) -> list[Call]:
    """Every call of the bridge in a host's file; raises ``SettingsError``."""
    layout = host.files.layout
    if layout is Layout.SCRIPT:
        pattern = r"^(?:exec (.+)|answer=\$\((.+?)\) \|\| answer=.*)$"
    elif layout is Layout.PLUGIN:
        pattern = r"^const SETUP = (\{.*\});$"
    else:
        return list(calls_in(host, parse_text(text, file), file))
    written = re.search(pattern, text, re.MULTILINE)
    if written is None or MARK not in text:
        return []
    if layout is Layout.SCRIPT:
        command = written[1] or written[2]
        program = bridge_program(command, host.name)
        event = os.path.basename(file).partition(".")[0]  # noqa: PTH119
        closed = written[2] is not None
        call = Call(
            event=event,
            command=command,
            program=program or (),
            file=file,
            closed=closed,
        )
        return [] if program is None else [call]
    setup = parse_text(written[1], file)
    try:
        command = shlex.join(setup["command"])
        return [
            Call(
                event=event,
                command=command,
                program=bridge_program(command, host.name) or (command,),
                file=file,
                timeout=setup["timeoutMs"].get(event),
                closed=event in setup["closed"],
            )
            for event in setup["events"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise SettingsError("SETUP is not as install wrote it", file) from error


def is_installed(host: Host, folder: str, event: str) -> bool:
    """Whether this host certainly calls the bridge by itself in a folder.

    Anybody can put a file into a repository that looks like it, so only one counts
    that is as ``install`` recorded it, to the letter. In doubt both calls are answered.
    """
    files = host.files
    workspace = find_workspace(folder)
    if switched_off_in(files, workspace) is not None:
        return False
    paths = []
    if reads_project(files, workspace.root):
        folders = dict.fromkeys((base_folder(files, workspace), workspace.root))
        paths += [file_of(files, Scope.PROJECT, folder) for folder in folders]
    with suppress(HooklineError):  # no home folder, so no file in it
        paths.append(file_of(files, Scope.USER, ""))
    # Install keeps what it finds beside its own keys, and that may hold the call back.
    keys = {*files.extra, *files.closed, files.command_key, files.timeout_key}
    for path in paths:
        record = load_record(path)
        if record is None or os.path.islink(path):  # noqa: PTH114 - a string
            continue
        with suppress(SettingsError):
            content = read_bytes(path)
            if record.digest == digest(content) and any(
                call.event == event
                and call.starts
                and not call.is_launched
                and call.hook.keys() <= keys
                for call in calls_in_text(host, decode_text(content, path), path)
            ):
                return True
    return False
