"""Which hooks there are, and which of them a run in the journal counts for.

A run says the event, the name, the source and the type of its hook, and where it
happened. It counts for each configured hook that all of this fits.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from hashlib import sha256
from threading import Lock

from msgspec import Struct

from hookline.config import Config
from hookline.engine.explain import disabled_where, switched_off
from hookline.engine.registry import HookRegistry
from hookline.journal.query import RunKey
from hookline.plan import RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.settings.model import HookSource
from hookline.settings.places import is_within

_checking = Lock()
"""Approvals keep what they have seen, and are not made for several threads."""


class ListedHook(Struct, frozen=True):
    """One configured hook, and why it does not run if it is switched off."""

    key: str
    hook: RegisteredHook
    why: str | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What the journal says of its runs."""
        hook = self.hook
        source, kind = hook.source.value, hook.config.type.value
        return (hook.event.value, hook.name, source, kind)


class Recorded(Struct, frozen=True):
    """A hook that the journal knows and the settings do not."""

    kind: str
    """``code``, ``elsewhere`` or ``gone``."""
    event: str
    name: str
    source: str
    type: str
    folder: str | None
    """Where it ran, for a hook of another project."""


def configured_hooks(config: Config) -> list[ListedHook]:
    """All hooks of the settings, also those that ``enableHooks`` switches off."""
    with _checking:
        registered = HookRegistry(config.settings).all_hooks()
    hooks: list[tuple[RegisteredHook, str | None]] = [
        (hook, None if hook.enabled else disabled_where(config.settings, hook))
        for hook in registered
    ]
    for event in HookEventName:
        hooks += switched_off(config.settings, event)
    numbers: dict[str, int] = {}
    listed = []
    for hook, why in hooks:
        digest = _digest(hook)
        numbers[digest] = number = numbers.get(digest, 0) + 1
        listed.append(ListedHook(f"{digest}-{number}", hook, why))
    return listed


def _digest(hook: RegisteredHook) -> str:
    """Names a hook while it stays as it is; equal ones are numbered."""
    place = (hook.event, hook.source, hook.file, hook.matcher, hook.sequential)
    text = repr((place, hook.config)).encode("utf-8", "surrogatepass")
    return sha256(text).hexdigest()[:16]


class Owners:
    """Tells which hooks a run counts for."""

    def __init__(self, config: Config, listed: list[ListedHook]) -> None:
        folder = os.path.realpath(config.working_dir)
        self._places = {folder, *config.settings.projects}
        self._listed: dict[tuple[str, str, str, str], list[ListedHook]] = {}
        for hook in listed:
            self._listed.setdefault(hook.identity, []).append(hook)
        self._folders: dict[str, str] = {}

    def of(self, run: RunKey) -> list[Hashable]:
        """The keys of configured hooks, or one ``Recorded``."""
        identity, cwd = (run.event, run.name, run.source, run.type), run.cwd
        folder = self._resolved(cwd)
        hooks = [
            hook for hook in self._listed.get(identity, ()) if _ran_in(hook, folder)
        ]
        if hooks:
            return [hook.key for hook in hooks]
        if identity[2] == HookSource.RUNTIME:
            return [Recorded("code", *identity, None)]
        is_local = identity[2] in {HookSource.PROJECT, HookSource.EXPLICIT}
        if is_local and not self._covers(folder):
            return [Recorded("elsewhere", *identity, cwd)]
        return [Recorded("gone", *identity, None)]

    def _covers(self, folder: str) -> bool:
        return any(is_within(folder, place) for place in self._places)

    def _resolved(self, cwd: str) -> str:
        if cwd not in self._folders:
            # A NUL cannot be part of a path, but of a text in a journal.
            valid = os.path.isabs(cwd) and "\0" not in cwd  # noqa: PTH117
            self._folders[cwd] = os.path.realpath(cwd) if valid else cwd
        return self._folders[cwd]


def _ran_in(listed: ListedHook, folder: str) -> bool:
    """A project's hooks run in that project only, all others everywhere."""
    project = listed.hook.project
    return project is None or is_within(folder, project)
