"""Cedar hooks: policies decide, in this process and without a wait (protocol.md#rules).

Cedar skips a policy that cannot be evaluated, a ``forbid`` too: here it is a failure of
the hook. Values that Cedar does not have are shown so that no policy mistakes them for
others, or the event counts as unseen.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import EncodingError, MissingExtraError, SettingsError
from hookline.plan import Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.dialects import with_agent_spellings
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause
from hookline.protocol.values import digits, encode, encode_whole, text_of
from hookline.settings.model import HookSource
from hookline.settings.policies import (
    PolicyStore,
    cedar_files,
    load_engine,
    parse_files,
)
from hookline.settings.read import decode_text, read_bytes
from hookline.trust.pins import YOUNG_NS, Times, times_of

if TYPE_CHECKING:
    import cedarpy

DEFAULT_PRINCIPAL = "default"

_RESERVED = frozenset({"__entity", "__extn", "__expr"})
"""Keys by which Cedar's JSON names entities and calls functions."""
_MAX_LEVELS = 64
_MAX_COST = 1_000_000
"""Reading a value takes Cedar time in proportion to its level: at most a second."""
_LONG = 1 << 63
_DECIMAL = r"-?\d{1,14}\.\d{1,4}"
_EVALUATION = r"error while evaluating policy `policy(\d+)`: (.*)"
_WHOLE_CONTEXT = r"(?s)context `.*` is not valid"
_MAX_TEXT = 500


class _Loaded(Struct, frozen=True):
    """What was parsed, and the state of the files then."""

    store: PolicyStore
    times: dict[str, Times | None] | None
    """None where a later change might not show."""


