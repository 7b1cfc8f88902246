"""protocol.md#process, issue 12.4: a broken answer is not a yes."""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Config, HookSystem, Settings
from hookline.executors.exit_table import BrokenAnswerError, as_text, parse_answer
from hookline.protocol.jsontext import decode
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.workshop import Workshop

from .bench import TOOL, WorkerBench

DENY = '{"decision": "deny", "reason": "no"}'

BROKEN = {
    "half an object": DENY[:-5],
    "half a key": '{"deci',
    "only a brace": "{",
    "single quotes": "{'decision': 'deny'}",
    "a trailing comma": '{"decision": "deny",}',
    "no quotes": "{decision: deny}",
    "words after it": f"{DENY} done",
    "two objects": f"{DENY}{DENY}",
    "two lines": f"{DENY}\n{DENY}",
    "NaN": '{"decision": "deny", "n": NaN}',
    "Infinity": '{"decision": "deny", "n": -Infinity}',
    "a comment": '{"decision": "deny"} // no',
    "a control character": '{"decision": "de\nny"}',
    "a string with half an object": json.dumps(DENY[:-1]),
    "half a string with an object": json.dumps(DENY)[:-1],
    "a string with a blank in front of the half": json.dumps(f" \n{DENY}")[:-4],
    "a string with an object in single quotes": "\"{'decision': 'deny'}\"",
    "an escaped brace": r'"\u007b\"decision\": \"deny\""',
    "a NUL in front": f"\0{DENY}",
    "a zero-width space in front": f"\u200b{DENY}",
    "a second byte order mark": f"\ufeff\u200b\ufeff{DENY}",
    "a soft hyphen in front": f"\xad{DENY}",
    "a wrong byte in front": f"\ufffd{DENY}",
    "colours": f"\x1b[1;39m{DENY}\x1b[0m",
    "what tput sgr0 prints": f"\x1b(B\x1b[m{DENY}",
    "a window title": f"\x1b]0;hook\x07{DENY}",
    "a link": f"\x1b]8;;\x1b\\{DENY}",
    "a reset of the terminal": f"\x1bc{DENY}",
    "a sequence of eight bits": f"\x9b0m{DENY}",
    "half a sequence": f"\x1b[{DENY}",
    "a blank Braille pattern": f"\u2800{DENY}",
    "a Hangul filler": f"\u3164{DENY}",
    "a tag character": f"\U000e0020{DENY}",
    "UTF-16 without a mark": "\0".join(DENY) + "\0",
    "UTF-16 without a mark, big end first": "\0" + "\0".join(DENY),
    "too deep": '{"decision": "deny", "n": ' + "[" * 100_000,
    "deep and valid": '{"n": ' + "[" * 100_000 + "]" * 100_000 + "}",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_text_that_starts_like_an_object_is_one_or_broken(text: str) -> None:
    with pytest.raises(BrokenAnswerError, match="printed broken JSON"):
        parse_answer(text)


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("policy", ["allow", "block"])
async def test_a_broken_answer_fails_with_its_cause_and_closes_by_policy(
    workshop: Workshop, text: str, policy: str
) -> None:
    (workshop.folder / "answer").write_text(text)
    hook = workshop.runs("cat answer", onError=policy)
    result = await workshop.fire("BeforeTool", hook)
    (found,) = result.aggregated.hook_results
    assert (found.success, found.cause) == (False, FailureCause.OUTPUT)
    assert result.system_message is None
    assert result.blocked is (policy == "block")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"decision": "deny",\n "reason": }', "line 2 column 12"),
        ("{'decision': 'deny'}", "line 1 column 2"),
        (f"{DENY} done", "line 1 column 38"),
        (json.dumps('{"a": }'), "in the JSON string, line 1 column 7"),
        (f"\u200b{DENY}", "U+200B"),
        ('{"a": NaN}', "NaN is not valid JSON"),
    ],
)
def test_the_error_says_where_it_breaks_and_what_to_do(text: str, where: str) -> None:
    with pytest.raises(BrokenAnswerError) as caught:
        parse_answer(text)
    assert where in str(caught.value)
    assert str(caught.value).endswith("print one JSON object and nothing else")


CLOSED = {
    "AfterTool": "withholdResult",
    "AfterModel": "llm_response",
    "BeforeToolSelection": "toolConfig",
}


@pytest.mark.parametrize("event", CLOSED)
async def test_a_broken_answer_takes_the_closed_form_of_events_that_cannot_block(
    workshop: Workshop, event: str
) -> None:
    hook = workshop.runs("echo '{'", onError={"output": "block"})
    result = await workshop.fire(event, hook)
    assert result.final_output is not None
    assert CLOSED[event] in (result.final_output.to_wire()["hookSpecificOutput"])


