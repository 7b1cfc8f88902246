"""Strands under the suite for adapters, and what is special about it.

Issue 14 adapters; protocol.md#events and #callers.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands", reason="strands-agents is not installed: make adapters")

from pydantic import BaseModel
from strands import ToolContext, tool
from strands.session import FileSessionManager
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor

from hookline.adapters.strands import HooklineHooks
from hookline.agent import ScriptedReply
from hookline.errors import HooklineError
from hookline.testing.adapters import AdapterSuite

from .drivers.strands import StrandsDriver, agent_of, calls, look, sent, text_of
from .hooks import Hooked, adds, denies, stops


class TestStrands(AdapterSuite):
    driver = StrandsDriver()


def redact(event: dict[str, Any]) -> Any:
    text = event["llm_response"]["text"].replace("s3cret", "***")
    return {"hookSpecificOutput": {"llm_response": {"text": text}}}


async def test_a_callback_handler_is_shown_nothing_that_a_hook_removed() -> None:
    hooked, shown = Hooked({"AfterModel": redact}), list[str]()

    def show(**event: Any) -> None:
        event.pop("agent", None)
        shown.append(str(event.get("data", "")) + str(event.get("event", "")))

    agent = agent_of(hooked, "a s3cret word", callback_handler=show)
    result = await asyncio.to_thread(agent, "go")
    assert str(result) == "a *** word\n"
    assert "a *** word" in shown
    assert "s3cret" not in "".join(shown)


async def test_reasoning_goes_with_the_answer_that_a_hook_changes() -> None:
    thought = {"reasoningContent": {"text": "the s3cret is 5"}}
    chunks: list[Any] = [
        {"messageStart": {"role": "assistant"}},
        *({"contentBlockDelta": {"delta": thought}}, {"contentBlockStop": {}}),
        {"contentBlockDelta": {"delta": {"text": "a s3cret"}}},
        {"contentBlockStop": {}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    agent = agent_of(Hooked({"AfterModel": redact}), chunks)
    events = [event async for event in agent.stream_async("go")]
    assert "s3cret" not in str([{**event, "agent": None} for event in events])
    assert agent.messages[1]["content"] == [{"text": "a ***"}]


async def test_chunks_pass_at_once_where_no_hook_looks_at_answers() -> None:
    hooked = Hooked(unseen="AfterModel")
    agent = agent_of(hooked, "in two parts")
    seen = [
        event["data"] async for event in agent.stream_async("go") if "data" in event
    ]
    assert seen == ["in two", " parts"]


async def test_suppressed_output_is_not_streamed() -> None:
    hooked = Hooked({"AfterModel": lambda _: {"suppressOutput": True}})
    agent = agent_of(hooked, "for the record")
    events = [event async for event in agent.stream_async("go")]
    assert not [event for event in events if "data" in event]
    assert str(events[-1]["result"]) == "for the record\n"


@pytest.mark.parametrize("executor", [ConcurrentToolExecutor, SequentialToolExecutor])
async def test_parallel_calls_have_their_own_inputs_and_results(executor: Any) -> None:
    hooked = Hooked({"AfterTool": lambda event: adds(event["tool_input"]["path"] * 2)})
    agent = agent_of(hooked, calls("a", "b", "c"), tool_executor=executor())
    await agent.invoke_async("go")
    results = [block["toolResult"]["content"] for block in agent.messages[2]["content"]]
    assert [[item["text"] for item in content] for content in results] == [
        [f"content of {path}", path * 2] for path in "abc"
    ]


async def test_parallel_calls_run_at_the_same_time() -> None:
    met = asyncio.Barrier(2)

    @tool
    async def meet(path: str) -> str:
        """Wait for the other one."""
        await met.wait()
        return path

    reply = ScriptedReply("", (("meet", {"path": "a"}), ("meet", {"path": "b"})))
    hooked = Hooked()
    await agent_of(hooked, reply, tools=[meet]).invoke_async("go")
    assert len(hooked.events("AfterTool")) == 2


async def test_a_stop_in_one_of_several_calls_ends_the_run() -> None:
    def stop(event: dict[str, Any]) -> Any:
        return stops("enough") if event["tool_input"]["path"] == "b" else None

    agent = agent_of(Hooked({"AfterTool": stop}), calls("a", "b"), "never")
    result = await agent.invoke_async("go")
    assert (str(result), result.stop_reason) == ("enough\n", "end_turn")
    assert len(sent(agent)) == 1
    assert text_of(agent.messages[-1]).strip() == "enough"


async def test_a_failing_tool_is_seen_with_its_error() -> None:
    @tool
    def fail(path: str) -> str:
        """Fail."""
        raise OSError(f"cannot read {path}")

    hooked = Hooked({"AfterTool": lambda _: adds("try b")})
    reply = ScriptedReply("", (("fail", {"path": "a"}),))
    agent = agent_of(hooked, reply, tools=[fail])
    await agent.invoke_async("go")
    (event,) = hooked.events("AfterTool")
    assert "OSError: cannot read a" in event["tool_response"]["error"]["message"]
    (block,) = agent.messages[2]["content"]
    assert block["toolResult"]["status"] == "error"
    assert "try b" in text_of(block)


async def test_a_tool_that_returns_an_error_is_seen_as_failed() -> None:
    @tool
    def give_up(path: str) -> dict[str, Any]:
        """Fail politely."""
        return {"status": "error", "content": [{"text": f"no {path}"}]}

    hooked = Hooked()
    reply = ScriptedReply("", (("give_up", {"path": "a"}),))
    await agent_of(hooked, reply, tools=[give_up]).invoke_async("go")
    (event,) = hooked.events("AfterTool")
    assert event["tool_response"]["error"] == {"message": "no a"}


async def test_a_cancelled_tool_is_not_reported_as_done() -> None:
    started = asyncio.Event()

    @tool
    async def hang(path: str) -> str:
        """Wait forever."""
        started.set()
        return str(await asyncio.Event().wait())

    hooked = Hooked()
    reply = ScriptedReply("", (("hang", {"path": "a"}),))
    agent = agent_of(hooked, reply, "next", tools=[hang])
    run = asyncio.create_task(agent.invoke_async("go"))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert hooked.events("AfterTool") == hooked.events("AfterAgent") == []
    assert str(await agent.invoke_async("go on")) == "next\n"
    assert hooked.names[-1] == "AfterAgent"


async def test_a_cancelled_run_has_no_answer_for_hooks() -> None:
    hooked = Hooked()

    @tool
    def cancel() -> str:
        """Cancel the run from within."""
        agent.cancel()
        return "cancelled"

    agent = agent_of(hooked, ScriptedReply("", (("cancel", {}),)), tools=[cancel])
    result = await agent.invoke_async("go")
    assert result.stop_reason == "cancelled"
    assert "AfterAgent" not in hooked.names


async def test_a_failing_model_call_is_tried_again_with_its_hooks() -> None:
    hooked = Hooked()
    agent = agent_of(hooked, RuntimeError("no service"), "answer")
    with pytest.raises(RuntimeError, match="no service"):
        await agent.invoke_async("go")
    assert hooked.names == ["BeforeAgent", "BeforeToolSelection", "BeforeModel"]
    assert str(await agent.invoke_async("go")) == "answer\n"


async def test_a_blocked_prompt_is_not_kept_and_its_history_stays_in_order(
    tmp_path: Path,
) -> None:
    def block(event: dict[str, Any]) -> Any:
        return denies("not this") if "bad" in event["prompt"] else None

    hooked = Hooked({"BeforeAgent": block})
    first = FileSessionManager("thread-1", str(tmp_path))
    agent = agent_of(hooked, session_manager=first)
    assert str(await agent.invoke_async("something bad")) == "not this\n"
    assert sent(agent) == []
    again = FileSessionManager("thread-1", str(tmp_path))
    agent = agent_of(hooked, "fine", session_manager=again)
    assert str(await agent.invoke_async("something good")) == "fine\n"
    roles = [message["role"] for message in agent.messages]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert "bad" not in text_of(agent.messages)


async def test_context_joins_the_last_message_of_a_prompt() -> None:
    agent = agent_of(Hooked({"BeforeAgent": lambda _: adds("Monday")}), "fine")
    given: Any = [
        {"role": "user", "content": [{"text": "hello"}]},
        {"role": "assistant", "content": [{"text": "hi"}]},
        {"role": "user", "content": [{"text": "what day is it?"}]},
    ]
    await agent.invoke_async(given)
    assert agent.messages[2]["content"] == [
        {"text": "what day is it?"},
        {"text": "Monday"},
    ]
    assert len(given[2]["content"]) == 1


async def test_clearing_the_context_empties_the_history() -> None:
    def reject(event: dict[str, Any]) -> Any:
        if event["prompt_response"] != "first":
            return None
        cleared = {"hookSpecificOutput": {"clearContext": True}}
        return {**denies("start again"), **cleared}

    agent = agent_of(Hooked({"AfterAgent": reject}), "first", "second")
    assert str(await agent.invoke_async("go")) == "second\n"
    assert text_of(agent.messages).split() == ["start", "again", "second"]


async def test_a_changed_request_is_sent_and_not_recorded() -> None:
    def change(event: dict[str, Any]) -> Any:
        first, *rest = event["llm_request"]["messages"]
        messages = [{**first, "content": "edited"}, *rest]
        return {
            "systemMessage": "be brief",
            "hookSpecificOutput": {
                "llm_request": {"messages": messages},
                "additionalContext": "added",
            },
        }

    agent = agent_of(Hooked({"BeforeModel": change}), calls("a"), "done")
    await agent.invoke_async("given")
    first, second = sent(agent)
    assert first["messages"][0]["content"] == [
        {"text": "edited"},
        {"text": "added"},
        {"text": "[System] be brief"},
    ]
    assert [message["role"] for message in second["messages"]] == [
        "user",
        "assistant",
        "user",
    ]
    assert "toolResult" in second["messages"][2]["content"][0]
    assert agent.messages[0]["content"] == [{"text": "given"}]


async def test_a_change_of_settings_is_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    change = {"llm_request": {"config": {"temperature": 0}}}
    hooked = Hooked({"BeforeModel": lambda _: {"hookSpecificOutput": change}})
    await agent_of(hooked, "fine").invoke_async("go")
    assert "has no effect in Strands: temperature" in caplog.text


async def test_a_hook_without_effect_is_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = agent_of(Hooked({"PreCompress": lambda _: None}), "one", "two")
    await agent.invoke_async("go")
    await agent.invoke_async("go")
    assert caplog.text.count("PreCompress hooks have no effect in Strands") == 1


class Person(BaseModel):
    name: str


async def test_structured_output_is_no_tool_of_the_users() -> None:
    limit = {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": []}}
    hooked = Hooked({"BeforeToolSelection": lambda _: {"hookSpecificOutput": limit}})
    agent = agent_of(hooked, ScriptedReply("", (("Person", {"name": "Ada"}),)))
    result = await agent.invoke_async("who?", structured_output_model=Person)
    assert result.structured_output == Person(name="Ada")
    assert sent(agent)[0]["tools"] == ["Person"]
    assert hooked.events("BeforeToolSelection")[0]["available_tools"] == ["look"]
    assert hooked.events("BeforeTool") == []
    assert hooked.events("AfterAgent")[0]["prompt_response"] == '{"name":"Ada"}'


async def test_a_blocked_model_call_ends_a_run_with_structured_output() -> None:
    hooked = Hooked({"BeforeModel": lambda _: denies("no model")})
    result = await agent_of(hooked).invoke_async("who?", structured_output_model=Person)
    assert (result.structured_output, str(result)) == (None, "no model\n")


async def test_a_stop_takes_structured_output_back() -> None:
    hooked = Hooked({"AfterAgent": lambda _: stops("enough")})
    agent = agent_of(hooked, ScriptedReply("", (("Person", {"name": "Ada"}),)))
    result = await agent.invoke_async("who?", structured_output_model=Person)
    assert (result.structured_output, str(result)) == (None, "enough\n")
    roles = [message["role"] for message in agent.messages]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert "toolUse" in agent.messages[1]["content"][0]
    assert hooked.names.count("AfterAgent") == len(sent(agent)) == 1


async def test_a_blocked_model_call_gives_no_answer_to_judge() -> None:
    hooked = Hooked({"BeforeModel": lambda _: denies("no model")})
    assert str(await agent_of(hooked).invoke_async("go")) == "no model\n"
    assert "AfterAgent" not in hooked.names


@pytest.mark.filterwarnings("ignore:Agent.structured_output:DeprecationWarning")
async def test_the_old_structured_output_is_refused_as_it_skips_hooks() -> None:
    agent = agent_of(Hooked(), "fine")
    with pytest.raises(HooklineError, match="would skip the BeforeAgent hooks"):
        await agent.structured_output_async(Person, "who?")


async def test_a_tool_that_is_called_directly_obeys_hooks() -> None:
    def rule(event: dict[str, Any]) -> Any:
        if event["tool_input"]["path"] == "ask":
            return {"decision": "ask", "reason": "sure?"}
        return {"hookSpecificOutput": {"tool_input": {"path": "b"}}}

    agent = agent_of(Hooked({"BeforeTool": rule, "AfterTool": lambda _: adds("ok")}))
    result = await asyncio.to_thread(agent.tool.look, path="a")
    assert result["content"][0] == {"text": "content of b"}
    assert {"text": "ok"} in result["content"]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"path": "b"}
    asked = await asyncio.to_thread(agent.tool.look, path="ask")
    assert (asked["status"], "sure?" in text_of(asked)) == ("error", True)


async def test_a_stop_in_a_tool_that_a_tool_calls_ends_the_run() -> None:
    @tool(context=True)
    def twice(path: str, tool_context: ToolContext) -> str:
        """Look twice."""
        call = tool_context.agent.tool.look
        return str(call(path=path, record_direct_tool_call=False))

    def stop(event: dict[str, Any]) -> Any:
        return stops("enough") if event["tool_name"] == "look" else None

    reply = ScriptedReply("", (("twice", {"path": "a"}),))
    agent = agent_of(Hooked({"BeforeTool": stop}), reply, "never", tools=[look, twice])
    assert str(await agent.invoke_async("go")) == "enough\n"
    assert len(sent(agent)) == 1


async def test_hooks_that_are_added_later_see_model_calls_too() -> None:
    hooked = Hooked({"AfterModel": redact})
    agent = agent_of(hooked, "a s3cret", hooks=[])
    hooks = HooklineHooks(hooked.config)
    agent.hooks.add_hook(hooks)
    agent.hooks.add_hook(hooks)
    assert str(await agent.invoke_async("go")) == "a ***\n"
    assert hooked.names.count("BeforeAgent") == 1


async def test_agents_at_the_same_time_share_hooks_and_nothing_else() -> None:
    hooked = Hooked()
    hooks = [HooklineHooks(hooked.config)]
    agents = [agent_of(hooked, calls(str(n)), hooks=hooks) for n in range(8)]
    await asyncio.gather(
        *(agent.invoke_async(f"turn {n}") for n, agent in enumerate(agents))
    )
    for n, agent in enumerate(agents):
        own = [one for one in hooked.seen if one["session_id"] == agent.session_id]
        assert [one["prompt"] for one in own if "prompt" in one] == [f"turn {n}"] * 2
        assert [one["tool_input"]["path"] for one in own if "tool_input" in one] == [
            str(n),
            str(n),
        ]


async def test_runs_of_one_agent_at_the_same_time_stay_apart() -> None:
    def stop(event: dict[str, Any]) -> Any:
        return stops("enough") if event["tool_input"]["path"] == "a" else None

    hooked = Hooked({"BeforeTool": stop})
    agent = agent_of(
        hooked,
        *(calls("a"), calls("b"), "done"),
        concurrent_invocation_mode="unsafe_reentrant",
    )
    results = await asyncio.gather(*(agent.invoke_async(text) for text in ("1", "2")))
    assert sorted(map(str, results)) == ["done\n", "enough\n"]
    assert len(hooked.events("AfterTool")) == len(hooked.events("AfterAgent")) == 1


async def test_a_given_session_is_that_of_all_events() -> None:
    hooked = Hooked()
    hooks = [HooklineHooks(hooked.config.session("mine", transcript_path="/t"))]
    await agent_of(hooked, "fine", hooks=hooks).invoke_async("go")
    assert {(e["session_id"], e["transcript_path"]) for e in hooked.seen} == {
        ("mine", "/t")
    }


def test_plain_calls_share_one_warm_worker(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os\nfrom hookline.script import run\n"
        "def note(event):\n"
        f"    with open({str(pids)!r}, 'a') as file:\n"
        "        print(os.getpid(), file=file)\n"
        "run(note)\n"
    )
    hook = {"type": "worker", "command": f"{sys.executable} {script}"}
    settings = {"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}
    hooked = Hooked(settings=settings)
    agent = agent_of(hooked, "one", "two")
    assert [str(agent(prompt)) for prompt in "ab"] == ["one\n", "two\n"]
    asyncio.run(hooked.config.dispose())
    assert len(pids.read_text().split()) == 2
    assert len(set(pids.read_text().split())) == 1


def test_the_example_prints_what_its_page_shows() -> None:
    root = Path(__file__).parents[2]
    example = root / "examples" / "frameworks" / "strands_agent.py"
    command = [sys.executable, str(example)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    page = (root / "docs" / "how-to" / "frameworks" / "strands.md").read_text()
    assert f"```\n{done.stdout.strip()}\n```" in page


def test_a_missing_strands_is_named() -> None:
    code = "import sys; sys.modules['strands'] = None; import hookline.adapters.strands"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "strands-agents is missing (hookline[strands])" in done.stderr