class CedarExecutor(Executor):
    """Asks the policies of a hook; files are parsed again only after a change."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str | None], _Loaded] = {}

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Decide about one event; nothing here waits."""
        # Only these paths depend on where the event is fired.
        has_folder = hook.source in {HookSource.PROJECT, HookSource.EXPLICIT}
        folder = hook.project or call.cwd if has_folder else None
        loaded = self._loaded.get((hook.serial, folder))
        if (
            loaded is None
            or loaded.times is None
            or loaded.times != {path: times_of(path) for path in loaded.times}
        ):
            parsed = _load(hook, folder)
            if isinstance(parsed, RunEnd):
                return parsed
            loaded = self._loaded[hook.serial, folder] = parsed
        return _decide(loaded.store, hook, call)

    async def close(self) -> None:
        """Forget what was parsed."""
        self._loaded.clear()

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Forget what was parsed for all other hooks."""
        serials = {hook.serial for hook in hooks}
        for key in [key for key in self._loaded if key[0] not in serials]:
            self._loaded.pop(key, None)


def _load(hook: RegisteredHook, folder: str | None) -> _Loaded | RunEnd:
    approved = {} if hook.approval is None else hook.approval.digests
    now_ns = time.time_ns()
    try:
        load_engine()
        files = cedar_files(hook.config, folder)
        times = {file.path: times_of(file.path) for file in files}
        for number, file in enumerate(files):
            content = read_bytes(file.path)
            if file.path in approved:
                import hashlib  # only for hooks of trusted projects

                if hashlib.sha256(content).hexdigest() != approved[file.path]:
                    problem = "changed since it was approved: run 'hookline trust'"
                    error = f"{file.path} {problem}"
                    return RunEnd(cause=FailureCause.CHANGED, error=error)
            files[number] = replace(file, text=decode_text(content, file.path))
    except (MissingExtraError, SettingsError) as missing:
        return RunEnd(cause=FailureCause.SPAWN, error=str(missing))
    store, mistakes = parse_files(files)
    if store is None:
        return RunEnd(cause=FailureCause.OUTPUT, error=str(mistakes[0]))
    is_old = all(each and now_ns - each[-1] > YOUNG_NS for each in times.values())
    return _Loaded(store, times if is_old else None)


def _decide(store: PolicyStore, hook: RegisteredHook, call: HookCall) -> RunEnd:
    principal, action = hook.config.principal or DEFAULT_PRINCIPAL, call.event.value
    if TRAITS[call.event].matched_field == "tool_name":
        tool_name = call.values().get("tool_name")
        if not isinstance(tool_name, str):
            raise EncodingError("tool_name is not a string")
        action = text_of(tool_name)
    folder = hook.project_dir or call.cwd
    resource = os.path.basename(folder.rstrip("/")) or folder  # noqa: PTH119
    event = dict(with_agent_spellings(call.values(), store.words))
    if store.declared is not None:
        event = {name: event[name] for name in event.keys() & store.declared}
    request = {
        "principal": {"type": "Agent", "id": principal},
        "action": {"type": "Action", "id": action},
        "resource": {"type": "Project", "id": text_of(resource)},
        "context": encode_whole(_Conversion().record(event, 1)).decode(),
    }
    answer: cedarpy.AuthzResult = load_engine().is_authorized(
        request, store.policy_set, store.entities, store.schema
    )
    decision, diagnostics = answer.decision.name, answer.diagnostics
    numbers = sorted(int(name.removeprefix("policy")) for name in diagnostics.reasons)
    policies = [store.policies[number] for number in numbers]
    problem = denial = None
    if decision == "NoDecision":
        errors = "; ".join(diagnostics.errors)
        problem = re.sub(_WHOLE_CONTEXT, "the context is not valid", errors)
        problem = problem.removeprefix("failed to build request: ")[:_MAX_TEXT]
        if store.schema is None:
            raise EncodingError(f"Cedar cannot read it: {problem}")
        problem = f"the event does not fit the schema: {problem}"
    elif diagnostics.errors:
        problem = "; ".join(_explained(e, store) for e in diagnostics.errors[:8])
    if decision != "Allow" and policies:
        reasons = (
            policy.reason or f"denied by policy {policy.name}" for policy in policies
        )
        denial = "\n".join(dict.fromkeys(reasons))
        # A policy that was not evaluated takes nothing from one that forbids.
        problem = problem and f"{problem}; denied in any case: {denial}"
    elif decision != "Allow" and problem is None:
        names = _uid_text("Action", action), _uid_text("Agent", principal)
        denial = "no policy permits {} for {}".format(*names)
    return RunEnd(
        exit_code=0,
        stderr="\n".join(f"{policy.effect}: {policy.name}" for policy in policies),
        cause=FailureCause.OUTPUT if problem else None,
        error=problem,
        # A permit says nothing: it must not speak for other hooks.
        answer={"decision": "deny", "reason": denial} if denial else None,
    )


def _explained(error: str, store: PolicyStore) -> str:
    match = re.fullmatch(_EVALUATION, error, re.DOTALL)
    if match is None:
        return error[:_MAX_TEXT]
    name = store.policies[int(match[1])].name
    return f"policy {name} cannot be evaluated: {match[2][:_MAX_TEXT]}"


def _uid_text(kind: str, name: str) -> str:
    short = name if len(name) <= 80 else f"{name[:80]}..."
    return f"{kind}::{encode(short).decode()}"


class _Conversion:
    """Turns plain JSON values into those that Cedar's JSON has."""

    def __init__(self) -> None:
        self._cost = 0

    def record(self, value: dict[str, Any], level: int) -> dict[str, Any]:
        """An object, without what is null."""
        self._enter(len(value), level)
        record = {}
        for key, item in value.items():
            converted = item if type(item) is str else self._value(item, level + 1)
            if converted is not None:
                record[key] = converted
        if not _RESERVED.isdisjoint(record):
            names = ", ".join(sorted(_RESERVED))
            raise EncodingError(f"it has one of the keys {names}")
        return record

    def _value(self, value: Any, level: int) -> Any:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if kind is dict:
            return self.record(value, level)
        if kind is list or kind is tuple:
            self._enter(len(value), level)
            items = (self._value(item, level + 1) for item in value)
            # A set holds no null; without it, it might seem to be empty.
            return [{} if item is None else item for item in items]
        if kind is float and not math.isfinite(value):
            return None  # as other hooks see it
        if kind is float and not value.is_integer():
            text = repr(value)
            is_decimal = re.fullmatch(_DECIMAL, text)
            return {"__extn": {"fn": "decimal", "arg": text}} if is_decimal else text
        if kind is float and abs(value) >= _LONG:
            return repr(value)
        number = int(value)
        return number if -_LONG <= number < _LONG else digits(number)

    def _enter(self, size: int, level: int) -> None:
        self._cost += size * level
        if level > _MAX_LEVELS:
            raise EncodingError(f"it is nested deeper than {_MAX_LEVELS} levels")
        if self._cost > _MAX_COST:
            raise EncodingError("it has too many values for Cedar")
