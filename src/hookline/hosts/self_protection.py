"""Refuse the calls by which an agent would approve, install or remove its own guards.

Asked before any hook, for every host. Reads files and the text of commands, and changes
nothing; what it cannot see is listed in SECURITY.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import glob

from msgspec import Struct

from hookline._internal.state_files import state_dir
from hookline.errors import HooklineError
from hookline.protocol.values import encode
from hookline.settings.places import (
    SYSTEM_DIR,
    default_user_dir,
    find_workspace,
    folders_above,
    is_within,
)
from hookline.settings.read import decode_text, parse_text, read_bytes
from hookline.shell import programs
from hookline.shell.commands import Command, commands

from .host import Host, Layout
from .host_files import Scope, file_of, in_home, value_at
from .install.calls import calls_in_text
from .registry import HOSTS
from .tools import Tool, ToolCall, Wire

_PERSONAL = frozenset({"trust", "init", "install", "uninstall"})
_READING = frozenset({"-h", "--help", "--list", "--dry-run"})
_PROGRAM = re.compile(
    r"(-\w*m|(.*/)?)hookline(\.exe|\.cli\.main|\.__main__|/cli/main.py|/__main__.py)?"
    r"([@=<>~\[].*)?"
)
_PACKAGE = re.compile(r"hookline(\[.*\])?([=<>~!].*)?")
_INTERPRETER = re.compile(
    rf"{programs.PYTHON}|(perl|ruby|node|php|lua|deno|bun|[gmn]?awk)[\d.]*"
)
_STARTS = re.compile(
    r"import|require|subprocess|system|exec|popen|spawn|getline|`", re.IGNORECASE
)
_APPROVES = re.compile(r"\b(trust|uninstall|install|init|save_record|HOOKLINE_TRUST)\b")
_CHANGES = re.compile(
    r"write|dump|unlink|remove|rename|replace|rmtree|truncate|copy|move"
    r"|,\s*(mode\s*=\s*)?[rb]?['\"][wax+]|(^|\s)-\w*i|>\s*['\"]"
)
_PERSONAL_LINE = re.compile(
    r"(!\s*)?\bhookline\s+(?:trust|init|install|uninstall)\b(?!\s+(?:--help|-h))"
)
_LINE_RUNNERS = frozenset({"expect", "socat", "screen", "parallel", "alias", "make"})
_FED = programs.SHELLS | {"at", "batch", "crontab", "expect", "screen"}
"""They run the lines that they are given on their standard input."""
_TRUSTS_ALL = re.compile(r"HOOKLINE_TRUST\+?=.")
_SETTERS = frozenset({"", "export", "declare", "typeset", "readonly", "setenv"})
_CAN_WRITE = {"yq", "prettier", "biome", "black", "ruff", "sort", "uniq", "xxd"}
_READERS = (
    (programs.READERS | programs.QUIET | programs.OBEYED_OPTIONS.keys()) - _CAN_WRITE
) | {"cd", "pushd", "export", "declare", "alias", "hookline"}
_NO_STARTERS = _READERS | programs.WRITERS | programs.COPIERS | {"git"}
_NO_STARTERS -= {"hookline", "set"}
_REMOVALS = frozenset({"-delete", "rm", "mv", "sed", "tee", "truncate", "shred", "cp"})
_REMOVERS = frozenset({"rm", "rmdir", "rsync", "chmod", "chown", "chgrp"})
_INTO = frozenset({"t", "target-directory", "delete"})
_GIT_CHANGES = {"checkout", "restore", "rm", "mv", "apply", "clean", "stash", "am"}
_SWITCHES = (
    *((("disableAllHooks",), True), (("hooksConfig", "enabled"), False)),
    *((("features", "hooks"), False), (("tools", "enableHooks"), False)),
    *((("hooks", "enabled"), False), (("allowManagedHooksOnly",), True)),
)
"""Keys in the settings of agents by which no hook runs, and with which value."""
_LISTS = (("hooksConfig", "disabled"), ("hooks", "disabled"))
_VARIABLES = ("HOOKLINE_TRUST", "QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE")
"""What a hook or its agent would obey, where settings put it into the environment."""
_SWITCH = re.compile(r"disableAllHooks|[hH]ooksConfig|[hH]ooks\b|HooksOnly")
_MOST_FOLDERS = 8
_FOLDER_KEYS = ("workdir", "working_dir", "directory", "dir_path", "cwd")
"""Where tools of some hosts run a command."""


class _Guarded(Struct, frozen=True):
    """A file of a coding agent's settings, where some file has an entry of ours."""

    host: Host
    path: str
    entries: frozenset[str] = frozenset()
    """Our entries in it, each with all that decides when it runs."""
    off: frozenset[str] = frozenset()
    """What keeps hooks from running in it already."""

    @classmethod
    def of(cls, host: Host, path: str, text: str) -> _Guarded:
        """Read a content of the file; raises ``SettingsError``."""
        calls = calls_in_text(host, text, path)
        if host.files.layout in {Layout.SCRIPT, Layout.PLUGIN}:
            # They are programs: any change may be the end of it.
            return cls(host, path, frozenset({text} if calls else ()))
        value = parse_text(text, path)
        entries = set()
        for call in calls:
            is_grouped = host.files.layout is Layout.GROUPS
            group = value_at(value, call.path[:-2]) if is_grouped else {}
            beside = {key: group[key] for key in group if key != "hooks"}
            facts = [call.event, value_at(value, call.path), beside]
            entries.add(encode(facts).decode())
        off = {str(keys) for keys, to in _SWITCHES if value_at(value, keys) is to}
        for keys in _LISTS:
            names = value_at(value, keys)
            off |= {str(name) for name in names} if isinstance(names, list) else set()
        off |= {word for word in _VARIABLES if word in text}
        try:
            json.loads(text)
        except ValueError:
            off |= {"comments"} if path.endswith(".json") else set()
        return cls(host, path, frozenset(entries), frozenset(off))

    def loses(self, text: str | None) -> bool:
        """Whether an entry is missing, or hooks are off, with another content."""
        try:
            after = _Guarded.of(self.host, self.path, text or "")
        except HooklineError:
            return bool(self.entries)
        return not (after.entries >= self.entries and after.off <= self.off)


