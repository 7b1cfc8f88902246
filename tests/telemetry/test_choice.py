"""Telemetry is off unless host and settings ask for it (issue 16: OpenTelemetry)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HooklineError, HookSystem, Settings
from hookline.settings.model import TelemetryOptions
from hookline.telemetry.choice import choose_telemetry
from hookline.telemetry.otel import OtelTelemetry
from hookline.telemetry.together import Together

from .recorded import TOOL, Failing, Recorded


def chosen(choice: Any, options: TelemetryOptions | None) -> Any:
    """The one backend behind the guard; None for none."""
    found = choose_telemetry(choice, options)
    if found is None:
        return None
    assert isinstance(found, Together)
    (backend,) = found.backends
    return backend


ON, WITH_CONTENT = TelemetryOptions(), TelemetryOptions(content=True)


@pytest.mark.parametrize(
    ("choice", "options", "content"),
    [
        (None, None, None),
        (None, ON, False),
        (None, WITH_CONTENT, True),
        ("otel", None, False),
        ("otel", WITH_CONTENT, True),
        (False, WITH_CONTENT, None),
        ("off", WITH_CONTENT, None),
    ],
)
def test_argument_decides_before_settings(
    choice: Any, options: TelemetryOptions | None, content: bool | None
) -> None:
    backend = chosen(choice, options)
    assert (None if backend is None else backend.content) is content


@pytest.mark.parametrize("choice", ["jaeger", True, 5])
def test_unknown_choice_is_an_error_that_says_what_is_known(choice: Any) -> None:
    with pytest.raises(HooklineError, match="expected 'otel'"):
        HookSystem(Config(), telemetry=choice)


def test_config_is_free_for_another_system_after_a_wrong_choice() -> None:
    config = Config()
    with pytest.raises(HooklineError):
        HookSystem(config, telemetry="jaeger")  # type: ignore[arg-type]  # the mistake
    HookSystem(config)


def test_backend_of_the_host_is_used_as_it_is(host: Recorded) -> None:
    own = host.telemetry()
    assert chosen(own, None) is own


def test_backend_of_the_host_is_beside_what_settings_say(host: Recorded) -> None:
    """Figures for Prometheus do not turn the spans off; no span is made twice."""
    own = Failing("nowhere")
    for choice in (own, Together(own)):
        found = choose_telemetry(choice, WITH_CONTENT)
        assert isinstance(found, Together)
        first, second = found.backends
        assert first is own
        assert isinstance(second, OtelTelemetry)
        assert second.content
    assert chosen(host.telemetry(), WITH_CONTENT).content is False


def run(code: str, folder: Path) -> str:
    """Run code in a process that has nothing imported yet."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


FIRE = f"""
import asyncio, sys
from hookline import Config, HookSystem, Settings, HooklineError

async def fire(hooks):
    async with hooks:
        hooks.on("BeforeTool", name="no")(lambda _: {{"decision": "block"}})
        result = await hooks.event_handler.fire("BeforeTool", {TOOL})
        print("blocked", result.blocked)
        return result
"""


def test_without_telemetry_nothing_of_it_is_imported(tmp_path: Path) -> None:
    """Issue 16: off unless asked for, and nothing on the hot path."""
    code = f"""{FIRE}
asyncio.run(fire(HookSystem(Config())))
found = [n for n in sys.modules if n.startswith(("opentelemetry", "hookline.telem"))]
print("found", found)
"""
    assert run(code, tmp_path) == "blocked True\nfound []\n"


MISSING = f'import sys\nsys.modules["opentelemetry"] = None\n{FIRE}'


def test_missing_package_is_an_error_for_the_argument(tmp_path: Path) -> None:
    code = f"""{MISSING}
try:
    HookSystem(Config(), telemetry="otel")
except HooklineError as error:
    print(error)
"""
    assert "install 'opentelemetry-api>=1.30'" in run(code, tmp_path)