async def test_a_broken_answer_is_broken_in_the_claude_dialect_too(
    workshop: Workshop,
) -> None:
    hook = workshop.runs('echo \'{"decision": "block",\'', dialect="claude")
    result = await workshop.fire("BeforeTool", {**hook, "onError": "block"})
    assert result.blocked
    assert result.aggregated.hook_results[0].cause is FailureCause.OUTPUT


SAYS = """
import json, os, sys
if os.environ.get("HOOKLINE_WORKER") != "1":
    sys.exit("cold")
for line in sys.stdin:
    said = open("answer").read()
    frame = {"id": json.loads(line)["id"], "exit_code": 0}
    print(json.dumps(frame | {"stdout": said, "stderr": ""}), flush=True)
"""


async def worker_says(bench: WorkerBench, text: str) -> HookExecutionResult:
    (bench.folder / "answer").write_text(text)
    async with bench.system(bench.hook(SAYS)) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    (found,) = result.aggregated.hook_results
    assert not found.reran
    return found


@pytest.mark.parametrize(
    "name", ["half an object", "a zero-width space in front", "single quotes"]
)
async def test_a_workers_broken_answer_is_read_the_same_way(
    bench: WorkerBench, name: str
) -> None:
    found = await worker_says(bench, BROKEN[name])
    assert (found.success, found.cause) == (False, FailureCause.OUTPUT)


async def test_a_workers_byte_order_mark_is_dropped(bench: WorkerBench) -> None:
    found = await worker_says(bench, f"\ufeff{DENY}\n")
    assert found.raw_output == {"decision": "deny", "reason": "no"}


@pytest.mark.parametrize(
    "answer", [DENY, DENY.encode(), [DENY], True, 7, {DENY}, json.loads, object()]
)
async def test_a_function_that_returns_anything_else_has_failed(answer: Any) -> None:
    settings = Settings.from_mapping({"hooksConfig": {"onError": "block"}})
    async with HookSystem(Config(settings=settings)) as hooks:
        hooks.on("BeforeTool")(lambda _: answer)
        result = await hooks.event_handler.fire_before_tool_event("write_file", {})
    assert result.aggregated.hook_results[0].cause is FailureCause.OUTPUT
    assert result.blocked


@pytest.mark.parametrize(("code", "blocks"), [(258, True), (256, False), (-254, True)])
async def test_a_function_exits_with_the_status_a_process_would_have(
    code: int, blocks: bool
) -> None:
    def leave(_: dict[str, Any]) -> None:
        raise SystemExit(code)

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(leave)
        result = await hooks.event_handler.fire_before_tool_event("write_file", {})
    assert result.blocked is blocks


HELD = """printf '%s' '{said}'; (until [ -e done ]; do sleep 0.02; done) & exit 0"""


@pytest.mark.parametrize(
    ("said", "policy"),
    [(DENY[:-9], "block"), ('"', "block"), (r"\xff\xfe{", "allow")],
    ids=["object", "string", "UTF-16"],
)
async def test_an_answer_cut_while_another_process_holds_the_output_is_broken(
    workshop: Workshop, said: str, policy: str
) -> None:
    """The 250 ms after exit are over, and the answer is only half there."""
    (workshop.folder / "half").write_bytes(codecs.escape_decode(said.encode())[0])
    held = "cat half; (until [ -e done ]; do sleep 0.02; done) & exit 0"
    result = await workshop.fire("BeforeTool", workshop.runs(held, onError=policy))
    (workshop.folder / "done").touch()
    (found,) = result.aggregated.hook_results
    assert (found.success, found.cause) == (False, FailureCause.OUTPUT)
    assert "held its output open" in str(found.error)
    assert result.blocked is (policy == "block")


@pytest.mark.parametrize("said", [DENY, "words", ""])
async def test_a_whole_answer_counts_while_another_process_holds_the_output(
    workshop: Workshop, said: str
) -> None:
    hook = workshop.runs(HELD.format(said=said))
    result = await workshop.fire("BeforeTool", hook)
    (workshop.folder / "done").touch()
    assert result.aggregated.hook_results[0].success
    assert result.blocked is (said == DENY)
    assert result.system_message == ("words" if said == "words" else None)


async def test_no_answer_yet_is_a_failure_where_json_is_expected(
    workshop: Workshop,
) -> None:
    """A guard in the background: its verdict would come too late."""
    hook = workshop.runs(HELD.format(said=""), expect="json", onError="block")
    result = await workshop.fire("BeforeTool", hook)
    (workshop.folder / "done").touch()
    assert result.blocked
    assert result.aggregated.hook_results[0].cause is FailureCause.OUTPUT


