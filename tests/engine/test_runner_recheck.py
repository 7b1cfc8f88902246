"""What is executed is what the guards have seen (issue 12.2).

protocol.md#several-hooks
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.settings.model import HookSource
from tests.support.workshop import TOOL, Workshop

Wire = dict[str, Any]

LIST = {"tool_name": "bash", "tool_input": {"command": "ls", "cwd": "/"}}
NO_RM = "grep -q 'rm -rf' && { echo 'not that' >&2; exit 2; }; exit 0"
REMOVES: Wire = {"hookSpecificOutput": {"tool_input": {"command": "rm -rf /"}}}


def mode_of(result: ProcessedHookResult) -> list[tuple[str, bool]]:
    hooks = result.aggregated.hook_results
    return [(hook.hook_name, hook.recheck) for hook in hooks]


@pytest.mark.parametrize("first", ["guard", "rewriter"])
@pytest.mark.parametrize("sequential", [False, True])
async def test_a_guard_is_asked_again_about_the_final_input(
    workshop: Workshop, first: str, sequential: bool
) -> None:
    """Beside a rewriter, before one, and after one."""
    hooks = [workshop.runs(NO_RM, "guard"), workshop.says(REMOVES, "rewriter")]
    ordered = hooks if first == "guard" else hooks[::-1]
    result = await workshop.fire(
        "BeforeTool", *ordered, given=LIST, sequential=sequential
    )
    assert (result.blocked, result.reason) == (True, "not that")


async def test_second_results_follow_the_first_ones_and_are_marked(
    workshop: Workshop,
) -> None:
    guard, rewriter = workshop.runs(NO_RM, "guard"), workshop.says(REMOVES, "rewriter")
    result = await workshop.fire("BeforeTool", guard, rewriter, given=LIST)
    expected = [("guard", False), ("rewriter", False), ("guard", True)]
    assert mode_of(result) == expected
    assert [h.success for h in result.aggregated.hook_results] == [True, True, False]
    assert not result.aggregated.success
    assert result.aggregated.hook_results[-1].to_wire()["recheck"] is True


async def test_an_extensions_rewriter_after_a_sequential_guard_is_seen(
    workshop: Workshop,
) -> None:
    guard = workshop.settings("BeforeTool", workshop.runs(NO_RM), sequential=True)
    rewriter = workshop.settings("BeforeTool", workshop.says(REMOVES))
    layers = (
        *Settings.from_mapping(guard, HookSource.USER).layers,
        *Settings.from_mapping(rewriter, HookSource.EXTENSIONS).layers,
    )
    async with HookSystem(Config("s", workshop.folder, Settings(layers=layers))) as own:
        result = await own.event_handler.fire("BeforeTool", LIST)
    assert result.blocked


async def test_a_managed_rewriter_does_not_get_past_a_guard(workshop: Workshop) -> None:
    guard = workshop.settings("BeforeTool", workshop.runs(NO_RM))
    managed = workshop.says(REMOVES) | {"managed": True}
    rewriter = workshop.settings("BeforeTool", managed)
    layers = (
        *Settings.from_mapping(guard, HookSource.USER).layers,
        *Settings.from_mapping(rewriter, HookSource.SYSTEM).layers,
    )
    async with HookSystem(Config("s", workshop.folder, Settings(layers=layers))) as own:
        result = await own.event_handler.fire("BeforeTool", LIST)
    assert result.blocked


async def test_functions_and_workers_are_asked_again_too(workshop: Workshop) -> None:
    seen: list[Any] = []

    def guard(event: Wire) -> Wire | None:
        seen.append(event["tool_input"]["command"])
        return {"decision": "deny"} if "rm" in seen[-1] else None

    worker = workshop.folder / "worker.py"
    worker.write_text(
        "import os\nfrom hookline import script\n"
        "def judge(event):\n"
        "    with open('asked.txt', 'a') as f:\n"
        "        f.write(os.environ.get('HOOKLINE_RECHECK', '-') + '\\n')\n"
        "script.run(judge)\n"
    )
    command = f'"$HOOKLINE_PYTHON" "{worker}"'
    kept_warm = {"type": "worker", "command": command, "name": "warm"}
    settings = workshop.settings("BeforeTool", workshop.says(REMOVES), kept_warm)
    async with HookSystem(workshop.config(settings)) as hooks:
        hooks.on("BeforeTool")(guard)
        result = await hooks.event_handler.fire("BeforeTool", LIST)
        again = await hooks.event_handler.fire(
            "BeforeTool", {**LIST, "tool_input": {"command": "rm -rf /", "cwd": "/"}}
        )
    assert result.blocked
    assert again.blocked
    assert seen == ["ls", "rm -rf /", "rm -rf /"]
    # Of the second event the function alone says no: nothing is asked again.
    asked = (workshop.folder / "asked.txt").read_text().split()
    assert asked == ["-", "1", "-"]


@pytest.mark.parametrize(
    "unasked",
    [
        {"recheck": False},
        {"mode": "observe"},
    ],
    ids=str,
)
async def test_some_hooks_are_not_asked_again(
    workshop: Workshop, unasked: Wire
) -> None:
    counts = workshop.runs("echo x >> ran.txt", "counts", **unasked)
    result = await workshop.fire(
        "BeforeTool", counts, workshop.says(REMOVES, "rewriter"), given=LIST
    )
    assert (workshop.folder / "ran.txt").read_text() == "x\n"
    assert mode_of(result) == [("counts", False), ("rewriter", False)]


async def test_a_function_can_ask_not_to_be_called_again(workshop: Workshop) -> None:
    settings = workshop.settings("BeforeTool", workshop.says(REMOVES))
    seen: list[Any] = []
    async with HookSystem(workshop.config(settings)) as hooks:
        hooks.on("BeforeTool", recheck=False)(seen.append)
        await hooks.event_handler.fire("BeforeTool", LIST)
    assert len(seen) == 1


async def test_nobody_is_asked_again_about_an_own_change_alone(
    workshop: Workshop,
) -> None:
    """The rewriter saw the final input when it made it."""
    rewriter = workshop.runs(
        f"echo x >> ran.txt; echo '{json.dumps(REMOVES)}'", "rewriter"
    )
    result = await workshop.fire(
        "BeforeTool", rewriter, workshop.runs("true"), given=LIST
    )
    assert (workshop.folder / "ran.txt").read_text() == "x\n"
    assert mode_of(result)[-1] == ("true", True)


@pytest.mark.parametrize(
    "same",
    [
        {"hookSpecificOutput": {"tool_input": {"command": "ls"}}},
        {"hookSpecificOutput": {"tool_input": {}}},
        {"hookSpecificOutput": {"additionalContext": "by the way"}},
        {"systemMessage": "fine"},
    ],
    ids=str,
)
async def test_nothing_is_asked_twice_without_a_change(
    workshop: Workshop, same: Wire
) -> None:
    result = await workshop.fire(
        "BeforeTool", workshop.says(same, "says"), workshop.runs("true"), given=LIST
    )
    assert mode_of(result) == [("says", False), ("true", False)]


@pytest.mark.parametrize("ending", [{"decision": "deny"}, {"continue": False}], ids=str)
@pytest.mark.parametrize("sequential", [False, True])
async def test_nobody_is_asked_once_the_event_is_over(
    workshop: Workshop, ending: Wire, sequential: bool
) -> None:
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs("true"),
        workshop.says(REMOVES, "rewriter"),
        workshop.says(ending, "ends"),
        given=LIST,
        sequential=sequential,
    )
    assert not any(recheck for _, recheck in mode_of(result))


async def test_a_type_that_changes_is_a_change(workshop: Workshop) -> None:
    """A guard that was shown 1 has not seen true."""
    given = {"tool_name": "t", "tool_input": {"force": 1}}
    change = {"hookSpecificOutput": {"tool_input": {"force": True}}}
    guard = workshop.runs("""grep -q '"force":true' && exit 2; exit 0""")
    result = await workshop.fire(
        "BeforeTool", guard, workshop.says(change), given=given
    )
    assert result.blocked


async def test_of_a_second_answer_only_the_verdict_counts(workshop: Workshop) -> None:
    talks: Wire = {
        "systemMessage": "m",
        "suppressOutput": True,
        "hookSpecificOutput": {"additionalContext": "c", "tool_input": {"cwd": "/x"}},
    }
    second = f"""[ -n "$HOOKLINE_RECHECK" ] && echo '{json.dumps(talks)}'; exit 0"""
    result = await workshop.fire(
        "BeforeTool", workshop.runs(second), workshop.says(REMOVES), given=LIST
    )
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {
        "command": "rm -rf /",
        "cwd": "/",
    }
    assert result.final_output.additional_context is None
    assert (result.system_message, result.suppress_output) == (None, False)
    assert result.aggregated.hook_results[-1].raw_output == talks


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"decision": "ask", "reason": "sure?"}, {"ask": True}),
        ({"decision": "ask", "systemMessage": "sure?"}, {"ask": True}),
        ({"continue": False, "stopReason": "enough"}, {"should_stop": True}),
        ({"decision": "block", "reason": "no"}, {"blocked": True, "reason": "no"}),
        (
            {"hookSpecificOutput": {"permissionDecision": "deny"}},
            {"blocked": True},
        ),
    ],
    ids=str,
)
async def test_a_second_answer_can_ask_stop_or_block(
    workshop: Workshop, second: Wire, expected: Wire
) -> None:
    command = f"""[ -n "$HOOKLINE_RECHECK" ] && echo '{json.dumps(second)}'; exit 0"""
    result = await workshop.fire(
        "BeforeTool", workshop.runs(command), workshop.says(REMOVES), given=LIST
    )
    assert {name: getattr(result, name) for name in expected} == expected
    if result.ask:
        assert result.final_output is not None
        assert result.final_output.reason == "sure?"


@pytest.mark.parametrize(("policy", "blocked"), [("block", True), ("allow", False)])
async def test_a_second_failure_counts_by_policy(
    workshop: Workshop, policy: str, blocked: bool
) -> None:
    command = """[ -n "$HOOKLINE_RECHECK" ] && exit 1; exit 0"""
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs(command, "guard", onError=policy),
        workshop.says(REMOVES),
        given=LIST,
    )
    assert result.blocked is blocked
    assert not result.aggregated.success
    assert [error.hook_name for error in result.aggregated.errors] == ["guard"]


async def test_the_variable_is_not_inherited(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that a re-checked hook starts has hooks of its own."""
    monkeypatch.setenv("HOOKLINE_RECHECK", "1")
    command = 'echo "${HOOKLINE_RECHECK-unset}"'
    for policy in ("inherit", "clean"):
        result = await workshop.fire(
            "BeforeTool", workshop.runs(command, envPolicy=policy)
        )
        assert result.system_message == "unset"


