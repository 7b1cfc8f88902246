"""Gemini CLI and llxprt-code: captures in, exact answers out (issue 15, 1 to 3)."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hookline.hosts.gemini import GeminiHost, LlxprtHost
from hookline.hosts.host import BadInputError, Verdict
from hookline.protocol.events import HookEventName

from .captured import (
    ALL,
    ASK,
    BLOCK,
    CLEAR,
    CONTEXT,
    MESSAGE,
    STOP,
    WITHHOLD,
    Desk,
    capture_names,
    captured,
    changing,
    desk,
    read_event,
    shown_to_hooks,
)

__all__ = ["desk"]
GEMINI = GeminiHost()
read = partial(read_event, GEMINI)
shown = partial(shown_to_hooks, GEMINI)


def call(name: str, **tool_input: Any) -> dict[str, Any]:
    given = captured("gemini", "BeforeTool-1")
    return given | {"tool_name": name, "tool_input": tool_input}


@pytest.mark.parametrize("host", ["gemini", "llxprt"])
@pytest.mark.parametrize("name", capture_names("gemini"))
async def test_every_capture_is_read_and_answered(
    desk: Desk, host: str, name: str
) -> None:
    given = captured("gemini", name)
    event = read(given)
    assert event.name == name.partition("-")[0]
    assert event.event is HookEventName(event.name)
    assert event.cwd == "/home/user/project"
    assert event.session_id == given["session_id"]
    assert event.transcript_path == given["transcript_path"]
    # Any answer to this event would replace the host's own choice of tools.
    expected = b"" if event.name == "BeforeToolSelection" else b"{}\n"
    for then in ({}, {"decision": "allow"}):
        desk.rule(event.name, then)
        reply = await desk.ask(host, given)
        assert (reply.stdout, reply.stderr, reply.status) == (expected, b"", 0)


def specific(event: str, **fields: Any) -> str:
    text = json.dumps({"hookEventName": event, **fields}, separators=(",", ":"))
    return f'{{"hookSpecificOutput":{text}}}'


def denied(reason: str) -> str:
    return f'{{"decision":"deny","reason":{json.dumps(reason)}}}'


def told(event: str, text: str) -> str:
    return specific(event, additionalContext=text)


def requested(*messages: str, **config: Any) -> str:
    """The whole request: what it leaves out, Gemini CLI forgets."""
    listed = [{"role": "user", "content": one} for one in messages]
    whole = {"temperature": 1, "topP": 0.95, "topK": 64, **config}
    request = {"model": "gemini-2.5-flash", "config": whole, "messages": listed}
    return specific("BeforeModel", llm_request=request)


def answered(text: str) -> str:
    """A response that replaces: without parts it would be ignored."""
    content = {"role": "model", "parts": [text]}
    candidate = {"finishReason": "STOP", "index": 0, "content": content}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    response = {"text": text, "candidates": [candidate], "usageMetadata": usage}
    return specific("AfterModel", llm_response=response)


def selected(mode: str, *names: str) -> str:
    config = {"mode": mode, "allowedFunctionNames": list(names)}
    return specific("BeforeToolSelection", toolConfig=config)


def said(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


PROMPT = "<session_context>...</session_context>please work"
STOPPED = '"continue":false,"stopReason":"enough"'
DENIED_STOP = f"{denied('enough')[:-1]},{STOPPED}}}"
ESCAPED = "see &lt;b&gt;"
BOTH_TOLD = "see <b>\na note"
DENIED_WITH_ALL = denied(f"no <b>\n\n{ESCAPED}\na note")
NOTED = '{"systemMessage":"a note"}'
SYNTHETIC = {"candidates": [{"content": {"role": "model", "parts": ["instead"]}}]}

ANSWERS = [
    ("BeforeTool-1", BLOCK, denied("no <b>")),
    ("BeforeTool-1", ALL, DENIED_WITH_ALL),
    ("BeforeTool-1", STOP, DENIED_STOP),
    ("BeforeTool-1", {**BLOCK, **STOP}, DENIED_STOP),
    (
        "BeforeTool-1",
        ASK,
        '{"decision":"ask","reason":"sure?","systemMessage":"sure?"}',
    ),
    ("BeforeTool-1", CONTEXT, "{}"),
    ("BeforeTool-1", MESSAGE, NOTED),
    (
        "BeforeTool-1",
        changing(path="b"),
        specific("BeforeTool", tool_input={"file_path": "b", "content": "hello"}),
    ),
    (
        "BeforeTool-2",
        changing(command="ls"),
        specific("BeforeTool", tool_input={"command": "ls"}),
    ),
    (
        "BeforeTool-4",
        changing(path="b"),
        specific("BeforeTool", tool_input={"path": "b", "text": "b"}),
    ),
    ("AfterTool-1", BLOCK, told("AfterTool", "no <b>")),
    ("AfterTool-1", ALL, told("AfterTool", f"no <b>\n\n{BOTH_TOLD}")),
    ("AfterTool-1", CONTEXT, told("AfterTool", "see <b>")),
    ("AfterTool-1", MESSAGE, told("AfterTool", "a note")),
    ("AfterTool-1", WITHHOLD, denied("secret")),
    ("AfterTool-4", WITHHOLD, denied("secret")),
    ("AfterTool-3", said(withholdResult=True), denied("withheld by a hook")),
    ("AfterTool-1", STOP, DENIED_STOP),
    ("BeforeAgent-1", BLOCK, denied("no <b>")),
    ("BeforeAgent-1", STOP, DENIED_STOP),
    ("BeforeAgent-1", CONTEXT, told("BeforeAgent", "see <b>")),
    ("BeforeAgent-1", {**CONTEXT, **MESSAGE}, told("BeforeAgent", BOTH_TOLD)),
    ("AfterAgent-1", BLOCK, denied("no <b>")),
    ("AfterAgent-1", ALL, DENIED_WITH_ALL),
    ("AfterAgent-1", STOP, f"{{{STOPPED}}}"),
    ("AfterAgent-1", {**BLOCK, **STOP}, f"{{{STOPPED}}}"),
    ("AfterAgent-1", MESSAGE, NOTED),
    (
        "AfterAgent-1",
        {**BLOCK, **CLEAR},
        f"{denied('no <b>')[:-1]},{specific('AfterAgent', clearContext=True)[1:]}",
    ),
    ("BeforeModel-1", BLOCK, denied("no <b>")),
    ("BeforeModel-1", STOP, DENIED_STOP),
    (
        "BeforeModel-1",
        {**BLOCK, **said(llm_response=SYNTHETIC)},
        denied("no <b>")[:-1]
        + ","
        + specific("BeforeModel", llm_response={"text": "instead", **SYNTHETIC})[1:],
    ),
    ("BeforeModel-1", CONTEXT, requested(PROMPT, ESCAPED)),
    ("BeforeModel-1", MESSAGE, requested(PROMPT, "a note")),
    (
        "BeforeModel-1",
        said(llm_request={"config": {"temperature": 0.5}}),
        requested(PROMPT, temperature=0.5),
    ),
    (
        "BeforeModel-1",
        said(llm_request={"messages": [{"role": "user", "content": "x"}]}),
        requested("x"),
    ),
    (
        "BeforeModel-1",
        said(llm_request={"messages": []}),
        requested("[removed by a hook]"),
    ),
    ("AfterModel-1", said(llm_response={"text": "new"}), answered("new")),
    ("AfterModel-1", said(llm_response={"text": ""}), answered("")),
    ("AfterModel-1", said(llm_response={"candidates": []}), answered("")),
    ("AfterModel-1", said(llm_response=SYNTHETIC), answered("instead")),
    ("AfterModel-1", BLOCK, "{}"),
    ("AfterModel-1", STOP, f"{{{STOPPED}}}"),
    ("AfterModel-1", MESSAGE, NOTED),
    (
        "BeforeToolSelection-1",
        said(toolConfig={"mode": "ANY", "allowedFunctionNames": ["web_search", "x"]}),
        selected("ANY", "google_web_search", "x"),
    ),
    ("BeforeToolSelection-1", said(toolConfig={"mode": "NONE"}), selected("NONE")),
    ("BeforeToolSelection-1", STOP, selected("NONE")),
    ("BeforeToolSelection-1", BLOCK, ""),
    ("SessionStart-1", CONTEXT, told("SessionStart", "see <b>")),
    ("SessionStart-1", {**BLOCK, **MESSAGE}, told("SessionStart", "a note")),
    ("SessionStart-1", STOP, "{}"),
    ("SessionEnd-1", MESSAGE, NOTED),
    ("PreCompress-1", MESSAGE, NOTED),
    ("PreCompress-1", BLOCK, "{}"),
]


@pytest.mark.parametrize("host", ["gemini", "llxprt"])
@pytest.mark.parametrize(("name", "then", "expected"), ANSWERS)
async def test_each_verdict_has_its_answer(
    desk: Desk, host: str, name: str, then: Any, expected: str
) -> None:
    """Issue 15.2, hosts/README.md#rules 2 to 5 and 12."""
    desk.rule(name.partition("-")[0], then)
    reply = await desk.ask(host, captured("gemini", name))
    line = f"{expected}\n" if expected else ""
    assert (reply.stdout.decode(), reply.status) == (line, 0)


