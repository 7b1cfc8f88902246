"""Config: a host's settings, working directory, sessions and lazy HookSystem."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Callable
from os import PathLike
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ._internal.fork_safe import ForkSafeLock
from .errors import HookSystemExistsError, SettingsError
from .protocol.inputs import EventFirer, checked_translator
from .settings.load import Settings
from .settings.places import SettingsPlaces, absolute, find_workspace

if TYPE_CHECKING:
    from .agent.session import Session
    from .engine.system import HookSystem
    from .settings.watch import SettingsWatch

_building = ForkSafeLock()
"""Threads that use a config for the first time at once share its system."""


class Config:
    """The settings of a host, its hook system, and its first session.

    ``Config.load()`` reads the settings files; this takes settings that you have, or
    none. Hooks see ``session_id`` (a new one if not given), ``transcript_path`` and
    ``working_dir``, in which they run. ``translator`` names the SDK of model calls
    (``genai``, ``openai``, ``anthropic``), where ``auto`` does not recognise it.
    """

    def __init__(
        self,
        session_id: str | None = None,
        working_dir: str | PathLike[str] | None = None,
        settings: Settings | None = None,
        translator: str = "auto",
        transcript_path: str = "",
    ) -> None:
        loaded: object = settings
        if not isinstance(loaded, Settings | None):
            problem = f"settings: expected Settings, got {type(loaded).__name__}"
            hint = "use Settings.from_mapping() or Settings.from_file()"
            raise TypeError(f"{problem}: {hint}")
        self.session_id = session_id or str(uuid.uuid4())
        self.working_dir = absolute(working_dir or os.curdir)
        self.loaded = settings or Settings()
        """The settings before the projects in them are checked for approval."""
        self.settings: Settings = self.prepared(self.loaded)
        """The settings that apply."""
        self.translator = checked_translator(translator)
        self.transcript_path = transcript_path
        self.remote_hooks: object | None = None
        """Hooks elsewhere, which are asked as well (see ``use_hooks``)."""
        self.one_shot = False
        """Whether the host ends after one event: nothing is started ahead for others.

        Set it before the hook system is built.
        """
        self.watch: SettingsWatch | None = None
        """What has watched the settings since before they were loaded.

        With it ``get_hook_system()`` builds one that follows changed settings.
        """
        self._hook_system: HookSystem | None = None
        self.ready_handler: EventFirer | None = None
        """Answers events where nothing has to be done before; else None."""
        self._closers: list[Callable[[], Awaitable[None]]] = []

    @classmethod
    def load(
        cls,
        project_dir: str | PathLike[str] = ".",
        session_id: str | None = None,
        translator: str = "auto",
        transcript_path: str = "",
        *,
        reload: bool = False,
    ) -> Config:
        """Read the settings of projects, user, system and extensions.

        The projects are those around ``project_dir``, which is the working directory.
        ``reload``: changed settings apply from the next event on. Raises
        ``SettingsError`` if there is no such folder, or if settings of the user or the
        system, or an approval, are there and cannot be read.
        """
        folder = os.fspath(project_dir) or os.curdir
        # None of its rules would apply. A working directory may have been deleted; its
        # guards stay.
        if not os.path.isdir(folder) and absolute(folder) != absolute(os.curdir):  # noqa: PTH112
            problem = "no such folder"
            if os.path.exists(folder):  # noqa: PTH110
                hint = "for one file use Config(settings=Settings.from_file(...))"
                problem = f"not a folder: name that of the project; {hint}"
            raise SettingsError(problem, folder)
        watch = None
        if reload:
            # Most hosts load their settings once and need not load this module.
            from .settings.watch import SettingsWatch

            watch = SettingsWatch.start(SettingsPlaces.around(project_dir))
        settings = Settings.load(project_dir) if watch is None else watch.settings
        config = cls(session_id, project_dir, settings, translator, transcript_path)
        config.watch = watch
        return config

    def __repr__(self) -> str:
        parts = []
        for layer in self.settings.layers:
            count = sum(1 for _ in layer.hooks())
            note = ", not trusted" if layer.is_unapproved else ""
            file = layer.file or "the given settings"
            parts.append(f"{count} hook{'s' * (count != 1)} in {file}{note}")
        return f"<Config of {self.working_dir!r}: {', '.join(parts) or 'no settings'}>"

    def prepared(self, loaded: Settings) -> Settings:
        """Settings as they apply here: managed hooks, and approved ones of projects."""
        settings = loaded.with_managed()
        if settings.projects or any(layer.is_project for layer in settings.layers):
            # Hosts without a project need not load what checks its files.
            from .trust.gate import apply_trust

            settings = apply_trust(settings, self.working_dir)
        if settings.folder is None:
            project_dir = find_workspace(self.working_dir).project_dir
            settings = replace(settings, project_dir=project_dir)
        return settings

    def get_hook_system(self) -> HookSystem | None:
        """The one HookSystem, built on first use; None where hooks are switched off.

        With ``reload`` there is always one: hooks may be switched on later.
        """
        reload = self.watch is not None
        if self._hook_system is None and (reload or self.settings.hooks_enabled):
            from .engine.system import HookSystem

            with _building.held:
                if self._hook_system is None:
                    HookSystem(self, reload=reload)
        return self._hook_system

    def session(
        self, session_id: object = None, *, transcript_path: str = ""
    ) -> Session:
        """One of many conversations that share the hook system; cheap to make.

        Without an id it gets a new one.
        """
        from .agent.session import Session

        if session_id is None:
            session_id = str(uuid.uuid4())
        return Session(self, session_id, transcript_path)

    def refuse_second_system(self) -> None:
        """Raise if this config already has a HookSystem."""
        if self._hook_system is not None:
            raise HookSystemExistsError

    def adopt(self, system: HookSystem) -> None:
        """Make a complete system this config's own; there is only one."""
        self.refuse_second_system()
        self._hook_system = system

    def use_hooks(self, firer: object) -> None:
        """Ask ``firer``, such as ``RemoteHooks``, beside the config's own hooks.

        The strictest answer counts, as if all were hooks of one plan.
        """
        self.remote_hooks = firer

    def on_dispose(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Call ``closer``, an async function, once before the system is disposed of."""
        self._closers.append(closer)

    async def dispose(self) -> None:
        """Dispose of the system, if one was built, and of what depends on it."""
        while self._closers:
            await self._closers[-1]()
            self._closers.pop()  # only now: a cancelled one is called again
        if self._hook_system is not None:
            await self._hook_system.dispose()

    async def __aenter__(self) -> Config:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispose()
