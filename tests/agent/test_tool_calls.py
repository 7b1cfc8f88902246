"""Tool calls through real hook processes: the effects column of protocol.md#events."""

from __future__ import annotations

import asyncio
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.agent import (
    Confirmation,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_tool_hook,
    fire_before_tool_hook,
)
from hookline.settings.model import OnFailure

from .scenes import BROKEN, Hook, config_of, events, names, runs, says, specific, told


class Tool:
    """A tool that notes what it was called with."""

    def __init__(self, result: Any = "wrote it") -> None:
        self.inputs: list[dict[str, Any]] = []
        self._result = result

    async def __call__(self, tool_input: dict[str, Any]) -> Any:
        self.inputs.append(tool_input)
        return self._result


INPUT = {"path": "a.txt", "content": "hello"}


async def run(
    config: Config, tool: Tool | None = None, **more: Any
) -> tuple[ToolResult, Tool]:
    tool = tool or Tool()
    async with config:
        result = await execute_tool_with_hooks(
            config, "write_file", INPUT, tool, **more
        )
    return result, tool


async def test_before_tool_block_keeps_the_tool_from_running(tmp_path: Path) -> None:
    """protocol.md#events and #callers, HOOK-066: the reason is what the model sees."""
    config = config_of(tmp_path, {"BeforeTool": runs("echo no keys >&2; exit 2")})
    result, tool = await run(config)
    assert (result.llm_content, tool.inputs) == ("no keys", [])
    assert result.error == "no keys"
    assert result.stop_reason is None
    assert "AfterTool" not in names(tmp_path)


async def test_before_tool_change_reaches_the_tool_as_the_whole_input(
    tmp_path: Path,
) -> None:
    """protocol.md#events: the tool runs with the whole input after the merge."""
    hooks = {
        "BeforeTool": specific(tool_input={"path": "src/a.txt"}),
        "AfterTool": runs("true"),
    }
    result, tool = await run(config_of(tmp_path, hooks))
    assert tool.inputs == [{"path": "src/a.txt", "content": "hello"}]
    assert result.llm_content == told("wrote it", "path")
    assert events(tmp_path)[-1]["tool_input"]["path"] == "src/a.txt"


async def test_before_tool_stop_gives_a_stop_result(tmp_path: Path) -> None:
    hook = says({"continue": False, "stopReason": "enough"})
    result, tool = await run(config_of(tmp_path, {"BeforeTool": hook}))
    assert (result.stop_reason, result.llm_content) == ("enough", "enough")
    assert tool.inputs == []


async def test_before_tool_stop_counts_more_than_a_block(tmp_path: Path) -> None:
    """protocol.md#callers: a stop result also when it blocks as well."""
    hooks = [says({"continue": False, "stopReason": "enough"}), runs("exit 2")]
    result, _ = await run(config_of(tmp_path, {"BeforeTool": hooks}))
    assert result.stop_reason == "enough"


@pytest.mark.parametrize("wording", ["decision", "permission"])
async def test_before_tool_ask_is_put_to_a_person_after_a_notification(
    tmp_path: Path, wording: str
) -> None:
    """protocol.md#callers: a Notification (ToolPermission) event comes first."""
    asks: Hook = says({"decision": "ask", "reason": "sure?"})
    if wording == "permission":
        asks = specific(permissionDecision="ask", permissionDecisionReason="sure?")
    config = config_of(tmp_path, {"BeforeTool": asks, "Notification": runs("true")})
    asked: list[tuple[Confirmation, list[str]]] = []

    async def confirm(question: Confirmation) -> bool:
        asked.append((question, names(tmp_path)))
        return True

    result, tool = await run(config, confirm=confirm)
    [(question, before)] = asked
    assert question.reason == "sure?"
    assert question.tool_input == INPUT
    assert before == ["BeforeTool", "Notification"]
    assert events(tmp_path)[1]["notification_type"] == "ToolPermission"
    assert (result.llm_content, tool.inputs) == ("wrote it", [INPUT])


async def test_a_message_of_the_notification_is_handed_to_the_model(
    tmp_path: Path,
) -> None:
    """protocol.md#events: a system message may come from any event."""
    hooks = {
        "BeforeTool": says({"decision": "ask"}),
        "Notification": runs("cat >/dev/null; echo a person was asked"),
    }
    config = config_of(tmp_path, hooks, seen=False)
    result, _ = await run(config, confirm=lambda _: True)
    assert result.llm_content == "wrote it\n\n[System] a person was asked"


