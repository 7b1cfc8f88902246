"""Log every tool call and subagent as one JSON line, in a file that shows tampering.

Each line holds the hash of the line before it; ``python audit_log.py --verify FILE``
reports the first line that was changed or removed. Values that look like credentials
are masked, long ones truncated. The file is ``AUDIT_FILE``, by default ``audit.jsonl``
in the user's state folder; a symbolic link is refused.
"""

import hashlib
import json
import os
import re
import sys
from fcntl import LOCK_EX, flock
from os import O_NOFOLLOW
from pathlib import Path
from typing import Any

from hookline.recipes.state import state_folder
from hookline.script import run

CREDENTIAL = re.compile(r"(?i)pass|secret|token|api_?key|auth|credential|cookie")
INLINE = re.compile(
    r"(?i)(bearer\s+|(?:pass\w*|secret|token|api_?key)\s*[=:]\s*)[^\s'\"&]{4,}"
)
KEPT = (
    *("timestamp", "session_id", "hook_event_name", "tool_name", "tool_input"),
    *("agent_id", "agent_type"),
)
MAX_TEXT = 2000
START = "0" * 64


def check(event: dict[str, Any]) -> None:
    """Append one line; the call is always allowed."""
    entry = {key: masked(event[key]) for key in KEPT if key in event}
    if "tool_response" in event:
        entry["error"] = masked((event["tool_response"] or {}).get("error"))
    file = os.environ.get("AUDIT_FILE")
    default = state_folder(event["cwd"], "audit") / "audit.jsonl"
    _append(Path(file) if file else default, entry)


def masked(value: Any) -> Any:
    """A value with credentials masked and long texts truncated."""
    if isinstance(value, dict):
        return {
            key: "***" if CREDENTIAL.search(key) else masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, str):
        text = INLINE.sub(r"\1***", value)
        return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "... (truncated)"
    return value


def _append(path: Path, entry: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "r+b") as file:
        flock(file, LOCK_EX)
        file.seek(max(0, os.fstat(file.fileno()).st_size - 1_000_000))
        lines = file.read().splitlines()
        entry["previous"] = _hash(lines[-1]) if lines else START
        file.write(json.dumps(entry).encode() + b"\n")


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def verify(path: str) -> int:
    """Print whether every line holds the hash of the line before it."""
    previous = START
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            if json.loads(line).get("previous") != previous:
                sys.stdout.write(f"line {number} does not match the line before it\n")
                return 1
            previous = _hash(line.rstrip(b"\n"))
    sys.stdout.write("all lines match\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--verify"]:
        raise SystemExit(verify(sys.argv[2]))
    run(check)
