"""The plugin of OpenCode under Node, with a bridge that answers as a test says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

from tests.support.agent_files import AgentFiles
from tests.support.bridged import HOSTS_FOLDER

NODE = shutil.which("node")
PLUGIN = ".opencode/plugins/hookline.js"
BEFORE, AFTER, CHAT = "tool.execute.before", "tool.execute.after", "chat.message"
_SESSION = {"sessionID": "ses_1"}
_CALL = {"tool": "bash", **_SESSION, "callID": "call_2"}
_ARGS = {"command": "echo hi", "description": "d"}
_RESULT = {"title": "echo hi", "metadata": {"output": "hi\n"}, "output": "hi\n"}
CALLS: dict[str, tuple[str, Any, Any]] = {
    "before": (BEFORE, _CALL, {"args": _ARGS}),
    "after": (AFTER, {**_CALL, "args": _ARGS}, _RESULT),
    "chat": (
        CHAT,
        {**_SESSION, "model": {"providerID": "p", "modelID": "m"}, "agent": "build"},
        {"message": {"role": "user"}, "parts": [{"type": "text", "text": "work"}]},
    ),
    "created": ("event", {"event": {"type": "session.created", "id": "e"}}, None),
    "updated": ("event", {"event": {"type": "message.updated"}}, None),
}
"""What OpenCode asks its plugins, by a short name."""
_BRIDGE = """#!{python}
import json, os, sys
here = os.path.dirname(__file__)
given = sys.stdin.read()
with open(f"{{here}}/seen", "a") as file:
    print(json.dumps([sys.argv[1:], os.getcwd(), json.loads(given)]), file=file)
exec(open(f"{{here}}/answer.py").read())
"""


class OpenCode:
    """A host that has loaded the plugin."""

    def __init__(self, files: AgentFiles) -> None:
        self.files = files
        bridge = _BRIDGE.format(python=sys.executable)
        self.program = files.write("bin/hookline", bridge)
        self.program.chmod(0o755)
        # Node, unlike OpenCode, wants to be told what kind of file it is.
        files.write(".opencode/plugins/package.json", '{"type": "module"}')

    def install(self, *events: str, closed: bool) -> None:
        """Write the plugin with ``hookline install``, for some or all events."""
        ended = self.files.run("install", "opencode", "--all-events")
        assert ended.returncode == 0, ended.stderr
        plugin = self.files.path(PLUGIN)
        head, _, rest = plugin.read_text().partition("const SETUP = ")
        setup = json.loads(rest.partition(";\n")[0])
        setup["command"][0] = str(self.program)
        setup["events"] = list(events) or setup["events"]
        setup["closed"] = setup["events"] if closed else []
        tail = rest.partition(";\n")[2]
        plugin.write_text(f"{head}const SETUP = {json.dumps(setup)};\n{tail}")

    def ask(self, *calls: tuple[str, Any, Any]) -> tuple[list[dict[str, Any]], str]:
        """What the plugin does to each call, and what it writes to stderr."""
        keys = ("name", "input", "output")
        sent = {"calls": [dict(zip(keys, call, strict=True)) for call in calls]}
        harness = HOSTS_FOLDER / "opencode_harness.mjs"
        plugin, project = self.files.path(PLUGIN), self.files.project
        ended = subprocess.run(
            [str(NODE), str(harness), str(plugin), str(project)],
            input=json.dumps(sent),
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
            env=self.files.env,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout), ended.stderr

    def seen(self) -> list[Any]:
        """What the bridge was asked: words, folder and event."""
        file = self.files.path("bin/seen")
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]