async def test_before_tool_ask_declined_does_not_run_the_tool(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": says({"decision": "ask"})})
    result, tool = await run(config, confirm=lambda _: False)
    assert tool.inputs == []
    assert "Declined" in result.llm_content


async def test_before_tool_ask_is_a_no_when_asking_fails(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": says({"decision": "ask"})})

    def confirm(_: Confirmation) -> bool:
        raise RuntimeError("no terminal")

    result, tool = await run(config, confirm=confirm)
    assert tool.inputs == []
    assert result.error is not None


@pytest.mark.parametrize(("on_ask", "ran"), [(None, 0), ("block", 0), ("allow", 1)])
async def test_before_tool_ask_is_decided_by_on_ask_without_confirm(
    tmp_path: Path, on_ask: str | None, ran: int
) -> None:
    """protocol.md#callers: without a confirm callback hooksConfig.onAsk decides."""
    config = config_of(
        tmp_path,
        {"BeforeTool": says({"decision": "ask", "reason": "sure?"})},
        hooks_config={"onAsk": on_ask} if on_ask else {},
    )
    _, tool = await run(config)
    assert len(tool.inputs) == ran


async def test_ask_is_decided_by_the_settings_of_its_verdict(tmp_path: Path) -> None:
    """Issue 16: one event, one version, though telling of it loads the next one."""
    file = tmp_path / "hooks.json"
    ask = {"type": "rule", "when": "true", "then": {"decision": "ask"}}
    hooks = {"BeforeTool": [{"hooks": [ask]}]}
    text = json.dumps({"hooksConfig": {"onAsk": "block"}, "hooks": hooks})
    file.write_text(text)
    config = Config("s", tmp_path, Settings.from_file(file))
    system = HookSystem(config, reload=True)

    @system.on("BeforeTool")
    def loosen(_: object) -> None:
        file.write_text(text.replace("block", "allow"))

    _, tool = await run(config)
    assert tool.inputs == []
    assert config.settings.global_options.on_ask is OnFailure.ALLOW


async def test_after_tool_context_is_appended_and_escaped(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"AfterTool": specific(additionalContext="see <a>")})
    result, _ = await run(config)
    assert result.llm_content == "wrote it\n\nsee &lt;a&gt;"
    assert result.display == "wrote it"


async def test_after_tool_suppression_hides_the_display_only(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"AfterTool": says({"suppressOutput": True})})
    result, _ = await run(config)
    assert result.suppress_display
    assert (result.display, result.llm_content) == ("", "wrote it")


async def test_after_tool_stop_gives_a_stop_result(tmp_path: Path) -> None:
    hook = says({"continue": False, "stopReason": "enough"})
    result, tool = await run(config_of(tmp_path, {"AfterTool": hook}))
    assert (result.stop_reason, len(tool.inputs)) == ("enough", 1)


async def test_after_tool_block_is_reported_to_the_model_and_undoes_nothing(
    tmp_path: Path,
) -> None:
    """protocol.md#events: its reason is handed over as a system annotation."""
    config = config_of(tmp_path, {"AfterTool": runs("echo too long >&2; exit 2")})
    result, _ = await run(config)
    assert result.llm_content == "wrote it\n\n[System] too long"
    assert result.error is None


async def test_system_messages_of_both_sides_follow_the_context(
    tmp_path: Path,
) -> None:
    """Seed 004 section 6.2, protocol.md#callers: the order of the additions."""
    after = says(
        {"systemMessage": "after", "hookSpecificOutput": {"additionalContext": "ctx"}}
    )
    hooks = {
        "BeforeTool": says({"systemMessage": "before"}),
        "AfterTool": after,
    }
    result, _ = await run(config_of(tmp_path, hooks))
    assert result.llm_content == "wrote it\n\nctx\n\n[System] before\n\n[System] after"


async def test_after_tool_result_is_withheld_when_the_policy_is_closed(
    tmp_path: Path,
) -> None:
    """The failure policy's closed form: the reason takes the content's place."""
    crash = runs("exit 1", onError="block")
    result, _ = await run(config_of(tmp_path, {"AfterTool": crash}))
    assert "wrote it" not in result.llm_content
    assert "wrote it" not in result.display
    assert "onError" in result.llm_content


async def test_after_tool_hooks_see_what_the_tool_gave_back(tmp_path: Path) -> None:
    tool = Tool(ToolResult(llm_content="c", return_display="d", metadata={"n": 1}))
    await run(config_of(tmp_path, {"AfterTool": runs("true")}), tool)
    [event] = events(tmp_path)
    assert event["tool_response"] == {
        "llmContent": "c",
        "returnDisplay": "d",
        "metadata": {"n": 1},
    }


