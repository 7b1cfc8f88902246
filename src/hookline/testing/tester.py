"""Fire hooks from a test: a script, a settings file, or settings as a mapping."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any

from hookline.results import ProcessedHookResult
from hookline.settings.load import Settings

from .firing import Firing, event_input, script_settings

File = str | PathLike[str]


class HookTester:
    """Fires events in one folder, through the same pipeline as an agent."""

    def __init__(self, cwd: File) -> None:
        self.cwd = Path(cwd)
        """Where the hooks run; put files there that they should find."""

    def fire(
        self,
        event: str,
        *,
        script: File | None = None,
        settings: File | Mapping[str, Any] | None = None,
        tool: str | None = None,
        env: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ProcessedHookResult:
        """Fire one event and wait for the verdict, in plain and in async tests.

        Further arguments are fields of the event: ``tool_input``, ``prompt``, ...
        """
        firing = self.fire_async(
            event, script=script, settings=settings, tool=tool, env=env, **fields
        )
        # In a thread of its own: a test may have a running loop or none.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, firing).result()

    async def fire_async(
        self,
        event: str,
        *,
        script: File | None = None,
        settings: File | Mapping[str, Any] | None = None,
        tool: str | None = None,
        env: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ProcessedHookResult:
        """Fire one event in the loop that is running."""
        chosen = _settings(script, settings, env)
        given = event_input(event, tool=tool, **fields)
        async with Firing(chosen, self.cwd, fields.get("session_id")) as firing:
            return await firing.fire(event, given)


def _settings(
    script: File | None,
    settings: File | Mapping[str, Any] | None,
    env: Mapping[str, str] | None,
) -> Settings:
    if (script is None) == (settings is None):
        raise TypeError("name either a script or settings to fire at")
    if script is not None:
        file = Path(script).resolve()
        if not file.is_file():
            raise FileNotFoundError(f"there is no script {str(script)!r}")
        return script_settings([file], env=env)
    if env is not None:
        raise TypeError("env goes with a script; settings have their own")
    if isinstance(settings, Mapping):
        return Settings.from_mapping(settings)
    assert settings is not None
    return Settings.from_file(settings)