async def test_a_request_is_seen_with_the_context_that_is_appended(
    workshop: Workshop,
) -> None:
    """BeforeModel: the final value is the request and the additional context."""
    context = {"hookSpecificOutput": {"additionalContext": "a <secret>"}}
    guard = workshop.runs("cat > seen.json; grep -q secret seen.json && exit 2; exit 0")
    result = await workshop.fire("BeforeModel", guard, workshop.says(context))
    assert result.blocked
    messages = workshop.seen()["llm_request"]["messages"]
    assert messages[0] == {"role": "user", "content": "hi"}
    assert messages[1:] == [{"role": "user", "content": "a &lt;secret&gt;"}]


async def test_of_several_contexts_hooks_see_the_one_that_is_sent(
    workshop: Workshop,
) -> None:
    """protocol.md#merging: on BeforeModel a later context replaces an earlier one."""
    contexts = [{"hookSpecificOutput": {"additionalContext": n}} for n in ("a", "b")]
    result = await workshop.fire(
        "BeforeModel",
        *map(workshop.says, contexts),
        workshop.runs("cat > seen.json"),
    )
    assert result.final_output is not None
    assert result.final_output.additional_context == "b"
    messages = workshop.seen()["llm_request"]["messages"]
    assert [one["content"] for one in messages] == ["hi", "b"]


