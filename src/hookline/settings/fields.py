"""The table of settings keys: what each accepts, how it is parsed, its JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

from msgspec import UNSET, Struct
from msgspec.structs import replace

from hookline.errors import EncodingError
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.results import FailureCause
from hookline.protocol.values import as_plain, describe

from .model import (
    Breaker,
    Dialect,
    EnvPolicy,
    Expect,
    Exporter,
    FailurePolicy,
    HookMode,
    HookType,
    OnFailure,
    TelemetryOptions,
    ToolSelection,
    Untrusted,
)

KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_MAX_PROBLEMS = 10_000
MAX_NUMBER = 2**53
"""Larger numbers are rejected: clocks and selectors overflow on them."""


class Severity(StrEnum):
    """An error does not work as written; a warning has no effect; a hint is advice."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Problem(Struct, frozen=True):
    """One mistake in settings."""

    path: KeyPath
    message: str
    severity: Severity = Severity.ERROR
    of_machine: bool = False
    """Whether the settings are right, and something is not installed."""

    def __str__(self) -> str:
        return f"{path_text(self.path)}: {self.message}" if self.path else self.message


class Report(Struct):
    """Collects the problems at one path and below it."""

    problems: list[Problem] = []
    path: KeyPath = ()

    def at(self, *steps: str | int) -> Report:
        """A report into the same list, further down."""
        return Report(self.problems, (*self.path, *steps))

    def add(
        self,
        message: str,
        severity: Severity = Severity.ERROR,
        *,
        of_machine: bool = False,
    ) -> None:
        """Add a problem at this path, unless there are thousands of others."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(Problem(self.path, message, severity, of_machine))


def path_text(path: KeyPath) -> str:
    """Format a path as ``hooks.BeforeTool[0].hooks[1]``."""
    steps = [
        f"[{step}]" if isinstance(step, int) else f".{_key_text(step)}" for step in path
    ]
    return "".join(steps).removeprefix(".")


def _key_text(step: Any) -> str:
    # A key of a mapping that never was JSON can be anything hashable.
    short = isinstance(step, str) and step.isprintable() and len(step) <= 80
    return str.__str__(step) if short else describe(step)


class KeyType(Struct, frozen=True):
    """What a key accepts."""

    expected: str
    """Completes the sentence "expected ..."."""
    parse: Callable[[Any, Report], Any]
    """Returns the typed value, or UNSET where the value is not accepted."""
    schema: dict[str, Any]
    fields: dict[str, Any] = {}
    """The keys of the object, where an object is accepted."""
    is_private: bool = False
    """Its values may hold credentials and are not quoted."""

    def mismatch(self, value: Any) -> str:
        """What was expected, and what it got."""
        got = type(value).__name__ if self.is_private else describe(value)
        return f"expected {self.expected}, got {got}"


class Field(Struct, frozen=True):
    """One key of settings."""

    type: KeyType
    description: str
    attribute: str | None = None
    """Its name in the typed value, where that is not the key in snake case."""


def parse_fields(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> dict[str, Any]:
    """Parse the known keys of an object; wrong values are reported and left out."""
    found: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in raw:
            continue
        value = field.type.parse(raw[key], report.at(key))
        if value is UNSET:
            report.at(key).add(f"ignored: {field.type.mismatch(raw[key])}")
        elif field.type is not NOT_PARSED:
            found[field.attribute or _snake_case(key)] = value
    return found


def _snake_case(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a process can take this string: not blank, no NUL, no surrogate."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number; a boolean is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else True


def simple(
    expected: str, schema: dict[str, Any], accepts: Callable[[Any], bool]
) -> KeyType:
    """A value that is used as it is."""

    def parse(value: Any, _: Report) -> Any:
        if not accepts(value):
            return UNSET
        return str.__str__(value) if isinstance(value, str) else value

    return KeyType(expected, parse, schema)


def choice(options: type[StrEnum]) -> KeyType:
    """One of the values of an enumeration."""
    members: dict[Any, StrEnum] = {option.value: option for option in options}

    def parse(value: Any, _: Report) -> Any:
        return members.get(value, UNSET) if isinstance(value, str) else UNSET

    expected = " or ".join(map(repr, members))
    if len(members) > 2:
        expected = f"one of {', '.join(map(repr, members))}"
    return KeyType(expected, parse, {"enum": list(members)})


def integer(minimum: int) -> KeyType:
    """An integer of at least this size; 5.0 is one, as in JSON Schema."""

    def parse(value: Any, _: Report) -> Any:
        if not is_number(value) or not minimum <= value <= MAX_NUMBER:
            return UNSET
        return int(value) if value == int(value) else UNSET

    schema = {"type": "integer", "minimum": minimum, "maximum": MAX_NUMBER}
    return KeyType(f"an integer of at least {minimum}", parse, schema)


def list_of_text(expected: str, collect: Callable[[list[str]], Any]) -> KeyType:
    """A list of strings; wrong items are reported and left out."""

    def parse(value: Any, report: Report) -> Any:
        if not isinstance(value, list | tuple):
            return UNSET
        wrong = (index for index, item in enumerate(value) if not is_text(item))
        for index in islice(wrong, _MAX_PROBLEMS):
            message = f"ignored: expected some text, got {describe(value[index])}"
            report.at(index).add(message)
        return collect([str.__str__(item) for item in value if is_text(item)])

    return KeyType(expected, parse, {"type": "array", "items": TEXT.schema})


def _parse_environment(
    value: Any, report: Report, describe: Callable[[Any], str] = describe
) -> Any:
    if not isinstance(value, dict):
        return UNSET
    found: dict[str, str] = {}
    for name, item in value.items():
        text = _environment_text(item)
        if not is_text(name) or "=" in name:
            report.at(name).add("ignored: not a valid name of an environment variable")
        elif text is None:
            got = describe(item)
            report.at(name).add(f"ignored: expected text or a number, got {got}")
        else:
            found[str.__str__(name)] = text
    return found


def _environment_text(value: Any) -> str | None:
    if isinstance(value, str):
        return str.__str__(value) if value == "" or is_text(value + ".") else None
    return str(value) if is_number(value) and abs(value) <= MAX_NUMBER else None


def _parse_object(value: Any, _: Report) -> Any:
    try:
        return as_plain(value) if isinstance(value, dict) else UNSET
    except EncodingError:
        return UNSET


def _parse_policy(value: Any, report: Report) -> Any:
    if isinstance(value, dict):
        return FailurePolicy(**parse_fields(value, CAUSE_FIELDS, report))
    verdict = ON_FAILURE.parse(value, report)
    if verdict is UNSET:
        return UNSET
    # A general "allow" is meant for hooks that break, not for one that was modified.
    changed = verdict if verdict is OnFailure.BLOCK else None
    return FailurePolicy(verdict, verdict, verdict, verdict, changed)


def _parse_breaker(value: Any, report: Report) -> Any:
    if isinstance(value, bool):
        return Breaker() if value else False
    if not isinstance(value, dict):
        return UNSET
    return Breaker(**parse_fields(value, BREAKER_FIELDS, report))


def _parse_telemetry(value: Any, report: Report) -> Any:
    if isinstance(value, dict):
        return TelemetryOptions(**parse_fields(value, TELEMETRY_FIELDS, report))
    if value is False:
        return False
    exporter = EXPORTER.parse(value, report)
    return UNSET if exporter is UNSET else TelemetryOptions(exporter)


def object_schema(fields: dict[str, Field]) -> dict[str, Any]:
    """Describe an object with these keys and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {**field.type.schema, "description": field.description}
            for key, field in fields.items()
        },
    }


