"""Rules: an expression and an output, no process (protocol.md#rules, issue 13.1)."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import FailureCause
from tests.support.workshop import INPUTS, Workshop

ENV_FILE = {"tool_name": "write_file", "tool_input": {"path": "a/.env"}}
WHEN = "tool_input.path.endsWith('.env')"


@pytest.fixture
def workshop(tmp_path: Any) -> Workshop:
    return Workshop(tmp_path)


def rule(when: str = WHEN, **more: Any) -> dict[str, Any]:
    return {"type": "rule", "when": when, "name": "r", **more}


async def test_a_rule_that_is_true_says_its_output(workshop: Workshop) -> None:
    then = {"decision": "deny", "reason": "keep ${tool_input.path} out"}
    result = await workshop.fire("BeforeTool", rule(then=then), given=ENV_FILE)
    assert result.blocked
    assert result.reason == "keep a/.env out"
    (hook,) = result.aggregated.hook_results
    assert (hook.success, hook.exit_code, hook.hook_type) == (True, 0, "rule")


async def test_a_rule_that_is_false_says_nothing(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", rule())
    assert not result.blocked
    assert result.aggregated.success
    assert [hook.output for hook in result.aggregated.hook_results] == [None]


@pytest.mark.parametrize(
    ("more", "reason"),
    [({}, "r"), ({"description": "no secrets"}, "no secrets"), ({"then": 5}, "r")],
)
async def test_a_rule_without_an_output_denies(
    workshop: Workshop, more: dict[str, Any], reason: str
) -> None:
    """With its description or name; a wrong ``then`` is none."""
    result = await workshop.fire("BeforeTool", rule(**more), given=ENV_FILE)
    assert (result.blocked, result.reason) == (True, reason)


async def test_a_rule_without_a_name_is_called_by_its_expression(
    workshop: Workshop,
) -> None:
    hook = {"type": "rule", "when": "true"}
    result = await workshop.fire("BeforeTool", hook)
    assert result.reason == "true"


async def test_a_rule_can_change_the_input(workshop: Workshop) -> None:
    """Values keep their types; a re-check sees the final input.

    protocol.md#several-hooks
    """
    then = {
        "hookSpecificOutput": {
            "tool_input": {"path": "safe.txt", "list": "${[tool_name]}"}
        }
    }
    changes = rule("!has(tool_input.list)", then=then)
    guard = rule("tool_input.path == 'safe.txt'", name="guard")
    result = await workshop.fire("BeforeTool", changes)
    final = result.final_output
    assert final is not None
    assert final.modified_tool_input == {
        **INPUTS[HookEventName.BeforeTool]["tool_input"],
        "path": "safe.txt",
        "list": ["write_file"],
    }
    result = await workshop.fire("BeforeTool", changes, guard)
    assert (result.blocked, result.reason) == (True, "guard")
    assert [h.recheck for h in result.aggregated.hook_results] == [False, False, True]


@pytest.mark.parametrize("event", list(HookEventName))
async def test_rules_work_on_every_event(
    workshop: Workshop, event: HookEventName
) -> None:
    when = f"hook_event_name == '{event.value}' && event.session_id != ''"
    said = {"systemMessage": "seen ${hook_event_name}", "decision": "deny"}
    result = await workshop.fire(event, rule(when, then=said), given=INPUTS[event])
    assert result.system_message == f"seen {event.value}"
    assert result.blocked is TRAITS[event].can_block


async def test_model_events_are_seen_in_the_stable_shape(workshop: Workshop) -> None:
    when = "llm_request.messages.exists(m, m.role == 'user' && m.content == 'hi')"
    given = INPUTS[HookEventName.BeforeModel]
    assert (await workshop.fire("BeforeModel", rule(when), given=given)).blocked


async def test_a_missing_field_is_named_in_the_result(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", rule("tool_input.nothing == 1"))
    (hook,) = result.aggregated.hook_results
    assert hook.success
    assert hook.stderr == "false: the event has no tool_input.nothing"


@pytest.mark.parametrize(
    ("when", "cause", "error"),
    [
        ("tool_inptu.path == 'x'", FailureCause.SPAWN, "did you mean 'tool_input'"),
        ("tool_name ==", FailureCause.SPAWN, "column 13"),
        ("tool_name > 3", FailureCause.OUTPUT, "_>_"),
        ("tool_name", FailureCause.OUTPUT, "text, neither true nor false"),
        ("tool_name.within('a' + string(1/0))", FailureCause.OUTPUT, "divi"),
    ],
)
async def test_a_rule_that_fails_blocks_unless_settings_say_otherwise(
    workshop: Workshop, when: str, cause: FailureCause, error: str
) -> None:
    result = await workshop.fire("BeforeTool", rule(when))
    (hook,) = result.aggregated.hook_results
    assert hook.cause is cause
    assert error in (hook.error or "")
    assert result.blocked
    assert not result.aggregated.success
    own = await workshop.fire("BeforeTool", rule(when, onError="allow"))
    assert not own.blocked
    general = {"onError": "allow"}
    assert not (await workshop.fire("BeforeTool", rule(when), config=general)).blocked


async def test_closed_forms_after_the_fact(workshop: Workshop) -> None:
    """A failed rule closes events that cannot block, too (protocol.md#results)."""
    broken = rule("tool_name > 3")
    given = INPUTS[HookEventName.AfterTool]
    result = await workshop.fire("AfterTool", broken, given=given)
    assert result.final_output is not None
    assert result.final_output.withholds_result


async def test_a_rule_that_observes_blocks_nothing(workshop: Workshop) -> None:
    result = await workshop.fire("BeforeTool", rule(mode="observe"), given=ENV_FILE)
    assert not result.blocked
    assert result.aggregated.hook_results[0].would_block


@pytest.mark.parametrize(
    "path",
    [
        "a/.env",
        type("Path", (str,), {"endswith": lambda *_: False})("a/.env"),
        b"a/.env",
        __import__("pathlib").PurePosixPath("a/.env"),
    ],
)
async def test_a_rule_sees_what_a_command_would_see(
    workshop: Workshop, path: Any
) -> None:
    """protocol.md#process: values go out as what they mean."""
    given = {"tool_name": "write_file", "tool_input": {"path": path}}
    assert (await workshop.fire("BeforeTool", rule(), given=given)).blocked


async def test_what_cannot_be_shown_is_blocked_though_no_rule_looks_at_it(
    workshop: Workshop,
) -> None:
    """protocol.md#process: deeper than 500 levels, no guard has seen the event."""
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    given = {"tool_name": "t", "tool_input": {"path": "fine", "deep": deep}}
    assert (await workshop.fire("BeforeTool", rule(), given=given)).blocked
    same = {
        "tool_name": "t",
        "tool_input": {"path": "fine", **dict.fromkeys(("a\ud800", "a\ufffd"))},
    }
    assert (await workshop.fire("BeforeTool", rule(), given=same)).blocked


async def test_the_value_of_a_field_is_no_expression(workshop: Workshop) -> None:
    given = {"tool_name": "t", "tool_input": {"path": "${tool_name}.env"}}
    then = {"decision": "deny", "reason": "${tool_input.path}"}
    result = await workshop.fire("BeforeTool", rule(then=then), given=given)
    assert result.reason == "${tool_name}.env"


async def test_many_rules_on_one_event_all_speak(workshop: Workshop) -> None:
    rules = [rule("true", name=f"r{i}") for i in range(200)]
    result = await workshop.fire("BeforeTool", *rules)
    assert result.reason == "\n".join(f"r{i}" for i in range(200))


async def test_rules_and_commands_run_side_by_side(workshop: Workshop) -> None:
    hooks = [
        workshop.says({"systemMessage": "one"}, "c1"),
        rule("true", then={"systemMessage": "two"}),
        workshop.says({"systemMessage": "three"}, "c2"),
    ]
    result = await workshop.fire("BeforeTool", *hooks)
    assert result.system_message == "one\ntwo\nthree"


async def test_paths_start_at_the_project_of_the_rule(tmp_path: Any) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "src").mkdir()
    settings = {"hooks": {"BeforeTool": [{"hooks": [rule(WHERE)]}]}}
    config = Config("s", tmp_path / "src", Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("write", {"path": "../secrets/key"})).blocked
        assert not (await fire("write", {"path": "secrets/key"})).blocked


WHERE = "tool_input.path.within('../secrets')"
