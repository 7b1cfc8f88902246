"""Check what ``HookSystem.on`` is given, and type it by the event.

A mistake raises where the hook is registered, not when its first event comes. Values
are read as in settings, so that both have the same checks.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from msgspec import UNSET

from hookline._internal.log import logger
from hookline.errors import InvalidHookError
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.inputs import (
    AfterAgentInput,
    AfterModelInput,
    AfterToolInput,
    BeforeAgentInput,
    BeforeModelInput,
    BeforeToolInput,
    BeforeToolSelectionInput,
    HookInput,
    NotificationInput,
    PreCompressInput,
    SessionEndInput,
    SessionStartInput,
    SubagentStartInput,
    SubagentStopInput,
)
from hookline.protocol.values import describe
from hookline.rules.failure import FAILURE_CONDITIONS
from hookline.settings.fields import BOOLEAN, HOOK_FIELDS, Report, Severity
from hookline.settings.model import FailurePolicy, OnFailure

Name: TypeAlias = Literal[
    "BeforeTool",
    "AfterTool",
    "BeforeAgent",
    "AfterAgent",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "SessionStart",
    "SessionEnd",
    "Notification",
    "PreCompress",
    "SubagentStart",
    "SubagentStop",
]
Event: TypeAlias = HookEventName | Name
Verdict: TypeAlias = Literal["allow", "block"]
Cause: TypeAlias = Literal["spawn", "crash", "timeout", "output", "changed"]

Answer: TypeAlias = Mapping[str, object] | None
_I = TypeVar("_I")
_Takes: TypeAlias = Callable[[_I], Answer | Awaitable[Answer]]
Hook: TypeAlias = _Takes[_I] | _Takes[dict[str, Any]]
"""A function that takes the input of an event, typed or as a plain dict."""

E_co = TypeVar("E_co", bound=Event, covariant=True)
_BeforeTool = TypeVar("_BeforeTool", bound=Hook[BeforeToolInput])
_AfterTool = TypeVar("_AfterTool", bound=Hook[AfterToolInput])
_BeforeAgent = TypeVar("_BeforeAgent", bound=Hook[BeforeAgentInput])
_AfterAgent = TypeVar("_AfterAgent", bound=Hook[AfterAgentInput])
_BeforeModel = TypeVar("_BeforeModel", bound=Hook[BeforeModelInput])
_AfterModel = TypeVar("_AfterModel", bound=Hook[AfterModelInput])
_Selection = TypeVar("_Selection", bound=Hook[BeforeToolSelectionInput])
_SessionStart = TypeVar("_SessionStart", bound=Hook[SessionStartInput])
_SessionEnd = TypeVar("_SessionEnd", bound=Hook[SessionEndInput])
_Notification = TypeVar("_Notification", bound=Hook[NotificationInput])
_PreCompress = TypeVar("_PreCompress", bound=Hook[PreCompressInput])
_SubagentStart = TypeVar("_SubagentStart", bound=Hook[SubagentStartInput])
_SubagentStop = TypeVar("_SubagentStop", bound=Hook[SubagentStopInput])
_OfAny = TypeVar("_OfAny", bound=Hook[HookInput])
_OfUnknown = TypeVar("_OfUnknown", bound=_Takes[Any])

_E = HookEventName


class Register(Protocol[E_co]):
    """The decorator that ``on`` makes: it takes a hook of its event, unchanged."""

    # A hook for any event, then one overload for each event, so that a type checker
    # knows what its hooks get. The last one is there because pyright forgets which
    # member of an enum it was given.
    @overload
    def __call__(self: Register[Event], hook: _OfAny, /) -> _OfAny: ...
    @overload
    def __call__(
        self: Register[Literal["BeforeTool", _E.BeforeTool]], hook: _BeforeTool, /
    ) -> _BeforeTool: ...
    @overload
    def __call__(
        self: Register[Literal["AfterTool", _E.AfterTool]], hook: _AfterTool, /
    ) -> _AfterTool: ...
    @overload
    def __call__(
        self: Register[Literal["BeforeAgent", _E.BeforeAgent]], hook: _BeforeAgent, /
    ) -> _BeforeAgent: ...
    @overload
    def __call__(
        self: Register[Literal["AfterAgent", _E.AfterAgent]], hook: _AfterAgent, /
    ) -> _AfterAgent: ...
    @overload
    def __call__(
        self: Register[Literal["BeforeModel", _E.BeforeModel]], hook: _BeforeModel, /
    ) -> _BeforeModel: ...
    @overload
    def __call__(
        self: Register[Literal["AfterModel", _E.AfterModel]], hook: _AfterModel, /
    ) -> _AfterModel: ...
    @overload
    def __call__(
        self: Register[Literal["BeforeToolSelection", _E.BeforeToolSelection]],
        hook: _Selection,
        /,
    ) -> _Selection: ...
    @overload
    def __call__(
        self: Register[Literal["SessionStart", _E.SessionStart]],
        hook: _SessionStart,
        /,
    ) -> _SessionStart: ...
    @overload
    def __call__(
        self: Register[Literal["SessionEnd", _E.SessionEnd]], hook: _SessionEnd, /
    ) -> _SessionEnd: ...
    @overload
    def __call__(
        self: Register[Literal["Notification", _E.Notification]],
        hook: _Notification,
        /,
    ) -> _Notification: ...
    @overload
    def __call__(
        self: Register[Literal["PreCompress", _E.PreCompress]], hook: _PreCompress, /
    ) -> _PreCompress: ...
    @overload
    def __call__(
        self: Register[Literal["SubagentStart", _E.SubagentStart]],
        hook: _SubagentStart,
        /,
    ) -> _SubagentStart: ...
    @overload
    def __call__(
        self: Register[Literal["SubagentStop", _E.SubagentStop]],
        hook: _SubagentStop,
        /,
    ) -> _SubagentStop: ...
    @overload
    def __call__(self: Register[HookEventName], hook: _OfUnknown, /) -> _OfUnknown: ...


_KEYS = {
    "name": "name",
    "timeout_ms": "timeout",
    "on_error": "onError",
    "mode": "mode",
    "recheck": "recheck",
    "condition": "if",
    "asynchronous": "async",
}
"""The parameters of ``on``, and their keys in settings."""
_MAY_BE_NONE = {"name", "on_error", "condition"}


_NAMES = r"[\w|]*"


def read_event(event: object) -> HookEventName:
    """The event of a hook; raises ``UnknownEventError``."""
    if callable(event):
        name = name_of(event)
        problem = f'the event is missing: write @hooks.on("BeforeTool") above {name}'
        raise InvalidHookError("hooks.on", problem)
    return HookEventName.of(event)


def read_options(event: HookEventName, **given: Any) -> dict[str, Any]:
    """The options as ``HookConfig`` has them; raises ``InvalidHookError``."""
    found: dict[str, Any] = {}
    for parameter, key in _KEYS.items():
        value = given[parameter]
        if value is not None or parameter not in _MAY_BE_NONE:
            field = HOOK_FIELDS[key]
            found[field.attribute or parameter] = _parsed(event, parameter, value, key)
    _check_condition(event, found.get("condition"))
    policy = found.get("on_error", FailurePolicy())
    if found["is_async"] and OnFailure.BLOCK in (policy.crash, policy.timeout):
        problem = "on_error='block' has no effect with asynchronous=True: nobody waits"
        raise _mistake(event, problem)
    return found


def check_group(event: HookEventName, matcher: object, sequential: object) -> None:
    """Check what hooks of a group share in settings; raises ``InvalidHookError``."""
    if not isinstance(sequential, bool):
        raise _mistake(event, f"sequential: {BOOLEAN.mismatch(sequential)}")
    if matcher is None:
        return
    if not isinstance(matcher, str):
        raise _mistake(event, f"matcher: expected a string, got {matcher!r}")
    if TRAITS[event].matching is Matching.REGEX and re.fullmatch(_NAMES, matcher):
        return
    # What is no list of names needs the module of ``hookline check``.
    from hookline.settings.matcher_check import check_matcher

    report = Report()
    check_matcher(event, matcher, None, report)
    for problem in report.problems:
        text = problem.message.replace(": compared literally", "")
        text = f"matcher {matcher!r}: {text.removeprefix(f'{describe(matcher)}: ')}"
        if problem.severity is Severity.ERROR:
            raise _mistake(event, text)
        if problem.severity is Severity.WARNING:
            logger.warning("%s: %s", _place(event), text)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Its parameters, also where a name in an annotation is for type checkers only."""
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):  # evaluates annotations only now
        from annotationlib import Format

        options["annotation_format"] = Format.FORWARDREF
    return inspect.signature(function, **options)