_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_FUNCTION = f"^{_DOTTED}:{_DOTTED}$"
_URL = r"^https?://\S+$"

NOT_PARSED = KeyType("anything", lambda *_: None, {})
"""Ignored, or parsed elsewhere."""
BOOLEAN = simple(
    "true or false", {"type": "boolean"}, lambda value: isinstance(value, bool)
)
TEXT = simple("some text", {"type": "string", "pattern": r"\S"}, is_text)
ANY_TEXT = simple("a string", {"type": "string"}, lambda value: isinstance(value, str))
FUNCTION = simple(
    "'package.module:name'",
    {"type": "string", "pattern": _FUNCTION},
    lambda value: is_text(value) and re.fullmatch(_FUNCTION, value) is not None,
)
BOOLEAN_OR_PATH = simple(
    "true, false or the path of a file",
    {"anyOf": [BOOLEAN.schema, TEXT.schema]},
    lambda value: isinstance(value, bool) or is_text(value),
)
MILLISECONDS = simple(
    "a number of milliseconds above 0",
    {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_NUMBER},
    lambda value: is_number(value) and 0 < value <= MAX_NUMBER,
)
POSITIVE = integer(1)
TEXTS = list_of_text("a list of strings", tuple)
NAMES = list_of_text("a list of names", frozenset)
ENVIRONMENT = KeyType(
    "an object of names and values",
    _parse_environment,
    {
        "type": "object",
        "propertyNames": {"pattern": "^[^=]+$"},
        "additionalProperties": {"type": ["string", "number"]},
    },
)
HEADERS = KeyType(
    ENVIRONMENT.expected,
    # What is wrong in one may be a credential: it is not quoted.
    lambda value, report: _parse_environment(
        value, report, lambda it: type(it).__name__
    ),
    ENVIRONMENT.schema,
    is_private=True,
)
OBJECT = KeyType("an object", _parse_object, {"type": "object"})
FILES = KeyType(
    "a path or a list of paths",
    lambda value, report: (
        TEXTS.parse([value] if isinstance(value, str) else value, report) or UNSET
    ),
    {"anyOf": [TEXT.schema, {**TEXTS.schema, "minItems": 1}]},
)
URL = replace(
    simple(
        "an address that starts with http:// or https://, without blanks",
        {"type": "string", "pattern": _URL},
        lambda value: is_text(value) and re.match(_URL, value) is not None,
    ),
    is_private=True,
)
ON_FAILURE = choice(OnFailure)
CAUSE_FIELDS = {
    cause.value: Field(ON_FAILURE, description)
    for cause, description in {
        FailureCause.SPAWN: "It cannot be started (also exit 126 and 127).",
        FailureCause.CRASH: "It exits with a status other than 0 and 2.",
        FailureCause.TIMEOUT: "It does not end in time.",
        FailureCause.OUTPUT: "Its output is truncated, or not the expected JSON.",
        FailureCause.CHANGED: "A project hook changed since it was approved.",
    }.items()
}
FAILURE_POLICY = KeyType(
    "'allow', 'block' or an object of causes",
    _parse_policy,
    {"anyOf": [ON_FAILURE.schema, object_schema(CAUSE_FIELDS)]},
    CAUSE_FIELDS,
)
BREAKER_FIELDS = {
    "timeouts": Field(POSITIVE, "Timeouts in a row that open the breaker."),
    "cooldownMs": Field(MILLISECONDS, "How long the hook is skipped."),
}
BREAKER = KeyType(
    "false or an object with timeouts and cooldownMs",
    _parse_breaker,
    {"anyOf": [BOOLEAN.schema, object_schema(BREAKER_FIELDS)]},
    BREAKER_FIELDS,
)
EXPORTER = choice(Exporter)
TELEMETRY_FIELDS = {
    "exporter": Field(EXPORTER, "Where it goes; default: 'otel'."),
    "content": Field(BOOLEAN, "Export inputs, outputs and reasons too."),
}
TELEMETRY = KeyType(
    "false, 'otel' or an object with exporter and content",
    _parse_telemetry,
    {"anyOf": [{"enum": [False, "otel"]}, object_schema(TELEMETRY_FIELDS)]},
    TELEMETRY_FIELDS,
)

