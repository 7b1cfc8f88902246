"""Turn a mapping, as a file or an extension gave it, into one layer of settings.

Never raises, whatever the mapping holds. An entry that cannot be used is dropped with
one warning, a wrong optional field likewise, and all the rest works (PROTOCOL 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from hookline.errors import UnknownEventError, nearest
from hookline.protocol.events import HookEventName

from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
    Problem,
    Report,
    Severity,
    quote,
    read_fields,
)
from .model import (
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    SettingsLayer,
)

_Groups = dict[HookEventName, tuple[HookGroup, ...]]

_EVENTS: dict[str, HookEventName] = {event.value: event for event in HookEventName}
_TYPES = [kind.value for kind in HookType]
_NEEDS = {
    HookType.COMMAND: "command",
    HookType.WORKER: "command",
    HookType.PYTHON: "function",
}
_ABROAD = {
    "PreToolUse": HookEventName.BeforeTool,
    "PostToolUse": HookEventName.AfterTool,
    "UserPromptSubmit": HookEventName.BeforeAgent,
    "Stop": HookEventName.AfterAgent,
    "PreCompact": HookEventName.PreCompress,
}
"""What other agents call these events, for better advice."""


def parse_layer(
    raw: Mapping[str, Any],
    source: HookSource,
    file: str | None = None,
    *,
    explicit: bool = False,
) -> SettingsLayer:
    """Read one layer; what is wrong in it is in its ``warnings``."""
    return read_layer(raw, source, file, explicit=explicit)[0]


def read_layer(
    raw: Mapping[str, Any],
    source: HookSource,
    file: str | None = None,
    *,
    explicit: bool = False,
) -> tuple[SettingsLayer, list[Problem]]:
    """Read one layer, with the problems as values."""
    report = Report()
    root = read_fields(raw, ROOT_FIELDS, report)
    groups = _read_events(raw.get("hooks", {}), source, report.at("hooks"))
    options = _read_options(raw.get("hooksConfig", {}), report.at("hooksConfig"))
    if source is HookSource.PROJECT and not explicit:
        options = _kept_inside(options, report.at("hooksConfig"))
    layer = SettingsLayer(
        source=source,
        file=file,
        groups=groups,
        options=options,
        explicit=explicit,
        warnings=tuple(
            f"{file or 'settings'}: {problem}" for problem in report.problems
        ),
        raw=dict(raw),
        **root,
    )
    return layer, report.problems


def _read_options(raw: Any, report: Report) -> HooksOptions:
    if not isinstance(raw, dict):
        report.say(f"ignored: expected an object, got {quote(raw)}")
        return HooksOptions()
    return HooksOptions(**read_fields(raw, OPTION_FIELDS, report))


def _kept_inside(options: HooksOptions, report: Report) -> HooksOptions:
    """A project chooses no file outside itself to be written to."""
    journal = options.journal
    if not isinstance(journal, str):
        return options
    from pathlib import PurePath

    path = PurePath(journal)
    if not (path.is_absolute() or ".." in path.parts or journal.startswith("~")):
        return options
    report.at("journal").say(
        f"ignored: a project's journal is a path inside it, got {quote(journal)}"
    )
    return replace(options, journal=None)


def _read_events(raw: Any, source: HookSource, report: Report) -> _Groups:
    if not isinstance(raw, dict):
        report.say(f"ignored: expected an object of events, got {quote(raw)}")
        return {}
    found: _Groups = {}
    for name, definitions in raw.items():
        event = _EVENTS.get(name)
        if event is None:
            report.at(name).say(f"dropped: {_unknown_event(name)}")
        elif groups := _read_groups(definitions, source, report.at(name)):
            found[event] = groups
    return found


def _unknown_event(name: Any) -> str:
    if near := _ABROAD.get(name):
        return f"unknown event {quote(name)}; did you mean {near.value!r}?"
    if isinstance(name, str) and nearest(name, _EVENTS):
        return str(UnknownEventError(str.__str__(name), tuple(_EVENTS)))
    return f"unknown event {quote(name)}; expected one of {', '.join(_EVENTS)}"


def _read_groups(raw: Any, source: HookSource, report: Report) -> tuple[HookGroup, ...]:
    if not isinstance(raw, list | tuple):
        report.say(f"dropped: expected a list of groups, got {quote(raw)}")
        return ()
    groups = (
        _read_group(item, source, report.at(index)) for index, item in enumerate(raw)
    )
    return tuple(group for group in groups if group is not None)


def _read_group(raw: Any, source: HookSource, report: Report) -> HookGroup | None:
    if not isinstance(raw, dict):
        report.say(f"dropped: expected an object with a hooks list, got {quote(raw)}")
        return None
    entries = raw.get("hooks")
    if not isinstance(entries, list | tuple):
        got = f"got {quote(entries)}" if "hooks" in raw else "there is none"
        report.at("hooks").say(f"group dropped: expected a list of hooks, {got}")
        return None
    read = (
        _read_hook(entry, source, report.at("hooks", index))
        for index, entry in enumerate(entries)
    )
    hooks = tuple(hook for hook in read if hook is not None)
    fields = read_fields(raw, GROUP_FIELDS, report)
    return HookGroup(hooks=hooks, **fields) if hooks else None


def _read_hook(raw: Any, source: HookSource, report: Report) -> HookConfig | None:
    if not isinstance(raw, dict):
        report.say(f"dropped: expected a hook, got {quote(raw)}")
        return None
    if lack := _lack_of(raw):
        report.say(f"dropped: {lack}")
        return None
    fields = read_fields(raw, HOOK_FIELDS, report)
    if fields.get("managed") and source is not HookSource.SYSTEM:
        message = "ignored: only system settings manage hooks"
        report.at("managed").say(message, Severity.WARNING)
        fields["managed"] = False
    kind = fields["type"]
    needed = fields.get(_NEEDS.get(kind, "command"))
    fields.setdefault("name", needed or fields.get("function") or kind.value)
    return HookConfig(**fields)


def _lack_of(raw: dict[str, Any]) -> str | None:
    """Say why an object is no hook, if it is none."""
    silent = Report()
    if "type" not in raw:
        return f"the hook has no type (one of {', '.join(_TYPES)})"
    kind = HOOK_FIELDS["type"].kind.read(raw["type"], silent)
    if not isinstance(kind, HookType):
        near = nearest(raw["type"], _TYPES)
        hint = f"did you mean {near!r}?" if near else f"one of {', '.join(_TYPES)}"
        return f"unknown type {quote(raw['type'])}: {hint}"
    if (key := _NEEDS.get(kind)) is None:
        return None
    if key not in raw:
        return f"a {kind} hook needs a {key}"
    if not isinstance(HOOK_FIELDS[key].kind.read(raw[key], silent), str):
        expected = HOOK_FIELDS[key].kind.expected
        return f"{key}: expected {expected}, got {quote(raw[key])}"
    return None
