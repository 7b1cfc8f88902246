"""An MCP server with one tool, ``add_note``, that writes what it is given to a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
_TOOL = {"name": "add_note", "description": "Add a note.", "inputSchema": _TEXT}


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about: dict[str, Any] = {"capabilities": {"tools": {}}}
        server = {"serverInfo": {"name": "notes", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about, **server}
    if method == "tools/call":
        text = params["arguments"]["text"]
        Path(__file__).with_name("note.txt").write_text(text)
        return {"content": [{"type": "text", "text": f"noted {text}"}]}
    return {"tools": [_TOOL]} if method == "tools/list" else {}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = _answer(asked["method"], asked.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
            print(json.dumps(answer), flush=True)
