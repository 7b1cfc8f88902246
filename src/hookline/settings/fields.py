"""The one table of settings keys, what each may hold, and its JSON schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias, TypeGuard

from msgspec import UNSET, Struct

from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.results import FailureCause

from .model import (
    Breaker,
    Dialect,
    EnvPolicy,
    Expect,
    FailurePolicy,
    HookMode,
    HookType,
    OnFailure,
    ToolSelection,
)

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_LONGEST_QUOTE = 60


class Severity(StrEnum):
    """Whether a problem is surely one."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Struct, frozen=True):
    """One thing that is wrong."""

    path: Path
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{where(self.path)}: {self.message}" if self.path else self.message


class Report:
    """Collects problems at one place of the settings and below it."""

    def __init__(self, problems: list[Problem] | None = None, path: Path = ()) -> None:
        self.problems: list[Problem] = [] if problems is None else problems
        self.path = path

    def at(self, *steps: str | int) -> Report:
        """A report into the same list, further down."""
        return Report(self.problems, (*self.path, *steps))

    def say(self, message: str, severity: Severity = Severity.ERROR) -> None:
        """Note a problem here."""
        self.problems.append(Problem(self.path, message, severity))


def where(path: Path) -> str:
    """Spell a path as people write it: ``hooks.BeforeTool[0].hooks[1]``."""
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path
    ]
    return "".join(steps).removeprefix(".")


def quote(value: Any) -> str:
    """Show a wrong value, or only its kind where it would not fit a line."""
    if isinstance(value, str):
        text = repr(str.__str__(value))
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python refuses to print whole numbers of more than 4300 digits.
        return str(int(value)) if abs(value) < 10**20 else "a huge number"
    if isinstance(value, float):
        return repr(float(value))
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"


def _key(step: Any) -> str:
    # A key of a mapping that never was JSON may be anything hashable.
    plain = isinstance(step, str) and step.isprintable() and len(step) <= _LONGEST_QUOTE
    return str.__str__(step) if plain else quote(step)


Reader: TypeAlias = Callable[[Any, Report], Any]

MAX_NUMBER = 2**53
"""Larger numbers are taken for mistakes: clocks and selectors overflow on them."""

_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_FUNCTION = f"^{_DOTTED}:{_DOTTED}$"


class Kind(Struct, frozen=True):
    """One kind of value."""

    expected: str
    """Completes the sentence "expected ..."."""
    read: Reader
    schema: dict[str, Any]
    members: dict[str, Any] = {}
    """The fields of the object that it may be."""


class Field(Struct, frozen=True):
    """One key that settings may hold."""

    attribute: str
    """Its name in the typed value; empty where it is accepted and ignored."""
    kind: Kind
    about: str
    """For people: what it does."""


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a string can be handed to a process: some text, no NUL, no surrogate."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a number of sensible size; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else True


