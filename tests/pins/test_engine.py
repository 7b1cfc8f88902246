"""What hooks of one event come to: merging, matching, failures, limits, re-checks."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hookline import (
    Config,
    HookBusClient,
    HookEventName,
    HookSystem,
    InMemoryMessageBus,
    RemoteHooks,
    Settings,
)
from hookline.agent import execute_tool_with_hooks
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.journal.query import EventFilter, read_journal
from hookline.settings.model import HookSource
from hookline.telemetry.prometheus import PrometheusTelemetry
from tests.support import odd_values
from tests.support.hook_rows import RecordList, fire_hook_row
from tests.support.pins import PinTable, Row, masked

Table = Callable[[str], PinTable]
PARALLEL_AND_CHAINED = ("merge", "recheck", "closed", "conditions")


@pytest.mark.parametrize("table", PARALLEL_AND_CHAINED)
async def test_functions_of_an_event_come_to_one_verdict_here_and_over_the_bus(
    pin_table: Table, tmp_path: Path, table: str
) -> None:
    """HOOK-166, protocol.md#merging, #several-hooks, #results and #bus."""

    async def fired(name: str, row: Row) -> object:
        return await fire_hook_row(row, tmp_path / str(hash(name)), over_the_bus=True)

    await pin_table(f"engine/{table}").check(fired, at_once=1)


@pytest.mark.parametrize("table", ["failures", "invalid_input"])
async def test_failure_means_what_the_policy_says_for_its_cause(
    pin_table: Table, tmp_path: Path, table: str
) -> None:
    """Every cause, with every way to name a policy, in every mode.

    DELTA-HPAY-004, DELTA-HPAY-006: an invalid input reaches no hook.
    """

    async def fired(name: str, row: Row) -> object:
        return await fire_hook_row(row, tmp_path / str(hash(name)))

    await pin_table(f"engine/{table}").check(fired)


