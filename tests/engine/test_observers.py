"""protocol.md#results: nothing that is only told of a verdict can change it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Config,
    DebugLogger,
    HookBusClient,
    HookSystem,
    InMemoryMessageBus,
    Settings,
)
from hookline.agent import execute_tool_with_hooks
from hookline.bus import MessageBusType

GUARD = {"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}
CRASH = {"type": "command", "command": "exit 9", "name": "crash"}
LATER = {"type": "command", "command": "true", "name": "later", "async": True}
RAISES = ("raises", "panics", "exits")
SLOW_S = 40.0
"""Less than an observer hangs: nobody waits for it, not even at the end."""


class PanicError(BaseException):
    """Not an ``Exception``, as what a native library raises."""


class Trouble:
    """What an observer does instead of its work."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.calls = 0
        self.over = threading.Event()

    def __call__(self) -> None:
        self.calls += 1
        if self.kind == "raises":
            raise ZeroDivisionError("an observer broke")
        if self.kind == "panics":
            raise PanicError("an observer broke badly")
        if self.kind == "exits":
            raise SystemExit(3)
        self.over.wait(60)


@pytest.fixture(params=[*RAISES, "hangs"])
def trouble(request: pytest.FixtureRequest) -> Iterator[Trouble]:
    found = Trouble(request.param)
    yield found
    found.over.set()


class BadLogger:
    """A debug logger with one method that is trouble."""

    def __init__(self, trouble: Trouble, method: str) -> None:
        self._trouble, self._method = trouble, method

    def _do(self, method: str) -> None:
        if method == self._method:
            self._trouble()

    def enabled(self, level: int) -> bool:
        self._do("enabled")
        return True

    def log(self, level: int, name: str, record: Mapping[str, Any]) -> None:
        self._do("log")

    def flush(self) -> None:
        self._do("flush")


class BadStandardLogger(logging.Logger):
    """A logger of the host's own class that cannot say what it would write."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__("bad")
        self._trouble = trouble

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - of the library
        self._trouble()
        return True


class BadBus:
    """A bus with one method that is trouble."""

    def __init__(self, trouble: Trouble, method: str) -> None:
        self._trouble, self._method = trouble, method

    def subscribe(self, message_type: str, handler: Any) -> Any:
        if self._method == "subscribe":
            self._trouble()
        asyncio.get_running_loop().call_soon(
            handler, {"eventName": "BeforeTool", "input": {}}
        )
        return self.unsubscribe

    def unsubscribe(self) -> None:
        if self._method == "unsubscribe":
            self._trouble()

    async def publish(self, message_type: str, payload: Any) -> None:
        if self._method == "publish":
            self._trouble()


class BadHandler(logging.Handler):
    """A handler of the standard library that is trouble."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def emit(self, record: logging.LogRecord) -> None:
        self._trouble()


class BadTelemetry:
    """A backend, its events and its hooks in one, with one method that is trouble."""

    def __init__(self, trouble: Trouble, method: str) -> None:
        self._trouble, self._method = trouble, method

    def _do(self, method: str) -> BadTelemetry:
        if method == self._method:
            self._trouble()
        return self

    def start_event(self, *_: Any) -> BadTelemetry:
        return self._do("start_event")

    def start_hook(self, *_: Any) -> BadTelemetry:
        return self._do("start_hook")

    def carrier(self) -> dict[str, str]:
        self._do("carrier")
        return {"traceparent": "\0"}

    def end(self, result: Any) -> None:
        self._do("end")