def refusal(call: ToolCall, cwd: str, folders: Iterable[str]) -> str | None:
    """Why a call is refused; None where it may go on to the hooks.

    ``folders``: those of the session and of its projects.
    """
    if not {Tool.SHELL, Tool.WRITE, Tool.REPLACE, Tool.DELETE}.intersection(
        tool for tool, _ in call.parts
    ):
        return None
    guarded = list(_guarded_files({*folders, cwd, find_workspace(cwd).root}))
    for tool, tool_input in call.parts:
        line, path = tool_input.get("command"), tool_input.get("path")
        what = None
        if tool == Tool.SHELL and isinstance(line, str):
            others = [str(tool_input.get(key) or "") for key in _FOLDER_KEYS]
            starts = dict.fromkeys(os.path.join(cwd, one) for one in ("", *others))  # noqa: PTH118
            what = _command_refusal(line, [*starts], guarded)
        elif tool in (Tool.WRITE, Tool.REPLACE, Tool.DELETE) and isinstance(path, str):
            what = _file_refusal(call, tool, tool_input, cwd, guarded)
        if what is not None:
            return (
                f"{what}. Only a person may approve, install or remove guards: ask the "
                "person to do it in a terminal of their own, not through an agent "
                f"(cd {shlex.quote(cwd)} && hookline trust, install or uninstall)"
            )
    return None


def _own_folders() -> list[str]:
    """What is believed without an approval, and the approvals."""
    state = state_dir()
    kept = [f"{state}/trust", f"{state}/installed"] if state else []
    folders = (*kept, default_user_dir(), SYSTEM_DIR)
    return [os.path.realpath(folder) for folder in folders if folder]


def _guarded_files(folders: Iterable[str]) -> Iterator[_Guarded]:
    for host in HOSTS.values():
        files = host.files
        paths = [file_of(files, Scope.PROJECT, folder, "*") for folder in folders]
        own = [name for name in files.off_in if name.startswith(("$", "~"))]
        others = [
            f"{one}/{name}" for name in {*files.off_in} - {*own} for one in folders
        ]
        with suppress(HooklineError):  # no home folder, so no file in it
            paths.append(file_of(files, Scope.USER, "", "*"))
            others += [in_home(files, name) for name in own]
        if files.layout is Layout.SCRIPT:
            literal = [one.replace("[", "[[]") for one in paths]
            paths = [path for pattern in literal for path in glob(pattern)]  # noqa: PTH207
        found = [_read(host, path) for path in paths]
        if any(one.entries for one in found):
            yield from (*found, *(_read(host, path) for path in others))


def _read(host: Host, path: str) -> _Guarded:
    try:
        return _Guarded.of(host, path, decode_text(read_bytes(path), path))
    except HooklineError:
        return _Guarded(host, path)


