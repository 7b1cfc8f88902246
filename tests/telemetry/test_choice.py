"""Telemetry is off unless host and settings ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HooklineError, HookSystem
from hookline.settings.model import TelemetryOptions
from hookline.telemetry.choice import choose_telemetry
from hookline.telemetry.otel import OtelTelemetry
from hookline.telemetry.together import Together
from tests.support.python import run_python
from tests.support.telemetry_rows import TOOL, TelemetryHost

from .test_together import FailingBackend

ON, WITH_CONTENT = TelemetryOptions(), TelemetryOptions(content=True)


def contents_of(choice: Any, options: TelemetryOptions | None) -> list[Any]:
    """Whether each of the chosen backends exports content; its type if it is none."""
    chosen = choose_telemetry(choice, options)
    backends = () if chosen is None else chosen.backends
    return [getattr(backend, "content", type(backend)) for backend in backends]


def test_argument_decides_before_settings(host: TelemetryHost) -> None:
    """Figures for Prometheus do not turn the spans off; no span is made twice."""
    backend = FailingBackend("nowhere")
    for choice, options, contents in (
        (None, None, []),
        (None, ON, [False]),
        (None, WITH_CONTENT, [True]),
        ("otel", None, [False]),
        ("otel", WITH_CONTENT, [True]),
        (False, WITH_CONTENT, []),
        ("off", WITH_CONTENT, []),
        (host.telemetry(), None, [False]),
        (host.telemetry(), WITH_CONTENT, [False]),
        (backend, WITH_CONTENT, [FailingBackend, True]),
        (Together(backend), WITH_CONTENT, [FailingBackend, True]),
    ):
        assert contents_of(choice, options) == contents, (choice, options)


def test_unknown_choice_is_an_error_and_leaves_the_config_free() -> None:
    config = Config()
    for choice in ("jaeger", True, 5, OtelTelemetry):
        with pytest.raises(HooklineError, match="expected 'otel'"):
            HookSystem(config, telemetry=choice)  # type: ignore[arg-type]  # the mistake
    HookSystem(config)


def lines_of(code: str) -> list[str]:
    """The lines that code prints in a process that has nothing imported yet."""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    return (done.stdout + done.stderr).splitlines()


FIRE = f"""
import asyncio, sys
from hookline import *

says_otel = Settings.from_mapping({{"hooksConfig": {{"telemetry": "otel"}}}})

async def fire(hooks):
    async with hooks:
        hooks.on("BeforeTool", name="no")(lambda _: {{"decision": "block"}})
        result = await hooks.event_handler.fire("BeforeTool", {TOOL})
        assert result.blocked

def loaded(*names):
    return sorted(name for name in sys.modules if name in names)
"""


def test_nothing_is_loaded_and_exported_before_it_is_asked_for() -> None:
    """Off unless asked for, and nothing on the hot path."""
    code = f"""{FIRE}
modules = ("opentelemetry", "hookline.telemetry", "opentelemetry.sdk")
asyncio.run(fire(HookSystem(Config())))
client = HookBusClient(InMemoryMessageBus())
asyncio.run(client.request("BeforeAgent", {{"prompt": "p"}}))
print("off", loaded(*modules))
config = Config(settings=says_otel)
config.one_shot = True  # as ``hookline fire``: nobody has set up an exporter
asyncio.run(fire(HookSystem(config)))
print("one shot", loaded("opentelemetry", "opentelemetry.sdk"))
asyncio.run(fire(HookSystem(Config(), telemetry="otel")))
print("without a provider", loaded("opentelemetry", "opentelemetry.sdk"))
"""
    assert lines_of(code) == [
        "off []",
        "one shot []",
        "without a provider ['opentelemetry']",
    ]


def test_missing_package_is_an_error_as_argument_and_a_warning_in_settings() -> None:
    """A host must not lose its hooks over a setting of telemetry."""
    code = f"""
import sys
sys.modules["opentelemetry"] = None
{FIRE}
try:
    HookSystem(Config(), telemetry="otel")
except HooklineError as error:
    print(error)
asyncio.run(fire(HookSystem(Config(settings=says_otel))))
"""
    error, *warnings = lines_of(code)
    assert "install 'opentelemetry-api>=1.30'" in error
    text = "hooksConfig.telemetry is ignored: opentelemetry-api is missing"
    assert str(warnings).count(text) == 1


def test_providers_of_the_host_are_used_and_settings_are_followed(
    tmp_path: Path,
) -> None:
    """Also providers that are set later, and settings that are reloaded."""
    code = f"""{FIRE}
import json
from pathlib import Path
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))

def show(case):
    found = spans.get_finished_spans()
    print(case, [[span.name, "a.txt" in span.to_json()] for span in found])
    spans.clear()

async def set_later():
    async with HookSystem(Config(), telemetry="otel") as hooks:
        await hooks.event_handler.fire("BeforeTool", {TOOL})
        trace.set_tracer_provider(tracers)
        metrics.set_meter_provider(MeterProvider([reader]))
        await hooks.event_handler.fire("BeforeTool", {TOOL})

async def reloaded():
    file = Path({str(tmp_path)!r}) / "s.json"
    file.write_text("{{}}")
    config = Config(settings=Settings.from_file(file))
    async with HookSystem(config, reload=True) as hooks:
        for choice in (False, "otel", {{"exporter": "otel", "content": True}}, False):
            file.write_text(json.dumps({{"hooksConfig": {{"telemetry": choice}}}}))
            await hooks.event_handler.fire("BeforeTool", {TOOL})
            show("reloaded")

asyncio.run(set_later())
show("set later")
asyncio.run(fire(HookSystem(Config(settings=says_otel))))
show("settings")
asyncio.run(fire(HookSystem(Config(settings=says_otel), telemetry=False)))
show("overruled")
asyncio.run(reloaded())
data = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(sorted(metric.name for scope in data for metric in scope.metrics))
"""
    event, hook = ["hookline BeforeTool", False], ["hookline hook no", False]
    assert lines_of(code) == [
        f"set later {[event]}",
        f"settings {[hook, event]}",
        "overruled []",
        "reloaded []",
        f"reloaded {[event]}",
        f"reloaded {[[event[0], True]]}",
        "reloaded []",
        "['hookline.event.duration', 'hookline.events', 'hookline.hook.duration']",
    ]
