"""Loggers, telemetry, buses and journals are told of a verdict and cannot change it.

protocol.md#results; an observer is code of the host that raises, hangs or answers with
something else. One test breaks our own watch of settings, which no caller can do.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

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
from hookline.journal.query import EventFilter, read_journal
from hookline.settings.watch import SettingsWatch
from hookline.telemetry.otel import OtelTelemetry

GUARD = {"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}
CRASH = {"type": "command", "command": "exit 9", "name": "crash"}
SLOW = {"type": "command", "command": "sleep 60", "name": "slow", "timeout": 50}
LATER = {"type": "command", "command": "true", "name": "later", "async": True}
RAISES = ("raises", "panics", "exits")
METHODS_OF = {
    "debug_logger": ("enabled", "log", "flush"),
    "telemetry": ("start_event", "start_hook", "carrier", "end"),
    "message_bus": ("subscribe", "publish", "unsubscribe"),
}
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


class Observer:
    """A debug logger, a bus and a telemetry in one, with a method that is trouble."""

    def __init__(self, trouble: Trouble, method: str = "") -> None:
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

    def subscribe(self, message_type: str, handler: Any) -> Any:
        self._do("subscribe")
        request = {"eventName": "BeforeTool", "input": {}}
        asyncio.get_running_loop().call_soon(handler, request)
        return partial(self._do, "unsubscribe")

    async def publish(self, message_type: str, payload: Any) -> None:
        self._do("publish")

    def start_event(self, *_: Any) -> Observer:
        self._do("start_event")
        return self

    def start_hook(self, *_: Any) -> Observer:
        self._do("start_hook")
        return self

    def carrier(self) -> dict[str, str]:
        self._do("carrier")
        return {"traceparent": "\0"}

    def end(self, result: Any) -> None:
        self._do("end")


class BadStandardLogger(logging.Logger):
    """A logger of the host's own class that cannot say what it would write."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__("bad")
        self._trouble = trouble

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - of the library
        self._trouble()
        return True


@contextmanager
def handler_on(target: logging.Logger, trouble: Trouble) -> Iterator[None]:
    """Give a logger a handler that is trouble, and let it write everything."""
    handler, level = logging.Handler(), target.level
    handler.emit = lambda record: trouble()  # type: ignore[method-assign] # as a subclass
    target.addHandler(handler)
    target.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        target.removeHandler(handler)
        target.setLevel(level)
        trouble.over.set()


def config_with(folder: Path, *hooks: dict[str, Any], **options: Any) -> Config:
    groups = [{"hooks": list(hooks), "matcher": "denied"}]
    groups.append({"hooks": [CRASH], "matcher": "crash"})
    groups.append({"hooks": [LATER], "matcher": "later"})
    groups.append({"hooks": [SLOW], "matcher": "slow"})
    raw = {"hooks": {"BeforeTool": groups}, "hooksConfig": options}
    return Config("s", folder, Settings.from_mapping(raw))


async def check_verdicts(config: Config, hanging: Trouble | None = None) -> None:
    """The denied tool never runs, the others do; soon, whoever is told of it.

    The end waits some seconds for an observer, unless it is told what is ``hanging``.
    """
    ran: list[str] = []
    started = time.monotonic()
    for name in ("denied", "crash", "slow", "later", "nothing matches", "denied"):
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
    assert ran == ["crash", "slow", "later", "nothing matches"]
    if hanging is not None:
        hanging.over.set()
    await config.dispose()
    assert time.monotonic() - started < SLOW_S


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """New folders."""

    def made() -> Iterator[Path]:
        for number in count():
            folder = tmp_path / str(number)
            folder.mkdir()
            yield folder

    return made()


def bad_systems(
    kind: str, folders: Iterator[Path], *roles: str, **others: Any
) -> Iterator[tuple[str, Config, Trouble]]:
    """Systems with one observer that is trouble, which is not yet asked anything."""
    for role in roles:
        for method in METHODS_OF[role]:
            config, trouble = config_with(next(folders), GUARD), Trouble(kind)
            HookSystem(config, **{**others, role: Observer(trouble, method)})
            yield f"{role}, {method}", config, trouble