async def test_nothing_printed_is_an_answer_where_json_is_expected(
    workshop: Workshop,
) -> None:
    hook = workshop.runs("true", expect="json", onError="block")
    result = await workshop.fire("BeforeTool", hook)
    assert not result.blocked


MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize(("encoding", "mark"), MARKS.items(), ids=MARKS)
async def test_a_byte_order_mark_decides_the_encoding_and_is_dropped(
    workshop: Workshop, encoding: str, mark: bytes
) -> None:
    said = '{"decision": "deny", "reason": "grün 🔒"}\r\n'
    (workshop.folder / "answer").write_bytes(mark + said.encode(encoding))
    result = await workshop.fire("BeforeTool", workshop.runs("cat answer"))
    assert (result.blocked, result.reason) == (True, "grün 🔒")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_marked_stream_that_is_cut_is_broken(encoding: str) -> None:
    with pytest.raises(BrokenAnswerError):
        parse_answer(as_text(MARKS[encoding] + DENY.encode(encoding)[:-3]))


def test_a_mark_with_a_nul_behind_it_is_not_taken_for_utf_32() -> None:
    with pytest.raises(BrokenAnswerError):
        parse_answer(as_text(codecs.BOM_UTF16_LE + f"\0{DENY}".encode("utf-16-le")))


@pytest.mark.parametrize(
    "text",
    [
        f"checking\n{DENY}",
        f"checking\n  {DENY}\ndone",
        f"50%\r{DENY}",
        f"```json\n{DENY}\n```",
        f"[{DENY}]",
        f"'{DENY}'",
        f"b'{DENY}'",
        json.dumps(json.dumps(DENY)),
        f"a\n\x1b[0m{DENY}",
        "x" * 200_000 + f"\n{DENY}",
    ],
)
async def test_text_with_an_answer_in_it_is_warned_about(
    workshop: Workshop, text: str
) -> None:
    (workshop.folder / "answer").write_text(text)
    result = await workshop.fire("BeforeTool", workshop.runs("cat answer"))
    (found,) = result.aggregated.hook_results
    assert found.success
    assert "print one JSON object" in " ".join(found.warnings)


@pytest.mark.parametrize("text", ["words", "use ${HOME}", "f() {\n  return\n}", "[1]"])
def test_other_text_is_not_warned_about(text: str) -> None:
    assert parse_answer(text) == (None, ())


REPEATED = [
    '{"decision": "deny", "decision": "allow"}',
    '{"decision": "allow", "decision": "deny"}',
    '{"decision": "block", "reason": "a", "decision": "ask", "reason": "b"}',
    r'{"decisi\u006fn": "deny", "decision": "allow"}',
    r'{"decision": "deny", "decision": "allow", "reason": "\u0022\u0022"}',
    '{"hookSpecificOutput": {"permissionDecision": "deny"}, "hookSpecificOutput": {}}',
    '{"hookSpecificOutput": {"permissionDecision": "deny"},"hookSpecificOutput": null}',
    '{"hookSpecificOutput": {"permissionDecision": "deny"},"hookSpecificOutput": true}',
    '{"decision": "deny", "decision": {"a": 1}}',
    '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "x"}}',
    json.dumps('{"decision": "deny", "decision": "allow"}'),
    '{"decision": "deny", "decision": null, "n": ' + "9" * 5000 + "}",
]


@pytest.mark.parametrize("text", REPEATED)
async def test_of_a_key_given_twice_the_stricter_value_counts(
    workshop: Workshop, text: str
) -> None:
    (workshop.folder / "answer").write_text(text)
    result = await workshop.fire("BeforeTool", workshop.runs("cat answer"))
    (found,) = result.aggregated.hook_results
    assert result.blocked
    assert "twice" in " ".join(found.warnings)


async def test_a_stop_given_twice_stops(workshop: Workshop) -> None:
    said = '{"continue": false, "continue": true}'
    result = await workshop.fire("BeforeTool", workshop.runs(f"echo '{said}'"))
    assert result.should_stop


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), json_values), st.booleans())
def test_every_object_is_read_as_it_is_and_no_part_of_it_is(
    said: dict[str, Any], ascii_only: bool
) -> None:
    text = json.dumps(said, ensure_ascii=ascii_only)
    assert parse_answer(text) == (decode(text), ())
    with pytest.raises(BrokenAnswerError):
        parse_answer(text[:-1])
