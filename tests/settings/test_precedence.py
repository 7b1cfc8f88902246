"""A project can only add: who may switch off, loosen or tighten what.

protocol.md#settings; single cases are in ``tests/pins/settings/layers.json``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline import Settings
from tests.support.loaded import describe_settings, load_settings, write_settings

option_values = st.fixed_dictionaries(
    {},
    optional={
        "disabled": st.just(["p", "u", "s", "m", "n"]),
        "toolSelection": st.sampled_from(["union", "intersect"]),
        "onError": st.sampled_from(["allow", "block", {"changed": "allow"}]),
        "envPolicy": st.sampled_from(["inherit", "clean"]),
        "maxOutputBytes": st.integers(1, 9),
        "maxProcesses": st.integers(1, 9),
        "breaker": st.booleans(),
        "maxDepth": st.integers(1, 9),
        "workerIdleMs": st.integers(1, 9),
        "onAsk": st.sampled_from(["allow", "block"]),
    },
)
Describe = Callable[..., dict[str, Any]]


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """What comes of the settings of some places."""
    folder = tmp_path / "row"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))

    def described(**places: Any) -> dict[str, Any]:
        shutil.rmtree(folder, ignore_errors=True)
        write_settings(places, folder)
        return describe_settings(load_settings(folder, named="named" in places))

    return described


def hooks(*names: str, enable: bool = True, **options: Any) -> dict[str, Any]:
    listed = [
        {"type": "command", "command": "true", "name": name, "managed": name == "m"}
        for name in names
    ]
    groups = {"BeforeTool": [{"hooks": listed}]}
    return {"enableHooks": enable, "hooks": groups, "hooksConfig": options}


def titles(described: dict[str, Any]) -> dict[str, Any]:
    """The hooks by source, event and name."""
    return {
        title: fields
        for hook in described.get("hooks", [])
        for title, fields in ({hook: {}} if isinstance(hook, str) else hook).items()
    }


many = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@many
@given(option_values, st.booleans(), option_values, option_values)
def test_no_project_changes_anything_for_others(
    describe: Describe,
    mine: dict[str, Any],
    enable: bool,
    users: dict[str, Any],
    systems: dict[str, Any],
) -> None:
    others = {"user": hooks("u", **users), "system": hooks("s", "m", **systems)}
    without = describe(**others)
    beside = describe(project=hooks("p", enable=enable, **mine), **others)
    of_others = {
        title: fields
        for title, fields in titles(beside).items()
        if not title.startswith("project ")
    }
    assert of_others == titles(without)
    usual = Settings().global_options
    processes, asks = (
        [
            described.get("options", {}).get(name, value)
            for described in (without, beside)
        ]
        for name, value in (
            ("max_processes", usual.max_processes),
            ("on_ask", usual.on_ask.value),
        )
    )
    assert processes[1] <= processes[0]
    assert asks[1] in ("block", asks[0])


@many
@given(option_values, option_values, st.booleans(), st.sampled_from(["user", "named"]))
def test_nothing_reaches_a_managed_hook_but_the_system(
    describe: Describe,
    others: dict[str, Any],
    systems: dict[str, Any],
    enable: bool,
    place: str,
) -> None:
    system = hooks("m", **systems)
    alone = titles(describe(system=system))
    other = hooks("n", enable=enable, **others)
    beside = titles(describe(system=system, **{place: other}))
    title = "system BeforeTool m"
    assert beside[title] == alone[title]
    assert "disabled" not in beside[title]