async def test_a_tool_that_raises_gives_a_result_that_hooks_see(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterTool": runs("true")})

    def broken(_: dict[str, Any]) -> None:
        raise ValueError("disk full")

    async with config:
        result = await execute_tool_with_hooks(config, "write_file", INPUT, broken)
    assert result.error == "ValueError: disk full"
    [event] = events(tmp_path)
    assert event["tool_response"]["error"] == {"message": "ValueError: disk full"}


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
@pytest.mark.parametrize("failure", list(BROKEN))
async def test_a_failed_hook_changes_nothing_but_may_leave_its_warning(
    tmp_path: Path, event: str, failure: str
) -> None:
    """Seed 004 section 9.2: no hook failure ever prevents tool execution."""
    config = config_of(tmp_path, {event: BROKEN[failure]}, seen=False)
    result, tool = await run(config)
    assert tool.inputs == [INPUT]
    assert (result.error, result.stop_reason) == (None, None)
    warned = result.llm_content.removeprefix("wrote it")
    assert warned == "" or warned.startswith("\n\n[System] Warning: ")
    assert bool(warned) == (failure in {"crash with a word", "missing program"})


async def test_exception_of_a_tool_is_the_caller_s_where_hooks_are_off(
    tmp_path: Path,
) -> None:
    """Seed 004 section 5.1: the tool is called directly then."""
    config = Config("s", tmp_path, Settings.from_mapping({"enableHooks": False}))

    async def breaks(_: dict[str, Any]) -> str:
        raise LookupError("mine")

    def breaks_at_once() -> str:
        raise LookupError("mine")

    for execute in (breaks, breaks_at_once):
        for owner in (config, config.session("x")):
            with pytest.raises(LookupError, match="mine"):
                await execute_tool_with_hooks(owner, "t", INPUT, execute)
    found = await execute_tool_with_hooks(config, "t", INPUT, lambda given: given)
    assert found == ToolResult(llm_content=INPUT)


async def test_result_is_withheld_where_the_error_has_no_text(tmp_path: Path) -> None:
    class TextlessError(Exception):
        def __str__(self) -> str:
            raise LookupError

    def breaks(_: dict[str, Any]) -> None:
        raise TextlessError

    then = {"hookSpecificOutput": {"withholdResult": True, "additionalContext": "no"}}
    rule = {"type": "rule", "name": "guard", "when": "true", "then": then}
    settings = Settings.from_mapping({"hooks": {"AfterTool": [{"hooks": [rule]}]}})
    config = Config("s", tmp_path, settings)
    assert (await execute_tool_with_hooks(config, "t", {}, breaks)).text == "no"
    found = await execute_tool_with_hooks(
        Config("s", tmp_path, Settings()), "t", {}, breaks
    )
    assert found.error == "TextlessError"


async def test_input_that_cannot_be_read_is_a_result(tmp_path: Path) -> None:
    class Unreadable(dict[str, Any]):
        def keys(self) -> Any:
            raise LookupError("mine")

        def __iter__(self) -> Any:
            raise LookupError("mine")

    ran: list[object] = []
    config = Config("s", tmp_path, Settings())
    result = await execute_tool_with_hooks(config, "t", Unreadable(), ran.append)
    assert (ran, result.error) == ([], "LookupError: mine")


async def test_tool_without_parameters_runs_unless_its_input_is_changed(
    tmp_path: Path,
) -> None:
    """Seed 004 section 5.1: the tool may know its input already."""
    ran: list[str] = []

    def tool() -> str:
        ran.append("once")
        return "done"

    async def later() -> str:
        return tool()

    for execute in (tool, later, functools.partial(tool)):
        async with config_of(tmp_path, {}) as config:
            result = await execute_tool_with_hooks(config, "t", INPUT, execute)
        assert result.llm_content == "done"
    assert ran == ["once"] * 3
    change = specific(tool_input={"path": "b.txt"})
    async with config_of(tmp_path, {"BeforeTool": change}) as config:
        result = await execute_tool_with_hooks(config, "t", INPUT, tool)
    assert "changed the input" in result.text
    assert ran == ["once"] * 3


async def test_triggers_answer_none_when_hooks_are_switched_off(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"enableHooks": False})
    config = Config("s-1", tmp_path, settings)
    assert await fire_before_tool_hook(config, "t", {}) is None
    assert await fire_after_tool_hook(config, "t", {}, {}) is None
    result, tool = await run(config)
    assert (result.llm_content, tool.inputs) == ("wrote it", [INPUT])


async def test_triggers_go_on_when_the_hooks_cannot_be_reached(tmp_path: Path) -> None:
    """The edge of the triggers: no exception gets out."""
    config = Config("s-1", tmp_path, Settings())
    config.use_hooks(object())
    result, tool = await run(config)
    assert (result.llm_content, tool.inputs) == ("wrote it", [INPUT])


async def test_triggers_are_cancelled_with_their_caller(tmp_path: Path) -> None:
    config = Config("s-1", tmp_path, Settings())
    system = config.get_hook_system()
    assert system is not None
    started = asyncio.Event()

    @system.on("BeforeTool")
    async def slow(_: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    async with config:
        task = asyncio.create_task(fire_before_tool_hook(config, "write_file", {}))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