LOST = [
    ("BeforeTool-1", CONTEXT, "context: lost"),
    ("BeforeTool-1", MESSAGE, "message: shown to the person"),
    ("BeforeTool-1", ALL, ""),
    ("AfterTool-1", {"suppressOutput": True}, "suppress output: "),
    ("AfterAgent-1", CLEAR, "clear context: only together with a block"),
    ("AfterAgent-1", {**BLOCK, **CLEAR}, ""),
    ("BeforeToolSelection-1", STOP, "stop: the model is called without tools"),
    (
        "BeforeToolSelection-1",
        said(toolConfig={"mode": "NONE"}),
        "change: the model is told",
    ),
    (
        "AfterModel-1",
        said(llm_response={"text": "new"}),
        "change: the conversation keeps what the model wrote",
    ),
    (
        "BeforeModel-1",
        said(llm_request={"config": {"stopSequences": ["x"]}}),
        "change: config.stopSequences is not used",
    ),
]


@pytest.mark.parametrize(("name", "then", "expected"), LOST)
async def test_what_is_lost_is_said_when_it_is_lost(
    desk: Desk, name: str, then: Any, expected: str
) -> None:
    """Issue 15.2, hosts/README.md#rules 11."""
    await desk.check_loss(GEMINI, captured("gemini", name), then, expected)


