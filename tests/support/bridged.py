"""``hookline bridge`` in this process: a person's settings in, a host's answer out."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import Finished, run_command
from tests.support.pins import masked

HOSTS_FOLDER = Path(__file__).parent.parent / "hosts"
VERDICTS: dict[str, Any] = json.loads((HOSTS_FOLDER / "verdicts.json").read_text())
"""What a hook says, by a name for it."""
_DOCUMENTED = json.loads((HOSTS_FOLDER / "documented.json").read_text())
_PROJECT_VARIABLES = (
    *("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "FACTORY_PROJECT_DIR"),
    *("GEMINI_PROJECT_DIR", "LLXPRT_PROJECT_DIR", "QWEN_PROJECT_DIR"),
    "COPILOT_PROJECT_DIR",
)
FAILING = {"type": "python", "name": "guard", "function": f"{__name__}:fail"}
NOTING = {"type": "python", "name": "notes", "function": f"{__name__}:note"}
noted: list[dict[str, Any]] = []
"""What ``NOTING`` was shown."""


def fail(_: dict[str, Any]) -> None:
    """A hook that fails."""
    raise ValueError("broken")


def note(event: dict[str, Any]) -> None:
    """A hook that notes down what it is shown."""
    noted.append(event)


def payload(name: str) -> dict[str, Any]:
    """What a host sends: ``HOST/NAME`` of a capture, or of its documentation."""
    host, _, event = name.partition("/")
    if event in _DOCUMENTED.get(host, {}):
        documented: dict[str, Any] = json.loads(json.dumps(_DOCUMENTED[host][event]))
        return documented
    file = HOSTS_FOLDER / "captures" / f"{name}.json"
    captured: dict[str, Any] = json.loads(file.read_text())["stdin"]
    return captured


class BridgedProject:
    """An empty project of a person who has settings, and the bridge to it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.home = folder
        self.folder = folder / "project"
        self.folder.mkdir()
        self.state = folder / "state"
        self.journal = self.state / "hookline" / "journal.sqlite"
        self.settings_file = folder / "config" / "hookline" / "settings.json"
        self.settings_file.parent.mkdir(parents=True)
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("XDG_STATE_HOME", str(self.state))
        for name in (*_PROJECT_VARIABLES, "COPILOT_CLI", "CLAUDECODE"):
            patch.delenv(name, raising=False)
        patch.chdir(self.folder)

    def rule(self, event: str, then: Any, when: str = "true", **config: Any) -> None:
        """Have a rule as the only hook of an event."""
        hook = {"type": "rule", "name": "guard", "when": when, "then": then}
        self.hook(event, hook, **config)

    def hook(self, event: str, *hooks: Any, **config: Any) -> None:
        """Have these hooks for an event, and no other."""
        self.settings({"hooks": {event: [{"hooks": hooks}]}, "hooksConfig": config})

    def settings(self, settings: Any) -> None:
        """Write the person's settings."""
        self.settings_file.write_text(json.dumps(settings))

    def ask(
        self, host: str, sent: Any, event: str | None = None, **env: str
    ) -> Finished:
        """What the bridge answers a host; ``sent`` is a payload, its name or bytes."""
        content = payload(sent) if isinstance(sent, str) else sent
        stdin = content if isinstance(content, bytes) else json.dumps(content).encode()
        words = ["bridge", host, *([event] if event else [])]
        return run_command(*words, stdin=stdin, env=env)

    def recorded(self) -> list[dict[str, Any]]:
        """The events of the journal, as ``hookline log`` prints them.

        Without those that only say what a host cannot express.
        """
        log = ("log", "--json", "--everywhere", "-n", "0")
        deadline = time.monotonic() + 60
        while not (entries := run_command(*log).json()):  # a thread writes them
            assert time.monotonic() < deadline
        return [
            entry
            for entry in entries
            if entry["event"] != "Notification" or entry["blocked"]
        ]

    def forget(self) -> None:
        """Forget what earlier events left in the state folder."""
        shutil.rmtree(self.state, ignore_errors=True)


@pytest.fixture
def bridged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BridgedProject:
    """A person with an empty project."""
    return BridgedProject(tmp_path, monkeypatch)


def lines(text: str) -> str | list[str]:
    """Text as people read it in a table: by lines, if it ends with a line break."""
    return text[:-1].split("\n") if text.endswith("\n") else text


def answer_as_data(answer: Finished) -> dict[str, Any]:
    """Exactly what a host gets; JSON that is written as usual is shown as such."""
    stdout: Any = lines(answer.stdout)
    if answer.stdout.endswith("}\n"):
        value = json.loads(answer.stdout)
        if json.dumps(value, separators=(",", ":")) + "\n" == answer.stdout:
            stdout = value
    shown: dict[str, Any] = {}
    if answer.stdout:
        shown["stdout"] = stdout
    if answer.stderr:
        shown["stderr"] = lines(answer.stderr)
    if answer.returncode:
        shown["status"] = answer.returncode
    return shown


_TOOL_CALLS = {
    **{host: f"{host}/PreToolUse" for host in ("vscode", "droid", "goose")},
    **{host: f"{host}/PreToolUse-1" for host in ("claude", "codex", "qwen", "cline")},
    "gemini": "gemini/BeforeTool-2",
    "llxprt": "gemini/BeforeTool-2",
    "cursor": "cursor/preToolUse",
    "kiro": "kiro/preToolUse",
    "opencode": "opencode/tool.execute.before-1",
    "copilot": "copilot/preToolUse-1",
    "windsurf": "windsurf/pre_run_command",
}


def tool_call(host: str, tool: str, tool_input: Any) -> dict[str, Any]:
    """What a host sends before it calls a tool; ``EVENT_ARGUMENTS`` may go with it."""
    sent = payload(_TOOL_CALLS[host])
    match host:
        case "copilot":
            return sent | {"toolName": tool, "toolArgs": tool_input}
        case "opencode":
            return sent | {"tool": tool, "args": tool_input}
        case "cline":
            return sent | {"tool_call": {"id": "c", "name": tool, "input": tool_input}}
        case "windsurf":
            return sent | {"agent_action_name": f"pre_{tool}", "tool_info": tool_input}
    return sent | {"tool_name": tool, "tool_input": tool_input}


EVENT_ARGUMENTS = {"copilot": "preToolUse"}
"""The event of ``tool_call`` on the command line, for hosts whose JSON has none."""
EVENTS = (
    *("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "BeforeModel"),
    *("AfterModel", "BeforeToolSelection", "SessionStart", "SessionEnd"),
    *("Notification", "PreCompress", "SubagentStart", "SubagentStop"),
)


def inputs_of(
    bridged: BridgedProject, host: str, sent: Any, event: str | None = None
) -> list[dict[str, Any]] | dict[str, Any]:
    """What hooks see of an event, or the answer to one that no hook sees."""
    noted.clear()
    bridged.settings({"hooks": {name: [{"hooks": [NOTING]}] for name in EVENTS}})
    reply = bridged.ask(host, sent, event)
    if not noted:
        return answer_as_data(reply)
    shown: list[dict[str, Any]] = json.loads(
        masked(json.dumps(noted), {"folder": bridged.home})
    )
    return [
        {key: value for key, value in shown_event.items() if key != "timestamp"}
        for shown_event in shown
    ]
