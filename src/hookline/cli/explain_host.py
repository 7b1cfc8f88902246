"""``hookline explain --host``: what a coding agent makes of the project's hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookline.config import Config
from hookline.engine.registry import HookRegistry
from hookline.hosts.effects import EFFECTS, Effect
from hookline.hosts.host import Host
from hookline.hosts.host_verdict import host_verdict
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult

from .terminal import one_line, paint, print_json, print_table

UNTESTED = "untested: written by its documentation"


def event_json(
    host: Host, event: HookEventName, result: ProcessedHookResult | None = None
) -> dict[str, Any]:
    """One event in a host: its names there, and for each effect what is lost.

    With a result, only the effects that its hooks asked for.
    """
    limits = host.limits.get(event, {})
    names = [theirs for theirs, ours in host.events.items() if ours is event]
    effects = EFFECTS[event] if result is None else _asked(event, result)
    return {
        "name": host.name,
        "title": host.title,
        "tested": host.tested,
        "events": names,
        "fired": bool(names),
        "effects": {one.value: limits.get(one) for one in effects if names},
    }


def _asked(event: HookEventName, result: ProcessedHookResult) -> list[Effect]:
    final = result.final_output
    asked = host_verdict([result]).asked()
    if final is not None and final.modified_tool_input is not None:
        asked.add(Effect.CHANGE)
    return [one for one in EFFECTS[event] if one in asked]


def print_event(host: Host, event: HookEventName, found: dict[str, Any]) -> None:
    """Print what a host makes of an event."""
    print(f"\nin {_described(host)}")
    if not found["fired"]:
        print(f"    {_not_fired(host, event)}")
        return
    print(f"    its event: {', '.join(found['events'])}")
    for effect, limit in found["effects"].items():
        how = paint("limited", "yellow")
        shown = (
            paint("as the hook says", "green") if limit is None else f"{how}: {limit}"
        )
        print(f"    {effect}: {shown}")


def show_overview(host: Host, config: Config, *, as_json: bool) -> None:
    """Show every event that has hooks, and what the host cannot do there."""
    hooks: dict[HookEventName, list[str]] = {}
    for hook in HookRegistry(config.settings).all_hooks():
        if hook.enabled:
            hooks.setdefault(hook.event, []).append(hook.name)
    found = {
        event: event_json(host, event) for event in HookEventName if event in hooks
    }
    if as_json:
        events = [_overview_json(event, found[event], hooks[event]) for event in found]
        about = {"name": host.name, "title": host.title, "tested": host.tested}
        print_json({"host": about, "events": events})
        return
    print(_described(host))
    if not found:
        print("no hooks are configured: 'hookline init' sets up a first one")
        return
    print()
    rows = [row for event in found for row in _rows(event, found[event], hooks[event])]
    print_table(("event", f"in {host.title}", "hooks"), rows)
    _print_losses(host, found)


def _overview_json(
    event: HookEventName, found: dict[str, Any], hooks: list[str]
) -> dict[str, Any]:
    kept = {key: found[key] for key in ("events", "fired", "effects")}
    return {"event": event.value, "hooks": hooks, **kept}


def _rows(
    event: HookEventName, found: dict[str, Any], hooks: Iterable[str]
) -> list[list[str]]:
    """One row for each of the host's names: a cell has little room."""
    first, *more = found["events"] or ["-"]
    row = [event.value, first, one_line(", ".join(hooks))]
    return [row, *(["", name, ""] for name in more)]


def _print_losses(host: Host, found: dict[HookEventName, dict[str, Any]]) -> None:
    lines = []
    for event, one in found.items():
        if not one["fired"]:
            lines.append(f"{event.value}: {_not_fired(host, event)}")
        limits = {key: text for key, text in one["effects"].items() if text}
        lines += [f"{event.value}, {key}: {text}" for key, text in limits.items()]
    if lines:
        print(f"\nwhat {host.title} cannot do, and what happens instead")
    for line in lines:
        print(f"  {line}")


def _described(host: Host) -> str:
    tested = f"tested with {host.tested}" if host.tested else UNTESTED
    return f"{paint(host.title, 'bold')} ({tested})"


def _not_fired(host: Host, event: HookEventName) -> str:
    told = f"{host.title} has no such event, hooks of {event.value} do not run there"
    return f"{paint('not fired', 'yellow')}: {told}"
