"""Cedar hooks: policies decide, in this process and without a wait (protocol.md#rules).

Cedar skips a policy that cannot be evaluated, a ``forbid`` too: here it is a failure of
the hook. Only the parts of the event that a policy looks at are converted, so neither
the size nor the spelling of the rest matters. Values that Cedar does not have are shown
so that no policy mistakes them for others, or the event counts as unseen.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import EncodingError, MissingExtraError, SettingsError
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause
from hookline.protocol.tool_fields import with_agent_spellings
from hookline.protocol.values import digits, encode, encode_whole, text_of
from hookline.settings.model import HookSource
from hookline.settings.policies import (
    CedarFile,
    PolicyStore,
    UsedFields,
    cedar_files,
    load_engine,
    parse_files,
)
from hookline.settings.read import decode_text, read_bytes
from hookline.trust.stamps import file_stamp

if TYPE_CHECKING:
    import cedarpy

DEFAULT_PRINCIPAL = "default"

_RESERVED = frozenset({"__entity", "__extn", "__expr"})
"""Keys by which Cedar's JSON names entities and calls functions."""
_RESERVED_KEYS = ", ".join(sorted(_RESERVED))
_MAX_LEVELS = 64
_MAX_COST = 1_000_000
"""Reading a value takes Cedar time in proportion to its level: at most a second."""
_LONG = 1 << 63
_DECIMAL = r"-?\d{1,14}\.\d{1,4}"
_EVALUATION = r"error while evaluating policy `policy(\d+)`: (.*)"
_WHOLE_CONTEXT = r"(?s)context `.*` is not valid"
_MAX_TEXT = 500
_TICK_NS = 50_000_000
"""Two changes within one tick of the file system's clock look like one."""


class _Failure(Exception):  # noqa: N818 - never leaves this module
    """Why a hook cannot decide."""

    def __init__(self, cause: FailureCause, problem: object) -> None:
        self.cause = cause
        super().__init__(str(problem))


class _Loaded(Struct, frozen=True):
    """What was parsed, and the state of the files then."""

    store: PolicyStore
    paths: tuple[str, ...]
    stamps: tuple[Any, ...] | None
    """None where a later change might not show."""


class CedarExecutor:
    """Asks the policies of a hook; files are parsed again only after a change."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[int, str | None], _Loaded] = {}

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Decide about one event; nothing here waits."""
        try:
            store = self._current(hook, call)
            return _decide(store, hook, call)
        except _Failure as failure:
            return RunEnd(cause=failure.cause, error=str(failure))

    async def close(self) -> None:
        """Forget what was parsed."""
        self._loaded.clear()

    def retain(self, hooks: Iterable[RegisteredHook]) -> None:
        """Forget what was parsed for all other hooks."""
        kept = {hook.serial for hook in hooks}
        for key in [key for key in self._loaded if key[0] not in kept]:
            self._loaded.pop(key, None)

    def _current(self, hook: RegisteredHook, call: HookCall) -> PolicyStore:
        # Only these paths depend on where the event is fired.
        is_own = hook.source in {HookSource.PROJECT, HookSource.EXPLICIT}
        folder = hook.project or call.cwd if is_own else None
        known = self._loaded.get((hook.serial, folder))
        if known is None or known.stamps != _stamps(known.paths):
            known = _load(hook, folder)
            self._loaded[hook.serial, folder] = known
        return known.store


def _load(hook: RegisteredHook, folder: str | None) -> _Loaded:
    try:
        load_engine()
        files = cedar_files(hook.config, folder)
        paths = tuple(file.path for file in files)
        stamps, now_ns = _stamps(paths), time.time_ns()
        read = [_read(file, hook) for file in files]
    except (MissingExtraError, SettingsError) as error:
        raise _Failure(FailureCause.SPAWN, error) from error
    try:
        store = parse_files(read)
    except SettingsError as error:
        raise _Failure(FailureCause.OUTPUT, error) from error
    newest = max(max(one[:2]) for one in stamps if one)
    settled = now_ns - newest > _TICK_NS and None not in stamps
    return _Loaded(store, paths, stamps if settled else None)


def _stamps(paths: Iterable[str]) -> tuple[Any, ...]:
    return tuple(map(file_stamp, paths))


def _read(file: CedarFile, hook: RegisteredHook) -> CedarFile:
    content = read_bytes(file.path)
    approved = None if hook.approval is None else hook.approval.digest_of(file.path)
    if approved is not None:
        import hashlib  # only for hooks of trusted projects

        if hashlib.sha256(content).hexdigest() != approved:
            problem = f"{file.path} changed since it was approved: run 'hookline trust'"
            raise _Failure(FailureCause.CHANGED, problem)
    return replace(file, text=decode_text(content, file.path))