def config_with(folder: Path, *hooks: dict[str, Any], **options: Any) -> Config:
    groups = [{"hooks": list(hooks), "matcher": "denied"}]
    groups.append({"hooks": [CRASH], "matcher": "crash"})
    groups.append({"hooks": [LATER], "matcher": "later"})
    raw = {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    return Config("s", folder, Settings.from_mapping(raw))


async def check_verdicts(config: Config) -> None:
    """The denied tool never runs, the others do; soon, whoever is told of it."""
    ran: list[str] = []
    started = time.monotonic()
    for name in ("denied", "crash", "later", "nothing matches", "denied"):
        run = partial(ran.append, name)
        result = await execute_tool_with_hooks(config, name, {}, lambda _: run())  # noqa: B023 - it is called now
        assert (result.text == "no") is (name == "denied")
    # What a caller of the handler gets, without the trigger around it.
    system = config.get_hook_system()
    assert system is not None
    fired = await system.event_handler.fire_before_tool_event("denied", {})
    assert (fired.blocked, fired.reason) == (True, "no")
    assert not (await system.event_handler.fire("BeforeTool", {})).should_stop
    unknown = await system.event_handler.fire("BeforeTool", None)  # type: ignore[arg-type] # a mistake
    assert not unknown.aggregated.success
    assert ran == ["crash", "later", "nothing matches"]
    await config.dispose()
    assert time.monotonic() - started < SLOW_S


@pytest.mark.parametrize("method", ["enabled", "log", "flush"])
async def test_debug_logger_changes_no_verdict(
    tmp_path: Path, trouble: Trouble, method: str
) -> None:
    """DELTA-HTEL-001..003 cost their own record and nothing else."""
    config = config_with(tmp_path, GUARD)
    HookSystem(config, debug_logger=BadLogger(trouble, method))
    await check_verdicts(config)
    assert trouble.calls


@pytest.mark.parametrize("kind", RAISES)
@pytest.mark.parametrize("adapted", [False, True], ids=["logger", "adapter"])
async def test_logger_of_the_hosts_own_class_changes_no_verdict(
    tmp_path: Path, kind: str, adapted: bool
) -> None:
    trouble = Trouble(kind)
    target = BadStandardLogger(trouble)
    config = config_with(tmp_path, GUARD)
    chosen = logging.LoggerAdapter(target, {}) if adapted else target
    HookSystem(config, debug_logger=chosen)
    await check_verdicts(config)
    assert trouble.calls


@pytest.mark.parametrize("kind", RAISES)
async def test_factory_of_log_records_changes_no_verdict(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called for what settings are warned of, too, and for other observers."""
    trouble = Trouble(kind)
    config = config_with(tmp_path, GUARD, unknown=True)
    HookSystem(config, debug_logger=BadLogger(Trouble("raises"), "log"))
    with monkeypatch.context() as patched:
        patched.setattr(logging, "_logRecordFactory", lambda *_, **__: trouble())
        await check_verdicts(config)
    assert trouble.calls


@pytest.mark.parametrize("kind", RAISES)
@pytest.mark.parametrize("method", ["subscribe", "publish", "unsubscribe"])
async def test_bus_changes_no_verdict(tmp_path: Path, kind: str, method: str) -> None:
    """HBUS-002: the direct path works whatever the bus raises."""
    trouble = Trouble(kind)
    config = config_with(tmp_path, GUARD)
    HookSystem(config, BadBus(trouble, method))
    await check_verdicts(config)
    assert trouble.calls


@pytest.mark.parametrize("name", [None, "hookline", "hookline.hooks", "given"])
async def test_handler_of_the_host_changes_no_verdict(
    tmp_path: Path, trouble: Trouble, name: str | None
) -> None:
    """It is on the root logger, on ours, or on one that was given."""
    target, handler = logging.getLogger(name), BadHandler(trouble)
    target.addHandler(handler)
    level = target.level
    target.setLevel(logging.DEBUG)
    try:
        config = config_with(tmp_path, GUARD, breaker={"timeouts": 1})
        given = target if name == "given" else None
        HookSystem(config, debug_logger=given)
        await check_verdicts(config)
    finally:
        target.removeHandler(handler)
        target.setLevel(level)
    assert trouble.calls


@pytest.mark.parametrize("method", ["start_event", "start_hook", "carrier", "end"])
async def test_telemetry_changes_no_verdict(
    tmp_path: Path, trouble: Trouble, method: str
) -> None:
    config = config_with(tmp_path, GUARD)
    HookSystem(config, telemetry=BadTelemetry(trouble, method))
    await check_verdicts(config)
    assert trouble.calls


async def test_telemetry_that_empties_what_it_is_shown_changes_no_verdict(
    tmp_path: Path,
) -> None:
    class Emptying(BadTelemetry):
        def start_event(self, *shown: Any) -> BadTelemetry:
            shown[1].clear()
            return self

    config = config_with(tmp_path, GUARD)
    HookSystem(config, telemetry=Emptying(Trouble("raises"), "no method"))
    await check_verdicts(config)


async def test_exporter_that_hangs_holds_up_no_verdict(tmp_path: Path) -> None:
    """Also one that is called at the end of each span, as in a test setup."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

    from hookline.telemetry.otel import OtelTelemetry

    trouble = Trouble("hangs")

    class Hanging(SpanExporter):
        def export(self, spans: Any) -> Any:
            trouble()

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(Hanging()))
    config = config_with(tmp_path, GUARD)
    HookSystem(config, telemetry=OtelTelemetry(tracer_provider=tracers))
    await check_verdicts(config)
    assert trouble.calls
    trouble.over.set()


@pytest.mark.parametrize("answer", [None, 7, "text", {"traceparent": 3}, object()])
async def test_telemetry_of_the_wrong_kind_changes_no_verdict(
    tmp_path: Path, answer: object
) -> None:
    class Odd:
        def __getattr__(self, name: str) -> Any:
            if name in {"start_event", "start_hook"} and answer is not None:
                return lambda *_: self if name == "start_event" else answer
            return lambda *_: answer

    config = config_with(tmp_path, GUARD)
    HookSystem(config, telemetry=Odd())
    await check_verdicts(config)


async def test_observer_that_hangs_costs_no_other_its_record(tmp_path: Path) -> None:
    names: list[str] = []

    class ListLogger(BadLogger):
        def log(self, level: int, name: str, record: Mapping[str, Any]) -> None:
            names.append(name)

    trouble = Trouble("hangs")
    config = config_with(tmp_path, GUARD)
    log = ListLogger(trouble, "flush")
    system = HookSystem(
        config, debug_logger=log, telemetry=BadTelemetry(trouble, "start_event")
    )
    system.record_to(tmp_path / "journal.sqlite")
    await check_verdicts(config)
    trouble.over.set()
    assert names.count("hook:batch_summary") >= 4
    from hookline.journal.query import EventFilter, read_journal

    with read_journal(str(tmp_path / "journal.sqlite")) as reader:
        verdicts = [one.verdict for one in reader.newest(EventFilter(), None)]
    assert verdicts.count("blocked") == 4


async def test_journal_that_cannot_start_its_thread_changes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    config = config_with(tmp_path, GUARD)
    HookSystem(config).record_to(str(tmp_path / "journal.sqlite"))
    monkeypatch.setattr(threading.Thread, "start", start)
    ran: list[object] = []
    result = await execute_tool_with_hooks(config, "denied", {}, ran.append)
    monkeypatch.undo()
    assert (result.text, ran) == ("no", [])
    await config.dispose()


@pytest.mark.parametrize("answers", ["raise", "panic", "hang"])
async def test_subscriber_takes_no_response_from_another(
    tmp_path: Path, answers: str
) -> None:
    """DELTA-HBUS-001: it is told of responses beside the one who asked."""

    def bad(payload: Any) -> Any:
        if answers == "hang":
            return asyncio.sleep(60)
        raise ZeroDivisionError if answers == "raise" else PanicError

    bus = InMemoryMessageBus()
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, bad)
    bus.subscribe(MessageBusType.HOOK_EXECUTION_REQUEST, bad)
    async with HookSystem(config_with(tmp_path, GUARD), message_bus=bus):
        for _ in range(2):
            response = await HookBusClient(bus, timeout_s=30).request(
                "BeforeTool", {"tool_name": "denied", "tool_input": {}}
            )
            assert response["processed"]["blocked"] is True