async def test_a_rewritten_request_is_seen_by_the_other_hooks(
    workshop: Workshop,
) -> None:
    messages = [{"role": "user", "content": "the secret"}]
    change = {"hookSpecificOutput": {"llm_request": {"messages": messages}}}
    guard = workshop.runs("grep -q secret && exit 2; exit 0")
    result = await workshop.fire("BeforeModel", guard, workshop.says(change))
    assert result.blocked


def redactor(workshop: Workshop, name: str, word: str) -> Wire:
    """A hook that takes a word out of whatever text its event carries."""
    script = workshop.folder / f"{name}.py"
    script.write_text(
        "import json, sys\n"
        "event = json.load(sys.stdin)\n"
        "part = ('tool_input' if 'tool_input' in event else 'llm_response'\n"
        "        if 'llm_response' in event else 'llm_request')\n"
        "keys = ('content',) if part == 'tool_input' else ('messages', 'candidates')\n"
        f"clean = lambda text: text.replace({word!r}, '*')\n"
        "value = {k: json.loads(clean(json.dumps(v)))\n"
        "         for k, v in event[part].items() if k in keys}\n"
        "print(json.dumps({'hookSpecificOutput': {part: value}}))\n"
    )
    return workshop.runs(f"python3 {name}.py", name)


async def test_two_redactions_of_one_key_do_not_undo_each_other(
    workshop: Workshop,
) -> None:
    """The later hook runs again on the value of the earlier one."""
    given = {**TOOL, "tool_input": {"path": "a", "content": "one two three"}}
    result = await workshop.fire(
        "BeforeTool",
        redactor(workshop, "first", "one"),
        redactor(workshop, "second", "two"),
        redactor(workshop, "third", "three"),
        given=given,
    )
    final = result.final_output
    assert final is not None
    assert final.modified_tool_input == {"path": "a", "content": "* * *"}
    hooks = result.aggregated.hook_results
    firsts = [hook for hook in hooks if not hook.recheck]
    assert [hook.hook_name for hook in firsts] == ["first", "second", "third"]
    assert (
        "'first' and 'second' disagree on tool_input.content" in firsts[1].warnings[0]
    )