@pytest.mark.parametrize("kind", RAISES)
async def test_observer_that_raises_changes_no_verdict(
    folders: Iterator[Path], subtests: pytest.Subtests, kind: str
) -> None:
    """DELTA-HTEL-001..003 cost their own record; HBUS-002: nor does a bus."""
    systems = list(bad_systems(kind, folders, *METHODS_OF))
    for adapted in (False, True):
        config, trouble = config_with(next(folders), GUARD), Trouble(kind)
        target = BadStandardLogger(trouble)
        logger = logging.LoggerAdapter(target, {}) if adapted else target
        HookSystem(config, debug_logger=logger)
        systems.append((f"logger of the host's own class, {adapted=}", config, trouble))
    for name, config, trouble in systems:
        with subtests.test(name):
            await check_verdicts(config)
            assert trouble.calls


class ListLogger(Observer):
    """A debug logger that keeps the names of its records."""

    def __init__(self, trouble: Trouble, method: str = "") -> None:
        super().__init__(trouble, method)
        self.names: list[str] = []

    def log(self, level: int, name: str, record: Mapping[str, Any]) -> None:
        self.names.append(name)


def exporting(trouble: Trouble) -> OtelTelemetry:
    """Telemetry whose exporter is called at the end of each span, as in a test."""

    class Exporter(SpanExporter):
        def export(self, spans: Any) -> Any:
            trouble()

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(Exporter()))
    return OtelTelemetry(tracer_provider=tracers)


async def test_observer_that_hangs_changes_no_verdict_and_costs_no_other_its_record(
    folders: Iterator[Path],
) -> None:
    """All of them at once: each costs its own system a few seconds at its end."""
    fine: Any = {"debug_logger": Observer(Trouble("raises"))}
    systems = list(bad_systems("hangs", folders, "debug_logger", "telemetry", **fine))
    config, trouble = config_with(next(folders), GUARD), Trouble("hangs")
    HookSystem(config, telemetry=exporting(trouble), **fine)
    systems.append(("exporter", config, trouble))
    config, trouble = config_with(folder := next(folders), GUARD), Trouble("hangs")
    log, telemetry = ListLogger(trouble, "flush"), Observer(trouble, "start_event")
    HookSystem(config, debug_logger=log, telemetry=telemetry).record_to(
        folder / "journal.sqlite"
    )
    systems.append(("two, beside a journal", config, trouble))
    config, trouble = config_with(next(folders), GUARD), Trouble("hangs")
    HookSystem(config)
    systems.append(("handler of the root logger", config, trouble))
    with handler_on(logging.getLogger(), trouble):
        await asyncio.gather(*(check_verdicts(config) for _, config, _ in systems))
    for name, _, trouble in systems:
        assert trouble.calls, name
        trouble.over.set()
    assert log.names.count("hook:batch_summary") >= 4
    with read_journal(str(folder / "journal.sqlite")) as reader:
        verdicts = [entry.verdict for entry in reader.newest(EventFilter(), None)]
    assert verdicts.count("blocked") == 4