TOOLS = [
    ("write_file", {"file_path": "a"}, "write_file", {"path": "a"}),
    ("read_file", {"absolute_path": "a"}, "read_file", {"path": "a"}),
    ("replace", {"file_path": "a"}, "replace", {"path": "a"}),
    ("list_directory", {"dir_path": "a"}, "list_directory", {"path": "a"}),
    ("glob", {"pattern": "*", "dir_path": "a"}, "glob", {"pattern": "*", "path": "a"}),
    ("grep_search", {"pattern": "x"}, "search_file_content", {"pattern": "x"}),
    ("search_file_content", {"pattern": "x"}, "search_file_content", {"pattern": "x"}),
    ("google_web_search", {"query": "q"}, "web_search", {"query": "q"}),
    ("invoke_agent", {"prompt": "p"}, "task", {"prompt": "p"}),
    ("read_many_files", {"include": ["a"]}, "read_many_files", {"include": ["a"]}),
    ("save_memory", {"fact": "f"}, "save_memory", {"fact": "f"}),
    ("write_todos", {"todos": []}, "write_todos", {"todos": []}),
]


@pytest.mark.parametrize(("tool", "given", "name", "expected"), TOOLS)
def test_tools_have_our_names(tool: str, given: Any, name: str, expected: Any) -> None:
    """hosts/README.md#what-a-hook-sees; the host's own are beside it (issue 15.1)."""
    found = shown(call(tool, **given))
    assert (found["tool_name"], found["tool_input"]) == (name, expected)
    about = {"name": "gemini", "event": "BeforeTool", "tool_name": tool}
    assert found["host"] == {**about, "tool_input": given}


async def test_every_address_of_a_prompt_is_an_event(desk: Desk) -> None:
    """Its ``web_fetch`` has no ``url``: a rule about one must hold all the same."""
    denies = {"decision": "deny", "reason": "${tool_input.url}"}
    desk.rule("BeforeTool", denies, when="tool_input.url.contains('evil')")
    prompt = "compare https://good.example and\nhttps://evil.example/x please"
    reply = await desk.ask("gemini", call("web_fetch", prompt=prompt))
    assert reply.stdout.decode() == f"{denied('https://evil.example/x')}\n"
    parts = read(call("web_fetch", prompt=prompt)).inputs(GEMINI.name)
    assert [one["tool_input"]["prompt"] for one in parts] == [prompt, prompt]
    assert shown(call("web_fetch", prompt="no address"))["tool_input"] == {
        "prompt": "no address"
    }
    assert shown(call("web_fetch", url="u"))["tool_input"] == {"url": "u"}


