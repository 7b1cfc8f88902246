"""Tell whose hook settings a file has, by its place and by what it says.

Many agents took over the shape of Claude Code's settings. A file that is read as
another agent's becomes hooks that never run, or that have a thousand times as long.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.protocol.dialects import CLAUDE_TOOLS

from .host_verdict import Wire
from .registry import HOSTS

_CLAUDE_SHAPED: dict[str, frozenset[str]] = {
    "codex": frozenset({"apply_patch", "exec_command", "write_stdin"}),
    "qwen": frozenset(
        {
            *("run_shell_command", "write_file", "read_file", "replace", "edit"),
            *("read_many_files", "list_directory", "web_fetch", "glob"),
            *("grep_search", "search_file_content", "todo_write"),
        }
    ),
    "droid": frozenset({"Execute", "Create", "ApplyPatch", "FetchUrl"}),
}
"""Agents with the events of Claude Code, and what they call their tools."""
_KEYS: dict[str, frozenset[str]] = {
    "copilot": frozenset({"bash", "powershell", "timeoutSec"}),
    "codex": frozenset({"commandWindows", "additionalContextLimit"}),
    "goose": frozenset({"on_failure"}),
    "kiro": frozenset({"timeout_ms", "trigger"}),
}
"""Keys of a hook that only this agent has."""
_OWN_EVENTS = ("claude", "gemini", "copilot", "cursor", "kiro", "windsurf")
"""Agents that are known by the names of their events."""
_CURSOR_EVENTS = frozenset(
    {
        *("beforeShellExecution", "beforeMCPExecution", "beforeReadFile"),
        *("afterShellExecution", "afterMCPExecution", "afterFileEdit"),
    }
)
"""Events of Cursor that the bridge does not answer."""
_LONGEST_S = 1000
"""No hook of Claude Code is meant to run longer, and Qwen Code counts milliseconds."""


def foreign_file(source: str, path: Path, theirs: Wire | None) -> str | None:
    """Why a file cannot be read as the settings of one agent; None if it can.

    ``theirs``: what it says, where it was read.
    """
    place = path.absolute().as_posix()
    owners = (h for h in HOSTS if re.search(f"/(?:{HOSTS[h].places})$", place))
    owner, verb = next(owners, None), "is a file of"
    if owner is None and theirs is not None:
        owner, verb = _owner_by_content(source, theirs), "looks like one of"
        if owner == "qwen" and path.absolute().parent.name == "hooks":
            owner = None  # it has no plugins like Claude Code's
    if owner is None or owner == source:
        return None
    whose = f"{path} {verb} {HOSTS[owner].title}"
    if owner in ("claude", "gemini", "llxprt"):
        command = f"hookline migrate --from {owner} {shlex.quote(str(path))}"
        return f"{whose}: run '{command}'"
    todo = "whose hooks cannot be converted yet: write them to .hookline/settings.json"
    return f"{whose}, {todo}; 'hookline install {owner}' runs them there"


def foreign_files(source: str, project: Path) -> Iterator[str]:
    """What a project has of other agents."""
    names = ("settings.json", "hooks.json", "hooks/*.json")
    for file in sorted(file for name in names for file in project.glob(f".*/{name}")):
        problem = foreign_file(source, file, None)
        if problem is not None and b"hooks" in file.read_bytes():
            yield problem


def _owner_by_content(source: str, theirs: Wire) -> str | None:
    hooks = theirs.get("hooks")
    by_event = hooks if isinstance(hooks, dict) else {}
    groups = [
        group for value in [hooks, *by_event.values()] for group in _objects(value)
    ]
    entries = groups + [
        hook for group in groups for hook in _objects(group.get("hooks"))
    ]
    for host, keys in _KEYS.items():
        if any(keys & entry.keys() for entry in entries):
            return host
    counts = {
        name: len(by_event.keys() & {*host.events, *host.ignored, *others})
        for name, host in HOSTS.items()
        for others in [_CURSOR_EVENTS if name == "cursor" else ()]
        if name in (source, *_OWN_EVENTS)
    }
    owner = max(counts, key=lambda name: (counts[name], name == source))
    if counts[owner] > counts[source] or source != "claude":
        return owner if counts[owner] else None
    # Its events are Claude Code's, or none of anybody's: its tools and times tell.
    matchers = (str(group.get("matcher", "")) for group in groups)
    words = {word for matcher in matchers for word in re.findall(r"\w+", matcher)}
    if words & CLAUDE_TOOLS.keys():
        return None
    for host, tools in _CLAUDE_SHAPED.items():
        if words & tools:
            return host
    timeouts = [entry.get("timeout") for entry in entries]
    is_long = any(isinstance(t, (int, float)) and t >= _LONGEST_S for t in timeouts)
    return "qwen" if is_long else None


def _objects(value: Any) -> list[Wire]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
