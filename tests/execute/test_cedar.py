"""Cedar hooks: files that change or are not there, the engine, and any input.

What policies decide about single events is in ``tests/pins/fire/cedar.json`` and
``cedar_values.json`` (protocol.md#rules).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.execute.cedar import CedarExecutor
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.settings.load import HookOptions
from hookline.settings.model import Approval, HookConfig, HookSource, HookType
from tests.support.hook_scripts import only_hook
from tests.support.workspace import Workspace

PERMIT = "permit(principal, action, resource);"
FORBID = "forbid(principal, action, resource);"


def write_policies(
    workspace: Workspace, text: str, name: str = "tools.cedar"
) -> dict[str, Any]:
    """Write policies and return the hook that asks them."""
    (workspace.folder / name).write_text(text)
    return {"type": "cedar", "name": "policy", "policies": name}


def system_of(
    workspace: Workspace, hook: dict[str, Any], source: HookSource = HookSource.EXPLICIT
) -> HookSystem:
    mapping = workspace.settings("BeforeTool", hook)
    settings = Settings.from_mapping(mapping, source)
    return HookSystem(Config("s-1", workspace.folder, settings))


def failure(result: ProcessedHookResult) -> tuple[FailureCause | None, str, bool]:
    """Why the only hook failed, and whether that blocks."""
    ran = only_hook(result)
    return ran.cause, ran.error or "", result.blocked


async def test_changed_files_count_from_the_next_event_on(
    workspace: Workspace,
) -> None:
    """Entities reloaded when they change; policies and schema as well."""

    def in_group(name: str) -> str:
        parents = [{"type": "Agent", "id": name}]
        uid = {"type": "Agent", "id": "default"}
        return json.dumps([{"uid": uid, "attrs": {}, "parents": parents}])

    agents = workspace.folder / "agents.json"
    agents.write_text(in_group("in"))
    text = 'permit(principal in Agent::"in", action, resource);'
    hook = {**write_policies(workspace, text), "entities": "agents.json"}
    tools = workspace.folder / "tools.cedar"
    async with system_of(workspace, hook) as hooks:

        async def blocked() -> bool:
            result = await hooks.event_handler.fire_before_tool_event("a", {})
            return result.blocked

        assert not await blocked()
        for _ in range(3):  # of the same length, within one tick of the clock
            agents.write_text(in_group("on"))
            assert await blocked()
            agents.write_text(in_group("in"))
            assert not await blocked()
        tools.write_text(text.replace('"in"', '"on"'))
        assert await blocked()
        tools.write_text(text)
        os.utime(tools, ns=(1, 1))
        assert not await blocked()
        tools.unlink()
        assert await blocked()
        tools.write_text(text)
        assert not await blocked(), "it works again as soon as the file is there"


def count_reads(folder: Path) -> list[str]:
    """The files of a folder that are opened from now on."""
    opened: list[str] = []

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and str(args[0]).startswith(str(folder)):
            opened.append(Path(args[0]).name)

    sys.addaudithook(note)
    return opened


async def test_unchanged_files_are_read_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a user's hook for all folders, whose paths are absolute."""
    tools, agents = (workspace.folder / name for name in ("p.cedar", "agents.json"))
    for file, text in ((tools, PERMIT), (agents, "[]")):
        file.write_text(text)
    # A second change of a younger file could not be told from the first one.
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    opened = count_reads(workspace.folder)
    hook = {"type": "cedar", "policies": str(tools), "entities": str(agents)}
    async with system_of(workspace, hook, HookSource.USER) as hooks:
        for number in (0, 0, 1, 2):
            event = {"tool_name": "a", "tool_input": {}, "cwd": f"/{number}"}
            result = await hooks.event_handler.fire("BeforeTool", event)
            assert only_hook(result).success
    assert sorted(opened) == ["agents.json", "p.cedar"]


async def test_pipe_in_the_place_of_a_file_does_not_hang(
    workspace: Workspace,
) -> None:
    os.mkfifo(workspace.folder / "pipe")
    result = await workspace.fire("BeforeTool", {"type": "cedar", "policies": "pipe"})
    cause, error, blocked = failure(result)
    assert (cause, blocked) == (FailureCause.SPAWN, True)
    assert error.endswith("/pipe: cannot be read: it is not a regular file")


async def test_condition_that_is_nested_too_deeply_is_a_failure(
    workspace: Workspace,
) -> None:
    words = " || ".join(f'context.tool_input.path == "{n}"' for n in range(5000))
    text = f"forbid(principal, action, resource) when {{ {words} }}; {PERMIT}"
    event = {"tool_name": "a", "tool_input": {"path": "3"}}
    hook = write_policies(workspace, text)
    result = await workspace.fire("BeforeTool", hook, given=event)
    cause, error, blocked = failure(result)
    assert (cause, blocked) == (FailureCause.OUTPUT, True)
    assert "[...].contains(...)" in error


