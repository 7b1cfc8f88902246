"""Parse a mapping from a file or an extension into one layer of settings.

Never raises, whatever the mapping holds. An entry that cannot be used is dropped with
one warning, a wrong optional field likewise, and the rest works (protocol.md#settings).
"""

from __future__ import annotations

import os
import re
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
    Breaker,
    Exporter,
    FailurePolicy,
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
_LIKELY, _SURE = 0.6, 0.75
"""How like a known key one has to be to be named, and for a warning at loading."""
_NESTED: dict[str, type[Struct]] = {
    "onError": FailurePolicy,
    "breaker": Breaker,
    "telemetry": TelemetryOptions,
}

_SHORT_FORMS: dict[str, dict[str, Struct]] = {
    "onError": {
        # A general "allow" is meant for hooks that break, not for a modified one.
        "allow": FailurePolicy(*(OnFailure.ALLOW,) * 4),
        "block": FailurePolicy(*(OnFailure.BLOCK,) * 5),
    },
    "telemetry": {
        exporter.value: TelemetryOptions(exporter=exporter) for exporter in Exporter
    },
}


class WrittenHook(Struct, frozen=True):
    """One hook of a file: as it is written, where, and as it will run."""

    raw: dict[str, Any]
    path: KeyPath
    config: HookConfig | None
    """None where it is dropped."""


class WrittenGroup(Struct, frozen=True):
    """One group of a file: as it is written, and where."""

    event: HookEventName
    raw: dict[str, Any]
    path: KeyPath
    hooks: list[WrittenHook]


def parse_layer(
    raw: dict[str, Any],
    source: HookSource,
    file: str | None = None,
    *,
    project: str | None = None,
    explicit: bool = False,
) -> SettingsLayer:
    """Parse one layer; its problems are its ``warnings``."""
    layer = SettingsLayer(
        source=source, file=file, project=project, explicit=explicit, raw=raw
    )
    return LayerParser(layer).parse()


