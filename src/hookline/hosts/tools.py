"""One name for each tool: the calls of a host in our spelling, and back.

A rule serves all hosts only if tools and their inputs have one name (HOSTS.md, "Our
names"). A call that touches several files becomes one part for each; a change of one
of those cannot be put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from hookline.protocol.jsontext import encode

from .patches import patch_parts

Wire = dict[str, Any]
Part = tuple[str, Wire]
"""Our name of a tool, and its input in our spelling."""

SHELL, READ, WRITE, REPLACE = "run_shell_command", "read_file", "write_file", "replace"
DELETE, GLOB, GREP, LIST = (
    "delete_file",
    "glob",
    "search_file_content",
    "list_directory",
)
FETCH, SEARCH, TASK, PATCH = "web_fetch", "web_search", "task", "apply_patch"

_FILE = ("path", "file_path", "absolute_path", "file", "file_name", "target_file")
_FOLDER = ("path", "dir_path", "directory", "dir", "folder", "target_directory")
_SPELLINGS: dict[str, dict[str, tuple[str, ...]]] = {
    SHELL: {"command": ("command", "cmd", "command_line", "script")},
    READ: {"path": _FILE},
    WRITE: {"path": _FILE, "content": ("content", "file_text", "contents", "code")},
    REPLACE: {
        "path": _FILE,
        "old_string": ("old_string", "old_str", "old_text"),
        "new_string": ("new_string", "new_str", "new_text"),
    },
    DELETE: {"path": _FILE},
    GLOB: {"pattern": ("pattern", "glob_pattern", "glob"), "path": _FOLDER},
    GREP: {"pattern": ("pattern", "query", "regex"), "path": _FOLDER},
    LIST: {"path": _FOLDER},
    FETCH: {"url": ("url", "uri")},
    SEARCH: {"query": ("query", "search_term")},
    TASK: {"prompt": ("prompt", "task")},
}
"""The fields of our tools, and what hosts call them; ``filePath`` is ``file_path``."""

_PATCH_KEYS = ("command", "input", "patch", "patch_text")
_PATCH_MARK = "*** Begin Patch"


class ToolCall(Struct, frozen=True):
    """The call of a tool: as the host has it, and in our spelling."""

    name: str
    given: Wire
    parts: tuple[Part, ...]
    spelled: Mapping[str, str] = {}
    """Our field names and the host's, where one part can be changed and put back."""
    is_whole: bool = True
    """Whether the one part is the whole call."""

    def changed(self, inputs: Iterable[Wire | None]) -> Wire | None:
        """The changed input in the host's spelling; None if nothing is changed.

        Raises ``ValueError`` for a change that cannot be put back.
        """
        found = [one for one in inputs if one is not None]
        if not found:
            return None
        if len(self.parts) != 1 or not self.is_whole:
            raise ValueError("a change of a part of this call cannot be put back")
        return {self.spelled.get(key, key): value for key, value in found[0].items()}


def read_call(name: str, given: Any, names: Mapping[str, str]) -> ToolCall:
    """Read the call of a tool; ``names`` has the host's tool names and ours."""
    tool_input = _as_object(given)
    ours = names.get(name, name)
    if ours == PATCH:
        return _patch_call(name, tool_input)
    if ours == REPLACE and isinstance(tool_input.get("edits"), list):
        return _edits_call(name, tool_input)
    if ours == SHELL and isinstance(tool_input.get("commands"), list):
        return _commands_call(name, tool_input)
    call = _plain_call(name, ours, tool_input)
    if ours != SHELL or _PATCH_MARK not in str(call.parts[0][1].get("command")):
        return call
    # A shell command that a host takes for a patch changes the files of the patch.
    files = patch_parts(str(call.parts[0][1]["command"]))
    return ToolCall(name, tool_input, (*call.parts, *files), is_whole=False)


def _as_object(given: Any) -> Wire:
    if isinstance(given, dict):
        return given
    return {} if given is None else {"input": given}


def _plain_call(name: str, ours: str, given: Wire) -> ToolCall:
    """One part; one more for each further value of a field that has several names."""
    fields = {key: field for field, key, _ in _spelled(ours, given)}
    shown: Wire = {}
    for key, value in given.items():
        shown.setdefault(fields.get(key, key), value)
    first = {field: key for field, key, is_first in _spelled(ours, given) if is_first}
    shown |= {field: given[key] for field, key in first.items()}
    others = [(field, given[key]) for key, field in fields.items()]
    parts = [(ours, shown)]
    # Which of them the tool uses is the host's business: guards see them all.
    parts += [(ours, shown | {k: v}) for k, v in others if not _is_same(shown[k], v)]
    return ToolCall(name, given, tuple(parts), first)


def _spelled(ours: str, given: Wire) -> Iterator[tuple[str, str, bool]]:
    """Our field, a key of the input that means it, and whether that comes first."""
    for field, spellings in _SPELLINGS.get(ours, {}).items():
        for at, key in enumerate(_keys_of(given, spellings)):
            yield field, key, at == 0


def _keys_of(given: Wire, spellings: tuple[str, ...]) -> list[str]:
    """The keys of an input that are names of one field, in their order of weight."""
    folded = [_folded(one) for one in spellings]
    found = [k for k in given if _folded(k) in folded and given[k] is not None]
    return sorted(
        found, key=lambda key: (key != spellings[0], folded.index(_folded(key)))
    )


def _folded(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _is_same(one: Any, other: Any) -> bool:
    return encode(one) == encode(other)


def _patch_call(name: str, given: Wire) -> ToolCall:
    texts = [given[key] for key in given if _folded(key) in map(_folded, _PATCH_KEYS)]
    found = [
        part for text in texts if isinstance(text, str) for part in patch_parts(text)
    ]
    # What cannot be read as a patch is shown as it came.
    parts = tuple(found) or ((name, given),)
    return ToolCall(name, given, parts, is_whole=not found)


def _edits_call(name: str, given: Wire) -> ToolCall:
    """Several edits of one file are one part."""
    edits = [one for one in given["edits"] if isinstance(one, dict)]
    plain = [_plain_call(name, REPLACE, one).parts[0][1] for one in edits]
    rest = {key: value for key, value in given.items() if key != "edits"}
    by_file: dict[str, list[Wire]] = {}
    whole = _plain_call(name, REPLACE, rest).parts[0][1]
    for edit in plain:
        path = edit.get("path", whole.get("path"))
        by_file.setdefault(encode(path).decode(), []).append({**edit, "path": path})
    parts = [(REPLACE, whole | _merged_edits(found)) for found in by_file.values()]
    return ToolCall(name, given, tuple(parts) or ((REPLACE, whole),), is_whole=False)


def _merged_edits(edits: list[Wire]) -> Wire:
    joined = {
        key: "\n".join(str(one[key]) for one in edits if key in one)
        for key in ("old_string", "new_string")
    }
    return {"path": edits[0]["path"], **joined}


def _commands_call(name: str, given: Wire) -> ToolCall:
    rest = {key: value for key, value in given.items() if key != "commands"}
    parts = [(SHELL, {**rest, "command": one}) for one in given["commands"]]
    return ToolCall(name, given, tuple(parts) or ((SHELL, given),), is_whole=False)