def read_fields(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> dict[str, Any]:
    """Read the known keys of an object; wrong values are reported and left out."""
    found: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in raw:
            continue
        value = field.kind.read(raw[key], report.at(key))
        if value is UNSET:
            expected, got = field.kind.expected, quote(raw[key])
            report.at(key).say(f"ignored: expected {expected}, got {got}")
        elif field.attribute:
            found[field.attribute] = value
    return found


def choice(options: type[StrEnum]) -> Kind:
    """One of a closed set of words."""
    words: dict[Any, StrEnum] = {option.value: option for option in options}

    def read(value: Any, _: Report) -> Any:
        return words.get(value, UNSET) if isinstance(value, str) else UNSET

    expected = " or ".join(repr(word) for word in words)
    if len(words) > 2:
        expected = f"one of {', '.join(repr(word) for word in words)}"
    return Kind(expected, read, {"enum": list(words)})


def whole_number(minimum: int) -> Kind:
    """An integer of at least this size; 5.0 is one, as in JSON Schema."""

    def read(value: Any, _: Report) -> Any:
        if not is_number(value) or not minimum <= value <= MAX_NUMBER:
            return UNSET
        return int(value) if value == int(value) else UNSET

    schema = {"type": "integer", "minimum": minimum, "maximum": MAX_NUMBER}
    return Kind(f"a whole number of at least {minimum}", read, schema)


def _read_text(value: Any, _: Report) -> Any:
    return str.__str__(value) if is_text(value) else UNSET


def _read_boolean(value: Any, _: Report) -> Any:
    return value if isinstance(value, bool) else UNSET


def _read_milliseconds(value: Any, _: Report) -> Any:
    return value if is_number(value) and 0 < value <= MAX_NUMBER else UNSET


def _read_any_text(value: Any, _: Report) -> Any:
    return str.__str__(value) if isinstance(value, str) else UNSET


def _read_function(value: Any, _: Report) -> Any:
    fits = isinstance(value, str) and re.fullmatch(_FUNCTION, value)
    return str.__str__(value) if fits and is_text(value) else UNSET


def _read_texts(value: Any, report: Report) -> Any:
    if not isinstance(value, list | tuple):
        return UNSET
    return tuple(_texts_in(value, report))


def _texts_in(values: Iterable[Any], report: Report) -> Iterable[str]:
    for index, value in enumerate(values):
        if is_text(value):
            yield str.__str__(value)
        else:
            report.at(index).say(f"ignored: expected some text, got {quote(value)}")


def _read_names(value: Any, report: Report) -> Any:
    names = _read_texts(value, report)
    return names if names is UNSET else frozenset(names)


def _read_environment(value: Any, report: Report) -> Any:
    if not isinstance(value, dict):
        return UNSET
    found: dict[str, str] = {}
    for name, item in value.items():
        text = _environment_text(item)
        if not is_text(name) or "=" in name:
            report.at(name).say("ignored: this is no name for an environment variable")
        elif text is None:
            got = quote(item)
            report.at(name).say(f"ignored: expected text or a number, got {got}")
        else:
            found[str.__str__(name)] = text
    return found


def _environment_text(value: Any) -> str | None:
    if isinstance(value, str):
        return str.__str__(value) if value == "" or is_text(value + ".") else None
    if is_number(value) and abs(value) <= MAX_NUMBER:
        return str(value)
    return None


def _read_switch_or_path(value: Any, report: Report) -> Any:
    return value if isinstance(value, bool) else _read_text(value, report)


def _read_anything(_: Any, __: Report) -> Any:
    return None


_TEXT_SCHEMA = {"type": "string", "pattern": r"\S"}
_TEXTS_SCHEMA = {"type": "array", "items": _TEXT_SCHEMA}
_ENV_SCHEMA = {
    "type": "object",
    "propertyNames": {"pattern": "^[^=]+$"},
    "additionalProperties": {"type": ["string", "number"]},
}
_MILLISECONDS_SCHEMA = {
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": MAX_NUMBER,
}

TEXT = Kind("some text", _read_text, _TEXT_SCHEMA)
ANY_TEXT = Kind("a string", _read_any_text, {"type": "string"})
BOOLEAN = Kind("true or false", _read_boolean, {"type": "boolean"})
MILLISECONDS = Kind(
    "a number of milliseconds above 0", _read_milliseconds, _MILLISECONDS_SCHEMA
)
FUNCTION = Kind(
    "'package.module:name'",
    _read_function,
    {"type": "string", "pattern": _FUNCTION},
)
TEXTS = Kind("a list of strings", _read_texts, _TEXTS_SCHEMA)
NAMES = Kind("a list of names", _read_names, _TEXTS_SCHEMA)
ENVIRONMENT = Kind("an object of names and values", _read_environment, _ENV_SCHEMA)
SWITCH_OR_PATH = Kind(
    "true, false or the path of a file",
    _read_switch_or_path,
    {"anyOf": [{"type": "boolean"}, _TEXT_SCHEMA]},
)
ANYTHING = Kind("anything", _read_anything, {})


_VERDICT = choice(OnFailure)

CAUSE_FIELDS = {
    cause.value: Field(cause.value, _VERDICT, about)
    for cause, about in {
        FailureCause.SPAWN: "It could not be started (also exit 126 and 127).",
        FailureCause.CRASH: "It ended in another way than by exit 0 or 2.",
        FailureCause.TIMEOUT: "It did not end in time.",
        FailureCause.OUTPUT: "Its output was cut off, or no JSON though asked for.",
        FailureCause.CHANGED: "A trusted project hook is not what was trusted.",
    }.items()
}

BREAKER_FIELDS = {
    "timeouts": Field("timeouts", whole_number(1), "Timeouts in a row that open it."),
    "cooldownMs": Field("cooldown_ms", MILLISECONDS, "How long the hook is skipped."),
}


def _read_policy(value: Any, report: Report) -> Any:
    if isinstance(value, dict):
        return FailurePolicy(**read_fields(value, CAUSE_FIELDS, report))
    verdict = _VERDICT.read(value, report)
    if verdict is UNSET:
        return UNSET
    # A general "allow" speaks of hooks that break, not of one that was tampered with.
    changed = verdict if verdict is OnFailure.BLOCK else None
    return FailurePolicy(verdict, verdict, verdict, verdict, changed)


def _read_breaker(value: Any, report: Report) -> Any:
    if isinstance(value, bool):
        return Breaker() if value else False
    if not isinstance(value, dict):
        return UNSET
    return Breaker(**read_fields(value, BREAKER_FIELDS, report))


def object_schema(fields: dict[str, Field]) -> dict[str, Any]:
    """Describe an object with these keys and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {**field.kind.schema, "description": field.about}
            for key, field in fields.items()
        },
    }


FAILURE_POLICY = Kind(
    "'allow', 'block' or an object of causes",
    _read_policy,
    {"anyOf": [_VERDICT.schema, object_schema(CAUSE_FIELDS)]},
    CAUSE_FIELDS,
)
BREAKER = Kind(
    "false or an object with timeouts and cooldownMs",
    _read_breaker,
    {"anyOf": [{"type": "boolean"}, object_schema(BREAKER_FIELDS)]},
    BREAKER_FIELDS,
)

HOOK_FIELDS = {
    "type": Field("type", choice(HookType), "What kind of thing the hook runs."),
    "command": Field("command", TEXT, "What a command or worker hook runs in a shell."),
    "function": Field(
        "function", FUNCTION, "What a python hook calls: 'package.module:name'."
    ),
    "name": Field("name", TEXT, "What it is called; the command where this is absent."),
    "description": Field("description", ANY_TEXT, "What it is for."),
    "timeout": Field("timeout_ms", MILLISECONDS, "In milliseconds; 60000 by default."),
    "env": Field("env", ENVIRONMENT, "Environment variables for this hook."),
    "shell": Field("shell", TEXT, "The shell for the command; bash, else sh."),
    "onError": Field(
        "on_error", FAILURE_POLICY, "What its failure means: 'allow' by default."
    ),
    "expect": Field("expect", choice(Expect), "'json' makes any other text a failure."),
    "envPolicy": Field(
        "env_policy", choice(EnvPolicy), "'clean' hides the host's environment from it."
    ),
    "mode": Field("mode", choice(HookMode), "'observe' records its verdict only."),
    "dialect": Field("dialect", choice(Dialect), "Whose spelling the hook expects."),
    "trustFiles": Field("trust_files", TEXTS, "Further files its trust depends on."),
    "pool": Field("pool", whole_number(1), "How many worker processes are kept warm."),
    "managed": Field(
        "managed", BOOLEAN, "In system settings: nothing turns this hook off."
    ),
}

GROUP_FIELDS = {
    "matcher": Field(
        "matcher", ANY_TEXT, "Which tools or causes; everything if absent."
    ),
    "sequential": Field("sequential", BOOLEAN, "Run the hooks one after the other."),
    "hooks": Field("", ANYTHING, "The hooks of this group."),
}

OPTION_FIELDS = {
    "disabled": Field("disabled", NAMES, "The names of hooks that shall not run."),
    "toolSelection": Field(
        "tool_selection", choice(ToolSelection), "How hooks' tool lists are combined."
    ),
    "onError": Field("on_error", FAILURE_POLICY, "What a hook's failure means."),
    "envPolicy": Field("env_policy", choice(EnvPolicy), "What hooks see of the host."),
    "journal": Field(
        "journal", SWITCH_OR_PATH, "Record what happens, and in which file."
    ),
    "maxOutputBytes": Field(
        "max_output_bytes", whole_number(1), "Output kept per stream; 8 MiB by default."
    ),
    "maxProcesses": Field(
        "max_processes", whole_number(1), "Hooks at a time; 4 per core by default."
    ),
    "breaker": Field(
        "breaker", BREAKER, "When a hook that keeps timing out is skipped."
    ),
    "maxDepth": Field(
        "max_depth", whole_number(1), "Hooks within hooks; 4 by default."
    ),
    "workerIdleMs": Field(
        "worker_idle_ms", MILLISECONDS, "When an idle worker is ended."
    ),
    "onAsk": Field(
        "on_ask", _VERDICT, "The answer to 'ask' where nobody can be asked."
    ),
    "notifications": Field("", ANYTHING, "Accepted for compatibility, and ignored."),
}

ROOT_FIELDS = {
    "$schema": Field("", ANYTHING, "Where an editor finds the schema; ignored."),
    "enableHooks": Field("enable_hooks", BOOLEAN, "False switches hooks off."),
    "hooks": Field("", ANYTHING, "For each event, the groups of hooks that run."),
    "hooksConfig": Field("", ANYTHING, "Options for hooks."),
}


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> dict[str, Any]:
    """Describe everything that a settings file may hold."""
    schema = object_schema(ROOT_FIELDS)
    properties = schema["properties"]
    properties["$schema"]["type"] = "string"
    properties["hooks"].update(
        type="object",
        additionalProperties=False,
        properties={event.value: _event_schema(event) for event in HookEventName},
    )
    properties["hooksConfig"] |= object_schema(OPTION_FIELDS)
    return {
        "$schema": DRAFT,
        "title": "Hookline settings",
        **schema,
        "$defs": {"group": _group_schema(), "hook": _hook_schema()},
    }


def _event_schema(event: HookEventName) -> dict[str, Any]:
    traits = TRAITS[event]
    about = {
        Matching.REGEX: f"The matcher is searched in {traits.matched_field}.",
        Matching.EXACT: f"The matcher is compared with {traits.matched_field}.",
        Matching.NOTHING: "It takes no matcher.",
    }[traits.matching]
    return {"description": about, "type": "array", "items": {"$ref": "#/$defs/group"}}


def _group_schema() -> dict[str, Any]:
    schema = object_schema(GROUP_FIELDS)
    schema["properties"]["hooks"].update(type="array", items={"$ref": "#/$defs/hook"})
    return {**schema, "required": ["hooks"]}


def _hook_schema() -> dict[str, Any]:
    return {
        **object_schema(HOOK_FIELDS),
        "required": ["type"],
        "allOf": [
            _needs([HookType.COMMAND, HookType.WORKER], "command"),
            _needs([HookType.PYTHON], "function"),
        ],
    }


def _needs(types: list[HookType], key: str) -> dict[str, Any]:
    names = [kind.value for kind in types]
    condition = {"properties": {"type": {"enum": names}}, "required": ["type"]}
    return {"if": condition, "then": {"required": [key]}}
