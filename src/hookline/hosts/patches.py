"""Read a patch in the form that models write for ``apply_patch``: file by file.

As lenient as the hosts that apply it: markers may have space around them, and a
command line may surround the patch. A line that only looks like a marker costs one
event too many, never one too few.
"""

from __future__ import annotations

import re
from typing import Any

Wire = dict[str, Any]
_MARKER = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to): ?(.*)")
_END = re.compile(r"\*\*\* End Patch")


def patch_parts(text: str) -> list[tuple[str, Wire]]:
    """Our tool and its input for every file that a patch touches."""
    parts: list[tuple[str, Wire]] = []
    moved = ""
    for action, path, lines in _sections(text):
        if action == "Add File":
            content = "\n".join(line[1:] for line in lines if line.startswith("+"))
            parts.append(("write_file", {"path": path, "content": content}))
        elif action == "Delete File":
            parts.append(("delete_file", {"path": path}))
        elif action == "Move to":
            parts.append(("write_file", {"path": path, "content": _side(lines, "+")}))
            parts.append(("delete_file", {"path": moved}))
        else:
            sides = {"old_string": _side(lines, "-"), "new_string": _side(lines, "+")}
            parts.append(("replace", {"path": path, **sides}))
        moved = path
    return parts


def _sections(text: str) -> list[tuple[str, str, list[str]]]:
    """Each marker with its path and the lines up to the next one.

    A move is followed by the changes of the file: they belong to both names of it.
    """
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if marker := _MARKER.match(line.strip()):
            found.append((marker[1], marker[2].strip(), []))
        elif found and not _END.match(line.strip()):
            _, _, lines = found[-1]
            lines.append(line)
            if found[-1][0] == "Move to" and len(found) > 1:
                found[-2][2].append(line)
    return found


def _side(lines: list[str], mark: str) -> str:
    """The lines of a change as they were (``-``) or will be (``+``)."""
    kept = (line for line in lines if line[:1] in (mark, " "))
    return "\n".join(line[1:] for line in kept)
