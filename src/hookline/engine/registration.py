"""Check what ``HookSystem.on`` is given.

A mistake raises where the hook is registered, not when its first event comes. Options
are read as in settings, so that both have the same checks.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from hookline._internal.log import logger
from hookline.errors import InvalidHookError
from hookline.plan import RegisteredHook
from hookline.protocol.convert import Mistake, keys_of
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.values import describe
from hookline.rules.failure import FAILURE_CONDITIONS
from hookline.settings.load import Settings
from hookline.settings.model import (
    FailurePolicy,
    HookConfig,
    HookSource,
    HookType,
    OnFailure,
    Severity,
)
from hookline.settings.parse import in_full

EventName: TypeAlias = Literal[
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
Verdict: TypeAlias = Literal["allow", "block"]
Cause: TypeAlias = Literal["spawn", "crash", "timeout", "output", "changed"]

Answer: TypeAlias = Mapping[str, object] | None
HookCallable = TypeVar(
    "HookCallable", bound=Callable[[Any], Answer | Awaitable[Answer]]
)

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
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY


class Registration:
    """What ``on`` is given beside the function; raises for what cannot be."""

    def __init__(
        self, event: object, matcher: object, sequential: object, **options: Any
    ) -> None:
        if callable(event):
            problem = "the event is missing: write"
            hint = f'@hooks.on("BeforeTool") above {_name_of(event)}'
            raise InvalidHookError("hooks.on", f"{problem} {hint}")
        self._event = HookEventName.of(event)
        self._place = f'hooks.on("{self._event.value}")'
        self._options = self._parsed_options(options)
        if not isinstance(sequential, bool):
            got = describe(sequential)
            raise self._mistake(f"sequential: expected true or false, got {got}")
        self._sequential = sequential
        if not isinstance(matcher, str | None):
            raise self._mistake(f"matcher: expected a string, got {matcher!r}")
        self._matcher = matcher
        is_regex = TRAITS[self._event].matching is Matching.REGEX
        # What is no list of names needs the module of ``hookline check``.
        if matcher is not None and not (is_regex and re.fullmatch(_NAMES, matcher)):
            self._check_matcher(matcher)

    def _mistake(self, problem: str) -> InvalidHookError:
        return InvalidHookError(self._place, problem)

    def _parsed_options(self, options: dict[str, Any]) -> dict[str, Any]:
        parsed: dict[str, Any] = {}
        for parameter, key in _KEYS.items():
            value = options[parameter]
            if value is None and parameter in _MAY_BE_NONE:
                continue
            field = keys_of(HookConfig)[key]
            mistakes: list[Mistake] = []
            option = field.plan.convert(in_full({key: value})[key], mistakes, ())
            problems = [str(mistake) for mistake in mistakes]
            if isinstance(value, Mapping):
                unknown = value.keys() - keys_of(FailurePolicy).keys()
                problems += [f"unknown cause {cause!r}" for cause in unknown]
            if problems:
                raise self._mistake(f"{parameter}: {'; '.join(problems)}")
            parsed[field.attribute] = option
        condition = parsed.get("condition")
        if condition is not None and condition not in FAILURE_CONDITIONS:
            # Most hosts have no conditions and need not load the expressions.
            from hookline.rules.program import ExpressionError, compile_expression

            try:
                compile_expression(condition)
            except ExpressionError as error:
                problem = f"condition {condition!r}: {error}"
                raise self._mistake(problem) from error
        policy = parsed.get("on_error", FailurePolicy())
        if parsed["is_async"] and OnFailure.BLOCK in (policy.crash, policy.timeout):
            raise self._mistake(
                "on_error='block' has no effect with asynchronous=True: nobody waits"
            )
        return parsed

    def _check_matcher(self, matcher: str) -> None:
        from hookline.settings.matcher_check import check_matcher

        if (finding := check_matcher(self._event, matcher, None)) is None:
            return
        severity, message = finding
        text = message.replace(": compared literally", "")
        text = text.removeprefix(f"{describe(matcher)}: ")
        if severity is Severity.ERROR:
            raise self._mistake(f"matcher {matcher!r}: {text}")
        if severity is Severity.WARNING:
            logger.warning("%s: matcher %r: %s", self._place, matcher, text)

    def hook_of(self, function: Any, settings: Settings) -> RegisteredHook:
        """A function as a hook; raises if it cannot be called with the event."""
        name = _name_of(function)
        if not callable(function):
            raise self._mistake(f"expected a function, got {name}")
        for code in (function, type(function).__call__):
            if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
                problem = f"{name} is a generator: return the answer, not yield it"
                raise self._mistake(problem)
        try:
            signature = signature_of(function)
        except (TypeError, ValueError):  # some of the interpreter's own have none
            signature = inspect.Signature([inspect.Parameter("event", _POSITIONAL)])
        try:
            signature.bind({})
        except TypeError:
            problem = f"{name}{signature} must take one argument, the event"
            if next(iter(signature.parameters), "") == "self":
                problem += "; of a class, register the method of an object"
            raise self._mistake(problem) from None
        config = HookConfig(type=HookType.PYTHON, **{"name": name, **self._options})
        return RegisteredHook(
            config=config,
            event=self._event,
            source=HookSource.RUNTIME,
            options=settings.hook_options(None, config),
            matcher=self._matcher,
            sequential=self._sequential,
            function=function,
        )


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", None) or repr(function))


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Its parameters, also where a name in an annotation is for type checkers only."""
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):  # evaluates annotations only now
        from annotationlib import Format

        options["annotation_format"] = Format.FORWARDREF
    return inspect.signature(function, **options)
