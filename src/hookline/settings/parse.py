"""Parse a mapping from a file or an extension into one layer of settings.

Never raises, whatever the mapping holds. An entry that cannot be used is dropped with
one warning, a wrong optional field likewise, and the rest works (protocol.md#settings).
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import EncodingError, UnknownEventError, nearest
from hookline.protocol.convert import KeyPath, Mistake, convert, keys_of
from hookline.protocol.events import HookEventName
from hookline.protocol.values import as_plain, describe

from .model import (
    LEVELS,
    REQUIRED_BY_TYPE,
    Exporter,
    Groups,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    OnFailure,
    Problem,
    SettingsFile,
    SettingsLayer,
    Severity,
    TelemetryOptions,
    is_number,
    path_text,
)

_S = TypeVar("_S", bound=Struct)
_EVENTS: dict[str, HookEventName] = {event.value: event for event in HookEventName}
_OTHER_AGENTS_EVENTS = {
    "PreToolUse": HookEventName.BeforeTool,
    "PostToolUse": HookEventName.AfterTool,
    "UserPromptSubmit": HookEventName.BeforeAgent,
    "Stop": HookEventName.AfterAgent,
    "PreCompact": HookEventName.PreCompress,
}
_OUTSIDE = r"^([~/\\]|\w:)|(^|[/\\])\.\.($|[/\\])"
_MAX_PROBLEMS = 10_000
_MAX_WARNINGS = 100
_MAX_UNKNOWN = 20
_SURE = 0.75
"""How like a known key one has to be for a warning while settings are loaded."""


def parse_layer(
    raw: dict[str, Any],
    source: HookSource,
    file: str | None = None,
    *,
    project: str | None = None,
    explicit: bool = False,
    problems: list[Problem] | None = None,
) -> SettingsLayer:
    """Parse one layer; its problems are its ``warnings``, and go into the list."""
    problems = [] if problems is None else problems
    at: KeyPath = ("hooksConfig",)
    # Hooks are dropped one by one, and options have short forms.
    root = _converted(
        {**raw, "hooks": {}, "hooksConfig": {}}, SettingsFile, problems, ()
    )
    raw_options = in_full(raw.get("hooksConfig", {}))
    options = _converted(raw_options, HooksOptions, problems, at) or HooksOptions()
    layer = SettingsLayer(
        source=source,
        file=file,
        project=project,
        enable_hooks=root is None or root.enable_hooks,
        groups=_groups(raw.get("hooks", {}), source, problems),
        explicit=explicit,
        raw=raw,
    )
    options = _permitted(layer, options, problems)
    lines = [
        (f"{file or 'settings'}: {it}", it.severity) for it in problems[:_MAX_WARNINGS]
    ]
    if more := len(problems) - len(lines):
        hint = "further problems: 'hookline check' shows them"
        lines.append((f"{file or 'settings'}: {more} or more {hint}", Severity.ERROR))
    return replace(
        layer,
        options=options,
        warnings=tuple(line for line, _ in lines),
        dropped=tuple(line for line, level in lines if level is Severity.ERROR),
    )


def _converted(
    raw: object, to: type[_S], problems: list[Problem], path: KeyPath
) -> _S | None:
    """Convert an object; wrong values are left out, misspelt keys told."""
    keys = keys_of(to)
    unknown = (key for key in raw if key not in keys) if isinstance(raw, dict) else ()
    for key in islice(unknown, _MAX_UNKNOWN):
        if hint := key_hint(key, to, _SURE):
            message = f"unknown key {describe(key)}: {hint}"
            problems.append(Problem((*path, key), message, Severity.WARNING))
    mistakes: list[Mistake] = []
    value = convert(raw, to, mistakes, path)
    problems.extend(
        Problem(mistake.path, f"ignored: {mistake.message}")
        for mistake in mistakes[: max(0, _MAX_PROBLEMS - len(problems))]
    )
    return value


def key_hint(key: str, level: type[Struct], cutoff: float = 0.6) -> str | None:
    """Where an unknown key belongs, or which one is meant."""
    levels = [name for name, struct in LEVELS.items() if key in keys_of(struct)]
    if levels:
        return f"it belongs to {' or '.join(levels)}"
    if level is SettingsFile and key in _EVENTS:
        return "events belong into 'hooks'"
    near = nearest(key, keys_of(level), cutoff)
    return f"did you mean {near!r}?" if near else None


def in_full(raw: Any) -> Any:
    """A hook or options, with the values that have a short form in their long one."""
    if not isinstance(raw, dict):
        return raw
    full = dict(raw)
    verdict = raw.get("onError")
    if isinstance(verdict, str) and verdict in list(OnFailure):
        full["onError"] = dict.fromkeys(
            ("spawn", "crash", "timeout", "output"), verdict
        )
        # A general "allow" is meant for hooks that break, not for a modified one.
        if verdict == OnFailure.BLOCK:
            full["onError"]["changed"] = verdict
    if isinstance(raw.get("policies"), str):
        full["policies"] = [raw["policies"]]
    if raw.get("breaker") is True:
        full["breaker"] = {}
    if isinstance(raw.get("telemetry"), str) and raw["telemetry"] in list(Exporter):
        full["telemetry"] = {"exporter": raw["telemetry"]}
    for key in ("env", "headers"):
        if isinstance(raw.get(key), dict):
            items = raw[key].items()
            full[key] = {n: str(v) if is_number(v) else v for n, v in items}
    return full


def _permitted(
    layer: SettingsLayer, options: HooksOptions, problems: list[Problem]
) -> HooksOptions:
    """The options without those that the layer may not set."""
    at = ("hooksConfig",)
    journal = options.journal
    if layer.is_project and isinstance(journal, str) and re.search(_OUTSIDE, journal):
        # It must not choose a file outside itself to be written to.
        message = "ignored: a project's journal must be inside the project"
        message = f"{message}, got {describe(journal)}"
        problems.append(Problem((*at, "journal"), message))
        options = replace(options, journal=None)
    if layer.is_guest and options.untrusted is not None:
        message = "ignored: only user and system settings say what is trusted"
        problems.append(Problem((*at, "untrusted"), message, Severity.WARNING))
        options = replace(options, untrusted=None)
    telemetry = options.telemetry
    if layer.is_guest and isinstance(telemetry, TelemetryOptions) and telemetry.content:
        # It would export what is said elsewhere than to the person.
        message = "ignored: only user and system settings have content exported"
        path = (*at, "telemetry", "content")
        problems.append(Problem(path, message, Severity.WARNING))
        options = replace(options, telemetry=replace(telemetry, content=False))
    return options


def _groups(raw: Any, source: HookSource, problems: list[Problem]) -> Groups:
    def drop(path: KeyPath, reason: str) -> None:
        problems.append(Problem(path, f"dropped: {reason}"))

    if not isinstance(raw, dict):
        message = f"ignored: expected an object of events, got {describe(raw)}"
        problems.append(Problem(("hooks",), message))
        return {}
    groups_by_event: Groups = {}
    for name, raw_groups in raw.items():
        event, at = _EVENTS.get(name), ("hooks", name)
        if event is None:
            drop(at, _unknown_event(name))
            continue
        if not isinstance(raw_groups, list):
            drop(at, f"expected a list of groups, got {describe(raw_groups)}")
            continue
        groups = []
        for index, group in enumerate(raw_groups):
            path: KeyPath = (*at, index)
            if not isinstance(group, dict):
                expected = "expected an object with a list of hooks"
                drop(path, f"{expected}, got {describe(group)}")
            elif "hooks" not in group:
                hint = ': write {"hooks": [...]} around the hook'
                message = "group dropped: it has no list of hooks"
                message += hint if "type" in group else ""
                problems.append(Problem((*path, "hooks"), message))
            elif not isinstance(group["hooks"], list):
                hooks_text = describe(group["hooks"])
                drop((*path, "hooks"), f"expected a list of hooks, got {hooks_text}")
            else:
                parsed = [
                    parse_hook(hook, source, problems, (*path, "hooks", number))
                    for number, hook in enumerate(group["hooks"])
                ]
                hooks = tuple(hook for hook in parsed if hook is not None)
                fields = _converted({**group, "hooks": []}, HookGroup, problems, path)
                if hooks and fields:
                    groups.append(replace(fields, hooks=hooks))
        if groups:
            groups_by_event[event] = tuple(groups)
    return groups_by_event


def _unknown_event(name: str) -> str:
    if event := _OTHER_AGENTS_EVENTS.get(name):
        return f"unknown event {describe(name)}: did you mean {event.value!r}?"
    if nearest(name, _EVENTS):
        return str(UnknownEventError(name, tuple(_EVENTS)))
    return f"unknown event {describe(name)}: one of {', '.join(_EVENTS)}"


def parse_hook(
    raw: Any, source: HookSource, problems: list[Problem], path: KeyPath = ()
) -> HookConfig | None:
    """Parse one hook; None if it is dropped."""
    if not isinstance(raw, dict):
        message = f"dropped: expected a hook, got {describe(raw)}"
        problems.append(Problem(path, message))
        return None
    before = len(problems)
    hook = _converted(in_full(raw), HookConfig, problems, path)
    needed = None if hook is None else REQUIRED_BY_TYPE.get(hook.type)
    if hook is None or (needed is not None and not getattr(hook, needed)):
        message = f"dropped: {_reason_to_drop(raw, needed, problems[before:])}"
        problems[before:] = [Problem(path, message)]
        return None

    changes: dict[str, Any] = {}
    if hook.managed and source is not HookSource.SYSTEM:
        message = "ignored: only system settings manage hooks"
        problems.append(Problem((*path, "managed"), message, Severity.WARNING))
        changes["managed"] = False
    if source not in {HookSource.PROJECT, HookSource.EXPLICIT}:
        # A relative path would be that of any project.
        if hook.shell and "/" in hook.shell and not hook.shell.startswith("/"):
            message = "ignored: a relative path would be that of any project"
            problem = f"{message}: name the whole path"
            problems.append(Problem((*path, "shell"), problem, Severity.WARNING))
            changes["shell"] = None
        # Such a hook stays, and fails: a guard must not go away for a wrong path.
        paths = [("policies", name) for name in hook.policies]
        paths += [("entities", hook.entities or ""), ("schema", hook.schema or "")]
        for key, name in paths:
            if name and not os.path.isabs(os.path.expanduser(name)):  # noqa: PTH111, PTH117
                message = f"{describe(name)} is relative, so the hook fails"
                problems.append(
                    Problem((*path, key), f"{message}: name the whole path")
                )
    if hook.then is not None:
        try:
            changes["then"] = as_plain(hook.then)  # TOML has dates
        except EncodingError:
            message = "ignored: it is nested too deeply"
            problems.append(Problem((*path, "then"), message))
            changes["then"] = None
    if not hook.name:
        changes["name"] = hook.subject or hook.type.value
    return replace(hook, **changes) if changes else hook


def _reason_to_drop(
    raw: dict[str, Any], needed: str | None, problems: list[Problem]
) -> str:
    types = [hook_type.value for hook_type in HookType]
    if "type" not in raw:
        return f"the hook has no type (one of {', '.join(types)})"
    if needed is None:
        near = nearest(raw["type"], types)
        hint = f"did you mean {near!r}?" if near else f"one of {', '.join(types)}"
        return f"unknown type {describe(raw['type'])}: {hint}"
    for problem in problems:
        if needed in problem.path:
            place = path_text(problem.path[problem.path.index(needed) :])
            return f"{place}: {problem.message.removeprefix('ignored: ')}"
    return f"a {raw['type']} hook needs a {needed}"