HOOK_FIELDS = {
    "type": Field(choice(HookType), "How the hook runs."),
    "command": Field(TEXT, "The shell command of a command or worker hook."),
    "function": Field(
        FUNCTION, "The function of a python hook, 'package.module:name'."
    ),
    "name": Field(TEXT, "For logs, lists and 'disabled'; default: the command."),
    "description": Field(ANY_TEXT, "What the hook is for."),
    "timeout": Field(MILLISECONDS, "In milliseconds; default: 60000.", "timeout_ms"),
    "env": Field(ENVIRONMENT, "Environment variables for this hook."),
    "shell": Field(TEXT, "The shell for the command; default: bash, else sh."),
    "onError": Field(FAILURE_POLICY, "What a failure means; default: 'allow'."),
    "expect": Field(choice(Expect), "'json' makes any other output a failure."),
    "envPolicy": Field(choice(EnvPolicy), "'clean' hides the host's environment."),
    "mode": Field(choice(HookMode), "'observe' only records the verdict."),
    "dialect": Field(choice(Dialect), "Whose names and fields the hook expects."),
    "trustFiles": Field(TEXTS, "Files that the approval covers too; '!path' does not."),
    "pool": Field(POSITIVE, "How many processes a worker hook keeps running."),
    "managed": Field(BOOLEAN, "In system settings: nothing turns this hook off."),
    "recheck": Field(BOOLEAN, "false: not asked again if others change the input."),
    "if": Field(TEXT, "An expression: the hook runs only if it is true.", "condition"),
    "async": Field(BOOLEAN, "Start the hook and do not wait for it.", "is_async"),
    "standby": Field(integer(0), "How many processes of a command start ahead."),
    "when": Field(TEXT, "The expression of a rule."),
    "then": Field(OBJECT, "What a rule says if it is true; default: it denies."),
    "policies": Field(FILES, "The policy files of a cedar hook."),
    "entities": Field(TEXT, "The JSON file with a cedar hook's entities."),
    "schema": Field(TEXT, "The Cedar schema of a cedar hook's policies and events."),
    "principal": Field(TEXT, 'Who asks: Agent::"<principal>"; default: "default".'),
    "url": Field(URL, "Where an http hook posts the event."),
    "headers": Field(HEADERS, "Headers of the request; '${NAME}' is a variable."),
    "allowedEnv": Field(TEXTS, "The variables that headers may name."),
}