async def test_two_redactions_of_a_request_do_not_undo_each_other(
    workshop: Workshop,
) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}
    result = await workshop.fire(
        "BeforeModel",
        redactor(workshop, "first", "one"),
        redactor(workshop, "second", "two"),
        given={"llm_request": request},
    )
    assert result.final_output is not None
    assert result.final_output.llm_request is not None
    assert result.final_output.llm_request["messages"][0]["content"] == "* *"


@pytest.mark.parametrize("text_first", [True, False])
@pytest.mark.parametrize("sequential", [True, False])
async def test_text_and_candidates_are_one_answer(
    workshop: Workshop, text_first: bool, sequential: bool
) -> None:
    """A redaction by text and one by candidates do not undo each other."""
    candidate = {"content": {"role": "model", "parts": ["one two"]}}
    response = {"text": "one two", "candidates": [candidate]}
    script = workshop.folder / "text.py"
    script.write_text(
        "import json, sys\n"
        "text = json.load(sys.stdin)['llm_response']['text'].replace('one', '*')\n"
        "print(json.dumps({'hookSpecificOutput': {'llm_response': {'text': text}}}))\n"
    )
    hooks = [workshop.runs("python3 text.py"), redactor(workshop, "second", "two")]
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    result = await workshop.fire(
        "AfterModel",
        *(hooks if text_first else hooks[::-1]),
        given={"llm_request": request, "llm_response": response},
        sequential=sequential,
    )
    assert result.final_output is not None
    assert result.final_output.llm_response is not None
    found = json.dumps(result.final_output.llm_response)
    assert "one" not in found
    assert "two" not in found
    assert "* *" in found


async def test_a_hook_that_drops_a_key_is_not_undone(workshop: Workshop) -> None:
    """A whole replacement and a change of a key that it left out."""
    whole: Wire = {"tool_input": {"command": "ls"}, "replacesToolInput": True}
    change = {"hookSpecificOutput": {"tool_input": {"cwd": "/etc"}}}
    for sequential in (False, True):
        for order in ((whole, change), (change, whole)):
            hooks = [
                workshop.says(
                    said
                    if "hookSpecificOutput" in said
                    else {"hookSpecificOutput": said},
                    str(index),
                )
                for index, said in enumerate(order)
            ]
            result = await workshop.fire(
                "BeforeTool", *hooks, given=LIST, sequential=sequential
            )
            final = result.final_output
            assert final is not None
            expected = {"command": "ls"}
            if order[0] is whole:
                expected["cwd"] = "/etc"
            assert final.modified_tool_input == expected
            assert final.tool_input == expected


async def test_hooks_that_agree_run_once(workshop: Workshop) -> None:
    command = f"echo x >> ran.txt; echo '{json.dumps(REMOVES)}'"
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs(command, "a"),
        workshop.runs(command, "b"),
        given=LIST,
    )
    assert (workshop.folder / "ran.txt").read_text() == "x\nx\n"
    assert mode_of(result) == [("a", False), ("b", False)]


async def test_the_callers_objects_are_not_changed(
    workshop: Workshop, tmp_path: Path
) -> None:
    given = {"tool_name": "t", "tool_input": {"command": "ls", "deep": {"a": [1]}}}
    before = json.dumps(given)
    await workshop.fire(
        "BeforeTool",
        workshop.says(REMOVES),
        workshop.says({"hookSpecificOutput": {"tool_input": {"command": "x"}}}, "b"),
        given=given,
    )
    assert json.dumps(given) == before
