"""One name for each tool: the calls of a host in our spelling, and back.

A rule serves all hosts only if tools and their inputs have one name
(hosts/README.md#what-a-hook-sees). A call that touches several files becomes one part
for each; a change of one of those cannot be put back.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Mapping
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
_SIDES = ("old_string", "new_string")
_EDITOR_COMMANDS = {
    "create": Tool.WRITE,
    "write": Tool.WRITE,
    "view": Tool.READ,
    "read": Tool.READ,
}
_FILE_TOOLS = (Tool.READ, Tool.WRITE, Tool.REPLACE, Tool.DELETE)
_PATCH_KEYS = {folded_key(key) for key in ("command", "input", "patch", "patch_text")}


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
        changed = next((value for value in inputs if value is not None), None)
        if changed is None:
            return None
        if len(self.parts) != 1 or not self.is_whole:
            raise ValueError("a change of a part of this call cannot be put back")
        # What does not belong into the host's list.
        beside = self.tool_input.keys() - {self.listed} if self.listed else ()
        top = {key: value for key, value in changed.items() if key in beside}
        inner = {key: value for key, value in changed.items() if key not in beside}
        inner = {self.spelled.get(key, key): value for key, value in inner.items()}
        if not self.listed:
            return inner
        # The host's list may be a single value, and an item no object.
        items = self.tool_input[self.listed]
        item: Any = inner
        if not isinstance(items[0] if isinstance(items, list) else items, dict):
            if len(inner) != 1:
                raise ValueError(f"an item of {self.listed} cannot have further fields")
            [item] = inner.values()
        return top | {self.listed: [item] if isinstance(items, list) else item}


def tool_names(by_ours: Mapping[str, str]) -> dict[str, str]:
    """A host's names of tools and ours, given its names for each of ours as words."""
    return {name: tool for tool, names in by_ours.items() for name in names.split()}


def read_call(name: str, tool_input: Any, names: Mapping[str, str]) -> ToolCall:
    """Read the call of a tool; ``names`` has the host's tool names and ours."""
    if isinstance(decoded := _decoded(tool_input), dict):
        tool_input = decoded
    tool = names.get(name, name)
    if isinstance(tool_input, str) and PATCH_MARK in tool_input and tool != Tool.SHELL:
        tool = Tool.PATCH
    if not isinstance(tool_input, dict):
        field, keys = _LISTS.get(tool, ("input", ("input",)))
        if not isinstance(tool_input, str | list):
            field, keys = "input", ("input",)
        key = keys[0] if isinstance(tool_input, list) else field
        tool_input = {} if tool_input is None else {key: tool_input}
    if tool == Tool.EDITOR:
        command = tool_input.get("command")
        if isinstance(command, str):
            tool = _EDITOR_COMMANDS.get(command, Tool.REPLACE)
        else:
            inserts = tool_input.get("insert_line") is not None
            is_edit = inserts or keys_of(tool_input, OLD)
            tool = Tool.REPLACE if is_edit else Tool.WRITE
    lists = _list_keys(tool, tool_input)
    if tool == Tool.PATCH:
        call = _patch_call(name, tool_input)
    elif lists and tool == Tool.REPLACE:
        call = _edits_call(name, tool_input, lists)
    elif lists:
        call = _listed_call(name, tool, tool_input, lists)
    else:
        call = _plain_call(name, tool, tool_input)
    if tool == Tool.SHELL:
        call = _shell_call(call)
    return structs.replace(call, parts=tuple(map(_with_file, call.parts)))


def _decoded(value: Any) -> Any:
    """Some versions of a host write an input, or a part of it, as JSON text."""
    try:
        decoded = decode(value) if isinstance(value, str) else None
    except ValueError:
        return value
    return decoded if isinstance(decoded, dict | list) else value


def _with_file(part: Part) -> Part:
    """Show the file that hosts make of a path that ends like a folder's.

    Claude Code writes ``.env`` when it is told to write ``.env/``.
    """
    tool, fields = part
    path = fields.get("path")
    if tool not in _FILE_TOOLS or not isinstance(path, str) or not path:
        return part
    if posixpath.basename(path) not in ("", ".", ".."):
        return part
    return tool, fields | {"path": posixpath.normpath(path)}


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _plain_call(name: str, tool: str, tool_input: Wire) -> ToolCall:
    """One part; one more for each further value of a field that has several names."""
    fields: dict[str, str] = {}
    spelled: dict[str, str] = {}
    for field, spellings in SPELLINGS.get(tool, {}).items():
        for key in keys_of(tool_input, spellings):
            fields[key] = field
            spelled.setdefault(field, key)
    part: Wire = {}
    for key, value in tool_input.items():
        part.setdefault(fields.get(key, key), value)
    part |= {field: tool_input[key] for field, key in spelled.items()}
    # Which of them the tool uses is the host's business: guards see them all.
    further = [
        (tool, part | {field: tool_input[key]})
        for key, field in fields.items()
        if not same_json(part[field], tool_input[key])
    ]
    return ToolCall(name, tool_input, ((tool, part), *further), spelled)