METHODS = (
    *("bool", "str", "repr", "format", "len", "eq", "ne", "hash", "contains", "iter"),
    *("getitem", "getattribute"),
)


def odd_name(*methods: str, error: type[BaseException], base: type = str) -> Any:
    """A tool name with methods that raise."""

    def fail(self: object, *_: Any) -> Any:
        raise error

    members = {"__hash__": base.__hash__, **{f"__{name}__": fail for name in methods}}
    return type("Odd", (base,), members)(*(["denied"] if base is str else []))


@pytest.mark.parametrize("method", [*METHODS, "all, and no text"])
@pytest.mark.parametrize("debug", [False, True], ids=["quiet", "debug"])
@pytest.mark.parametrize("error", [ZeroDivisionError, PanicError, SystemExit])
async def test_odd_tool_name_runs_no_denied_tool(
    tmp_path: Path, method: str, debug: bool, error: type[BaseException]
) -> None:
    """Whatever the name does, and whoever is told of the call."""
    name = odd_name(method, error=error)
    if method not in METHODS:
        name = odd_name(*METHODS, error=error, base=object)
    ran: list[object] = []
    config = config_with(tmp_path, GUARD)
    system = HookSystem(config, telemetry="otel", debug_logger=listener(debug))
    system.record_to(tmp_path / "journal.sqlite")
    async with system:
        result = await execute_tool_with_hooks(config, name, {}, ran.append)
        assert ran == []
        if method in METHODS or error is ZeroDivisionError:
            assert result.text == "no"
        else:  # its text is for the process, not for a guard
            assert "cannot be read" in result.text
        call = await config.session("c").begin_tool(name, {})
        assert call.refused
        fired = await system.event_handler.fire(
            "BeforeTool", {"tool_name": name, "tool_input": {}}
        )
        assert fired.blocked


