"""The fields of our tools, and what coding agents call them.

A rule may read a field of an agent's event by the agent's own name; what hooks are
shown has ours (docs/reference/protocol.md#rules).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

_FILE = (
    *("path", "file_path", "absolute_path", "file", "file_name", "target_file"),
    "notebook_path",
)
_FOLDER = (
    *("path", "dir_path", "directory", "dir", "folder"),
    *("directory_path", "target_directory"),
)
_CONTENT = ("content", "file_text", "contents", "code", "new_text")
_COMMAND = (
    *("command", "cmd", "command_line", "script"),
    # What is typed into a shell that runs already.
    *("input", "chars"),
)
OLD = ("old_string", "old_str", "old_text", "before")
_NEW = ("new_string", "new_str", "new_text", "after", "insert_text", "new_source")
SPELLINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "run_shell_command": {"command": _COMMAND},
    "read_file": {"path": _FILE},
    "write_file": {"path": _FILE, "content": _CONTENT},
    "replace": {"path": _FILE, "old_string": OLD, "new_string": _NEW},
    "delete_file": {"path": _FILE},
    "glob": {"pattern": ("pattern", "glob_pattern", "glob", "query"), "path": _FOLDER},
    "search_file_content": {"pattern": ("pattern", "query", "regex"), "path": _FOLDER},
    "list_directory": {"path": _FOLDER},
    "web_fetch": {"url": ("url", "uri")},
    "web_search": {"query": ("query", "search_term")},
    "task": {"prompt": ("prompt", "task", "message")},
}
"""The fields of our tools, and what hosts call them; ``filePath`` is ``file_path``."""


def keys_of(tool_input: Mapping[str, Any], spellings: tuple[str, ...]) -> list[str]:
    """The keys of an input that are names of one field, in their order of weight."""
    folded = [folded_key(name) for name in spellings]
    keys = [
        key
        for key, value in tool_input.items()
        if folded_key(key) in folded and value is not None
    ]
    return sorted(
        keys, key=lambda key: (key != spellings[0], folded.index(folded_key(key)))
    )


def folded_key(key: str) -> str:
    """A name without what spellings differ in: case, ``_`` and ``-``."""
    return key.replace("_", "").replace("-", "").lower()


def with_agent_spellings(
    event: Mapping[str, Any], words: Collection[str]
) -> Mapping[str, Any]:
    """An agent's event with those spellings of ``tool_input`` that a rule mentions.

    A spelling counts if it is ours, or one that the agent itself has used in the call;
    a list of the agent's, such as ``edits``, is as it came.
    Only what is mentioned is added: rules that look at all keys see no more of them.
    """
    host, tool_input = event.get("host"), event.get("tool_input")
    if not isinstance(host, Mapping) or not isinstance(tool_input, Mapping):
        return event
    names = (event.get("tool_name"), host.get("our_tool_name"))
    fields = next((SPELLINGS[one] for one in names if one in SPELLINGS), {})
    given = host.get("tool_input")
    agent_keys = _keys_in(given)
    added: dict[str, Any] = {
        word: given[word]
        for word in words
        if isinstance(given, Mapping) and isinstance(given.get(word), list)
        if word not in tool_input
    }
    for field, spellings in fields.items():
        folded = [folded_key(one) for one in spellings]
        mentioned = [
            word
            for word in words
            if word not in tool_input
            and folded_key(word) in folded
            and (word == field or word in agent_keys)
        ]
        if mentioned and (keys := keys_of(tool_input, spellings)):
            added |= dict.fromkeys(mentioned, tool_input[keys[0]])
    return {**event, "tool_input": {**tool_input, **added}} if added else event


def _keys_in(tool_input: Any) -> set[str]:
    """The keys of an input, and of the objects in its lists: one for each file, say."""
    objects = [tool_input] if isinstance(tool_input, Mapping) else []
    for value in list(objects[0].values()) if objects else ():
        items = value if isinstance(value, list) else [value]
        objects += [item for item in items if isinstance(item, Mapping)]
    return {key for one in objects for key in one}
