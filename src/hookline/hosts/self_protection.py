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
from functools import cached_property
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
from .registry import HOSTS
from .tools import Tool, ToolCall, Wire

_PERSONAL = frozenset({"trust", "init", "install", "uninstall"})
_READING = frozenset({"-h", "--help", "--list", "--dry-run"})
# Patterns are compiled on first use: most calls need two of them.
_PROGRAM = (
    r"(-\w*m|(.*/)?)hookline(\.exe|\.cli\.main|\.__main__|/cli/main.py|/__main__.py)?"
    r"([@=<>~\[].*)?"
)
_PACKAGE = r"hookline(\[.*\])?([=<>~!].*)?"
_INTERPRETER = rf"{programs.PYTHON}|(perl|ruby|node|php|lua|deno|bun|[gmn]?awk)[\d.]*"
_STARTS = r"(?i)import|require|subprocess|system|exec|popen|spawn|getline|`"
_APPROVES = r"\b(trust|uninstall|install|init|save_record|HOOKLINE_TRUST)\b"
_CHANGES = (
    r"write|dump|unlink|remove|rename|replace|rmtree|truncate|copy|move"
    r"|,\s*(mode\s*=\s*)?[rb]?['\"][wax+]|(^|\s)-\w*i|>\s*['\"]"
)
_PERSONAL_LINE = (
    r"(!\s*)?\bhookline\s+(?:trust|init|install|uninstall)\b(?!\s+(?:--help|-h))"
)
_LINE_RUNNERS = frozenset({"expect", "socat", "screen", "parallel", "alias", "make"})
_FED = programs.SHELLS | {"at", "batch", "crontab", "expect", "screen"}
"""They run the lines that they are given on their standard input."""
_TRUSTS_ALL = r"HOOKLINE_TRUST\+?=."
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
_SWITCH = r"disableAllHooks|[hH]ooksConfig|[hH]ooks\b|HooksOnly"
_MOST_FOLDERS = 8
_FOLDER_KEYS = ("workdir", "working_dir", "directory", "dir_path", "cwd")
"""Where tools of some hosts run a command."""


class _AgentFile(Struct, frozen=True):
    """A file of a coding agent's settings, where some file has an entry of ours."""

    host: Host
    path: str
    entries: frozenset[str] = frozenset()
    """Our entries in it, each with all that decides when it runs."""
    off: frozenset[str] = frozenset()
    """What keeps hooks from running in it already."""

    def loses(self, text: str | None) -> bool:
        """Whether an entry is missing, or hooks are off, with another content."""
        try:
            after = _agent_file(self.host, self.path, text or "")
        except HooklineError:
            return bool(self.entries)
        return not (after.entries >= self.entries and after.off <= self.off)


def _agent_file(host: Host, path: str, text: str | None = None) -> _AgentFile:
    """An agent's file with this text, or as it is; raises ``HooklineError``."""
    from .install.calls import calls_in_text  # few calls touch such files

    text = decode_text(read_bytes(path), path) if text is None else text
    calls = calls_in_text(host, text, path)
    if host.files.layout in {Layout.SCRIPT, Layout.PLUGIN}:
        # They are programs: any change may be the end of it.
        return _AgentFile(host, path, frozenset({text} if calls else ()))
    settings = parse_text(text, path)
    off = {str(keys) for keys, value in _SWITCHES if value_at(settings, keys) is value}
    for keys in _LISTS:
        names = value_at(settings, keys)
        off |= {str(name) for name in names} if isinstance(names, list) else set()
    off |= {word for word in _VARIABLES if word in text}
    try:
        json.loads(text)
    except ValueError:
        off |= {"comments"} if path.endswith(".json") else set()
    entries = (encode([call.event, call.hook, call.group]).decode() for call in calls)
    return _AgentFile(host, path, frozenset(entries), frozenset(off))


