"""The handler's ``fire_*`` methods for hooks that run elsewhere.

Triggers, scheduler and chat work the same with these as with a handler in the process.
They raise nothing but cancellation: no answer is a failure envelope, and a block if the
client's ``on_error`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import (
    EventFirer,
    Fields,
    checked_translator,
    event_fields,
)
from hookline.protocol.results import (
    FailureMeta,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
)
from hookline.protocol.values import text_of

from .client import HookBusClient
from .contracts import ResponseCode, failed_response


class RemoteHooks(EventFirer):
    """Fires events over a bus, for one session and one requester.

    It has the ``fire_*_event`` methods of the handler; ``Config.use_hooks`` makes
    agents use it. Workers see ``requester``, such as the name of the agent, as it is.
    ``translator`` is as in ``Config``.
    """

    def __init__(
        self,
        client: HookBusClient,
        *,
        session_id: str | None = None,
        transcript_path: str | None = None,
        requester: Mapping[str, Any] | None = None,
        translator: str = "auto",
    ) -> None:
        self._client = client
        self._translator = checked_translator(translator)
        base = {
            "session_id": None if session_id is None else text_of(session_id),
            "transcript_path": transcript_path,
            "requester": None if requester is None else dict(requester),
        }
        self._base = {key: value for key, value in base.items() if value is not None}

    async def fire(
        self, event_name: HookEventName | str, event_input: Mapping[str, Any]
    ) -> ProcessedHookResult:
        """Fire an event by its name, with its fields as ``event_input``.

        Raises ``UnknownEventError``.
        """
        event = HookEventName.of(event_name)
        try:
            fields = event_fields(event, event_input)
        except (ValueError, TypeError, AttributeError) as error:
            meta = FailureMeta(event_name=event)
            envelope = build_failure_envelope(error, Stage.VALIDATION, meta)
            return ProcessedHookResult(aggregated=envelope)
        for name in ("session_id", "transcript_path"):
            if event_input.get(name):
                fields[name] = text_of(event_input[name])
        return await self.fire_fields(event, fields)

    async def fire_fields(
        self,
        event: HookEventName,
        fields: Fields,
        session_id: str | None = None,
        transcript_path: str | None = None,
    ) -> ProcessedHookResult:
        """Fire an event whose fields are normalized, for another session if given."""
        base = {"session_id": session_id, "transcript_path": transcript_path}
        fields = {k: text_of(v) for k, v in base.items() if v is not None} | fields
        event_input = {**self._base, **fields}
        try:
            if names := TRAITS[event].model_fields:
                # Model payloads in the stable shape, which can be sent.
                from hookline.translators import stable_fields

                payloads = {name: fields.get(name) for name in names}
                event_input |= stable_fields(event, payloads, self._translator)
        # An SDK's objects are foreign code and may raise anything.
        except Exception as error:  # noqa: BLE001
            code, stage = ResponseCode.TRANSLATION_FAILURE, Stage.TRANSLATION
            failed = failed_response({"eventName": event.value}, code, error, stage)
            return self._client.closed(failed, event).result
        return (await self._client.ask(event, event_input)).result