GROUP_FIELDS = {
    "matcher": Field(ANY_TEXT, "Which tools or causes match; default: all."),
    "sequential": Field(BOOLEAN, "Run the hooks one after the other."),
    "hooks": Field(NOT_PARSED, "The hooks of this group."),
}

OPTION_FIELDS = {
    "disabled": Field(NAMES, "Names of hooks that do not run."),
    "toolSelection": Field(choice(ToolSelection), "How tool lists are combined."),
    "onError": Field(FAILURE_POLICY, "What a hook's failure means."),
    "envPolicy": Field(choice(EnvPolicy), "What hooks see of the environment."),
    "journal": Field(BOOLEAN_OR_PATH, "Record events, and in which file."),
    "maxOutputBytes": Field(POSITIVE, "Output kept per stream; default: 8 MiB."),
    "maxProcesses": Field(POSITIVE, "Processes of an event loop; default: 4 per core."),
    "breaker": Field(BREAKER, "When a hook that keeps timing out is skipped."),
    "maxDepth": Field(POSITIVE, "How deep hooks can fire hooks; default: 4."),
    "workerIdleMs": Field(MILLISECONDS, "When an idle worker is stopped."),
    "onAsk": Field(ON_FAILURE, "The answer to 'ask' where no person can answer."),
    "untrusted": Field(
        choice(Untrusted), "'block' closes the events of hooks that are not trusted."
    ),
    "telemetry": Field(TELEMETRY, "Spans and metrics of events and hooks."),
    "notifications": Field(NOT_PARSED, "Accepted for compatibility, and ignored."),
}

ROOT_FIELDS = {
    "$schema": Field(NOT_PARSED, "The schema, for editors; ignored."),
    "enableHooks": Field(BOOLEAN, "False switches hooks off."),
    "hooks": Field(NOT_PARSED, "For each event, its groups of hooks."),
    "hooksConfig": Field(NOT_PARSED, "Options for hooks."),
}

REQUIRED_BY_TYPE = {
    HookType.COMMAND: "command",
    HookType.WORKER: "command",
    HookType.PYTHON: "function",
    HookType.RULE: "when",
    HookType.CEDAR: "policies",
    HookType.HTTP: "url",
}


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of settings files."""
    schema = object_schema(ROOT_FIELDS)
    properties = schema["properties"]
    properties["$schema"]["type"] = "string"
    properties["hooks"].update(
        type="object",
        additionalProperties=False,
        properties={event.value: _event_schema(event) for event in HookEventName},
    )
    properties["hooksConfig"] |= object_schema(OPTION_FIELDS)
    group = object_schema(GROUP_FIELDS)
    group["properties"]["hooks"].update(type="array", items={"$ref": "#/$defs/hook"})
    hook = object_schema(HOOK_FIELDS)
    conditions = [_requires(*item) for item in REQUIRED_BY_TYPE.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Hookline settings",
        **schema,
        "$defs": {
            "group": {**group, "required": ["hooks"]},
            "hook": {**hook, "required": ["type"], "allOf": conditions},
        },
    }


def _event_schema(event: HookEventName) -> dict[str, Any]:
    traits = TRAITS[event]
    description = {
        Matching.REGEX: f"The matcher is searched in {traits.matched_field}.",
        Matching.EXACT: f"The matcher is compared with {traits.matched_field}.",
        Matching.NOTHING: "No matcher.",
    }[traits.matching]
    groups = {"type": "array", "items": {"$ref": "#/$defs/group"}}
    return {"description": description, **groups}


def _requires(hook_type: HookType, key: str) -> dict[str, Any]:
    condition = {
        "properties": {"type": {"const": hook_type.value}},
        "required": ["type"],
    }
    return {"if": condition, "then": {"required": [key]}}
