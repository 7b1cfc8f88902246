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

from .host import Layout
from .host_verdict import Wire
from .registry import HOSTS

_CONVERTED = ("claude", "gemini", "llxprt")
_LONGEST_S = 1000
"""No hook of Claude Code is meant to run longer, and Qwen Code counts milliseconds."""


def foreign_file(source: str, path: Path, content: Wire | None) -> str | None:
    """Why a file cannot be read as the settings of one agent; None if it can.

    ``content``: what it says, where it was read.
    """
    place = path.absolute().as_posix()
    verb = "is a file of"
    owner = next(
        (name for name in HOSTS if re.search(f"/(?:{HOSTS[name].places})$", place)),
        None,
    )
    if owner is None and content is not None:
        verb, owner = "looks like one of", _owner_by_content(source, content)
        if owner == "qwen" and path.absolute().parent.name == "hooks":
            owner = None  # it has no plugins like Claude Code's
    if owner is None or owner == source:
        return None
    problem = f"{path} {verb} {HOSTS[owner].title}"
    if owner in _CONVERTED:
        command = f"hookline migrate --from {owner} {shlex.quote(str(path))}"
        return f"{problem}: run '{command}'"
    todo = "whose hooks cannot be converted yet: write them to .hookline/settings.json"
    return f"{problem}, {todo}; 'hookline install {owner}' runs them there"


def foreign_files(source: str, project: Path) -> Iterator[str]:
    """What a project has of other agents."""
    names = ("settings.json", "hooks.json", "hooks/*.json")
    for file in sorted(file for name in names for file in project.glob(f".*/{name}")):
        problem = foreign_file(source, file, None)
        if problem is not None and b"hooks" in file.read_bytes():
            yield problem


def _owner_by_content(source: str, content: Wire) -> str | None:
    """By keys of hooks, then by the names of events, then by tools and times."""
    hooks = content.get("hooks")
    by_event = hooks if isinstance(hooks, dict) else {}
    groups = [
        (event, group)
        for event, value in [("", hooks), *by_event.items()]
        for group in _objects(value)
    ]
    entries = [
        entry for _, group in groups for entry in (group, *_objects(group.get("hooks")))
    ]
    for name, host in HOSTS.items():
        if any(host.hook_keys & entry.keys() for entry in entries):
            return name
    claude_like = [
        name
        for name, host in HOSTS.items()
        if host.files.layout is Layout.GROUPS and "PreToolUse" in host.events
    ]
    counts = {
        name: len(by_event.keys() & {*host.events, *host.ignored, *host.unanswered})
        for name, host in HOSTS.items()
        if name in (source, "claude") or name not in claude_like
    }
    owner = max(counts, key=lambda name: (counts[name], name == source))
    if counts[owner] > counts[source] or source != "claude":
        return owner if counts[owner] else None
    # Its events are Claude Code's, or none of anybody's: its tools and times tell.
    matchers = (
        str(group.get("matcher", "")) for event, group in groups if "Tool" in event
    )
    words = {word for matcher in matchers for word in re.findall(r"\w+", matcher)}
    if words & CLAUDE_TOOLS.keys():
        return None
    # A plain word, such as "edit", may be a pattern for Claude Code's own tools.
    words = {word for word in words if "_" in word or word.istitle()}
    for name in claude_like:
        if words & HOSTS[name].tools.keys():
            return name
    timeouts = [entry.get("timeout") for entry in entries]
    is_long = any(isinstance(t, (int, float)) and t >= _LONGEST_S for t in timeouts)
    return "qwen" if is_long else None


def _objects(value: Any) -> list[Wire]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
