"""Rows about trust: what a person and an attacker do, and what comes of each event."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import AsyncExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from hookline import Config, HookSystem, ProcessedHookResult, SettingsError
from hookline.protocol.events import HookEventName

from .commandline import run_command
from .pins import masked
from .project import DENY, GUARD, Project
from .workspace import INPUTS


class TrustStory:
    """A project whose hooks are trusted, attacked and fired, step by step.

    ``guarded`` sets up the guard, with further keys or not; ``settings`` is a list of
    hooks (``"guard"`` is that one), or all settings; ``files`` are written; ``user``
    are the settings of the user; ``environment`` are variables from here on; ``sh``
    runs a shell in the project, where ``$STATE`` has the records. These are told of:
    ``trust`` runs the command, with ``--yes`` or other words; ``fire`` fires in a new
    session, or in the one between ``open`` and ``close``; ``look`` shows what a shell
    prints.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._env = {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "STATE": str(folder / "state" / "hookline"),
        }
        self._project = Project(folder / "project", folder / "state")
        self._session: HookSystem | None = None
        self._told: list[str | list[str]] = []

    async def run(self, steps: list[Any]) -> list[str | list[str]]:
        """Take all steps; returns what was told."""
        async with AsyncExitStack() as stack:
            stack.enter_context(patch.dict(os.environ))
            stack.callback(os.umask, os.umask(0o022))
            os.environ.update(self._env)
            for step in deepcopy(steps):
                name, value = (
                    (step, None) if isinstance(step, str) else next(iter(step.items()))
                )
                if name == "open":
                    self._session = await stack.enter_async_context(self._system("."))
                elif name == "close":
                    self._session = None
                elif name == "fire":
                    try:
                        self._tell(await self._fire(**(value or {})))
                    except SettingsError as error:
                        self._tell(f"raises {error}")
                else:
                    getattr(self, f"_{name}")(value)
        return self._told

    def _tell(self, text: str) -> None:
        quoted = quote(str(self._folder), safe="")
        places = {"folder": self._folder, "quoted folder": quoted}
        first, *rest = masked(text, places).splitlines() or [""]
        self._told.append([first, *rest] if rest else first)

    def _guarded(self, more: dict[str, Any] | None) -> None:
        self._project.guarded(**(more or {}))

    def _settings(self, settings: Any) -> None:
        if isinstance(settings, dict) and "hooks" not in settings:
            settings = {**settings, "hooks": ["guard"]}
        if isinstance(settings, list):
            settings = {"hooks": settings}
        hooks = settings.pop("hooks")
        named = [GUARD if hook == "guard" else hook for hook in hooks]
        self._project.settings(*named, **settings)

    def _files(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            mode = 0o755 if text.startswith("#!") else 0o644
            self._project.write(name, text.replace("<deny>", DENY), mode)

    def _user(self, settings: dict[str, Any]) -> None:
        group = settings.pop("hooks", [])
        named = [GUARD if hook == "guard" else hook for hook in group]
        user = Project.__new__(Project)
        user.folder = self._folder / "config"
        file = user.settings(*named, **settings)
        (user.folder / "hookline").mkdir(exist_ok=True)
        file.rename(user.folder / "hookline" / "settings.json")

    def _environment(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            os.environ[name] = value.replace("<folder>", str(self._folder))

    def _umask(self, mask: str) -> None:
        os.umask(int(mask, 8))

    def _sh(self, script: str) -> None:
        self._shell(script)

    def _look(self, script: str) -> None:
        self._tell(self._shell(script).stdout.strip())

    def _shell(self, script: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=self._project.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    def _trust(self, words: list[str] | None) -> None:
        ended = run_command("trust", *(words or ["--yes"]), cwd=self._project.folder)
        lines = [*ended.stdout.strip().splitlines(), *ended.stderr.strip().splitlines()]
        shown = lines if words else lines[-1:]
        self._tell("\n".join((f"trust: {ended.returncode}", *shown)))

    def _system(self, cwd: str) -> HookSystem:
        return HookSystem(Config.load(self._project.folder / cwd))

    async def _fire(
        self, event: str = "BeforeTool", cwd: str = ".", tool: str = "write_file"
    ) -> str:
        values = INPUTS[HookEventName(event)]
        if "tool_name" in values:
            values = {**values, "tool_name": tool}
        if self._session is not None:
            fired = await self._session.event_handler.fire(event, values)
            return verdict_line(fired)
        async with self._system(cwd) as system:
            return verdict_line(await system.event_handler.fire(event, values))


def verdict_line(result: ProcessedHookResult) -> str:
    """A verdict in one line: the reason, and the cause of each hook that failed."""
    hooks = [
        hook.hook_name if hook.cause is None else f"{hook.hook_name} {hook.cause.value}"
        for hook in result.aggregated.hook_results
    ]
    said = {} if result.final_output is None else result.final_output.to_wire()
    said.pop("decision", None)
    more = f" {json.dumps(said)}" if said else ""
    verdict = f"blocked: {result.reason}" if result.blocked else f"allowed{more}"
    return f"{verdict} [{', '.join(hooks)}]"