def _decide(store: PolicyStore, hook: RegisteredHook, call: HookCall) -> RunEnd:
    principal, action = hook.config.principal or DEFAULT_PRINCIPAL, _action(call)
    request = {
        "principal": {"type": "Agent", "id": principal},
        "action": {"type": "Action", "id": action},
        "resource": {"type": "Project", "id": _resource(hook, call)},
        "context": encode_whole(_context(store, call)).decode(),
    }
    answer: cedarpy.AuthzResult = load_engine().is_authorized(
        request, store.policies, store.entities, store.schema
    )
    found, decision = answer.diagnostics, answer.decision.name
    problem = None
    if found.errors or decision == "NoDecision":
        problem = _problem(found.errors, decision, store)
    numbers = sorted([int(one.removeprefix("policy")) for one in found.reasons])
    policies = [store.known[number] for number in numbers]
    end = RunEnd(exit_code=0, stderr="\n".join([one.log for one in policies]))
    denial = None
    if decision != "Allow" and policies:
        reasons = (one.reason or f"denied by policy {one.name}" for one in policies)
        denial = "\n".join(dict.fromkeys(reasons))
        # A policy that was not evaluated takes nothing from one that forbids.
        problem = problem and f"{problem}; denied in any case: {denial}"
    elif decision != "Allow" and problem is None:
        asked = f"{_uid_text('Action', action)} for {_uid_text('Agent', principal)}"
        denial = f"no policy permits {asked}"
    if problem is not None:
        end = replace(end, cause=FailureCause.OUTPUT, error=problem)
    if denial is None:
        return end  # a permit says nothing: it must not speak for other hooks
    return replace(end, answer={"decision": "deny", "reason": denial})


def _problem(errors: list[str], decision: str, store: PolicyStore) -> str:
    if decision != "NoDecision":
        return "; ".join(_explained(one, store) for one in errors[:8])
    found = re.sub(_WHOLE_CONTEXT, "the context is not valid", "; ".join(errors))
    found = found.removeprefix("failed to build request: ")[:_MAX_TEXT]
    if store.schema is None:
        raise EncodingError(f"Cedar cannot read it: {found}")
    return f"the event does not fit the schema: {found}"


def _explained(error: str, store: PolicyStore) -> str:
    found = re.fullmatch(_EVALUATION, error, re.DOTALL)
    if found is None:
        return error[:_MAX_TEXT]
    name = store.known[int(found[1])].name
    return f"policy {name} cannot be evaluated: {found[2][:_MAX_TEXT]}"


def _uid_text(kind: str, name: str) -> str:
    short = name if len(name) <= 80 else f"{name[:80]}..."
    return f"{kind}::{encode(short).decode()}"


def _action(call: HookCall) -> str:
    if TRAITS[call.event].matched_field != "tool_name":
        return call.event.value
    name = call.values().get("tool_name")
    if not isinstance(name, str):
        raise EncodingError("tool_name is not a string")
    return text_of(name)


def _resource(hook: RegisteredHook, call: HookCall) -> str:
    folder = hook.project_dir or call.cwd
    return text_of(os.path.basename(folder.rstrip("/")) or folder)  # noqa: PTH119


def _context(store: PolicyStore, call: HookCall) -> dict[str, Any]:
    """The fields that a policy looks at or, with a schema, that either one names."""
    used, given = store.used, call.values()
    if used and used.get("tool_input"):
        given = dict(with_agent_spellings(given, used["tool_input"] or ()))
    if store.schema is not None:
        names = given if used is None else used.keys() | store.declared
        used = dict.fromkeys(names)
    elif used is None:
        used = dict.fromkeys(given)
    try:
        return _Conversion().record(given, used, 1)
    except RecursionError as error:
        raise EncodingError("no room is left on the stack") from error


class _Conversion:
    """Turns plain JSON values into those that Cedar's JSON has."""

    def __init__(self) -> None:
        self._cost = 0

    def record(
        self, value: dict[str, Any], used: UsedFields, level: int
    ) -> dict[str, Any]:
        """An object, or the parts of it that are used; without what is null."""
        self._enter(value if used is None else used, level)
        shown: dict[str, Any] = {}
        for name in value if used is None else used:
            item = value.get(name)
            if type(item) is not str:
                part = None if used is None else used[name]
                item = self._value(item, part, level + 1)
            if item is not None:
                shown[name] = item
        if not _RESERVED.isdisjoint(shown):
            raise EncodingError(f"it has one of the keys {_RESERVED_KEYS}")
        return shown

    def _value(self, value: Any, used: UsedFields, level: int) -> Any:
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if kind is dict:
            return self.record(value, used, level)
        if kind is list or kind is tuple:
            if used is not None:
                return []  # no policy looks into it: a set has no fields
            self._enter(value, level)
            items = (self._value(item, None, level + 1) for item in value)
            # A set holds no null; without it, it might seem to be empty.
            return [{} if item is None else item for item in items]
        return _number(value)

    def _enter(self, value: Collection[Any], level: int) -> None:
        self._cost += len(value) * level
        if level > _MAX_LEVELS:
            raise EncodingError(f"it is nested deeper than {_MAX_LEVELS} levels")
        if self._cost > _MAX_COST:
            raise EncodingError("it has too many values for Cedar")


def _number(value: float) -> Any:
    """A Long or a decimal if it is exactly one, else its text."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None  # as other hooks see it
        if not value.is_integer():
            text = repr(value)
            exact = re.fullmatch(_DECIMAL, text)
            return {"__extn": {"fn": "decimal", "arg": text}} if exact else text
        if abs(value) >= _LONG:
            return repr(value)
        value = int(value)
    return value if -_LONG <= value < _LONG else digits(int(value))
