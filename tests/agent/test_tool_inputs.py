"""Guards hold whatever type a tool's arguments have (protocol.md#process)."""

from __future__ import annotations

import enum
import sys
import types
from collections import ChainMap, UserDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pydantic
import pytest
from google.genai import types as genai_types

from hookline import Config, HookBusClient, InMemoryMessageBus, RemoteHooks, Settings
from hookline.agent import (
    ToolCall,
    ToolScheduler,
    execute_tool_with_hooks,
    hooked,
    hooked_tool,
)
from hookline.recipes import hooks as recipes
from hookline.testing.modelapi import Answer
from tests.support.model_calls import ScriptedServer, client_of, closing_client
from tests.support.recorded_events import RecordedHooks, specific
from tests.support.typed_values import (
    Attrs,
    Kind,
    Located,
    LyingText,
    Named,
    SlottedRecord,
    Struct,
    Word,
)

README_GUARD = """
from hookline.script import block, run


def no_env_files(event):
    if event["tool_input"].get("path", "").endswith(".env"):
        return block("keep secrets out of .env files")


run(no_env_files)
"""


class Name(enum.Enum):
    ENV = ".env"


PATHS: dict[str, Any] = {
    "text": ".env",
    "path": Path(".env"),
    "enum": Name.ENV,
    "str enum": Word.ENV,
    "enum of a path": Kind.ENV,
    "lying text": LyingText(".env"),
    "path-like": Located(),
    "bytes": b".env",
}


def guard(folder: Path, kind: str) -> dict[str, Any]:
    """README's guard or the recipe, as a command or as a warm worker."""
    if kind.startswith("recipe"):
        script = Path(str(recipes.__path__[0]), "protected_files.py")
    else:
        script = folder / "guard.py"
        script.write_text(README_GUARD)
    hook = {"command": f"'{sys.executable}' '{script}'"}
    if kind.endswith("worker"):
        hook["type"] = "worker"
    return {"$process": hook}


GUARDS = ("readme", "readme worker", "recipe", "recipe worker")


@pytest.mark.parametrize("kind", GUARDS)
async def test_a_guard_of_paths_holds_for_every_kind_of_path(
    tmp_path: Path, subtests: pytest.Subtests, kind: str
) -> None:
    config = RecordedHooks({"BeforeTool": guard(tmp_path, kind)}, tmp_path).config
    written: list[Any] = []

    def write_file(path: Any, content: str = "") -> str:
        written.append(path)
        return content

    scheduler = ToolScheduler(config, [write_file])
    async with config:
        for name, path in PATHS.items():
            with subtests.test(name):
                assert ".env" in hooked_tool(config)(write_file)(path)
                given = {"path": path, "content": "x"}
                result = await execute_tool_with_hooks(
                    config, "write_file", given, written.append
                )
                call = ToolCall("1", "write_file", given)
                [answer] = (await scheduler.run([call])).answers
                assert result.error is not None
                assert answer.result.error is not None
        assert written == []
        assert hooked_tool(config)(write_file)("ok.txt", "x") == "x"


class Target(pydantic.BaseModel):
    path: Path
    size: int = 1


TARGETS: dict[str, Any] = {
    "pydantic": Target(path=Path(".env")),
    "dataclass": SlottedRecord(Path(".env")),
    "attrs": Attrs(Path(".env")),
    "struct": Struct(Path(".env")),
    "named tuple": Named(Path(".env")),
    "mapping proxy": types.MappingProxyType({"path": Path(".env")}),
    "user dict": UserDict({"path": Path(".env")}),
    "chain map": ChainMap({"path": Path(".env")}),
    "list of paths": {"path": [Path(".env")]},
    "key": {Path(".env"): 1},
}


async def test_a_guard_in_this_process_gets_plain_values_of_its_own(
    subtests: pytest.Subtests,
) -> None:
    """protocol.md#process: a private copy; a guard written for dicts does not crash."""

    def no_env(event: dict[str, Any]) -> dict[str, Any] | None:
        target = event["tool_input"]["target"]
        assert type(target) is dict
        names = [*target, *(v for v in target.values() if isinstance(v, str))]
        names += [name for v in target.values() if isinstance(v, list) for name in v]
        target.clear()
        return {"decision": "deny", "reason": "no"} if ".env" in names else None

    config = RecordedHooks({"BeforeTool": no_env}).config
    write_file = hooked_tool(config)(lambda target: f"wrote {target}")
    async with config:
        for name, target in TARGETS.items():
            with subtests.test(name):
                before = str(target)
                assert write_file(target) == "no"
                assert str(target) == before


@pytest.mark.parametrize("whole", [types.MappingProxyType, UserDict, ChainMap, dict])
async def test_a_whole_input_may_be_any_mapping(
    whole: Callable[[dict[Any, Any]], Mapping[Any, Any]],
) -> None:
    hooks = RecordedHooks({"BeforeTool": specific(tool_input={"mode": "a"})})
    config = hooks.config
    given = whole({"path": Path(".env"), Name.ENV: 1})
    inputs: list[dict[Any, Any]] = []
    async with config:
        await execute_tool_with_hooks(config, "write_file", given, inputs.append)
        handler = hooks.system.event_handler
        fired = await handler.fire_before_tool_event("write_file", given)
        await handler.fire(
            "BeforeTool", {"tool_name": "write_file", "tool_input": given}
        )
    seen = {"path": ".env", ".env": 1}
    assert [event["tool_input"] for event in hooks.events] == [seen] * 3
    assert inputs == [{"path": Path(".env"), Name.ENV: 1, "mode": "a"}]
    assert fired.final_output is not None
    changed = fired.final_output.modified_tool_input
    assert changed is not None
    assert changed["path"] == Path(".env")
    assert changed["mode"] == "a"


