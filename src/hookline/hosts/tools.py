"""One name for each tool: the calls of a host in our spelling, and back.

A rule serves all hosts only if tools and their inputs have one name
(hosts/README.md#what-a-hook-sees). A call that touches several files becomes one part
for each; a change of one of those cannot be put back.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from hookline.protocol.dialects import OLD, SPELLINGS, folded_key, keys_of
from hookline.protocol.values import decode, encode, same_json

from .patches import PATCH_MARK, command_parts, patch_parts

Wire = dict[str, Any]
Part = tuple[str, Wire]
"""Our name of a tool, and its input in our spelling."""


class Tool:
    """Our names of tools."""

    SHELL = "run_shell_command"
    READ = "read_file"
    WRITE = "write_file"
    REPLACE = "replace"
    DELETE = "delete_file"
    GLOB = "glob"
    GREP = "search_file_content"
    LIST = "list_directory"
    FETCH = "web_fetch"
    SEARCH = "web_search"
    TASK = "task"
    PATCH = "apply_patch"
    EDITOR = "<editor>"
    """For tables of names: a tool that reads, writes or replaces, as its input says."""


_LISTS: dict[str, tuple[str, tuple[str, ...]]] = {
    Tool.SHELL: ("command", ("commands",)),
    Tool.READ: ("path", ("files", "paths", "file_paths", "operations")),
    Tool.WRITE: ("path", ("files",)),
    Tool.REPLACE: ("path", ("files", "edits", "changes", "replacements")),
    Tool.DELETE: ("path", ("files", "paths", "file_paths")),
    Tool.GLOB: ("pattern", ("patterns",)),
    Tool.GREP: ("pattern", ("queries",)),
    Tool.FETCH: ("url", ("urls", "requests")),
}
"""A field that tools of some hosts take several of, and what the list is called."""
_CHANGE = ("old_string", "new_string")
_EDITOR_TOOLS = {
    "create": Tool.WRITE,
    "write": Tool.WRITE,
    "view": Tool.READ,
    "read": Tool.READ,
}

_FILE_TOOLS = (Tool.READ, Tool.WRITE, Tool.REPLACE, Tool.DELETE)
_PATCH_KEYS = ("command", "input", "patch", "patch_text")


class ToolCall(Struct, frozen=True):
    """The call of a tool: as the host has it, and in our spelling."""

    name: str
    tool_input: Wire
    parts: tuple[Part, ...]
    spelled: Mapping[str, str] = {}
    """Our field names and the host's, where one part can be changed and put back."""
    is_whole: bool = True
    """Whether the one part is the whole call."""
    listed: str = ""
    """The key of the host's list whose only item the one part is."""

    def changed(self, inputs: Iterable[Wire | None]) -> Wire | None:
        """The changed input in the host's spelling; None if nothing is changed.

        Raises ``ValueError`` for a change that cannot be put back.
        """
        found = [one for one in inputs if one is not None]
        if not found:
            return None
        if len(self.parts) != 1 or not self.is_whole:
            raise ValueError("a change of a part of this call cannot be put back")
        changed = found[0]
        # What does not belong into the host's list.
        beside = self.tool_input.keys() - {self.listed} if self.listed else ()
        top = {key: value for key, value in changed.items() if key in beside}
        inner = {
            self.spelled.get(key, key): value
            for key, value in changed.items()
            if key not in top
        }
        return top | ({self.listed: self._relisted(inner)} if self.listed else inner)

    def _relisted(self, inner: Wire) -> Any:
        """The value of the host's list, or of what it took in place of a list."""
        given = self.tool_input[self.listed]
        is_list = isinstance(given, list)
        first = given[0] if is_list else given
        if not isinstance(first, dict) and len(inner) != 1:
            raise ValueError(f"an item of {self.listed} cannot have further fields")
        item = inner if isinstance(first, dict) else next(iter(inner.values()))
        return [item] if is_list else item


def tool_names(by_ours: Mapping[str, str]) -> dict[str, str]:
    """A host's names of tools and ours, given its names for each of ours as words."""
    return {name: ours for ours, names in by_ours.items() for name in names.split()}