def _file_refusal(
    call: ToolCall, tool: str, tool_input: Wire, cwd: str, guarded: list[_Guarded]
) -> str | None:
    path = tool_input["path"].removeprefix("file://")
    named = _places(path, [cwd])
    if any(is_within(one, folder) for one in named for folder in _own_folders()):
        return f"{path} decides which hooks are believed"
    for file in guarded:
        places = {file.path, os.path.realpath(file.path)}
        if tool == Tool.DELETE:
            is_lost = any(is_within(one, place) for one in places for place in named)
            is_lost = is_lost and bool(file.entries)
        else:
            is_lost = bool(places & named) and file.loses(
                _content_after(call, tool, tool_input, file.path)
            )
        if is_lost:
            return f"{path} would no longer call hookline, or run no hooks"
    return None


def _content_after(
    call: ToolCall, tool: str, tool_input: Wire, path: str
) -> str | None:
    """What a file holds after a call; None where that cannot be told."""
    if tool == Tool.WRITE:
        content = tool_input.get("content")
        return content if isinstance(content, str) else None
    text = ""
    with suppress(HooklineError):
        text = decode_text(read_bytes(path), path)
    listed = call.tool_input.get("edits")
    items = listed if isinstance(listed, list) else []
    edits = [one for one in items if isinstance(one, dict)]
    sides = ("old_string", "new_string")
    joined = {key: "\n".join(str(one.get(key)) for one in edits) for key in sides}
    # A part that has more than these edits is judged as a whole.
    for edit in (
        edits if edits and joined.items() <= tool_input.items() else [tool_input]
    ):
        old, new = (edit.get(key) for key in sides)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        if old not in text or bool(old) is not bool(text):
            return None
        text = text.replace(old, new, -1 if edit.get("replace_all") is True else 1)
    return text


def _command_refusal(
    line: str, starts: list[str], guarded: list[_Guarded]
) -> str | None:
    # How Copilot writes the key.
    line = line.replace("{enter}", "\n")
    folders = [*starts]
    kept = [*_own_folders(), *(file.path for file in guarded if file.entries)]
    others = [file.path for file in guarded if not file.entries]
    bare = re.sub(r"['\"\\]", "", line)
    for command in commands(line):
        is_unread = command.opaque and not command.words and not command.wrappers
        if is_unread and ("hookline" in bare or _mentioned(bare, kept)):
            return "a command that is too long to be checked names guards"
        if _is_personal(command, line):
            return f"{' '.join(command.words)[:200]!r} is for a person"
        set_here = command.args if command.name in _SETTERS else []
        if any(map(_TRUSTS_ALL.match, (*command.assigned, *set_here))):
            return "HOOKLINE_TRUST approves every project"
        touched = _touched(command, folders, kept)
        if touched is None and (other := _touched(command, folders, others)):
            texts = line, _source_text(command, folders, other)
            touched = other if any(map(_SWITCH.search, texts)) else None
        if touched:
            return f"{touched} would be changed by {command.name or 'a redirection'!r}"
        fed = command.input_text if command.name in _FED else ""
        if fed and fed != line and (inner := _command_refusal(fed, folders, guarded)):
            return inner
        if command.name in ("cd", "pushd") and command.operands:
            folders += sorted(_places(command.operands[0], folders) - {*folders})
            del folders[_MOST_FOLDERS:]
    return None


def _is_personal(command: Command, line: str) -> bool:
    """Whether a command is one of ours that only a person may run, or may be it."""
    words = [command.name, *command.args]
    words += command.input_text.split() if command.appended else []
    line_given = _PERSONAL_LINE.search(" ".join((*command.args, command.input_text)))
    if line_given and (line_given[1] or command.name in _LINE_RUNNERS):
        return command.name not in programs.PRINTERS
    if _INTERPRETER.fullmatch(command.name):
        code = " ".join((*command.args, command.input_text))
        if "hookline" in code and _APPROVES.search(code) and _STARTS.search(code):
            return True
    elif command.name in _NO_STARTERS:
        return False
    if {"uninstall", "remove"} & {*words} and any(map(_PACKAGE.fullmatch, words[2:])):
        return True
    for place, word in enumerate(words):
        if _PROGRAM.fullmatch(word):
            named, *options = (*words[place + 1 :], "")
            if named in _PERSONAL and not _only_reads(named, options, command):
                return True
            is_filled = command.appended and not named.isalpha()
            if place == 0 and ("$" in named or is_filled):
                return True
    is_unknown = any(char in command.name for char in "$*?[")
    hidden = _PERSONAL if "hookline" in line else {"trust"}
    return is_unknown and bool(hidden.intersection(words[1:2]))


def _only_reads(name: str, options: list[str], command: Command) -> bool:
    given = options[: options.index("--")] if "--" in options else options
    if _READING.intersection(given):
        return True
    # At a terminal it asks, and the agent could answer: the variables must be there.
    is_plain = not command.wrappers and not command.assigned
    flags = {word for word in given if word.startswith("-")}
    return name == "trust" and is_plain and flags == {"--show"}


