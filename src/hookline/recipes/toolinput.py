"""Read a tool's input: its texts, paths and shell lines.

Hosts name the fields of their tools differently, so a field is recognized by what its
name looks like.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any

    from hookline.shelltext.commands import Command

_PATH_KEY = re.compile(
    r"(?i)path|(?:^|[_-])(?:file|file_?name|folder|dir|directory|notebook|target|source"
    r"|dest|destination|uri)s?$"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CONTENT_KEY = re.compile(r"(?i)content|text|string|body|diff|patch|pattern|query")
_SHELL_KEYS = ("command", "cmd", "script", "commands", "args", "argv")
_SHELL_TOOL = re.compile(r"(?i)shell|bash|exec|terminal|command|process")
_READ_TOOL = re.compile(
    r"(?i)(^|_)(read|list|ls|glob|grep|search|find|view|cat|fetch|get|show|head|tail)"
    r"(_|$|many|file)"
)
_WRITE_TOOL = re.compile(
    r"(?i)write|replace|edit|create|delete|remove|move|rename|patch|insert|update"
    r"|append|save|put|copy"
)


def is_shell(tool_name: str) -> bool:
    """Whether a tool runs shell lines, by its name."""
    return bool(_SHELL_TOOL.search(tool_name))


def only_reads(tool_name: str) -> bool:
    """Whether a tool reads and changes nothing, by its name."""
    return bool(_READ_TOOL.search(tool_name)) and not _WRITE_TOOL.search(tool_name)


def shell_line(tool_input: dict[str, Any]) -> str:
    """The shell line in a tool's input; a list of arguments is quoted into one."""
    lines = []
    for value in map(tool_input.get, _SHELL_KEYS):
        if isinstance(value, str):
            lines.append(value)
        elif isinstance(value, list):
            from shlex import join

            lines.append(join(map(str, value)))
    return "\n".join(lines)


def texts_in(value: Any) -> Iterator[str]:
    """Every string in a value, at any depth, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def names_path(key: str) -> bool:
    """Whether a field of a tool's input holds a path, by its name."""
    snake = _CAMEL.sub("_", key)
    return bool(_PATH_KEY.search(snake)) and not _CONTENT_KEY.search(snake)


def paths_in(value: Any, named: bool = False) -> Iterator[str]:
    """Every string in a field that holds a path, at any depth."""
    if isinstance(value, str):
        if named or value.startswith("file://"):
            yield value.removeprefix("file://")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from paths_in(item, names_path(key))
    elif isinstance(value, list):
        for item in value:
            yield from paths_in(item, named)


def resolved(path: str, cwd: str) -> str:
    """The real path: absolute, without dots, links and ``~``."""
    path = os.path.expanduser(path.replace("\0", ""))  # noqa: PTH111 - no pathlib: cost
    return os.path.realpath(os.path.join(cwd, path))  # noqa: PTH118 - as above


def project_path(path: str, cwd: str) -> str | None:
    """A path relative to the project, links resolved; None when it leads outside."""
    root, place = os.path.realpath(cwd), resolved(path, cwd)
    if place == root:
        return "."
    return place[len(root) + 1 :] if place.startswith(root + os.sep) else None


def project_paths(paths: Iterable[str], cwd: str) -> Iterator[str]:
    """Those paths that are inside the project, relative to it."""
    return filter(None, (project_path(path, cwd) for path in paths))


def env_list(name: str, default: str = "") -> list[str]:
    """The values of a variable that separates them with commas."""
    values = os.environ.get(name, default).split(",")
    return [value.strip() for value in values if value.strip()]


def visible_text(text: str) -> str:
    """A text without invisible characters, and with plain letters for fancy ones."""
    import unicodedata

    normal = unicodedata.normalize("NFKC", text)
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


def written_paths(event: dict[str, Any], writers: Container[str]) -> Iterator[str]:
    """Every path that a tool call writes; ``writers`` are programs that write files."""
    for command, cwd in placed_commands(event):
        operands = command.operands if command.name in writers else []
        for name in (*command.writes, *operands):
            yield resolved(name, cwd)
    if not is_shell(event["tool_name"]) and not only_reads(event["tool_name"]):
        yield from paths_in(event["tool_input"])


def placed_commands(event: dict[str, Any]) -> Iterator[tuple[Command, str]]:
    """Every command of a shell tool with the folder it runs in, after any ``cd``."""
    if not is_shell(event["tool_name"]):
        return
    from hookline.shelltext.commands import commands

    cwd = event["cwd"]
    for command in commands(shell_line(event["tool_input"])):
        yield command, cwd
        if command.name in ("cd", "pushd") and command.operands:
            cwd = resolved(command.operands[0], cwd)


def expanded(word: str, cwd: str) -> list[str]:
    """A word, and the files that it matches if it has wildcards."""
    if not any(char in word for char in "*?["):
        return [word]
    from glob import glob

    pattern = os.path.expanduser(word)  # noqa: PTH111 - as above
    # pathlib takes no absolute patterns.
    return [word, *glob(pattern, root_dir=cwd, include_hidden=True)]  # noqa: PTH207