class LayerParser:
    """One walk over the mapping of a layer, which has nothing but that yet.

    Loading warns of an unknown key where it is sure which one is meant; ``thorough``:
    each is an error beside the ``problems``, in entries that are dropped too.
    """

    def __init__(self, layer: SettingsLayer, *, thorough: bool = False) -> None:
        self.problems: list[Problem] = []
        self.unknown_keys: list[Problem] = []
        """All of them, if ``thorough``."""
        self.groups: list[WrittenGroup] = []
        """Those of known events, also where nothing in them can run."""
        self._layer, self._is_thorough = layer, thorough

    def parse(self) -> SettingsLayer:
        """The layer with what its mapping says."""
        raw, problems = self._layer.raw, self.problems
        # Hooks are dropped one by one, and options have short forms.
        root = self._converted({**raw, "hooks": {}, "hooksConfig": {}}, SettingsFile)
        raw_options = raw.get("hooksConfig", {})
        options = self._converted(raw_options, HooksOptions, ("hooksConfig",))
        groups_by_event = self._groups_by_event(raw.get("hooks", {}))
        options = self._permitted(options or HooksOptions())
        label = self._layer.file or "settings"
        lines = [(f"{label}: {it}", it.severity) for it in problems[:_MAX_WARNINGS]]
        if more := len(problems) - len(lines):
            hint = "further problems: 'hookline check' shows them"
            lines.append((f"{label}: {more} or more {hint}", Severity.ERROR))
        return replace(
            self._layer,
            enable_hooks=root is None or root.enable_hooks,
            groups=groups_by_event,
            options=options,
            warnings=tuple(line for line, _ in lines),
            dropped=tuple(line for line, level in lines if level is Severity.ERROR),
        )

    def _report(
        self, path: KeyPath, message: str, severity: Severity = Severity.ERROR
    ) -> None:
        self.problems.append(Problem(path, message, severity))

    def _converted(self, raw: object, to: type[_S], path: KeyPath = ()) -> _S | None:
        """Convert an object; wrong values are left out, misspelt keys told."""
        self._report_unknown_keys(raw, to, path)
        mistakes: list[Mistake] = []
        value = convert(in_full(raw), to, mistakes, path)
        for mistake in mistakes[: max(0, _MAX_PROBLEMS - len(self.problems))]:
            self._report(mistake.path, f"ignored: {mistake.message}")
        return value

    def _report_unknown_keys(
        self, raw: object, level: type[Struct], path: KeyPath
    ) -> None:
        if not isinstance(raw, dict):
            return
        keys = keys_of(level)
        for key, struct in _NESTED.items():
            if key in raw and key in keys:
                self._report_unknown_keys(raw[key], struct, (*path, key))
        unknown = [key for key in raw if key not in keys]
        if self._is_thorough:
            for key in unknown:
                advice = key_hint(key, level, _LIKELY) or f"one of {', '.join(keys)}"
                message = f"unknown key {describe(key)}: {advice}"
                self.unknown_keys.append(Problem((*path, key), message))
            return
        for key in unknown[:_MAX_UNKNOWN]:
            if hint := key_hint(key, level, _SURE):
                message = f"unknown key {describe(key)}: {hint}"
                self._report((*path, key), message, Severity.WARNING)

    def _permitted(self, options: HooksOptions) -> HooksOptions:
        """The options without those that the layer may not set."""
        layer, at = self._layer, ("hooksConfig",)
        journal, telemetry = options.journal, options.telemetry
        is_text = isinstance(journal, str)
        if layer.is_project and is_text and re.search(_OUTSIDE, str(journal)):
            # It must not choose a file outside itself to be written to.
            message = "ignored: a project's journal must be inside the project"
            self._report((*at, "journal"), f"{message}, got {describe(journal)}")
            options = replace(options, journal=None)
        if not layer.is_guest:
            return options
        if options.untrusted is not None:
            message = "ignored: only user and system settings say what is trusted"
            self._report((*at, "untrusted"), message, Severity.WARNING)
            options = replace(options, untrusted=None)
        if isinstance(telemetry, TelemetryOptions) and telemetry.content:
            # It would export what is said elsewhere than to the person.
            message = "ignored: only user and system settings have content exported"
            self._report((*at, "telemetry", "content"), message, Severity.WARNING)
            options = replace(options, telemetry=replace(telemetry, content=False))
        return options

    def _groups_by_event(self, raw: Any) -> Groups:
        if not isinstance(raw, dict):
            message = f"ignored: expected an object of events, got {describe(raw)}"
            self._report(("hooks",), message)
            return {}
        groups_by_event: Groups = {}
        for name, raw_groups in raw.items():
            event, at = _EVENTS.get(name), ("hooks", name)
            if event is None:
                self._report(at, f"dropped: {_unknown_event(name)}")
            elif not isinstance(raw_groups, list):
                message = f"expected a list of groups, got {describe(raw_groups)}"
                self._report(at, f"dropped: {message}")
            else:
                parsed = [
                    self._group(event, raw_group, (*at, index))
                    for index, raw_group in enumerate(raw_groups)
                ]
                if groups := tuple(group for group in parsed if group is not None):
                    groups_by_event[event] = groups
        return groups_by_event

    def _group(self, event: HookEventName, raw: Any, path: KeyPath) -> HookGroup | None:
        if not isinstance(raw, dict):
            message = "dropped: expected an object with a list of hooks"
            self._report(path, f"{message}, got {describe(raw)}")
            return None
        written = WrittenGroup(event, raw, path, [])
        self.groups.append(written)
        raw_hooks = raw.get("hooks")
        if not isinstance(raw_hooks, list):
            message = f"dropped: expected a list of hooks, got {describe(raw_hooks)}"
            if "hooks" not in raw:
                message = "group dropped: it has no list of hooks"
                if "type" in raw:
                    message += ': write {"hooks": [...]} around the hook'
            self._report((*path, "hooks"), message)
            if self._is_thorough:
                self._report_unknown_keys(raw, HookGroup, path)
            return None
        for index, raw_hook in enumerate(raw_hooks):
            at = (*path, "hooks", index)
            config = self._hook(raw_hook, at)
            if isinstance(raw_hook, dict):
                written.hooks.append(WrittenHook(raw_hook, at, config))
        fields = self._converted({**raw, "hooks": []}, HookGroup, path)
        configs = (hook.config for hook in written.hooks)
        hooks = tuple(config for config in configs if config is not None)
        return replace(fields, hooks=hooks) if hooks and fields else None

    def _hook(self, raw: Any, path: KeyPath) -> HookConfig | None:
        if not isinstance(raw, dict):
            self._report(path, f"dropped: expected a hook, got {describe(raw)}")
            return None
        before = len(self.problems)
        hook = self._converted(raw, HookConfig, path)
        needed = None if hook is None else REQUIRED_BY_TYPE.get(hook.type)
        if hook is None or (needed is not None and not getattr(hook, needed)):
            reason = _reason_to_drop(raw, needed, self.problems[before:])
            del self.problems[before:]
            self._report(path, f"dropped: {reason}")
            return None

        source, changes = self._layer.source, dict[str, Any]()
        if hook.managed and source is not HookSource.SYSTEM:
            message = "ignored: only system settings manage hooks"
            self._report((*path, "managed"), message, Severity.WARNING)
            changes["managed"] = False
        if source not in {HookSource.PROJECT, HookSource.EXPLICIT}:
            # A relative path would be that of any project.
            if hook.shell and "/" in hook.shell and not hook.shell.startswith("/"):
                message = "ignored: a relative path would be that of any project"
                message = f"{message}: name the whole path"
                self._report((*path, "shell"), message, Severity.WARNING)
                changes["shell"] = None
            # Such a hook stays, and fails: a guard must not go away for a wrong path.
            paths = [("policies", name) for name in hook.policies]
            paths += [("entities", hook.entities or ""), ("schema", hook.schema or "")]
            for key, name in paths:
                if name and not os.path.isabs(os.path.expanduser(name)):  # noqa: PTH111, PTH117
                    message = f"{describe(name)} is relative, so the hook fails"
                    self._report((*path, key), f"{message}: name the whole path")
        if hook.then is not None:
            try:
                changes["then"] = as_plain(hook.then)  # TOML has dates
            except EncodingError:
                self._report((*path, "then"), "ignored: it is nested too deeply")
                changes["then"] = None
        if not hook.name:
            changes["name"] = hook.subject or hook.type.value
        return replace(hook, **changes) if changes else hook


def key_hint(key: str, level: type[Struct], cutoff: float) -> str | None:
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
    for key, short_forms in _SHORT_FORMS.items():
        value = raw.get(key)
        if isinstance(value, str) and value in short_forms:
            full[key] = short_forms[value]
    if isinstance(raw.get("policies"), str):
        full["policies"] = [raw["policies"]]
    if raw.get("breaker") is True:
        full["breaker"] = Breaker()
    for key in ("env", "headers"):
        if isinstance(raw.get(key), dict):
            items = raw[key].items()
            full[key] = {n: str(v) if is_number(v) else v for n, v in items}
    return full


def _unknown_event(name: str) -> str:
    if event := _OTHER_AGENTS_EVENTS.get(name):
        return f"unknown event {describe(name)}: did you mean {event.value!r}?"
    if nearest(name, _EVENTS):
        return str(UnknownEventError(name, tuple(_EVENTS)))
    return f"unknown event {describe(name)}: one of {', '.join(_EVENTS)}"


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