def refusal(call: ToolCall, cwd: str, folders: Iterable[str]) -> str | None:
    """Why a call is refused; None where it may go on to the hooks.

    ``folders``: those of the session and of its projects.
    """
    guards = _Guards(cwd, folders)
    for tool, tool_input in call.parts:
        line, path = tool_input.get("command"), tool_input.get("path")
        reason = None
        if tool == Tool.SHELL and isinstance(line, str):
            workdirs = [str(tool_input.get(key) or "") for key in _FOLDER_KEYS]
            starts = [os.path.join(cwd, workdir) for workdir in ("", *workdirs)]  # noqa: PTH118
            reason = guards.refused_line(line, list(dict.fromkeys(starts)))
        elif tool in (Tool.WRITE, Tool.REPLACE, Tool.DELETE) and isinstance(path, str):
            reason = guards.refused_change(call, tool, tool_input)
        if reason is not None:
            return (
                f"{reason}. Only a person may approve, install or remove guards: ask "
                "the person to do it in a terminal of their own, not through an agent "
                f"(cd {shlex.quote(cwd)} && hookline trust, install or uninstall)"
            )
    return None


class _Guards:
    """What a session may not change; looked up when a call may change something."""

    def __init__(self, cwd: str, folders: Iterable[str]) -> None:
        self.cwd = cwd
        self._folders = {*folders, cwd}

    @cached_property
    def own_folders(self) -> list[str]:
        """What is believed without an approval, and the approvals."""
        state = state_dir()
        records = [f"{state}/trust", f"{state}/installed"] if state else []
        folders = (*records, default_user_dir(), SYSTEM_DIR)
        return [os.path.realpath(folder) for folder in folders if folder]

    @cached_property
    def agent_files(self) -> list[_AgentFile]:
        """The files of the agents that have an entry of ours in some file."""
        folders = {*self._folders, find_workspace(self.cwd).root}
        agent_files = []
        for host in HOSTS.values():
            files = host.files
            paths = [file_of(files, Scope.PROJECT, folder, "*") for folder in folders]
            with suppress(HooklineError):  # no home folder, so no file in it
                paths.append(file_of(files, Scope.USER, "", "*"))
            if files.layout is Layout.SCRIPT:
                patterns = [path.replace("[", "[[]") for path in paths]
                paths = [path for pattern in patterns for path in glob(pattern)]  # noqa: PTH207
            with_entries = [_read(host, path) for path in paths]
            if not any(file.entries for file in with_entries):
                continue
            agent_files += with_entries
            for name in files.off_in:
                with suppress(HooklineError):
                    places = [f"{folder}/{name}" for folder in folders]
                    if name.startswith(("$", "~")):
                        places = [in_home(files, name)]
                    agent_files += [_read(host, path) for path in places]
        return agent_files

    @cached_property
    def paths(self) -> dict[str, bool]:
        """Folders and files that no command may change; True: only to switch hooks off.

        In the order in which a later one counts where both are below one folder.
        """
        guarded = dict.fromkeys(self.own_folders, False)
        guarded |= {file.path: False for file in self.agent_files if file.entries}
        switches = {f.path: True for f in self.agent_files if f.path not in guarded}
        return switches | guarded

    def refused_change(self, call: ToolCall, tool: str, tool_input: Wire) -> str | None:
        """Why a file may not be written, edited or deleted."""
        path = tool_input["path"].removeprefix("file://")
        places = _places(path, [self.cwd])
        if any(is_within(x, folder) for x in places for folder in self.own_folders):
            return f"{path} decides which hooks are believed"
        for file in self.agent_files:
            targets = {file.path, os.path.realpath(file.path)}
            if tool == Tool.DELETE:
                is_lost = bool(file.entries) and any(
                    is_within(target, place) for target in targets for place in places
                )
            else:
                is_lost = bool(targets & places) and file.loses(
                    _content_after(call, tool, tool_input, file.path)
                )
            if is_lost:
                return f"{path} would no longer call hookline, or run no hooks"
        return None

    def refused_line(self, line: str, starts: list[str]) -> str | None:
        """Why a line may not be run; ``starts``: where it may be run."""
        # How Copilot writes the key.
        line = line.replace("{enter}", "\n")
        folders = [*starts]
        for command in commands(line):
            is_unread = command.opaque and not command.words and not command.wrappers
            if is_unread:
                bare = re.sub(r"['\"\\]", "", line)
                guarded = [path for path in self.paths if not self.paths[path]]
                if "hookline" in bare or _mentioned(bare, guarded):
                    return "a command that is too long to be checked names guards"
            if _is_personal(command, line):
                return f"{' '.join(command.words)[:200]!r} is for a person"
            set_here = command.args if command.name in _SETTERS else []
            if any(re.match(_TRUSTS_ALL, x) for x in (*command.assigned, *set_here)):
                return "HOOKLINE_TRUST approves every project"
            for path in self._touched(command, folders):
                texts = (line, _source_text(command, folders, path))
                if not self.paths[path] or any(re.search(_SWITCH, x) for x in texts):
                    program = command.name or "a redirection"
                    return f"{path} would be changed by {program!r}"
            fed = command.input_text if command.name in _FED else ""
            if fed and fed != line and (reason := self.refused_line(fed, folders)):
                return reason
            if command.name in ("cd", "pushd") and command.operands:
                folders += sorted(_places(command.operands[0], folders) - {*folders})
                del folders[_MOST_FOLDERS:]
        return None

    def _touched(self, command: Command, folders: list[str]) -> Iterator[str]:
        """What a command may change: itself, something in it, or all above it."""
        changed, removed = self._changed_words(command, folders)
        words = dict.fromkeys(filter(None, (*command.writes, *changed)))
        if not words:
            return
        exact: dict[str, str] = {}
        above: dict[str, str] = {}
        for path in self.paths:
            exact |= {path: path, os.path.realpath(path): path}
            # Who removes a whole project or home means all of it; a hidden folder above
            # a guard may be removed for its sake. rsync removes what its source lacks.
            above |= {
                folder: path
                for folder in folders_above(path)[1:]
                if "/." in folder
                or folder.endswith("/hookline")
                or command.name == "rsync"
            }
        for word in words:
            removable = above if word in removed else {}
            for place in _places(word, folders):
                places = [place]
                if any(char in word for char in "*?["):
                    patterns = folders_above(place)
                    places = [x for x in exact if any(_matches(y, x) for y in patterns)]
                    places += [
                        folder for folder in removable if _matches(place, folder)
                    ]
                for target in places:
                    around = (exact.get(folder) for folder in folders_above(target))
                    yield from filter(None, (*around, removable.get(target)))

    def _changed_words(
        self, command: Command, folders: list[str]
    ) -> tuple[Collection[str], Collection[str]]:
        """The words that name what a command may change, and what it may remove.

        A program that is not known to read only may change whatever it is given.
        """
        name, args, flags = command.name, command.args, command.flags
        words = [*args, *(command.input_text.split() if command.appended else ())]
        words += [word.partition("=")[2] for word in words if "=" in word]
        if name == "patch" or (name == "git" and {"apply", "am"}.intersection(args)):
            patch = command.input_text + _source_text(command, folders)
            return [*words, *_mentioned(patch, self.paths)], ()
        if re.fullmatch(_INTERPRETER, name):
            code = " ".join((*args, command.input_text))
            return (
                _mentioned(code, self.paths) if re.search(_CHANGES, code) else ()
            ), ()
        if name == "find":
            patterns = [args[i + 1] for i, x in enumerate(args[:-1]) if x == "-name"]
            names = {part for path in self.paths for part in path.split("/")[-2:]}
            is_named = any(
                fnmatchcase(x, pattern) for x in names for pattern in patterns
            )
            removes = _REMOVALS.intersection(args) and (is_named or not patterns)
            return (words, words) if removes else ((), ())
        if name == "git":
            words = words if _GIT_CHANGES.intersection(args) else []
            return words, {*words} - {".", "./"}
        is_reader = name in _READERS | programs.SHELLS and args[:1] != ["migrate"]
        if is_reader or (name == "sed" and not flags & {"i", "in-place"}):
            return (), ()
        *sources, target = command.operands or [""]
        names_inside = [x.rpartition("/")[2].removeprefix("..") for x in sources]
        inside = [f"{target}/{'*' if x in {'', '.'} else x}" for x in names_inside]
        if name in {"cp", "install", "rsync"} and not flags & _INTO:
            return [target, *inside], inside if flags & {"r", "R", "a"} else ()
        if name == "mv":
            return [*words, *inside], [*sources, *inside]
        piped = command.source.args if command.source and command.appended else ()
        removes = name in _REMOVERS or (name == "ln" and "f" in flags)
        dots = {".", "./"} if name != "rsync" else set()
        return [*words, *piped], {*words} - dots if removes else ()


