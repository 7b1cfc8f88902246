"""Settings of Gemini CLI and llxprt-code in ours: the protocol is the same."""

from __future__ import annotations

from typing import Any

from hookline.events import HookEventName

from . import Migrated

_HOOK_KEYS = ("type", "command", "name", "description", "timeout", "env")
_GROUP_KEYS = ("matcher", "sequential", "hooks")
_OPTION_KEYS = ("disabled", "enabled", "notifications")


def from_gemini(theirs: dict[str, Any]) -> Migrated:
    """Carry events over by name, and gather options from where versions keep them."""
    notes: list[str] = []
    given = theirs.get("hooks")
    given = given if isinstance(given, dict) else {}
    hooks: dict[str, list[dict[str, Any]]] = {}
    for name, groups in given.items():
        if name in _OPTION_KEYS and not isinstance(groups, dict):
            continue
        if name not in tuple(HookEventName) or not isinstance(groups, list):
            notes.append(f"{name}: there is no such event here")
            continue
        found = [ours for group in groups for ours in _group(name, group, notes)]
        if found:
            hooks[name] = found
    options = _options(theirs, given)
    settings: dict[str, Any] = {"enableHooks": options.pop("enabled"), "hooks": hooks}
    if options["disabled"]:
        settings["hooksConfig"] = options
    return Migrated(settings, tuple(notes))


def _group(name: str, group: Any, notes: list[str]) -> list[dict[str, Any]]:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        notes.append(f"{name}: a group without a list of hooks")
        return []
    hooks = [_hook(name, hook, notes) for hook in group["hooks"]]
    left = sorted(group.keys() - set(_GROUP_KEYS))
    notes.extend(f"{name}: {key!r} of a group has no counterpart" for key in left)
    kept = {key: group[key] for key in ("matcher", "sequential") if key in group}
    found = [hook for hook in hooks if hook]
    return [{**kept, "hooks": found}] if found else []


def _hook(name: str, hook: Any, notes: list[str]) -> dict[str, Any] | None:
    kind = hook.get("type") if isinstance(hook, dict) else None
    if kind != "command" or not isinstance(hook.get("command"), str):
        notes.append(f"{name}: a hook of type {kind!r} has no counterpart")
        return None
    left, command = sorted(hook.keys() - set(_HOOK_KEYS)), hook["command"]
    notes.extend(f"{name}: {key!r} of {command!r} has no counterpart" for key in left)
    return {key: hook[key] for key in _HOOK_KEYS if key in hook}


def _options(theirs: dict[str, Any], hooks: dict[str, Any]) -> dict[str, Any]:
    config, tools = theirs.get("hooksConfig"), theirs.get("tools")
    config = config if isinstance(config, dict) else {}
    tools = tools if isinstance(tools, dict) else {}
    places = (theirs, tools)
    switches = [place.get("enableHooks") for place in places]
    switches += [config.get("enabled"), hooks.get("enabled")]
    disabled = [*_names(config.get("disabled")), *_names(hooks.get("disabled"))]
    return {
        "enabled": False not in switches,
        "disabled": list(dict.fromkeys(disabled)),
    }


def _names(value: Any) -> list[str]:
    return [n for n in value if isinstance(n, str)] if isinstance(value, list) else []