def test_missing_package_is_a_warning_for_settings(tmp_path: Path) -> None:
    """A host must not lose its hooks over a setting of telemetry."""
    code = f"""{MISSING}
settings = Settings.from_mapping({{"hooksConfig": {{"telemetry": "otel"}}}})
asyncio.run(fire(HookSystem(Config(settings=settings))))
"""
    said = run(code, tmp_path)
    assert "blocked True" in said
    warning = "hooksConfig.telemetry is ignored: opentelemetry-api is missing"
    assert said.count(warning) == 1


GLOBAL = f"""{FIRE}
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

says_otel = Settings.from_mapping({{"hooksConfig": {{"telemetry": "otel"}}}})
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()

def set_up():
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))

def show():
    print("spans", len(exporter.get_finished_spans()))
    data = reader.get_metrics_data()
    found = data.resource_metrics[0].scope_metrics if data else []
    print("metrics", *(m.name for scope in found for m in scope.metrics))
"""


@pytest.mark.parametrize(
    "system",
    [
        'HookSystem(Config(), telemetry="otel")',
        "HookSystem(Config(settings=says_otel))",
    ],
    ids=["argument", "settings"],
)
def test_providers_of_the_host_are_used(tmp_path: Path, system: str) -> None:
    code = f"{GLOBAL}\nset_up()\nasyncio.run(fire({system}))\nshow()"
    said = run(code, tmp_path)
    assert said.startswith("blocked True\nspans 2\nmetrics ")
    for name in ("hookline.events", "hookline.event.duration"):
        assert name in said


def test_providers_that_are_set_later_are_used_from_then_on(tmp_path: Path) -> None:
    code = f"""{GLOBAL}
async def main():
    async with HookSystem(Config(), telemetry="otel") as hooks:
        hooks.on("BeforeTool", name="look")(lambda _: None)
        await hooks.event_handler.fire("BeforeTool", {TOOL})
        set_up()
        await hooks.event_handler.fire("BeforeTool", {TOOL})
asyncio.run(main())
show()
"""
    assert "spans 2\n" in run(code, tmp_path)


def test_nothing_is_exported_by_a_host_without_a_provider(tmp_path: Path) -> None:
    code = f"""{FIRE}
asyncio.run(fire(HookSystem(Config(), telemetry="otel")))
print("sdk", "opentelemetry.sdk" in sys.modules)
"""
    assert run(code, tmp_path) == "blocked True\nsdk False\n"


def test_command_of_ours_without_a_provider_loads_nothing(tmp_path: Path) -> None:
    """``hookline fire`` must not pay for an exporter that nobody has set up."""
    code = f"""{FIRE}
settings = Settings.from_mapping({{"hooksConfig": {{"telemetry": "otel"}}}})
config = Config(settings=settings)
config.one_shot = True
asyncio.run(fire(HookSystem(config)))
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    assert run(code, tmp_path) == "blocked True\n[]\n"


async def test_settings_say_so_and_the_argument_overrules_them(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"hooksConfig": {"telemetry": "otel"}})
    for choice, has in ((None, True), (False, False)):
        config = Config("s", tmp_path, settings)
        async with HookSystem(config, telemetry=choice) as hooks:
            assert (hooks.event_handler.pipeline.telemetry is not None) is has


RELOAD = f"""
import asyncio, json, logging
from pathlib import Path
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from hookline import Config, HookSystem, Settings

spans, tracers = InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracers)
metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
file = Path("s.json")

async def main():
    file.write_text("{{}}")
    config = Config(settings=Settings.from_file(file))
    async with HookSystem(config, reload=True) as hooks:
        for choice in (False, "otel", {{"exporter": "otel", "content": True}}, False):
            file.write_text(json.dumps({{"hooksConfig": {{"telemetry": choice}}}}))
            spans.clear()
            await hooks.event_handler.fire("BeforeTool", {TOOL})
            found = spans.get_finished_spans()
            print([[span.name, "a.txt" in span.to_json()] for span in found])

asyncio.run(main())
"""


def test_telemetry_follows_settings_that_are_reloaded(tmp_path: Path) -> None:
    """Issue 16: telemetry is what the settings of the event say."""
    said = run(RELOAD, tmp_path).splitlines()
    event = "hookline BeforeTool"
    assert said == ["[]", f"[[{event!r}, False]]", f"[[{event!r}, True]]", "[]"]
