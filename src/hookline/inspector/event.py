"""One event: what is recorded of it, and what follows from that.

The merge is traced on the recorded outputs, read as the engine reads them; the
explanation is of now, with the current settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.engine.explain import Explainer, trace_fields
from hookline.engine.merge import final_input, with_one_answer
from hookline.engine.runner import verdict_part
from hookline.errors import EncodingError
from hookline.journal.query import FullEntry, JournalReader
from hookline.protocol.events import TRAITS, Chain, HookEventName, known_event
from hookline.protocol.inputs import BASE_FIELDS
from hookline.protocol.outputs import HookOutput, read_output
from hookline.protocol.values import same_json
from hookline.protocol.verdict import EFFECT_LABELS, recorded_verdict

from .answers import reply
from .desk import Desk
from .reproduction import reproductions

_NEIGHBOURS = 50_000
"""How many events are searched for the previous and the next one of a session."""
_NEAR = "SELECT id FROM events WHERE session = ? AND "
_BEFORE = f"{_NEAR} id < ? AND id >= ? - ? ORDER BY id DESC LIMIT 1"
_AFTER = f"{_NEAR} id > ? AND id <= ? + ? ORDER BY id LIMIT 1"
_LONGEST_TEXT = 2000


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""

    async def event(request: Request) -> Response:
        return reply(
            await desk.in_thread(describe_event, desk, request.path_params["id"])
        )

    return [Route("/api/events/{id:number}", event)]


def describe_event(desk: Desk, event_id: int) -> dict[str, Any]:
    """Everything about one event, for its page."""
    with desk.read() as reader:
        full = find_event(reader, event_id)
        previous, following = _neighbours(reader, full)
    event = known_event(full.entry.event)
    return {
        **_recorded(full),
        "previous": previous,
        "next_event": following,
        "hooks": [_hook(hook, event) for hook in full.hooks],
        "changes": [] if event is None else list(_sent_changes(full, event)),
        "provenance": [] if event is None else _provenance(full, event),
        "explanation": None,
        **({} if event is None else _explanation(desk, full, event)),
        "explained_in": desk.config.working_dir,
        **reproductions(full, desk.options()),
    }


def find_event(reader: JournalReader, event_id: int) -> FullEntry:
    """One event; raises if it is not recorded."""
    # A larger number is no id that SQLite can hold.
    full = reader.find(event_id) if event_id < 1 << 63 else None
    if full is None:
        message = "it may have been deleted to keep the journal small"
        raise HTTPException(404, f"no event {event_id} is recorded: {message}")
    return full


def _neighbours(reader: JournalReader, full: FullEntry) -> Iterator[int | None]:
    """The ids of the events before and after it in its session."""
    entry = full.entry
    for query in (_BEFORE, _AFTER):
        values = [entry.session, entry.id, entry.id, _NEIGHBOURS]
        row = reader.connection.execute(query, values).fetchone()
        yield None if row is None else row[0]


def _recorded(full: FullEntry) -> dict[str, Any]:
    entry, decided = full.entry, full.decided
    marks = ("input_masked", "input_cut", "input_bytes", "output_masked", "output_cut")
    return {
        "row": structs.asdict(entry)
        | {
            "would_block": any(hook["would_block"] for hook in full.hooks),
            "recheck": any(hook["recheck"] for hook in full.hooks),
            "tool_use_id": full.input.get("tool_use_id"),
        },
        **{name: getattr(entry, name) for name in marks},
        "input": full.input,
        "plan": full.plan,
        "final_output": full.final_output,
        "errors": full.errors,
        "verdict": {
            "word": decided.word.value,
            "blocked": decided.blocked,
            "ask": decided.ask,
            "stop": decided.stop,
            "effects": [EFFECT_LABELS[name] for name in decided.effects],
        },
    }


def _hook(hook: dict[str, Any], event: HookEventName | None) -> dict[str, Any]:
    return hook | {
        "verdict": recorded_verdict(event, hook).word.value,
        "mode": "observe" if hook["observed"] else "enforce",
    }


def _counted(
    hooks: list[dict[str, Any]], event: HookEventName, event_input: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The outputs that took part in the merge, each with the name of its hook."""
    for hook in hooks:
        output, wire = None, hook["output"]
        if not hook["observed"] and not hook["async"] and isinstance(wire, dict):
            output = read_output(wire, event)[0]
        if output is not None and event is HookEventName.AfterModel:
            output = with_one_answer(output, event_input)
        if hook["recheck"]:
            output = verdict_part(output)
        if output is not None:
            yield hook["name"], output.to_wire()


