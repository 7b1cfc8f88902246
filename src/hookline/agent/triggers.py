"""Fire the events of a session, and the triggers: the same for a config or a session.

Whatever fails, the agent goes on, unless a hook's failure policy asks for a block. Only
an unknown event raises. Without hooks every event is an empty success.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from hookline._internal.log import logger
from hookline.config import Config
from hookline.engine.handler import HookEventHandler
from hookline.engine.remote_side import RemoteSide
from hookline.engine.run_hook import closed_events, failed_event
from hookline.engine.sync import run_sync
from hookline.protocol.events import (
    HookEventName,
)
from hookline.protocol.inputs import EventFirer, Fields, event_fields
from hookline.protocol.results import (
    ProcessedHookResult,
    Stage,
    make_empty_success_result,
)
from hookline.protocol.values import text_of

HookFirer = EventFirer
"""What has the ``fire_*_event`` methods: a handler, a session, ``RemoteHooks``."""

P = ParamSpec("P")
T = TypeVar("T")
_warned: WeakKeyDictionary[Config, set[Any]] = WeakKeyDictionary()


class SessionEvents(EventFirer):
    """The events of one session of a config: all of a session but ``begin_*``."""

    def __init__(
        self, config: Config, session_id: object = None, transcript_path: str = ""
    ) -> None:
        self.config = config
        self._id = None if session_id is None else text_of(session_id)
        self._transcript_path = transcript_path

    @property
    def session_id(self) -> str:
        """The id that hooks see."""
        return self.config.session_id if self._id is None else self._id

    @property
    def transcript_path(self) -> str:
        """The transcript that hooks see; empty if there is none."""
        if self._id is None:
            return self.config.transcript_path
        return self._transcript_path

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
            fields = dict(event_input)
            if self._id is not None:
                fields["session_id"] = self._id
                fields["transcript_path"] = self._transcript_path
            return await firer.fire(event, fields)
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
                session_id, transcript_path = self._id, self._transcript_path
            return await firer.fire_fields(event, fields, session_id, transcript_path)
        # The second documented edge: whatever fails in the hooks, the agent goes on.
        except Exception as error:  # noqa: BLE001
            return await self._failed(event, error, fields)

    def fire_sync(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire from plain code: any thread, with or without a running event loop."""
        handler = self.config.ready_handler
        if isinstance(handler, HookEventHandler) and self.config.remote_hooks is None:
            idle_result = handler.answer_if_idle(event_name, event_input)
            if idle_result is not None:
                return idle_result
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
            name = HookEventName.of(event)
            if not isinstance(firer, HookEventHandler) or firer.remote is not None:
                return True
            await firer.current()
            return firer.has_hooks_for(name)
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
                message = "%s hooks have no effect in %s: %s"
                logger.warning(message, event, framework, reason)

    def are_off(self) -> bool:
        """Whether hooks are switched off, so that every event is an empty success."""
        config = self.config
        try:
            return config.remote_hooks is None and config.get_hook_system() is None
        # The second documented edge: hooks that cannot be had are not off.
        except Exception:  # noqa: BLE001
            return False

    async def _firer(self) -> EventFirer | None:
        """What answers events now; None where hooks are switched off."""
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
        transcript_path = None if self._id is None else self._transcript_path
        with suppress(Exception):  # it may be the hooks elsewhere that failed
            fields = event_fields(event, event_input)
            side = RemoteSide(remote, event, fields, (self._id, transcript_path))
            return await side.judge_beside(result)
        return result


ConfigOrEvents = Config | SessionEvents
_HINT = "pass Config.load(), or Config(settings=Settings.from_mapping(...))"


def events_of(config: ConfigOrEvents, hint: str = _HINT) -> SessionEvents:
    """The events of a session as they are; of a config those of its own session.

    Raises ``TypeError`` for anything else, with a ``hint`` at what to write.
    """
    if isinstance(config, SessionEvents):
        return config
    if hasattr(config, "get_hook_system"):
        return SessionEvents(config)
    kind, name = type(config).__name__, getattr(config, "__name__", None)
    described = "None" if kind == "NoneType" else kind
    described = described if name is None else f"{described} {name!r}"
    raise TypeError(f"expected a Config or a session, got {described}: {hint}")


async def fire(
    config: ConfigOrEvents, event: HookEventName, fields: Fields
) -> ProcessedHookResult | None:
    """Fire an event; None if no hook had an output, or none can be reached."""
    result = await events_of(config).fire_fields(event, fields)
    return None if result.aggregated.final_output is None else result


class Trigger(Protocol[P]):
    """A method that fires an event, as a function of a config or a session."""

    async def __call__(
        self, config: ConfigOrEvents, *args: P.args, **kwargs: P.kwargs
    ) -> ProcessedHookResult | None:
        """Fire the event; None if no hook had an output, or none can be reached."""


def _trigger(
    fire_event: Callable[
        Concatenate[EventFirer, P], Coroutine[Any, Any, ProcessedHookResult]
    ],
) -> Trigger[P]:
    async def trigger(
        config: ConfigOrEvents, *args: P.args, **kwargs: P.kwargs
    ) -> ProcessedHookResult | None:
        result = await fire_event(events_of(config), *args, **kwargs)
        return None if result.aggregated.final_output is None else result

    update_wrapper(trigger, fire_event)
    trigger.__name__ = f"{fire_event.__name__.removesuffix('_event')}_hook"
    trigger.__qualname__, trigger.__module__ = trigger.__name__, __name__
    return trigger


fire_before_tool_hook = _trigger(EventFirer.fire_before_tool_event)
"""A tool is about to run: hooks may block it, change its input or add context."""
fire_after_tool_hook = _trigger(EventFirer.fire_after_tool_event)
"""A tool has run: hooks may add to its result, or withhold it."""
fire_session_start_hook = _trigger(EventFirer.fire_session_start_event)
"""A session starts: additional context is for the model."""
fire_session_end_hook = _trigger(EventFirer.fire_session_end_event)
"""A session ends."""
fire_before_agent_hook = _trigger(EventFirer.fire_before_agent_event)
"""A turn is about to start: hooks may block it or add context."""
fire_after_agent_hook = _trigger(EventFirer.fire_after_agent_event)
"""A turn has an answer: a block rejects it."""
fire_subagent_start_hook = _trigger(EventFirer.fire_subagent_start_event)
"""A subagent is about to start: hooks may block it or add context."""
fire_subagent_stop_hook = _trigger(EventFirer.fire_subagent_stop_event)
"""A subagent has an answer: a block rejects it."""
fire_notification_hook = _trigger(EventFirer.fire_notification_event)
"""The host notifies its user."""
fire_pre_compress_hook = _trigger(EventFirer.fire_pre_compress_event)
"""The history is about to be compressed."""