async def test_matcher_matches_the_names_that_a_hook_is_shown(
    pin_table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    """HOOK-162, HOOK-163, protocol.md#planning and #dialects.

    Each target is the matched field of the event or all of its fields.
    """

    def matched(name: str, row: Row) -> object:
        event = HookEventName(row.get("event", "BeforeTool"))
        hook = {"type": "command", "command": "x", "name": "hook"}
        hook |= {"dialect": row["dialect"]} if "dialect" in row else {}
        group = {"hooks": [hook]} | (
            {"matcher": row["matcher"]} if "matcher" in row else {}
        )
        settings = Settings.from_mapping({"hooks": {event: [group]}})
        planner = HookPlanner(HookRegistry(settings))
        field = row.get("field", "tool_name")
        return [
            target
            for target in row["targets"]
            if planner.plan_for(
                event, target if isinstance(target, dict) else {field: target}
            )
        ]

    await pin_table("engine/matchers").check(matched)


async def test_plan_has_the_hooks_that_run_in_their_order(pin_table: Table) -> None:
    """HOOK-164, HOOK-165: nobody weakens a guard by repeating it."""

    def planned(name: str, row: Row) -> object:
        settings = {"hooks": {"BeforeTool": row["groups"]}}
        settings["hooksConfig"] = row.get("config", {})
        layers = list(Settings.from_mapping(settings).layers)
        for source in (HookSource.USER, HookSource.SYSTEM):
            more = {"hooks": {"BeforeTool": row.get(source.value, [])}}
            (layer,) = Settings.from_mapping(more, source).layers
            layers.append(structs.replace(layer, file=f"{source}.json"))
        registry = HookRegistry(Settings(layers=tuple(layers)))
        fields = {"tool_name": row.get("tool", "write_file")}
        plan = HookPlanner(registry).plan_for(HookEventName.BeforeTool, fields)
        if plan is None:
            return None
        names = [hook.name for hook in plan.hooks]
        outcome = {"hooks": names, "sequential": plan.sequential}
        if len({layer.source for layer in layers if layer.groups}) > 1:
            outcome["sources"] = [hook.source for hook in plan.hooks]
        return outcome

    await pin_table("engine/plans").check(planned)


async def test_registration_of_a_function_with_wrong_options_raises(
    pin_table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake raises where the hook is registered, or is logged there."""
    caplog.set_level(logging.WARNING, "hookline")

    def registration(name: str, row: Row) -> object:
        caplog.clear()
        system = HookSystem(Config())
        on: Callable[..., Any] = system.on
        namespace: dict[str, Any] = {"__name__": "guards"}
        exec(row.get("source", "def guard(event): ..."), namespace)
        guard, event = namespace["guard"], row.get("event", "BeforeTool")
        try:
            registered = on(guard if event == "<function>" else event, **row["options"])
            assert registered(guard) is guard
        except HooklineError as error:
            assert system.status.total_hooks == 0
            text = re.sub(" at 0x[0-9a-f]+", "", str(error))
            return {"raises": type(error).__name__, "says": text}
        assert system.status.total_hooks == 1
        return {"logs": [record.getMessage() for record in caplog.records]}

    await pin_table("engine/registration").check(registration, at_once=1)


async def test_event_has_its_records_in_the_log(
    pin_table: Table, tmp_path: Path
) -> None:
    """DELTA-HTEL-001..003, rules O1 to O3, protocol.md#logs."""

    async def logged(name: str, row: Row) -> object:
        log = RecordList(getattr(logging, row.get("level", "DEBUG")))
        verdict = await fire_hook_row(row, tmp_path / str(hash(name)), log=log)
        assert verdict
        return [
            [
                logging.getLevelName(level),
                re.sub(r"\d+ms", "<ms>", text),
                _shown(record),
            ]
            for level, text, record in log.records
        ]

    await pin_table("engine/records").check(logged)


def _shown(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: ("> 0" if value else 0) if key == "duration_ms" else value
        for key, value in record.items()
    }


async def test_hook_that_repeats_a_value_changes_nothing(
    pin_table: Table, tmp_path: Path
) -> None:
    """protocol.md#results: two values are the same if they are equal as JSON values.

    In results, journal, metrics, hooked tools and over the bus alike.
    """

    async def repeated(name: str, row: Row) -> object:
        journal, figures = tmp_path / str(hash(name)), PrometheusTelemetry()
        shown, answer = (eval(row[k], vars(odd_values)) for k in ("shown", "repeated"))
        event_input = {"path": "a", "value": shown}
        change = {"tool_input": {"value": answer, "path": "a"}}
        bus, config = InMemoryMessageBus(), Config("s", tmp_path)
        system = HookSystem(config, bus, telemetry=figures)
        system.record_to(journal)
        system.on("BeforeTool")(lambda _: {"hookSpecificOutput": change})
        ran: list[Mapping[str, Any]] = []
        async with system:
            fired = await config.session().fire(
                "BeforeTool", {"tool_name": "t", "tool_input": event_input}
            )
            remote_hooks = RemoteHooks(HookBusClient(bus))
            remote = await remote_hooks.fire_before_tool_event("t", event_input)
            result = await execute_tool_with_hooks(config, "t", event_input, ran.append)
        with read_journal(str(journal)) as reader:
            entries = reader.newest(EventFilter(event="BeforeTool"), None)
        (verdict,) = {entry.verdict for entry in entries}
        same = verdict == "allowed"
        for final in (fired.final_output, remote.final_output):
            assert final is not None
            assert (final.modified_tool_input is None) is same
        assert ("A hook changed" not in result.text) is same
        assert (ran[0]["value"] is shown) is same
        line = f'event="BeforeTool",verdict="{verdict}"}} 3.0'
        assert line in figures.render(None).decode()
        return verdict

    await pin_table("engine/same_values").check(repeated)


async def test_changed_settings_are_used_or_refused_with_a_reason(
    pin_table: Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """protocol.md#settings: what cannot decide leaves the old settings in use.

    The same with a file, with ``Config.load``, and with ``reload()`` called.
    """

    async def reloaded(name: str, row: Row) -> object:
        outcomes: dict[str, Any] = {}
        for way in ("file", "Config.load", "reload()"):
            folder = tmp_path / str(hash(name + way))
            folder.mkdir()
            caplog.clear()
            changing = ChangingSettings(folder, monkeypatch, way)
            outcome = await changing.run(row)
            outcome["log"] = [
                f"{record.levelname} {record.name}: {record.getMessage()}"
                for record in caplog.records
                if record.levelno >= logging.WARNING and record.name != "hookline.hooks"
            ]
            places = {"file": changing.file, "folder": folder}
            outcomes[way] = json.loads(masked(json.dumps(outcome), places))
        same = all(outcome == outcomes["file"] for outcome in outcomes.values())
        return outcomes["file"] if same else outcomes

    await pin_table("engine/reload").check(reloaded, at_once=1)


class ChangingSettings:
    """Settings that change under a system which follows them in one of three ways."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
        self._way = way
        self._folder = folder
        self._project = folder / "project"
        self._project.mkdir()
        self.file = folder / "hooks.json"
        if way == "Config.load":
            monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
            self.file = folder / "config" / "hookline" / "settings.json"
            self.file.parent.mkdir(parents=True)
        (folder / "broken.cedar").write_text("permit (")

    async def run(self, row: Row) -> dict[str, Any]:
        """Which rule answers before and after the change, and once it is mended."""
        self._write(row["before"])
        if self._way == "Config.load":
            found = Config.load(self._project, reload=True).get_hook_system()
            assert found is not None
            system = found
        else:
            config = Config("s", self._project, Settings.from_file(self.file))
            system = HookSystem(config, reload=self._way == "file")
        system.require_hooks = row.get("required", False)
        outcome: dict[str, Any] = {}
        async with system:
            outcome["before"] = await self._reason(system)
            self._write(row["changed"])
            outcome["after"] = await self._reason(system, reload=True)
            outcome["and again"] = await self._reason(system)
            outcome["reload_failed"] = system.health().reload_failed
            last = system.last_reload
            outcome["problems"] = None if last is None else list(last.problems)
            rule = {"type": "rule", "name": "r", "when": "true", "then": MENDED}
            self._write({"hooks": {"BeforeTool": [{"hooks": [rule]}]}})
            outcome["mended"] = await self._reason(system, reload=True)
        return outcome

    def _write(self, content: object) -> None:
        if content is None:
            self.file.unlink()
            return
        text = content if isinstance(content, str) else json.dumps(content)
        text = text.replace("<folder>", str(self._folder))
        new = self._folder / "new"
        new.write_text(text)
        # A file is read once it has rested; of a time in the future nobody can tell.
        os.utime(new, (FAR_FUTURE_S, FAR_FUTURE_S))
        new.replace(self.file)

    async def _reason(self, system: HookSystem, *, reload: bool = False) -> str | None:
        if reload and self._way == "reload()":
            await system.reload()
        return (await system.event_handler.fire_before_tool_event("x", {})).reason


FAR_FUTURE_S = 1 << 32
MENDED = {"decision": "deny", "reason": "mended"}