def _touched(command: Command, folders: list[str], kept: list[str]) -> str | None:
    """What of these a command may change: itself, something in it, or all above it."""
    changed, above = _changed_words(command, folders, kept)
    words = dict.fromkeys(filter(None, (*command.writes, *changed)))
    if not words:
        return None
    exact = {path: one for one in kept for path in (one, os.path.realpath(one))}
    # Who removes a whole project or home means all of it; a hidden folder above a guard
    # may be removed for the guard's sake. rsync removes what its source does not have.
    higher = {
        path: one
        for one in kept
        for path in folders_above(one)[1:]
        if "/." in path or path.endswith("/hookline") or command.name == "rsync"
    }
    for word in words:
        removed = higher if word in above else {}
        for place in _places(word, folders):
            paths = [place]
            if any(char in word for char in "*?["):
                over = folders_above(place)
                paths = [path for path in exact if any(_names(x, path) for x in over)]
                paths += [path for path in removed if _names(place, path)]
            for path in paths:
                inside = (exact.get(one) for one in folders_above(path))
                if touched := next(filter(None, inside), removed.get(path)):
                    return touched
    return None


def _changed_words(
    command: Command, folders: list[str], kept: list[str]
) -> tuple[Collection[str], Collection[str]]:
    """The words that name what a command may change, and what it may remove.

    A program that is not known to read only may change whatever it is given.
    """
    name, args, flags = command.name, command.args, command.flags
    words = [*args, *(command.input_text.split() if command.appended else ())]
    words += [word.partition("=")[2] for word in words if "=" in word]
    if name == "patch" or (name == "git" and {"apply", "am"}.intersection(args)):
        patch = command.input_text + _source_text(command, folders)
        return [*words, *_mentioned(patch, kept)], ()
    if _INTERPRETER.fullmatch(name):
        code = " ".join((*args, command.input_text))
        return (_mentioned(code, kept) if _CHANGES.search(code) else ()), ()
    if name == "find":
        patterns = [args[i + 1] for i, one in enumerate(args[:-1]) if one == "-name"]
        names = [name for one in kept for name in one.split("/")[-2:]]
        hits = [one for one in names for two in patterns if fnmatchcase(one, two)]
        removes = _REMOVALS.intersection(args) and (hits or not patterns)
        return (words, words) if removes else ((), ())
    if name == "git":
        words = words if _GIT_CHANGES.intersection(args) else []
        return words, {*words} - {".", "./"}
    is_reader = name in _READERS | programs.SHELLS and args[:1] != ["migrate"]
    if is_reader or (name == "sed" and not flags & {"i", "in-place"}):
        return (), ()
    *sources, target = command.operands or [""]
    names = [one.rpartition("/")[2].removeprefix("..") for one in sources]
    inside = [f"{target}/{'*' if one in {'', '.'} else one}" for one in names]
    if name in {"cp", "install", "rsync"} and not flags & _INTO:
        return [target, *inside], inside if flags & {"r", "R", "a"} else ()
    if name == "mv":
        return [*words, *inside], [*sources, *inside]
    piped = command.source.args if command.source and command.appended else ()
    removes = name in _REMOVERS or (name == "ln" and "f" in flags)
    dots = {".", "./"} if name != "rsync" else set()
    return [*words, *piped], {*words} - dots if removes else ()


def _mentioned(text: str, kept: list[str]) -> list[str]:
    return [path for path in kept if "/".join(path.split("/")[-2:]) in text]


def _source_text(command: Command, folders: list[str], target: str = "") -> str:
    """The files that a command names beside its target, which may become its text."""
    texts = []
    for word in (*command.reads, *command.operands):
        for path in _places(word, folders) - {target}:
            with suppress(HooklineError):
                texts.append(decode_text(read_bytes(path), path))
    return "\n".join(texts)


def _places(word: str, folders: list[str]) -> set[str]:
    """Where a path leads from any of these folders, as it is written and resolved."""
    path = os.path.expanduser(os.path.expandvars(word.replace("\0", "")))  # noqa: PTH111
    spelled = [os.path.normpath(os.path.join(folder, path)) for folder in folders]  # noqa: PTH118
    places = {*spelled}
    with suppress(OSError, ValueError):
        places |= {os.path.realpath(one) for one in spelled}
    return places


def _names(pattern: str, path: str) -> bool:
    """Whether a shell makes this path of a pattern, name by name."""
    given, names = pattern.split("/"), path.split("/")
    return len(given) == len(names) and all(
        fnmatchcase(name, one) and (name[:1] != "." or one[:1] == ".")
        for one, name in zip(given, names, strict=True)
    )
