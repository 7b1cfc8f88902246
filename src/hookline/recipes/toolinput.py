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

    from hookline.shell.commands import Command

_PATH_KEY = re.compile(
    r"(?i)path|(?:^|[_-])(?:file|file_?name|folder|dir|directory|notebook|target|source"
    r"|dest|destination|uri)s?$"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CONTENT_KEY = re.compile(r"(?i)content|text|string|body|diff|patch|pattern|query")
_SHELL_KEY = re.compile(
    r"(?:.*_)?(?:command|cmd|script|commands|command_line|line|args|argv|arguments)"
)
_ARGUMENTS = ("args", "argv", "arguments")
_SHELL_TOOL = re.compile(r"shell|bash|exec|terminal|command|process")
_OTHER_LANGUAGE = re.compile(
    r"sql|query|code|(^|_)(python|py|js|javascript|node|ruby|cell|output)(_|$)"
)
_READ_TOOL = re.compile(
    r"(^|_)(read|list|ls|glob|grep|search|find|view|cat|fetch|get|show|head|tail)"
    r"(_|$|many|file)"
)
_WRITE_TOOL = re.compile(
    r"write|replace|edit|create|delete|remove|move|rename|patch|insert|update"
    r"|append|save|put|copy|(^|_)(merge|commit|push|send|post|publish|deploy|run|kill"
    r"|stop|start|set|add|apply|drop|clear|reset|upload|import|sync|install|close)(_|$)"
)
_SEARCHERS = {"grep", "egrep", "fgrep", "rg", "ag", "ack"}
_MENTIONS = {"echo", "printf", "test", "[", "[["}  # they open no file
# The first line of a file's part in a patch, as git, diff and Codex write it.
_PATCHED = re.compile(
    r"(?m)^[ \t>]*(?:\*{3} (?:Update|Add|Delete) File: |\*{3} Move to: "
    r"|(?:rename|copy) (?:from|to) |\+\+\+ (?=\S)|--- (?=\S)|Index: |diff --git )"
    r"([^\r\n]+)"
)
_IS_PATCH = re.compile(
    r"(?m)^[ \t]*(?:\*{3} Begin Patch|@@|rename (?:from|to) |diff --git )"
)


def snake_case(name: str) -> str:
    """A name of a tool or a field in small letters, its words joined by ``_``."""
    return _CAMEL.sub("_", name).lower().replace("-", "_").replace(".", "_")


def is_shell(tool_name: str) -> bool:
    """Whether a tool runs shell lines, by its name."""
    name = snake_case(tool_name)
    return bool(_SHELL_TOOL.search(name)) and not _OTHER_LANGUAGE.search(name)


def only_reads(tool_name: str, tool_input: Any = None) -> bool:
    """Whether a tool reads and changes nothing, by its name and its own command."""
    name = snake_case(tool_name)
    if "edit" in name and isinstance(tool_input, dict):
        # The text editors of several vendors are one tool with commands.
        return tool_input.get("command") == "view"
    reads = _READ_TOOL.search(name) and not _WRITE_TOOL.search(name)
    return bool(reads or re.search(r"(bash|shell|task|terminal)_output$", name))


def shell_line(tool_input: Any) -> str:
    """The shell lines in a tool's input; a list of arguments is quoted into one."""
    return "\n".join(_shell_lines(tool_input))


def shell_line_of(event: dict[str, Any]) -> str:
    """The shell lines of a tool call; a shell tool may name its field as it likes."""
    tool_input = event["tool_input"]
    line = shell_line(tool_input)
    if line or not is_shell(event["tool_name"]):
        return line
    values = tool_input.values() if isinstance(tool_input, dict) else [tool_input]
    return "\n".join(value for value in values if isinstance(value, str))


def _shell_lines(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _shell_lines(item)
    if not isinstance(value, dict):
        return
    program = ""
    for key, item in value.items():
        is_line = _SHELL_KEY.fullmatch(snake_case(str(key)))
        text = _as_line(item) if is_line else ""
        if not text:
            yield from _shell_lines(item)
        elif key in _ARGUMENTS:
            program, text = "", f"{program} {text}".strip()
            yield text
        else:
            yield from [program] if program else []
            program = text
    yield from [program] if program else []


def _as_line(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return ""
    words = [one for one in value if isinstance(one, str | int | float)]
    if len(words) < len(value):
        return ""  # not words
    from shlex import join

    lines = list(map(str, words))
    # A list of lines, or the words of one.
    return "\n".join(lines) if " " in lines[0].strip() else join(lines)


def patched_paths(text: str) -> Iterator[str]:
    """The files that a patch names, as git, diff and Codex write them."""
    if not _IS_PATCH.search(text):
        return
    for found in _PATCHED.finditer(text):
        names = found[1].split("\t")[0].strip()
        for name in names.split(" ") if found[0].startswith("diff") else [names]:
            if name != "/dev/null":
                yield re.sub(r"^[abiwco]/", "", name.strip('"'))


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


def fields_in(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every string in a value, at any depth, with the name of its field."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from fields_in(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from fields_in(item, key)


def names_path(key: str) -> bool:
    """Whether a field of a tool's input holds a path, by its name."""
    snake = snake_case(key)
    return bool(_PATH_KEY.search(snake)) and not _CONTENT_KEY.search(snake)


def paths_in(value: Any) -> Iterator[str]:
    """Every string in a field that holds a path, at any depth."""
    for key, text in fields_in(value):
        if names_path(key) or text.startswith("file://"):
            yield text.removeprefix("file://")


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
    if text.isascii():
        return text
    import unicodedata

    normal = unicodedata.normalize("NFKC", text)
    return "".join(char for char in normal if unicodedata.category(char) != "Cf")


def written_paths(event: dict[str, Any], writers: Container[str]) -> Iterator[str]:
    """Every path that a tool call writes; ``writers`` are programs that write files."""
    tool, tool_input = event["tool_name"], event["tool_input"]
    for command, cwd in placed_commands(event):
        operands = command.operands if command.name in writers else []
        for name in (*command.writes, *operands, *patched_by(command)):
            yield resolved(name, cwd)
    if not is_shell(tool) and not only_reads(tool, tool_input):
        yield from paths_in(tool_input)
        yield from patched_in(tool_input)


def patched_in(tool_input: Any) -> Iterator[str]:
    """The files that the patches in a tool's input name."""
    for key, text in fields_in(tool_input):
        if re.search(r"(?i)patch|diff|change|^input$|^$", key):
            yield from patched_paths(text)


def is_patcher(command: Command) -> bool:
    """Whether a command applies patches."""
    return command.name in ("apply_patch", "applypatch", "patch", "git")


def patched_by(command: Command, applied: bool = False) -> Iterator[str]:
    """The files that a command patches, or that a patch names which it writes down."""
    if applied or is_patcher(command):
        for text in (*command.args, command.input_text):
            yield from patched_paths(text)


def placed_commands(event: dict[str, Any]) -> Iterator[tuple[Command, str]]:
    """Every command of a tool call with the folder it runs in, after any ``cd``."""
    from hookline.shell.commands import commands

    cwd = event["cwd"]
    for command in commands(shell_line_of(event)):
        yield command, cwd
        if command.name in ("cd", "pushd") and command.operands:
            cwd = resolved(command.operands[0], cwd)


def file_words(command: Command) -> Iterator[str]:
    """The words that may name a file, also the value of ``--file=x`` or ``-d@x``."""
    words = [] if command.name in _MENTIONS else command.words
    words = words + command.wrapper_args
    words = words + command.piped_text.split() if command.appended else words
    if command.name == "git" and {"check-ignore", "--cached"} & set(words):
        return
    if command.args[:1] == ["grep"]:
        words = words[3:]  # git grep word
    if command.name in _SEARCHERS and not command.flags & {"e", "f", "regexp", "file"}:
        words = [word for word in words if word not in command.operands[:1]]
    for before, word in zip(["", *words], words, strict=False):
        left_out = re.match("--(exclude|ignore)", word) or word.startswith((":!", ":("))
        if word and not left_out and not re.fullmatch("--(exclude|ignore).*", before):
            yield from (word, *filter(None, re.split(r"[=@:]", word)[1:]))


def expanded(word: str, cwd: str) -> list[str]:
    """A word, and the files that it matches if it has wildcards."""
    if not any(char in word for char in "*?["):
        return [word]
    from glob import glob

    pattern = os.path.expanduser(word)  # noqa: PTH111 - as above
    # pathlib takes no absolute patterns.
    return [word, *glob(pattern, root_dir=cwd, include_hidden=True)]  # noqa: PTH207