def check_function(event: HookEventName, function: object) -> None:
    """Check that a hook can be called with an event; raises ``InvalidHookError``."""
    name = name_of(function)
    if not callable(function):
        raise _mistake(event, f"expected a function, got {name}")
    if any(map(_is_generator, (function, type(function).__call__))):
        raise _mistake(event, f"{name} is a generator: return the answer, not yield it")
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):  # some of the interpreter's own have none
        return
    try:
        signature.bind({})
    except TypeError:
        problem = f"{name}{_bare(signature)} must take one argument, the event"
        if next(iter(signature.parameters), "") == "self":
            problem += "; of a class, register the method of an object"
        raise _mistake(event, problem) from None


def _bare(signature: inspect.Signature) -> inspect.Signature:
    empty, given = inspect.Signature.empty, signature.parameters.values()
    parameters = [one.replace(annotation=empty) for one in given]
    return signature.replace(parameters=parameters, return_annotation=empty)


def name_of(function: object) -> str:
    """What a function is called."""
    return str(getattr(function, "__name__", None) or repr(function))


def _is_generator(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _parsed(event: HookEventName, parameter: str, value: Any, key: str) -> Any:
    field, report = HOOK_FIELDS[key], Report()
    parsed = field.type.parse(value, report)
    problems = [str(one).replace("ignored: ", "") for one in report.problems]
    if isinstance(value, dict):
        problems += [
            f"unknown cause {one!r}" for one in value.keys() - field.type.fields
        ]
    if parsed is UNSET:
        problems = [field.type.mismatch(value)]
    if problems:
        raise _mistake(event, f"{parameter}: {'; '.join(problems)}")
    return parsed


def _check_condition(event: HookEventName, condition: str | None) -> None:
    if condition is None or condition in FAILURE_CONDITIONS:
        return
    # Most hosts have no conditions and need not load the expressions.
    from hookline.rules.program import ExpressionError, compile_expression

    try:
        compile_expression(condition)
    except ExpressionError as error:
        raise _mistake(event, f"condition {condition!r}: {error}") from error


def _mistake(event: HookEventName, problem: str) -> InvalidHookError:
    return InvalidHookError(_place(event), problem)


def _place(event: HookEventName) -> str:
    return f'hooks.on("{event.value}")'