async def test_without_the_engine_the_message_installs_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails closed with the command that installs it."""
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    hook = write_policies(workspace, PERMIT)
    cause, error, blocked = failure(await workspace.fire("BeforeTool", hook))
    assert (cause, blocked) == (FailureCause.SPAWN, True)
    assert error.startswith("cedarpy is missing (hookline[cedar]): run ")
    assert error.endswith("install 'cedarpy>=4.12'")


class Panic(BaseException):
    """What a Rust library raises where it gives up: not an ``Exception``."""


async def test_panic_of_the_engine_is_a_failure_that_blocks(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends neither the host nor the other hooks."""

    def panic(*_: object) -> None:
        raise Panic("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr("cedarpy.is_authorized", panic)
    hook = write_policies(workspace, PERMIT)
    cause, error, blocked = failure(await workspace.fire("BeforeTool", hook))
    assert (cause, blocked) == (FailureCause.CRASH, True)
    assert "Panic: called `Option::unwrap()`" in error


@pytest.mark.parametrize("key", ["policies", "entities", "schema"])
async def test_relative_path_outside_of_project_settings_is_a_failure(
    workspace: Workspace, key: str
) -> None:
    """A relative path would be that of any project: a repository could bring it."""
    write_policies(workspace, "", "rel")
    hook = write_policies(workspace, PERMIT)
    hook |= {"policies": str(workspace.folder / "tools.cedar"), key: "rel"}
    for source in (HookSource.USER, HookSource.SYSTEM):
        async with system_of(workspace, hook, source) as hooks:
            result = await hooks.event_handler.fire_before_tool_event("a", {})
        ran = only_hook(result)
        assert (ran.cause, result.blocked) == (FailureCause.SPAWN, True)
        problem = "a relative path would be that of any project: name the whole path"
        assert ran.error == f"{key} 'rel': {problem}"


async def test_user_settings_name_the_home_folder(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace.folder))
    hook = {**write_policies(workspace, PERMIT), "policies": "~/tools.cedar"}
    async with system_of(workspace, hook, HookSource.USER) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("a", {})
    assert only_hook(result).success


class OtherBytesApproved(Approval):
    """An approval whose check came before the file was exchanged."""

    def __init__(self, path: Path) -> None:
        self.digests = {str(path): hashlib.sha256(FORBID.encode()).hexdigest()}


async def test_bytes_that_were_not_approved_are_not_parsed(
    workspace: Workspace,
) -> None:
    """Through the executor: no caller can exchange a file between check and use."""
    hook = RegisteredHook(
        config=HookConfig(type=HookType.CEDAR, name="p", policies=("tools.cedar",)),
        event=HookEventName.BeforeTool,
        source=HookSource.PROJECT,
        options=HookOptions(),
        project=str(workspace.folder),
        approval=OtherBytesApproved(workspace.folder / "tools.cedar"),
    )
    event = {"cwd": str(workspace.folder), "session_id": "s"}
    call = HookCall(hook.event, {**event, "tool_name": "a", "tool_input": {}})
    write_policies(workspace, PERMIT)
    end = await CedarExecutor().run(hook, call)
    assert end.cause is FailureCause.CHANGED
    write_policies(workspace, FORBID)
    end = await CedarExecutor().run(hook, call)
    assert end.cause is None
    assert end.answer is not None
    assert end.answer["decision"] == "deny"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8)
            | st.sampled_from(["__entity", "__extn", "__expr", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=JSON, name=st.text(max_size=20))
def test_any_input_is_judged_or_blocks(
    tmp_path_factory: pytest.TempPathFactory, value: Any, name: str
) -> None:
    """Nothing raises, nothing passes a forbid, and a judged value equals itself."""
    workspace = Workspace(tmp_path_factory.mktemp("fuzz"))
    judged = "context.tool_input == context.tool_input && context has tool_name"
    hook = write_policies(
        workspace,
        f"permit(principal, action, resource) when {{ {judged} }};"
        "forbid(principal, action, resource) when { context.tool_input has evil };",
    )

    async def check() -> None:
        async with system_of(workspace, hook) as hooks:
            fire = hooks.event_handler.fire_before_tool_event
            result = await fire(name, {"x": value})
            ran = only_hook(result)
            assert ran.success or "could not be shown" in (result.reason or "")
            assert result.blocked == (not ran.success)
            assert (await fire(name, {"x": value, "evil": 1})).blocked

    asyncio.run(check())
