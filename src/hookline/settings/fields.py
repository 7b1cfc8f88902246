"""Every key that settings may hold: the one table behind reading, checking and schema.

A key that is not here does not exist: ``parse`` reads by these tables, ``audit`` calls
anything else unknown, and ``jsonschema`` describes them to editors.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from hookline.results import FailureCause

from .kinds import (
    ANY_TEXT,
    ANYTHING,
    BOOLEAN,
    ENVIRONMENT,
    FUNCTION,
    MILLISECONDS,
    NAMES,
    SWITCH_OR_PATH,
    TEXT,
    TEXTS,
    Field,
    Kind,
    choice,
    read_fields,
    whole_number,
)
from .problems import Report
from .schema import (
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
