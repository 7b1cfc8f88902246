"""Hooks registered in code: mistakes raise there, and a strict one always closes."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, get_args

import pytest

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.engine import registration
from hookline.errors import InvalidHookError, UnknownEventError, UnknownHookError
from hookline.settings.model import FailurePolicy

Event = dict[str, Any]


@pytest.fixture
def hooks() -> HookSystem:
    return HookSystem(Config())


def test_names_of_events_for_type_checkers_are_all_events() -> None:
    assert get_args(registration.Name) == tuple(one.value for one in HookEventName)
    assert set(get_args(registration.Cause)) == set(FailurePolicy.__struct_fields__)


BAD_OPTIONS: list[tuple[str, Mapping[str, Any], str]] = [
    ("zero", {"timeout_ms": 0}, "timeout_ms: expected a number of milliseconds above"),
    ("negative", {"timeout_ms": -1}, "timeout_ms: .* got -1"),
    ("nan", {"timeout_ms": float("nan")}, "timeout_ms: "),
    ("infinite", {"timeout_ms": float("inf")}, "timeout_ms: "),
    ("true", {"timeout_ms": True}, "timeout_ms: .* got true"),
    ("none", {"timeout_ms": None}, "timeout_ms: .* got null"),
    ("text", {"timeout_ms": "5000"}, "timeout_ms: "),
    ("on_error", {"on_error": "deny"}, "on_error: expected 'allow', 'block' or an"),
    ("on_error type", {"on_error": True}, "on_error: .* got true"),
    ("cause", {"on_error": {"crsh": "block"}}, "on_error: unknown cause 'crsh'"),
    ("cause value", {"on_error": {"crash": "no"}}, "on_error: crash: expected 'allow'"),
    ("mode", {"mode": "watch"}, "mode: expected 'enforce' or 'observe', got 'watch'"),
    ("name", {"name": " "}, "name: expected some text"),
    ("recheck", {"recheck": 1}, "recheck: expected true or false, got 1"),
    ("sequential", {"sequential": "no"}, "sequential: expected true or false"),
    ("async", {"asynchronous": "yes"}, "asynchronous: expected true or false"),
    ("nobody waits", {"asynchronous": True, "on_error": "block"}, "no effect with asy"),
    ("matcher", {"matcher": "write_[a-"}, "matcher 'write_.a-': invalid regular expr"),
    ("glob", {"matcher": "*_file"}, "matcher '._file': .*did you mean '.*_file'"),
    ("matcher type", {"matcher": ["a"]}, "matcher: expected a string"),
    ("condition", {"condition": "tool_name =="}, "condition 'tool_name ==': "),
    ("condition field", {"condition": "tol_name == 'x'"}, "condition .*tol_name"),
    ("condition type", {"condition": 5}, "condition: expected some text, got 5"),
]


@pytest.mark.parametrize(
    ("options", "message"), [pytest.param(*c, id=name) for name, *c in BAD_OPTIONS]
)
def test_a_wrong_option_raises_where_the_hook_is_registered(
    hooks: HookSystem, options: Mapping[str, Any], message: str
) -> None:
    """Issue 17: ``on_error``, ``mode``, ``timeout_ms`` are checked at registration."""
    with pytest.raises(InvalidHookError, match=message) as caught:
        hooks.on("BeforeTool", **options)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith('hooks.on("BeforeTool"): ')
    assert hooks.status.total_hooks == 0


class Method:
    def check(self, event: Event) -> None: ...

    @classmethod
    def build(cls, event: Event) -> None: ...


def two(event: Event, more: Event) -> None: ...


def none() -> None: ...


def by_name(*, event: Event) -> None: ...


def numbers(event: Event) -> Iterator[int]:
    yield 1


async def later(event: Event) -> AsyncIterator[int]:
    yield 1


class Yields:
    def __call__(self, event: Event) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (two, r"two\(event, more\) must take one argument, the event"),
        (Method.check, r"check\(self, event\) .* the method of an object"),
        (none, r"none\(\).* must take one argument"),
        (by_name, r"by_name\(\*, event\) must take one argument"),
        (numbers, "numbers is a generator: return the answer"),
        (later, "later is a generator"),
        (Yields(), "is a generator"),
        ("BeforeTool", "expected a function, got 'BeforeTool'"),
        (None, "expected a function, got None"),
        (vars(Method)["build"], "expected a function, got"),
    ],
)
def test_what_is_no_hook_is_refused(
    hooks: HookSystem, function: Any, message: str
) -> None:
    """Issue 17: a wrong number of parameters, a generator, no function at all."""
    register: Callable[[Any], Any] = hooks.on("BeforeTool")
    with pytest.raises(InvalidHookError, match=message):
        register(function)
    assert hooks.status.total_hooks == 0


def test_a_forgotten_event_says_what_to_write(hooks: HookSystem) -> None:
    """Issue 17: ``@hooks.on`` without parentheses, or with empty ones."""
    on: Any = hooks.on
    with pytest.raises(InvalidHookError, match=r'@hooks.on\("BeforeTool"\) above none'):
        on(none)
    with pytest.raises(TypeError, match="'event'"):
        on()
    with pytest.raises(UnknownEventError, match="did you mean 'AfterTool'"):
        on("AfterTol", matcher="[")


def test_a_matcher_without_effect_is_logged(
    hooks: HookSystem, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        hooks.on("BeforeModel", "gpt-.*")
        hooks.on("SessionStart", "start")
        hooks.on("BeforeTool", "write_*")
    assert "BeforeModel takes no matcher" in caplog.text
    assert "'start' never matches" in caplog.text
    assert "matcher 'write_*': it is a regular expression, not a glob" in caplog.text
    assert "did you mean 'write_.*'?" in caplog.text


def test_functions_of_all_kinds_are_registered(hooks: HookSystem) -> None:
    seen: list[Event] = []

    class Guard:
        def check(self, event: Event, *, strict: bool = True) -> None: ...

        async def __call__(self, event: Event) -> None: ...

    guard = Guard()
    on = hooks.on("BeforeTool", on_error={"crash": "block"}, condition="true")
    for function in (guard, guard.check, seen.append, print, lambda event: None):
        assert on(function) is function
    assert on(functools.partial(two, {})) is not None
    assert hooks.status.total_hooks == 6


def test_a_hook_may_name_a_type_that_only_type_checkers_know(hooks: HookSystem) -> None:
    """Python 3.14 evaluates annotations when a signature is read (issue 17)."""
    quote = "" if sys.version_info >= (3, 14) else "'"
    scope: dict[str, Any] = {}
    exec(f"def guard(event: {quote}Missing{quote}): ...", scope)
    assert hooks.on("BeforeTool")(scope["guard"]) is scope["guard"]


async def test_off_knows_methods_and_takes_an_event() -> None:
    """Issue 17: ``hooks.off`` for methods, repeats, one event, unknown functions."""
    seen: list[Event] = []

    class Guard:
        def check(self, event: Event) -> None: ...

    one, other = Guard(), Guard()
    async with HookSystem(Config()) as hooks:
        for event in (HookEventName.BeforeTool, HookEventName.AfterTool):
            hooks.on(event)(one.check)
            hooks.on(event)(one.check)
            hooks.on(event)(seen.append)
        with pytest.raises(UnknownHookError, match="check is not registered"):
            hooks.off(other.check)
        hooks.off(one.check, "BeforeTool")
        assert hooks.status.total_hooks == 4
        with pytest.raises(UnknownHookError, match=r"\(registered: append\)"):
            hooks.off(one.check, "BeforeTool")
        with pytest.raises(UnknownEventError):
            hooks.off(one.check, "BeforTool")
        hooks.off(seen.append)
        hooks.off(one.check)
        assert hooks.status.total_hooks == 0


async def test_an_event_in_flight_finishes_with_a_hook_that_is_removed() -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def guard(event: Event) -> dict[str, str]:
        started.set()
        await go.wait()
        return {"decision": "block", "reason": "no"}

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        fire = hooks.event_handler.fire_before_tool_event
        running = asyncio.create_task(fire("t", {}))
        await started.wait()
        hooks.off(guard)
        go.set()
        assert (await running).blocked
        assert not (await fire("t", {})).blocked


async def observed(event: Event) -> dict[str, str]:
    return {"decision": "block"}


async def test_a_hook_that_observes_blocks_nothing() -> None:
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool", mode="observe")(observed)
        result = await hooks.event_handler.fire_before_tool_event("t", {})
    assert not result.blocked
    assert result.aggregated.hook_results[0].would_block


def raises(event: Event) -> None:
    raise KeyError("x")


async def hangs(event: Event) -> None:
    await asyncio.Event().wait()


async def hangs_on(event: Event) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


async def cancelled(event: Event) -> None:
    raise asyncio.CancelledError


def cancelled_plainly(event: Event) -> None:
    raise asyncio.CancelledError


def exits(event: Event) -> None:
    sys.exit(3)


async def exits_with_text(event: Event) -> None:
    sys.exit("broken")


def generator_exit(event: Event) -> None:
    raise GeneratorExit


def number(event: Event) -> Any:
    return 5


def text(event: Event) -> Any:
    return "block"


def not_json(event: Event) -> Any:
    cycle: dict[str, Any] = {}
    cycle["decision"] = cycle
    return {"reason": cycle, "decision": None}


def coroutine_of_nothing(event: Event) -> Any:
    return asyncio.sleep(0, "no dict")


FAILURES: list[Callable[[Event], Any]] = [
    *(raises, hangs, hangs_on, cancelled, cancelled_plainly, exits, exits_with_text),
    *(generator_exit, number, text, coroutine_of_nothing),
]


@pytest.mark.parametrize("function", FAILURES)
async def test_every_failure_of_a_strict_hook_blocks(
    function: Callable[[Event], Any],
) -> None:
    """Issue 17: ``on_error="block"`` holds on every way to fail."""
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool", on_error="block", timeout_ms=50)(function)
        result = await hooks.event_handler.fire_before_tool_event("t", {})
    assert result.blocked
    assert f"hook {function.__name__!r} failed" in (result.reason or "")


async def test_a_strict_hook_blocks_while_it_is_skipped() -> None:
    """Issue 17: an open breaker is a failure too.

    protocol.md#settings, ``breaker``
    """
    breaker = {"timeouts": 1, "cooldownMs": 60_000}
    settings = Settings.from_mapping({"hooksConfig": {"breaker": breaker}})
    async with HookSystem(Config(settings=settings)) as hooks:
        hooks.on("BeforeTool", on_error="block", timeout_ms=20)(hangs)
        fire = hooks.event_handler.fire_before_tool_event
        first, second = await fire("t", {}), await fire("t", {})
    assert first.blocked
    assert second.blocked
    assert "skipped" in (second.reason or "")


async def test_a_hook_says_more_than_the_settings_about_its_failures() -> None:
    strict = Settings.from_mapping({"hooksConfig": {"onError": "block"}})
    async with HookSystem(Config(settings=strict)) as hooks:
        hooks.on("BeforeTool", on_error={"crash": "allow"})(raises)
        fire = hooks.event_handler.fire_before_tool_event
        assert not (await fire("t", {})).blocked
        hooks.off(raises)
        hooks.on("BeforeTool")(raises)
        assert (await fire("t", {})).blocked


async def test_a_short_timeout_in_code_is_meant(
    hooks: HookSystem, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 17: ``timeout_ms`` names its unit, so nobody is told about it."""

    @hooks.on("BeforeTool", timeout_ms=1)
    async def wait(event: Event) -> None:
        await asyncio.Event().wait()

    async with hooks:
        await hooks.event_handler.fire_before_tool_event("write", {})
    assert "timed out after 1 ms" in caplog.text
    assert "in milliseconds" not in caplog.text