def _mentioned(text: str, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if "/".join(path.split("/")[-2:]) in text]


def _read(host: Host, path: str) -> _AgentFile:
    try:
        return _agent_file(host, path)
    except HooklineError:
        return _AgentFile(host, path)


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
    listed = listed if isinstance(listed, list) else []
    edits = [edit for edit in listed if isinstance(edit, dict)]
    sides = ("old_string", "new_string")
    joined = {key: "\n".join(str(edit.get(key)) for edit in edits) for key in sides}
    if not edits or not joined.items() <= tool_input.items():
        # A part that has more than these edits is judged as a whole.
        edits = [tool_input]
    for edit in edits:
        old, new = (edit.get(key) for key in sides)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        if old not in text or bool(old) is not bool(text):
            return None
        text = text.replace(old, new, -1 if edit.get("replace_all") is True else 1)
    return text


def _is_personal(command: Command, line: str) -> bool:
    """Whether a command is one of ours that only a person may run, or may be it."""
    name, text = command.name, " ".join((*command.args, command.input_text))
    inner_line = re.search(_PERSONAL_LINE, text)
    if inner_line and (inner_line[1] or name in _LINE_RUNNERS):
        return name not in programs.PRINTERS
    if re.fullmatch(_INTERPRETER, name):
        if (
            "hookline" in text
            and re.search(_APPROVES, text)
            and re.search(_STARTS, text)
        ):
            return True
    elif name in _NO_STARTERS:
        return False
    words = [name, *command.args]
    words += command.input_text.split() if command.appended else []
    if {"uninstall", "remove"} & {*words} and any(
        re.fullmatch(_PACKAGE, word) for word in words[2:]
    ):
        return True
    for place, word in enumerate(words):
        if re.fullmatch(_PROGRAM, word):
            subcommand, *options = (*words[place + 1 :], "")
            is_read = _only_reads(command, subcommand, options)
            if subcommand in _PERSONAL and not is_read:
                return True
            is_filled = command.appended and not subcommand.isalpha()
            if place == 0 and ("$" in subcommand or is_filled):
                return True
    is_unknown = any(char in name for char in "$*?[")
    hidden = _PERSONAL if "hookline" in line else {"trust"}
    return is_unknown and bool(hidden.intersection(words[1:2]))


def _only_reads(command: Command, subcommand: str, options: list[str]) -> bool:
    if "--" in options:
        options = options[: options.index("--")]
    flags = {option for option in options if option.startswith("-")}
    # At a terminal it asks, and the agent could answer: the variables must be there.
    is_plain = not command.wrappers and not command.assigned
    is_review = subcommand == "trust" and is_plain and flags == {"--show"}
    return is_review or not _READING.isdisjoint(flags)


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
    spelled = {os.path.normpath(os.path.join(folder, path)) for folder in folders}  # noqa: PTH118
    with suppress(OSError, ValueError):
        return spelled | {os.path.realpath(place) for place in spelled}
    return spelled


def _matches(pattern: str, path: str) -> bool:
    """Whether a shell makes this path of a pattern, name by name."""
    patterns, names = pattern.split("/"), path.split("/")
    return len(patterns) == len(names) and all(
        fnmatchcase(name, part) and (name[:1] != "." or part[:1] == ".")
        for part, name in zip(patterns, names, strict=True)
    )
