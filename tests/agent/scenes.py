"""Settings with real hook processes for agents, and what was seen of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline import Config, HookEventName, HookSystem, Settings

Hook = dict[str, Any]


def says(output: object) -> Hook:
    """A hook that prints a JSON value."""
    return runs(f"cat >/dev/null; cat <<'END'\n{json.dumps(output)}\nEND")


def specific(**fields: Any) -> Hook:
    """A hook that prints ``hookSpecificOutput``."""
    return says({"hookSpecificOutput": fields})


def runs(command: str, **more: Any) -> Hook:
    """A hook that runs a shell command."""
    return {"type": "command", "command": command, **more}


def config_of(
    folder: Path,
    hooks: Mapping[str, Hook | list[Hook]],
    *,
    hooks_config: dict[str, Any] | None = None,
    seen: bool = True,
    **more: Any,
) -> Config:
    """A Config with hooks per event; with ``seen`` each event is written to a file."""
    groups: dict[str, Any] = {}
    for event, given in hooks.items():
        chosen = given if isinstance(given, list) else [given]
        groups[event] = [{"hooks": [*chosen, *([_noting(folder)] if seen else [])]}]
    settings = {"hooks": groups, "hooksConfig": hooks_config or {}}
    return Config("s-1", folder, Settings.from_mapping(settings), **more)


def events(folder: Path) -> list[dict[str, Any]]:
    """The events that hooks were given, in order."""
    log = folder / "events.jsonl"
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines() if line]


def names(folder: Path) -> list[str]:
    """The names of the events that hooks were given, in order."""
    return [event["hook_event_name"] for event in events(folder)]


def _noting(folder: Path) -> Hook:
    # One write per event, so that events at the same time do not mix.
    return runs(
        f"event=$(cat); printf '%s\\n' \"$event\" >> '{folder}/events.jsonl'",
        name="noting",
        recheck=False,
    )


def told(result: str, *names: str) -> str:
    """A result with the note that hooks changed these parameters."""
    return f"{result}\n\n[System] A hook changed the tool's input: {', '.join(names)}"


BROKEN: dict[str, Hook] = {
    "crash": runs("exit 1"),
    "crash with a word": runs("echo oh no >&2; exit 1"),
    "timeout": runs("sleep 60", timeout=50),
    "missing program": runs("/nonexistent/hook"),
    "bad output": says({"decision": 5, "hookSpecificOutput": "x", "continue": "no"}),
    "wrong parts": specific(
        llm_request={"messages": 5},
        llm_response=[],
        tool_input=3,
        toolConfig={"mode": "SOME"},
    ),
}
"""Hooks that fail or print invalid output, by what is wrong with them."""


def recording_config(**outputs: Any) -> tuple[Config, list[dict[str, Any]]]:
    """A config whose hooks give these outputs, and the events that they see."""
    config, seen = Config("own", ".", Settings()), list[dict[str, Any]]()

    def hook_for(output: Any) -> Any:
        def hook(event: dict[str, Any]) -> Any:
            seen.append(event)
            return output

        return hook

    system = HookSystem(config)
    for event, output in outputs.items():
        system.on(HookEventName.of(event))(hook_for(output))
    return config, seen