@pytest.mark.parametrize("kind", RAISES)
async def test_factory_of_log_records_changes_no_verdict(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called for what settings are warned of, too, and for other observers."""
    trouble = Trouble(kind)
    config = config_with(tmp_path, GUARD, unknown=True)
    HookSystem(config, debug_logger=Observer(Trouble("raises"), "log"))
    with monkeypatch.context() as patched:
        patched.setattr(logging, "_logRecordFactory", lambda *_, **__: trouble())
        await check_verdicts(config)
    assert trouble.calls


@pytest.mark.parametrize("name", [None, "hookline", "hookline.hooks", "given"])
async def test_handler_of_the_host_changes_no_verdict(
    folders: Iterator[Path], subtests: pytest.Subtests, name: str | None
) -> None:
    """It is on the root logger, on ours, or on one that was given."""
    for kind in (*RAISES, "hangs"):
        trouble, target = Trouble(kind), logging.getLogger(name)
        with subtests.test(kind), handler_on(target, trouble):
            config = config_with(next(folders), GUARD, breaker={"timeouts": 1})
            HookSystem(config, debug_logger=target if name == "given" else None)
            await check_verdicts(config, hanging=trouble)
            assert trouble.calls


class Emptying(Observer):
    """Telemetry that empties what it is shown."""

    def start_event(self, *shown: Any) -> Observer:
        shown[1].clear()
        return self


def odd_telemetry(answer: object) -> Any:
    """Telemetry that answers with something else."""

    class Odd:
        def __getattr__(self, name: str) -> Any:
            if name in {"start_event", "start_hook"} and answer is not None:
                return lambda *_: self if name == "start_event" else answer
            return lambda *_: answer

    return Odd()


async def test_telemetry_of_the_wrong_kind_changes_no_verdict(
    folders: Iterator[Path],
) -> None:
    answers = (None, 7, "text", {"traceparent": 3}, object())
    for telemetry in (Emptying(Trouble("raises")), *map(odd_telemetry, answers)):
        config = config_with(next(folders), GUARD)
        HookSystem(config, telemetry=telemetry)
        await check_verdicts(config)


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


@pytest.mark.parametrize("debug", [False, True], ids=["quiet", "debug"])
@pytest.mark.parametrize("error", [ZeroDivisionError, PanicError, SystemExit])
async def test_odd_tool_name_runs_no_denied_tool(
    folders: Iterator[Path],
    subtests: pytest.Subtests,
    debug: bool,
    error: type[BaseException],
) -> None:
    """Whatever the name does, and whoever is told of the call."""
    names = {method: odd_name(method, error=error) for method in METHODS}
    names["all, and no text"] = odd_name(*METHODS, error=error, base=object)
    for method, name in names.items():
        ran: list[object] = []
        config = config_with(folder := next(folders), GUARD)
        system = HookSystem(config, telemetry="otel", debug_logger=listener(debug))
        system.record_to(folder / "journal.sqlite")
        async with system:
            with subtests.test(method):
                result = await execute_tool_with_hooks(config, name, {}, ran.append)
                assert ran == []
                if method in METHODS or error is ZeroDivisionError:
                    assert result.text == "no"
                else:  # its text is for the process, not for a guard
                    assert "cannot be read" in result.text
                call = await config.session("c").begin_tool(name, {})
                assert call.refused
                event = {"tool_name": name, "tool_input": {}}
                assert (await system.event_handler.fire("BeforeTool", event)).blocked


def listener(debug: bool) -> logging.Logger:
    target = logging.Logger("test", logging.DEBUG if debug else logging.ERROR)
    target.addHandler(logging.NullHandler())
    return target


def test_observer_of_the_wrong_kind_is_refused() -> None:
    """The records of an async logger would never be written."""

    class Async(Observer):
        async def log(self, *_: Any) -> None:  # type: ignore[override] # the mistake
            pass

    wrong_loggers: list[Any] = [object(), print, "debug", logging, Observer, {}, 0]
    for logger in (*wrong_loggers, Async(Trouble("raises"))):
        wanted = "debug_logger: expected a logging.Logger, or an .* the plain methods"
        with pytest.raises(TypeError, match=wanted):
            HookSystem(Config(), debug_logger=logger)
    wrong_buses: list[Any] = [object(), "nats://x", InMemoryMessageBus]
    for bus in wrong_buses:
        with pytest.raises(TypeError, match="message_bus: expected an object with"):
            HookSystem(Config(), message_bus=bus)
    log: DebugLogger = Observer(Trouble("raises"))
    assert HookSystem(Config(), debug_logger=log).status.total_hooks == 0


@pytest.mark.parametrize("adapted", [False, True], ids=["logger", "adapter"])
async def test_logger_of_the_standard_library_gets_the_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, adapted: bool
) -> None:
    target: Any = logging.getLogger("an.agent")
    config = config_with(tmp_path, GUARD)
    logger = logging.LoggerAdapter(target, {}) if adapted else target
    with caplog.at_level(logging.DEBUG, "an.agent"):
        async with HookSystem(config, debug_logger=logger) as system:
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
    config.watch = SettingsWatch(config.loaded, config.working_dir)

    def fail(_: object) -> bool:
        raise OSError("out of descriptors")

    monkeypatch.setattr(SettingsWatch, "has_changed", fail)
    ran: list[object] = []
    await execute_tool_with_hooks(config, "t", {}, ran.append)
    assert ran == []
    await config.dispose()