def read_call(name: str, given: Any, names: Mapping[str, str]) -> ToolCall:
    """Read the call of a tool; ``names`` has the host's tool names and ours."""
    call = _read_call(name, given, names)
    return structs.replace(call, parts=tuple(map(_with_file, call.parts)))


def _with_file(part: Part) -> Part:
    """Show the file that hosts make of a path that ends like a folder's.

    Claude Code writes ``.env`` when it is told to write ``.env/``.
    """
    name, given = part
    path = given.get("path")
    if name not in _FILE_TOOLS or not isinstance(path, str):
        return part
    if posixpath.basename(path) not in ("", ".", "..") or not path:
        return part
    return name, given | {"path": posixpath.normpath(path)}


def _read_call(name: str, given: Any, names: Mapping[str, str]) -> ToolCall:
    if isinstance(decoded := _decoded(given), dict):
        given = decoded
    ours = names.get(name, name)
    if isinstance(given, str) and PATCH_MARK in given and ours != Tool.SHELL:
        ours = Tool.PATCH
    tool_input = _as_object(ours, given)
    if ours == Tool.EDITOR:
        ours = _editor_tool(tool_input)
    if ours == Tool.PATCH:
        return _patch_call(name, tool_input)
    keys = _list_keys(ours, tool_input)
    if ours == Tool.REPLACE and keys:
        return _edits_call(name, tool_input, keys)
    if keys:
        call = _listed_call(name, ours, tool_input, keys)
    else:
        call = _plain_call(name, ours, tool_input)
    return _shell_call(call) if ours == Tool.SHELL else call


def _as_object(ours: str, given: Any) -> Wire:
    if isinstance(given, dict):
        return given
    if ours in _LISTS and isinstance(given, (str, list)):
        field, (key, *_) = _LISTS[ours]
        return {key: given} if isinstance(given, list) else {field: given}
    return {} if given is None else {"input": given}


def _decoded(given: Any) -> Any:
    """Some versions of a host write an input, or a part of it, as JSON text."""
    try:
        value = decode(given) if isinstance(given, str) else None
    except ValueError:
        return given
    return value if isinstance(value, dict | list) else given


def _shell_call(call: ToolCall) -> ToolCall:
    """A command that a host takes for a patch changes the files of the patch."""
    commands = [given.get("command") for _, given in call.parts]
    texts = [text for one in commands for text in _texts(one)]
    files = [part for text in texts for part in command_parts(text)]
    shown = [(name, _with_line(given)) for name, given in call.parts]
    is_changed = bool(files) or any(isinstance(one, list) for one in commands)
    is_whole = call.is_whole and not is_changed
    return structs.replace(call, parts=(*shown, *files), is_whole=is_whole)


def _with_line(given: Wire) -> Wire:
    """A list of arguments is shown as the command line that it is."""
    command = given.get("command")
    if not isinstance(command, list):
        return given
    return given | {"command": shlex.join(map(str, command))}


def _texts(command: Any) -> list[str]:
    found = command if isinstance(command, list) else [command]
    return [one for one in found if isinstance(one, str)]


def _editor_tool(given: Wire) -> str:
    command = given.get("command")
    if isinstance(command, str):
        return _EDITOR_TOOLS.get(command, Tool.REPLACE)
    replaces = keys_of(given, OLD) or given.get("insert_line") is not None
    return Tool.REPLACE if replaces else Tool.WRITE


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
    parts += [(ours, shown | {k: v}) for k, v in others if not same_json(shown[k], v)]
    return ToolCall(name, given, tuple(parts), first)


def _spelled(ours: str, given: Wire) -> Iterator[tuple[str, str, bool]]:
    """Our field, a key of the input that means it, and whether that comes first."""
    for field, spellings in SPELLINGS.get(ours, {}).items():
        for at, key in enumerate(keys_of(given, spellings)):
            yield field, key, at == 0


def _patch_call(name: str, given: Wire) -> ToolCall:
    keys = [folded_key(one) for one in _PATCH_KEYS]
    texts = [(key, text) for key, value in given.items() for text in _texts(value)]
    patches = [
        text for key, text in texts if folded_key(key) in keys or PATCH_MARK in text
    ]
    found = [part for text in patches for part in patch_parts(text)]
    # What cannot be read as a patch is shown as it came.
    parts = tuple(found) or ((name, given),)
    return ToolCall(name, given, parts, is_whole=not found)