@pytest.mark.parametrize("way", ["sync", "aio"])
async def test_automatic_calling_shows_models_as_objects(
    tmp_path: Path, model_server: ScriptedServer, way: str
) -> None:
    """The SDK makes pydantic objects of the model's arguments."""
    hooks = RecordedHooks({"BeforeTool": [guard(tmp_path, "recipe"), None]})
    written: list[Target] = []

    def write_file(target: Target) -> str:
        """Write a file."""
        written.append(target)
        return "wrote it"

    call = Answer("", (("write_file", {"target": {"path": ".env"}}),))
    settings = genai_types.GenerateContentConfig(tools=[write_file])
    asked: Any = {"model": "m", "contents": "go", "config": settings}
    model_server.answers(call, "sorry")
    async with closing_client(client_of("genai", model_server)) as plain, hooks.config:
        client = hooked(plain, hooks.config)
        if way == "sync":
            client.models.generate_content(**asked)
        else:
            await client.aio.models.generate_content(**asked)
    assert written == []
    assert hooks.events[0]["tool_input"] == {"target": {"path": ".env", "size": 1}}
    assert "secrets" in str(model_server.bodies[1]["contents"][-1])


async def test_a_guard_on_a_bus_sees_the_same(tmp_path: Path) -> None:
    bus = InMemoryMessageBus()
    hooks = RecordedHooks({"BeforeTool": [guard(tmp_path, "readme"), None]}, bus=bus)
    agent = Config("s-2", tmp_path, Settings())
    agent.use_hooks(RemoteHooks(HookBusClient(bus), session_id="s-2"))
    async with hooks.system as system:
        given = types.MappingProxyType(
            {"path": Path(".env"), "more": SlottedRecord(Path("a"))}
        )
        result = await execute_tool_with_hooks(agent, "write_file", given, print)
        deep: Any = {"path": ".env"}
        for _ in range(600):
            deep = [deep]
        unseen = await execute_tool_with_hooks(agent, "t", {"deep": deep}, print)
        handled = await system.event_handler.handle_request(
            {
                "eventName": "BeforeTool",
                "input": {"tool_name": "t", "tool_input": {"d": deep}},
            }
        )
    assert "secrets" in (result.error or "")
    assert hooks.events[0]["tool_input"] == {"path": ".env", "more": {"path": "a"}}
    assert "deeper than 500 levels" in (unseen.error or "")
    assert handled["processed"]["blocked"] is True


async def test_what_hooks_leave_alone_stays_the_very_object() -> None:
    """Even where a hook repeats the whole input, as many do."""
    echo = "event['tool_input'] | {'mode': 'a', 'when': '2026-01-02', 'count': True}"
    code = (
        "import json,sys; event = json.load(sys.stdin); "
        f"print(json.dumps({{'hookSpecificOutput': {{'tool_input': {echo}}}}}))"
    )
    hook = {"command": f'{sys.executable} -c "{code}"'}
    config = RecordedHooks({"BeforeTool": {"$process": hook}}).config
    target, path, inputs = SlottedRecord(Path("a")), Path("b"), []

    @hooked_tool(config)
    def write_file(target: Any, path: Any, **more: Any) -> str:
        inputs.append((target, path, more))
        return "wrote it"

    async with config:
        text = write_file(target, path, mode=Name.ENV, count=1)
    notice = "[System] A hook changed the tool's input: mode, count, when"
    assert text == f"wrote it\n\n{notice}"
    [(same_target, same_path, more)] = inputs
    assert same_target is target
    assert same_path is path
    assert more == {"mode": "a", "count": True, "when": "2026-01-02"}
    assert more["count"] is True


async def test_a_changed_value_has_the_type_of_the_old_one() -> None:
    hook = specific(tool_input={"path": "src/a", "target": {"path": "b"}})
    config = RecordedHooks({"BeforeTool": hook}).config
    inputs = []

    @hooked_tool(config)
    def write_file(path: Path, target: Target) -> str:
        inputs.append((path, target))
        return "wrote it"

    async with config:
        write_file(Path("a"), Target(path=Path("a")))
    assert inputs == [(Path("src/a"), Target(path=Path("b")))]


async def test_a_result_is_shown_to_hooks_as_what_it_means() -> None:
    hooks = RecordedHooks({"AfterTool": None})
    config = hooks.config
    value = {"found": [Path("a")], "record": SlottedRecord(Path("b")), "name": Name.ENV}

    @hooked_tool(config)
    def find() -> dict[str, object]:
        return value

    async with config:
        assert find() is value
    assert hooks.events[0]["tool_response"]["llmContent"] == {
        "found": ["a"],
        "record": {"path": "b"},
        "name": ".env",
    }