def test_mcp_context_and_original_name_are_the_hosts() -> None:
    given = captured("gemini", "BeforeTool-4")
    found = shown(given | {"original_request_name": "save"})
    assert found["tool_name"] == "mcp_files_save"
    assert found["mcp_context"] == given["mcp_context"]
    assert found["original_request_name"] == "save"


@pytest.mark.parametrize("name", ["AfterTool-1", "AfterTool-3", "AfterTool-4"])
def test_results_are_as_they_came(name: str) -> None:
    given = captured("gemini", name)
    assert shown(given)["tool_response"] == given["tool_response"]


def test_a_result_of_another_shape_is_its_content() -> None:
    found = shown(captured("gemini", "AfterTool-1") | {"tool_response": "x"})
    assert found["tool_response"] == {"llmContent": "x", "returnDisplay": "x"}


@pytest.mark.parametrize("name", ["BeforeModel-1", "AfterModel-1"])
async def test_model_payloads_reach_hooks_as_they_came(desk: Desk, name: str) -> None:
    """They are in the stable shape, with roles and chunks without parts."""
    given = captured("gemini", name)
    event = name.partition("-")[0]
    seen = desk.project / "seen.json"
    desk.command(event, f"cat >{seen}")
    assert (await desk.ask("gemini", given)).stderr == b""
    found = json.loads(seen.read_text())
    assert found["llm_request"] == given["llm_request"]
    assert found.get("llm_response") == given.get("llm_response")


FIELDS = [
    ("SessionStart-1", {"source": "startup"}),
    ("SessionEnd-1", {"reason": "exit"}),
    ("PreCompress-1", {"trigger": "auto"}),
    ("BeforeAgent-1", {"prompt": "please work"}),
    ("AfterAgent-1", {"prompt_response": "All DONE.", "stop_hook_active": False}),
    ("AfterAgent-2", {"prompt_response": "ok one\nok two", "stop_hook_active": True}),
]


@pytest.mark.parametrize(("name", "expected"), FIELDS)
def test_fields_are_the_hosts(name: str, expected: Any) -> None:
    assert expected.items() <= shown(captured("gemini", name)).items()


def test_a_notification_has_its_type_and_details() -> None:
    given = {"notification_type": "ToolPermission", "message": "m", "details": {"a": 1}}
    found = shown({"hook_event_name": "Notification", **given})
    assert given.items() <= found.items()


MISSING = [
    ("BeforeTool", {}, "tool_name: missing"),
    ("AfterTool", {"tool_name": "x"}, "tool_input: missing"),
    ("AfterTool", {"tool_name": "x", "tool_input": {}}, "tool_response: missing"),
    ("BeforeModel", {}, "llm_request: missing"),
    ("AfterModel", {"llm_request": {}}, "llm_response: missing"),
    ("BeforeModel", {"llm_request": "x"}, "llm_request: expected an object"),
    ("BeforeAgent", {}, "prompt: missing"),
    ("SubagentStart", {}, "unknown event 'SubagentStart'"),
]


@pytest.mark.parametrize(("event", "given", "problem"), MISSING)
def test_an_event_without_its_fields_cannot_be_read(
    event: str, given: Any, problem: str
) -> None:
    with pytest.raises(BadInputError, match=problem):
        GEMINI.read(given, event)


def message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ([0, 2], ["a", None, "c"]),
        ([2], [None, None, "c"]),
        ([], [None, None, None]),
        ([0, 1], ["a", "b", None]),
    ],
)
def test_a_message_that_hooks_left_out_is_covered(
    left: list[int], expected: list[str | None]
) -> None:
    """Gemini CLI keeps its own where there are fewer messages: they would leak."""
    given = captured("gemini", "BeforeModel-1")
    messages = [message("user", "a"), message("model", "b"), message("user", "c")]
    given["llm_request"]["messages"] = messages
    verdict = Verdict(llm_request={"messages": [messages[at] for at in left]})
    answer = json.loads(GEMINI.write(read(given), verdict).stdout)
    found = answer["hookSpecificOutput"]["llm_request"]["messages"]
    texts = [one or "[removed by a hook]" for one in expected]
    roles = ["user", "model", "user"]
    assert found == [message(*one) for one in zip(roles, texts, strict=True)]


def test_llxprt_has_the_same_events_and_is_not_tested() -> None:
    """Issue 15.1; HOSTS, events."""
    assert LlxprtHost().events == GEMINI.events
    assert LlxprtHost().tested is None
    assert len(GEMINI.events) == 11
