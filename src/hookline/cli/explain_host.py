"""``hookline explain --host``: what a coding agent makes of the project's hooks."""

from __future__ import annotations

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
    names = [name for name, hook_event in host.events.items() if hook_event is event]
    effects = list(EFFECTS[event]) if names else []
    if result is not None:
        final, asked_for = result.final_output, host_verdict([result]).asked()
        if final is not None and final.modified_tool_input is not None:
            asked_for.add(Effect.CHANGE)
        effects = [effect for effect in effects if effect in asked_for]
    limits = host.limits.get(event, {})
    return {
        "name": host.name,
        "title": host.title,
        "tested": host.tested,
        "events": names,
        "fired": bool(names),
        "effects": {effect.value: limits.get(effect) for effect in effects},
    }


def print_event(host: Host, event: HookEventName, in_host: dict[str, Any]) -> None:
    """Print what a host makes of an event."""
    print(f"\nin {_described(host)}")
    if not in_host["fired"]:
        print(f"    {_not_fired(host, event)}")
        return
    print(f"    its event: {', '.join(in_host['events'])}")
    for effect, limit in in_host["effects"].items():
        text = paint("as the hook says", "green")
        if limit is not None:
            text = f"{paint('limited', 'yellow')}: {limit}"
        print(f"    {effect}: {text}")


def print_overview(host: Host, config: Config, *, as_json: bool) -> None:
    """Print every event that has hooks, and what the host cannot do there."""
    hooks: dict[HookEventName, list[str]] = {}
    for hook in HookRegistry(config.settings).all_hooks():
        if hook.enabled:
            hooks.setdefault(hook.event, []).append(hook.name)
    events = {
        event: event_json(host, event) for event in HookEventName if event in hooks
    }
    if as_json:
        rows = []
        for event, in_host in events.items():
            facts = {key: in_host[key] for key in ("events", "fired", "effects")}
            rows.append({"event": event.value, "hooks": hooks[event], **facts})
        about = {"name": host.name, "title": host.title, "tested": host.tested}
        print_json({"host": about, "events": rows})
        return
    print(_described(host))
    if not events:
        print("no hooks are configured: 'hookline init' sets up a first one")
        return
    cells: list[tuple[str, str, str]] = []
    losses: list[str] = []
    for event, in_host in events.items():
        # One row for each of the host's names: a cell has little room.
        first, *more = in_host["events"] or ["-"]
        cells.append((event.value, first, one_line(", ".join(hooks[event]))))
        cells += [("", name, "") for name in more]
        if not in_host["fired"]:
            losses.append(f"{event.value}: {_not_fired(host, event)}")
        for effect, limit in in_host["effects"].items():
            if limit:
                losses.append(f"{event.value}, {effect}: {limit}")
    print()
    print_table(("event", f"in {host.title}", "hooks"), cells)
    if losses:
        print(f"\nwhat {host.title} cannot do, and what happens instead")
    for loss in losses:
        print(f"  {loss}")


def _described(host: Host) -> str:
    tested = f"tested with {host.tested}" if host.tested else UNTESTED
    return f"{paint(host.title, 'bold')} ({tested})"


def _not_fired(host: Host, event: HookEventName) -> str:
    text = f"{host.title} has no such event, hooks of {event.value} do not run there"
    return f"{paint('not fired', 'yellow')}: {text}"
