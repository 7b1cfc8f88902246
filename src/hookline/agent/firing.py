"""Fire the events of one session; raises for an unknown event alone.

Whatever else fails, the agent goes on, unless a hook's failure policy asks for a block.
Without hooks every event is an empty success.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from hookline._internal.log import logger
from hookline.config import Config
from hookline.engine.handler import HookEventHandler
from hookline.engine.remote_side import RemoteSide
from hookline.engine.run_hook import closed_events, failed_event
from hookline.engine.sync import run_sync
from hookline.protocol.events import HookEventName
from hookline.protocol.inputs import EventFirer, Fields, event_fields
from hookline.protocol.results import (
    ProcessedHookResult,
    Stage,
    make_empty_success_result,
)
from hookline.protocol.values import text_of

T = TypeVar("T")
_warned: WeakKeyDictionary[Config, set[Any]] = WeakKeyDictionary()


class SessionEvents(EventFirer):
    """The events of one session of a config."""

    def __init__(
        self,
        config: Config,
        session_id: object = None,
        transcript_path: str | None = None,
    ) -> None:
        self.config = config
        self._id = None if session_id is None else text_of(session_id)
        self._transcript = transcript_path

    @property
    def session_id(self) -> str:
        """The id that hooks see."""
        return self.config.session_id if self._id is None else self._id

    @property
    def transcript_path(self) -> str:
        """The transcript that hooks see; empty if there is none."""
        if self._transcript is None and self._id is None:
            return self.config.transcript_path
        return self._transcript or ""

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as ``event_input``.

        Raises ``UnknownEventError``.
        """
        event = HookEventName.of(event_name)
        try:
            firer = await self._firer()
            if firer is None:
                return ProcessedHookResult(aggregated=make_empty_success_result())
            given = dict(event_input)
            if self._id is not None:
                given["session_id"] = self._id
                given["transcript_path"] = self.transcript_path
            return await firer.fire(event, given)
        # The second documented edge, as in ``fire_fields``.
        except Exception as error:  # noqa: BLE001
            return await self._failed(event, error, event_input)

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire an event whose fields are normalized, for another session if given."""
        try:
            firer = await self._firer()
            if firer is None:
                return ProcessedHookResult(aggregated=make_empty_success_result())
            if session_id is None and self._id is not None:
                session_id, transcript_path = self._id, self.transcript_path
            return await firer.fire_fields(event, fields, session_id, transcript_path)
        # The second documented edge: whatever fails in the hooks, the agent goes on.
        except Exception as error:  # noqa: BLE001
            return await self._failed(event, error, fields)

    def fire_sync(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire from plain code: any thread, with or without a running event loop."""
        handler, has_remote = self.config.ready_handler, self.config.remote_hooks
        if isinstance(handler, HookEventHandler) and has_remote is None:
            idle = handler.answer_if_idle(event_name, event_input)
            if idle is not None:
                return idle
        return self.run_sync(self.fire(event_name, event_input))

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this session's on the background loop, and wait for it.

        Only hooks belong there: a tool or a model call blocks all other hooks.
        """
        return run_sync(self.config, work)

    async def has_hooks(self, event: HookEventName | str) -> bool:
        """Whether a hook may run on an event; always true for hooks on a bus."""
        try:
            firer = await self._firer()
            if firer is None:
                return False
            known = HookEventName.of(event)
            if not isinstance(firer, HookEventHandler) or firer.remote is not None:
                return True
            await firer.current()
            return firer.has_hooks_for(known)
        # As above; the caller then waits for an answer before it shows anything.
        except Exception as error:  # noqa: BLE001
            logger.warning("cannot tell whether hooks listen: %r", error)
            return True

    def warn_once(self, message: str) -> None:
        """Log a warning, once for all sessions and clients of a config."""
        warned = _warned.setdefault(self.config, set())
        if message not in warned:
            warned.add(message)
            logger.warning("%s", message)

    async def warn_ineffective(self, framework: str, events: Mapping[str, str]) -> None:
        """Warn once about hooks on events that a framework cannot fire or obey.

        ``events`` gives the reason for each event. Hooks on a bus are not known here.
        """
        warned = _warned.setdefault(self.config, set())
        for event, reason in events.items():
            if (framework, event) in warned or self.config.remote_hooks is not None:
                continue
            warned.add((framework, event))
            if await self.has_hooks(event):
                logger.warning(
                    "%s hooks have no effect in %s: %s", event, framework, reason
                )

    def are_off(self) -> bool:
        """Whether hooks are switched off, so that every event is an empty success."""
        config = self.config
        try:
            return config.remote_hooks is None and config.get_hook_system() is None
        # The second documented edge: hooks that cannot be had are not off.
        except Exception:  # noqa: BLE001
            return False

    async def _firer(self) -> EventFirer | None:
        remote = cast("EventFirer | None", self.config.remote_hooks)
        handler = self.config.ready_handler
        if handler is not None and remote is None:
            return handler
        system = self.config.get_hook_system()
        if system is None:
            return remote
        await system.initialize()
        handler = system.event_handler
        if remote is None:
            return handler
        # For this event alone: requests from a bus are for the hooks here only.
        composed = HookEventHandler(await handler.current())
        composed.remote = remote
        return composed

    async def _failed(
        self, event: HookEventName, error: Exception, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Go on without these hooks, or block if a hook of the event asks for that."""
        logger.warning("%s hooks did not run: %r", event.value, error)
        is_closed = event in closed_events(self.config.settings)
        result = failed_event(error, Stage.INTERNAL, event, always=is_closed)
        remote = cast("EventFirer | None", self.config.remote_hooks)
        if remote is None:
            return result
        transcript = None if self._id is None else self.transcript_path
        with suppress(Exception):  # it may be the hooks elsewhere that failed
            fields = event_fields(event, event_input)
            side = RemoteSide(remote, event, fields, (self._id, transcript))
            return await side.judge_beside(result)
        return result


ConfigOrEvents = Config | SessionEvents


def events_of(given: ConfigOrEvents) -> SessionEvents:
    """The events of a session as they are; of a config those of its own session."""
    return given if isinstance(given, SessionEvents) else SessionEvents(given)


def require_config(given: object, hint: str) -> None:
    """Raise ``TypeError`` with what to write, unless this is a config or a session."""
    if isinstance(given, SessionEvents) or hasattr(given, "get_hook_system"):
        return
    name = getattr(given, "__name__", None)
    got = type(given).__name__ if name is None else f"{type(given).__name__} {name!r}"
    got = "None" if given is None else got
    raise TypeError(f"expected a Config or a session, got {got}: {hint}")


async def fire(
    given: ConfigOrEvents, event: HookEventName, fields: Fields
) -> ProcessedHookResult | None:
    """Fire for a trigger: None if no hook returned an output."""
    return said(await events_of(given).fire_fields(event, fields))


def said(result: ProcessedHookResult) -> ProcessedHookResult | None:
    """None if no hook returned an output, or the hooks are unreachable."""
    return None if result.aggregated.final_output is None else result