def _provenance(full: FullEntry, event: HookEventName) -> list[Any]:
    final = full.final_output if isinstance(full.final_output, dict) else {}
    return trace_merge(final, full.hooks, event, full.input)


def trace_merge(
    final_output: dict[str, Any],
    hooks: list[dict[str, Any]],
    event: HookEventName,
    event_input: dict[str, Any],
) -> list[Any]:
    """Which hook gave which field of the merged output."""
    outputs = _counted(hooks, event, event_input)
    fields = msgspec.to_builtins(trace_fields(final_output, outputs))
    return [_shortened(field) for field in fields]


def _shortened(field: dict[str, Any]) -> dict[str, Any]:
    """The field with long texts cut: they are in the outputs as a whole."""
    contributions = [
        contribution | {"value": _short(contribution["value"])}
        for contribution in field["said"]
    ]
    return field | {"value": _short(field["value"]), "said": contributions}


def _short(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _LONGEST_TEXT:
        return value
    return f"{value[:_LONGEST_TEXT]}…"


def _sent_changes(full: FullEntry, event: HookEventName) -> Iterator[dict[str, Any]]:
    """The changes; without ``before`` where that is a field of the input."""
    for change in _changes(full, event):
        if change["before"] is full.input.get(change["field"]):
            del change["before"]
        yield change


def _changes(full: FullEntry, event: HookEventName) -> list[dict[str, Any]]:
    if not isinstance(full.final_output, dict):
        return []
    return changes_by(full.final_output, event, full.input, ended=full.decided.ends)


def changes_by(
    final_output: dict[str, Any],
    event: HookEventName,
    event_input: dict[str, Any],
    *,
    ended: bool,
) -> list[dict[str, Any]]:
    """What hooks changed, as a value before and after; void if the event ``ended``."""
    final, _ = read_output(final_output, event)
    chain = TRAITS[event].chain
    changes = []
    if chain is not Chain.NOTHING:
        before, after = event_input.get(chain), _after(event_input, final, chain)
        if not same_json(before, after):
            # Blocked: nobody applied the change.
            void = ended and chain is not Chain.LLM_RESPONSE
            changes.append(_change(chain.value, before, after, void=void))
    if final.tool_config is not None and event is HookEventName.BeforeToolSelection:
        request = event_input.get("llm_request")
        before = request.get("toolConfig") if isinstance(request, dict) else None
        changes.append(_change("tools", before, final.tool_config, void=ended))
    if final.withholds_result and event is HookEventName.AfterTool:
        changes.append(_change("tool_response", event_input.get("tool_response"), None))
    if final.additional_context and chain not in (Chain.PROMPT, Chain.LLM_REQUEST):
        changes.append(_change("additionalContext", None, final.additional_context))
    return changes


def _after(event_input: dict[str, Any], final: HookOutput, chain: Chain) -> Any:
    return final_input(event_input, [final], chain).get(chain)


def _change(
    field: str, before: Any, after: Any, *, void: bool = False
) -> dict[str, Any]:
    return {"field": field, "before": before, "after": after, "void": void}


def _explanation(desk: Desk, full: FullEntry, event: HookEventName) -> dict[str, Any]:
    """What each hook would do now, or why that cannot be said."""
    fields = {k: v for k, v in full.input.items() if k not in BASE_FIELDS}
    try:
        explained = Explainer(desk.config, event, fields).explain()
    except EncodingError as error:
        return {"unexplained": str(error)}
    return {"explanation": [hook.to_json() for hook in explained]}