def _shell_call(call: ToolCall) -> ToolCall:
    """A list of arguments is shown as the command line that it is.

    A command that a host takes for a patch changes the files of the patch.
    """
    parts: list[Part] = []
    files: list[Part] = []
    is_whole = call.is_whole
    for tool, part in call.parts:
        command = part.get("command")
        files += [file for text in _texts(command) for file in command_parts(text)]
        if isinstance(command, list):
            part = part | {"command": shlex.join(map(str, command))}  # noqa: PLW2901
            is_whole = False
        parts.append((tool, part))
    is_whole = is_whole and not files
    return structs.replace(call, parts=(*parts, *files), is_whole=is_whole)


def _patch_call(name: str, tool_input: Wire) -> ToolCall:
    parts = [
        part
        for key, value in tool_input.items()
        for text in _texts(value)
        if folded_key(key) in _PATCH_KEYS or PATCH_MARK in text
        for part in patch_parts(text)
    ]
    # What cannot be read as a patch is shown as it came.
    whole: Part = (name, tool_input)
    return ToolCall(name, tool_input, tuple(parts) or (whole,), is_whole=not parts)


def _list_keys(tool: str, tool_input: Wire) -> list[str]:
    """The keys of an input that hold several values of a field."""
    _, spellings = _LISTS.get(tool, ("", ()))
    return [key for key in keys_of(tool_input, spellings) if tool_input[key] != []]


def _edits_call(name: str, tool_input: Wire, lists: list[str]) -> ToolCall:
    """Several edits of one file are one part; so is what stands beside the lists."""
    beside = {key: value for key, value in tool_input.items() if key not in lists}
    edits = [
        part
        for key in lists
        for edit in _edits_in(key, tool_input[key])
        for _, part in _plain_call(name, Tool.REPLACE, edit).parts
    ]
    parts: list[Part] = []
    for _, whole in _plain_call(name, Tool.REPLACE, beside).parts:
        by_file: dict[bytes, list[Wire]] = {}
        for edit in edits:
            path = whole.get("path") if edit.get("path") is None else edit["path"]
            by_file.setdefault(encode(path), []).append({**edit, "path": path})
        for file_edits in by_file.values():
            merged = {key: value for edit in file_edits for key, value in edit.items()}
            merged["path"] = file_edits[0]["path"]
            for side in merged.keys() & {*_SIDES}:
                lines = [str(edit[side]) for edit in file_edits if side in edit]
                merged[side] = "\n".join(lines)
            parts.append((Tool.REPLACE, whole | merged))
        is_unseen = "path" in whole and encode(whole["path"]) not in by_file
        if is_unseen or not edits or whole.keys() & {*_SIDES}:
            parts.append((Tool.REPLACE, whole))
    return ToolCall(name, tool_input, tuple(parts), is_whole=False)


def _edits_in(key: str, value: Any) -> list[Wire]:
    """The edits in a list, also where a file in it has a list of its own."""
    edits: list[Wire] = []
    for item in map(_decoded, value if isinstance(value, list) else [_decoded(value)]):
        if isinstance(item, dict):
            lists = _list_keys(Tool.REPLACE, item)
            beside = {name: field for name, field in item.items() if name not in lists}
            inner = [edit for name in lists for edit in _edits_in(name, item[name])]
            edits += [beside | edit for edit in inner] or [beside]
        elif isinstance(item, list):
            edits += _edits_in(key, item)
        elif item is not None:
            is_file = folded_key(key) == "files"
            edits.append({"path" if is_file else "new_string": item})
    return edits


def _listed_call(name: str, tool: str, tool_input: Wire, lists: list[str]) -> ToolCall:
    """One part for each value, and for the field itself if that is there too."""
    beside = {key: value for key, value in tool_input.items() if key not in lists}
    values = [tool_input[key] for key in lists]
    items = [
        _item_call(name, tool, item)
        for value in values
        for item in (value if isinstance(value, list) else [value])
    ]
    parts = [(tool, beside | part) for item in items for _, part in item.parts]
    plain = _plain_call(name, tool, beside)
    parts += plain.parts if plain.spelled else ()
    first = items[0]
    is_free = not first.parts[0][1].keys() & beside.keys()
    if len(parts) == 1 and first.is_whole and is_free:
        return ToolCall(name, tool_input, (parts[0],), first.spelled, listed=lists[0])
    return ToolCall(name, tool_input, tuple(parts), is_whole=False)


def _item_call(name: str, tool: str, item: Any) -> ToolCall:
    """One item of a list: a value of the field, or an object that has it."""
    if not isinstance(item, dict):
        return ToolCall(name, {}, ((tool, {_LISTS[tool][0]: item}),))
    arguments = item.get("args")
    if tool != Tool.SHELL or not isinstance(arguments, list):
        return _plain_call(name, tool, item)
    line = shlex.join(map(str, (item.get("command", ""), *arguments)))
    return ToolCall(name, {}, ((tool, {**item, "command": line}),), is_whole=False)
