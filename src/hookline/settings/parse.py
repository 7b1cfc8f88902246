"""Parse a mapping from a file or an extension into one layer of settings.

Never raises, whatever the mapping holds. An entry that cannot be used is dropped with
one warning, a wrong optional field likewise, and the rest works (protocol.md#settings).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from hookline.errors import UnknownEventError, nearest
from hookline.protocol.events import HookEventName
from hookline.protocol.values import describe

from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    REQUIRED_BY_TYPE,
    ROOT_FIELDS,
    Field,
    Report,
    Severity,
    parse_fields,
)
from .model import (
    Groups,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    SettingsLayer,
    TelemetryOptions,
)

_T = TypeVar("_T")
_EVENTS: dict[str, HookEventName] = {event.value: event for event in HookEventName}
_TYPES = [hook_type.value for hook_type in HookType]
_OUTSIDE = re.compile(r"^([~/\\]|\w:)|(^|[/\\])\.\.($|[/\\])")
_OTHER_AGENTS_EVENTS = {
    "PreToolUse": HookEventName.BeforeTool,
    "PostToolUse": HookEventName.AfterTool,
    "UserPromptSubmit": HookEventName.BeforeAgent,
    "Stop": HookEventName.AfterAgent,
    "PreCompact": HookEventName.PreCompress,
}


def parse_layer(
    raw: Mapping[str, Any],
    source: HookSource,
    file: str | None = None,
    *,
    project: str | None = None,
    explicit: bool = False,
    report: Report | None = None,
) -> SettingsLayer:
    """Parse one layer; its problems are its ``warnings``, and go into the report."""
    report = report or Report()
    root = _known(raw, ROOT_FIELDS, report)
    groups = _parse_events(raw.get("hooks", {}), source, report.at("hooks"))
    options = _parse_options(raw.get("hooksConfig", {}), report.at("hooksConfig"))
    layer = SettingsLayer(
        source=source,
        file=file,
        project=project,
        groups=groups,
        options=options,
        explicit=explicit,
        raw=dict(raw),
        **root,
    )
    if layer.is_project:
        options = _without_outside_journal(options, report.at("hooksConfig"))
    if layer.is_guest and options.untrusted is not None:
        message = "ignored: only user and system settings say what is trusted"
        report.at("hooksConfig", "untrusted").add(message, Severity.WARNING)
        options = replace(options, untrusted=None)
    if layer.is_guest:
        options = _without_content(options, report.at("hooksConfig", "telemetry"))
    shown = report.problems[:_MAX_WARNINGS]
    texts = [(f"{file or 'settings'}: {one}", one.severity) for one in shown]
    if more := len(report.problems) - len(shown):
        rest = f"{file or 'settings'}: {more} or more further problems"
        texts.append((f"{rest}: 'hookline check' shows them", Severity.ERROR))
    return replace(
        layer,
        options=options,
        warnings=tuple(text for text, _ in texts),
        dropped=tuple(text for text, level in texts if level is Severity.ERROR),
    )


_LEVELS = {
    "the top level": ROOT_FIELDS,
    "a group": GROUP_FIELDS,
    "a hook": HOOK_FIELDS,
    "hooksConfig": OPTION_FIELDS,
}
_MAX_UNKNOWN = 20
_MAX_WARNINGS = 100
_SURE = 0.75
"""How like a known key one has to be for a warning while settings are loaded."""


def _known(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> dict[str, Any]:
    """Parse the known keys; warn of others that look like one."""
    unknown = raw.keys() - fields.keys()
    for key in islice((one for one in raw if one in unknown), _MAX_UNKNOWN):
        if hint := key_hint(key, fields, _SURE):
            message = f"unknown key {describe(key)}: {hint}"
            report.at(key).add(message, Severity.WARNING)
    return parse_fields(raw, fields, report)


def key_hint(key: Any, fields: Mapping[str, Field], cutoff: float = 0.6) -> str | None:
    """Where an unknown key belongs, or which one is meant."""
    levels = [level for level, known in _LEVELS.items() if key in known]
    if levels:
        return f"it belongs to {' or '.join(levels)}"
    if fields is ROOT_FIELDS and key in _EVENTS:
        return "events belong into 'hooks'"
    near = nearest(key, fields, cutoff)
    return f"did you mean {near!r}?" if near else None


def _parse_options(raw: Any, report: Report) -> HooksOptions:
    if not isinstance(raw, Mapping):
        report.add(f"ignored: expected an object, got {describe(raw)}")
        return HooksOptions()
    return HooksOptions(**_known(raw, OPTION_FIELDS, report))


def _without_outside_journal(options: HooksOptions, report: Report) -> HooksOptions:
    """A project must not choose a file outside itself to be written to."""
    journal = options.journal
    if not isinstance(journal, str) or not _OUTSIDE.search(journal):
        return options
    problem = "ignored: a project's journal must be inside the project"
    report.at("journal").add(f"{problem}, got {describe(journal)}")
    return replace(options, journal=None)


def _without_content(options: HooksOptions, report: Report) -> HooksOptions:
    """A project must not export what is said elsewhere than to the person."""
    telemetry = options.telemetry
    if not isinstance(telemetry, TelemetryOptions) or not telemetry.content:
        return options
    message = "ignored: only user and system settings have content exported"
    report.at("content").add(message, Severity.WARNING)
    return replace(options, telemetry=replace(telemetry, content=False))


def _parse_events(raw: Any, source: HookSource, report: Report) -> Groups:
    if not isinstance(raw, Mapping):
        report.add(f"ignored: expected an object of events, got {describe(raw)}")
        return {}
    found: Groups = {}
    for name, groups in raw.items():
        event = _EVENTS.get(name)
        if event is None:
            report.at(name).add(f"dropped: {_unknown_event(name)}")
        elif parsed := _parse_list(
            groups, "groups", _parse_group, source, report.at(name)
        ):
            found[event] = parsed
    return found


def _unknown_event(name: Any) -> str:
    if event := _OTHER_AGENTS_EVENTS.get(name):
        return f"unknown event {describe(name)}: did you mean {event.value!r}?"
    if isinstance(name, str) and nearest(name, _EVENTS):
        return str(UnknownEventError(str.__str__(name), tuple(_EVENTS)))
    return f"unknown event {describe(name)}: one of {', '.join(_EVENTS)}"


def _parse_list(
    raw: Any,
    noun: str,
    parse: Callable[[Any, HookSource, Report], _T | None],
    source: HookSource,
    report: Report,
) -> tuple[_T, ...]:
    if not isinstance(raw, list | tuple):
        report.add(f"dropped: expected a list of {noun}, got {describe(raw)}")
        return ()
    parsed = (parse(item, source, report.at(i)) for i, item in enumerate(raw))
    return tuple(item for item in parsed if item is not None)


def _parse_group(raw: Any, source: HookSource, report: Report) -> HookGroup | None:
    if not isinstance(raw, Mapping):
        message = "dropped: expected an object with a list of hooks"
        report.add(f"{message}, got {describe(raw)}")
        return None
    if "hooks" not in raw:
        hint = ': write {"hooks": [...]} around the hook' if "type" in raw else ""
        report.at("hooks").add(f"group dropped: it has no list of hooks{hint}")
        return None
    hooks = _parse_list(raw["hooks"], "hooks", parse_hook, source, report.at("hooks"))
    fields = _known(raw, GROUP_FIELDS, report)
    return HookGroup(hooks=hooks, **fields) if hooks else None


def parse_hook(raw: Any, source: HookSource, report: Report) -> HookConfig | None:
    """Parse one hook; None if it is dropped."""
    if not isinstance(raw, Mapping):
        report.add(f"dropped: expected a hook, got {describe(raw)}")
        return None
    if reason := _reason_to_drop(raw):
        report.add(f"dropped: {reason}")
        return None
    fields = _known(raw, HOOK_FIELDS, report)
    if fields.get("managed") and source is not HookSource.SYSTEM:
        message = "ignored: only system settings manage hooks"
        report.at("managed").add(message, Severity.WARNING)
        fields["managed"] = False
    is_anywhere = source not in {HookSource.PROJECT, HookSource.EXPLICIT}
    if is_anywhere and _is_relative(fields.get("shell")):
        message = "ignored: a relative path would be that of any project"
        report.at("shell").add(f"{message}: name the whole path", Severity.WARNING)
        del fields["shell"]
    if is_anywhere:
        _report_relative_files(fields, report)
    hook = HookConfig(**{"name": "", **fields})
    return replace(hook, name=hook.name or hook.subject or hook.type.value)


def _report_relative_files(fields: dict[str, Any], report: Report) -> None:
    """The hook stays, and fails: a guard must not go away for a wrong path."""
    for key in ("policies", "entities", "schema"):
        given = fields.get(key) or ()
        for name in (given,) if isinstance(given, str) else given:
            if not os.path.isabs(os.path.expanduser(name)):  # noqa: PTH111, PTH117
                problem = f"{describe(name)} is relative, so the hook fails"
                report.at(key).add(f"{problem}: name the whole path")


def _is_relative(shell: str | None) -> bool:
    return shell is not None and "/" in shell and not shell.startswith("/")


def _reason_to_drop(raw: Mapping[str, Any]) -> str | None:
    silent = Report()
    if "type" not in raw:
        return f"the hook has no type (one of {', '.join(_TYPES)})"
    hook_type = HOOK_FIELDS["type"].type.parse(raw["type"], silent)
    if not isinstance(hook_type, HookType):
        near = nearest(raw["type"], _TYPES)
        hint = f"did you mean {near!r}?" if near else f"one of {', '.join(_TYPES)}"
        return f"unknown type {describe(raw['type'])}: {hint}"
    if (key := REQUIRED_BY_TYPE.get(hook_type)) is None:
        return None
    if key not in raw:
        return f"a {hook_type} hook needs a {key}"
    value_type = HOOK_FIELDS[key].type
    if value_type.parse(raw[key], silent) is UNSET:
        return f"{key}: {value_type.mismatch(raw[key])}"
    return None