def listener(debug: bool) -> logging.Logger:
    target = logging.Logger("test", logging.DEBUG if debug else logging.ERROR)
    target.addHandler(logging.NullHandler())
    return target


@pytest.mark.parametrize(
    "wrong",
    [object(), print, "debug", logging, BadLogger, {}, 0],
    ids=["object", "function", "text", "module", "class", "dict", "0"],
)
def test_debug_logger_of_the_wrong_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"debug_logger: expected a logging.Logger"):
        HookSystem(Config(), debug_logger=wrong)


def test_async_debug_logger_is_refused() -> None:
    """Its records would never be written."""

    class Async(BadLogger):
        async def log(self, *_: Any) -> None:  # type: ignore[override] # the mistake
            pass

    with pytest.raises(TypeError, match="plain methods"):
        HookSystem(Config(), debug_logger=Async(Trouble("raises"), ""))  # type: ignore[arg-type] # same


@pytest.mark.parametrize("wrong", [object(), "nats://x", InMemoryMessageBus])
def test_bus_of_the_wrong_kind_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="message_bus: expected an object with"):
        HookSystem(Config(), message_bus=wrong)


def test_debug_logger_of_the_users_own_satisfies_the_protocol() -> None:
    log: DebugLogger = BadLogger(Trouble("raises"), "")
    assert HookSystem(Config(), debug_logger=log).status.total_hooks == 0


@pytest.mark.parametrize("adapted", [False, True], ids=["logger", "adapter"])
async def test_logger_of_the_standard_library_gets_the_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, adapted: bool
) -> None:
    target: Any = logging.getLogger("an.agent")
    config = config_with(tmp_path, GUARD)
    given = logging.LoggerAdapter(target, {}) if adapted else target
    with caplog.at_level(logging.DEBUG, "an.agent"):
        async with HookSystem(config, debug_logger=given) as system:
            await system.event_handler.fire_before_tool_event("denied", {})
    names = [record.getMessage().split()[0] for record in caplog.records]
    assert {"hook:result", "hook:batch_summary"} <= set(names)


async def test_reload_that_cannot_look_keeps_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """protocol.md#settings: what is in use still holds."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [GUARD]}]}}))
    config = Config("s", tmp_path, Settings.from_file(str(file)))
    config.reload = True
    from hookline.settings.watch import SettingsWatch

    def fail(_: object) -> bool:
        raise OSError("out of descriptors")

    monkeypatch.setattr(SettingsWatch, "has_changed", fail)
    ran: list[object] = []
    await execute_tool_with_hooks(config, "t", {}, ran.append)
    assert ran == []
    await config.dispose()


async def test_error_without_a_text_is_a_failure_like_any_other(tmp_path: Path) -> None:
    """DELTA-HFAIL-001: what cannot be described must not raise either."""

    class NoTextError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

        __repr__ = __str__

    class Odd(dict[str, Any]):
        def items(self) -> Any:
            raise NoTextError

        keys = __iter__ = items

    async with config_with(tmp_path, {**GUARD, "onError": "block"}) as config:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        for firer in (system.event_handler, config.session("c")):
            result = await firer.fire("BeforeTool", Odd(tool_name="denied"))
            assert result.blocked
            assert result.aggregated.errors[0].message == "NoTextError"