def _edits_call(name: str, given: Wire, keys: list[str]) -> ToolCall:
    """Several edits of one file are one part; so is what stands beside the lists."""
    rest = {key: value for key, value in given.items() if key not in keys}
    edits = [edit for key in keys for edit in _edits_in(key, given[key])]
    plain = [
        part for edit in edits for part in _plain_call(name, Tool.REPLACE, edit).parts
    ]
    parts = []
    for _, whole in _plain_call(name, Tool.REPLACE, rest).parts:
        by_file: dict[str, list[Wire]] = {}
        for _, edit in plain:
            path = whole.get("path") if edit.get("path") is None else edit["path"]
            by_file.setdefault(encode(path).decode(), []).append({**edit, "path": path})
        parts += [
            (Tool.REPLACE, whole | _merged_edits(one)) for one in by_file.values()
        ]
        is_shown = encode(whole.get("path")).decode() in by_file
        is_more = "path" in whole and not is_shown
        if is_more or not plain or whole.keys() & {*_CHANGE}:
            parts.append((Tool.REPLACE, whole))
    return ToolCall(name, given, tuple(parts), is_whole=False)


def _edits_in(key: str, value: Any) -> list[Wire]:
    """The edits in a list, also where a file in it has a list of its own."""
    edits: list[Wire] = []
    for item in map(_decoded, value if isinstance(value, list) else [_decoded(value)]):
        if isinstance(item, dict):
            keys = _list_keys(Tool.REPLACE, item)
            rest = {name: field for name, field in item.items() if name not in keys}
            inner = [edit for name in keys for edit in _edits_in(name, item[name])]
            edits += [rest | edit for edit in inner] or [rest]
        elif isinstance(item, list):
            edits += _edits_in(key, item)
        elif item is not None:
            is_file = folded_key(key) == "files"
            edits.append({"path" if is_file else "new_string": item})
    return edits


def _merged_edits(edits: list[Wire]) -> Wire:
    joined = {
        key: "\n".join(str(one[key]) for one in edits if key in one)
        for key in _CHANGE
        if any(key in one for one in edits)
    }
    others = {key: value for one in edits for key, value in one.items()}
    return {**others, "path": edits[0]["path"], **joined}


def _list_keys(ours: str, given: Wire) -> list[str]:
    """The keys of an input that hold several values of a field."""
    _, spellings = _LISTS.get(ours, ("", ()))
    return [key for key in keys_of(given, spellings) if given[key] != []]


def _listed_call(name: str, ours: str, given: Wire, keys: list[str]) -> ToolCall:
    """One part for each value, and for the field itself if that is there too."""
    rest = {key: value for key, value in given.items() if key not in keys}
    values = [
        one
        for key in keys
        for one in (given[key] if isinstance(given[key], list) else [given[key]])
    ]
    items = [_item_call(name, ours, one) for one in values]
    parts = [(ours, rest | part) for item in items for _, part in item.parts]
    if any(_spelled(ours, rest)):
        parts += _plain_call(name, ours, rest).parts
    shown = items[0].parts[0][1]
    if len(parts) == 1 and items[0].is_whole and not shown.keys() & rest.keys():
        return ToolCall(name, given, tuple(parts), items[0].spelled, listed=keys[0])
    return ToolCall(name, given, tuple(parts), is_whole=False)


def _item_call(name: str, ours: str, value: Any) -> ToolCall:
    """One item of a list: a value of the field, or an object that has it."""
    if not isinstance(value, dict):
        field, _ = _LISTS[ours]
        return ToolCall(name, {}, ((ours, {field: value}),))
    arguments = value.get("args")
    if ours != Tool.SHELL or not isinstance(arguments, list):
        return _plain_call(name, ours, value)
    words = [str(one) for one in (value.get("command", ""), *arguments)]
    command = {**value, "command": shlex.join(words)}
    return ToolCall(name, {}, ((ours, command),), is_whole=False)
