"""protocol.md#process: what the end of a command hook's process means."""

from __future__ import annotations

import pytest

from hookline.executors.exit_table import MAX_MESSAGE_BYTES, MAX_WARNING_BYTES
from hookline.protocol.results import FailureCause
from tests.support.workshop import Workshop


async def test_exit_0_with_a_json_object_is_that_output(workshop: Workshop) -> None:
    """HOOK-063."""
    said = {"decision": "block", "reason": "no", "other": 1}
    result = await workshop.fire("BeforeTool", workshop.says(said))
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.raw_output, hook.exit_code) == (True, said, 0)
    assert (result.blocked, result.reason) == (True, "no")


async def test_exit_0_with_a_json_string_holding_an_object_is_the_inner_object(
    workshop: Workshop,
) -> None:
    """HOOK-063."""
    result = await workshop.fire(
        "BeforeTool", workshop.says('{"decision": "block", "reason": "twice"}')
    )
    assert (result.blocked, result.reason) == (True, "twice")


@pytest.mark.parametrize(
    "text", ["plain words", "[1, 2]", "7", "null", '"quoted"', "NaN"]
)
async def test_exit_0_with_any_other_text_is_a_system_message(
    workshop: Workshop, text: str
) -> None:
    """HOOK-064."""
    result = await workshop.fire("BeforeTool", workshop.runs(f"printf '%s' '{text}'"))
    hook = result.aggregated.hook_results[0]
    assert hook.success
    assert hook.raw_output == {"decision": "allow", "systemMessage": text}
    assert result.system_message == text
    assert not result.blocked


async def test_exit_0_with_nothing_allows_and_changes_nothing(
    workshop: Workshop,
) -> None:
    """HOOK-065."""
    result = await workshop.fire("BeforeTool", workshop.runs("printf ' \\n\\t'"))
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.output, hook.raw_output) == (True, None, None)
    assert (result.blocked, result.final_output) == (False, None)


async def test_exit_0_over_the_limit_is_a_failure_and_is_not_read(
    workshop: Workshop,
) -> None:
    """protocol.md#process: half an answer is never read."""
    hook = workshop.says({"decision": "block", "reason": "x" * 3000})
    result = await workshop.fire("BeforeTool", hook, config={"maxOutputBytes": 1024})
    found = result.aggregated.hook_results[0]
    assert (found.success, found.output, found.truncated) == (False, None, True)
    assert "maxOutputBytes" in (found.error or "")
    assert not result.blocked


async def test_exit_2_blocks_with_stderr_and_does_not_parse_stdout(
    workshop: Workshop,
) -> None:
    """HOOK-066, HOOK-067a, HOOK-070."""
    result = await workshop.fire(
        "BeforeTool",
        workshop.runs("""echo '{"decision":"allow"}'; echo no way >&2; exit 2"""),
    )
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.exit_code) == (False, 2)
    assert hook.raw_output == {"decision": "deny", "reason": "no way"}
    assert (result.blocked, result.reason) == (True, "no way")
    assert result.aggregated.errors == []


async def test_exit_2_with_blank_stderr_blocks_with_the_default_reason(
    workshop: Workshop,
) -> None:
    """HOOK-067b."""
    result = await workshop.fire("BeforeTool", workshop.runs("echo ' ' >&2; exit 2"))
    assert (result.blocked, result.reason) == (True, "Blocked by hook")


@pytest.mark.parametrize("code", [1, 3, 126, 127, 255])
async def test_other_exit_codes_fail_open_with_a_warning(
    workshop: Workshop, code: int
) -> None:
    """HOOK-068, HOOK-069."""
    said = """echo '{"decision":"block"}'; echo oops >&2"""
    result = await workshop.fire("BeforeTool", workshop.runs(f"{said}; exit {code}"))
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.exit_code) == (False, code)
    assert hook.raw_output == {"decision": "allow", "systemMessage": "Warning: oops"}
    assert (result.blocked, result.system_message) == (False, "Warning: oops")
    assert "hook " in result.aggregated.errors[0].message


async def test_other_exit_codes_without_stderr_say_nothing(workshop: Workshop) -> None:
    """HOOK-068."""
    result = await workshop.fire(
        "BeforeTool", workshop.runs("""echo '{"decision":"block"}'; exit 1""")
    )
    assert result.aggregated.hook_results[0].output is None
    assert (result.blocked, result.aggregated.success) == (False, False)


@pytest.mark.parametrize("number", [9, 15])
async def test_a_signal_is_a_failure_with_its_negative_number(
    workshop: Workshop, number: int
) -> None:
    """HOOK-070."""
    result = await workshop.fire("BeforeTool", workshop.runs(f"kill -{number} $$"))
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.exit_code, hook.output) == (False, -number, None)
    assert hook.cause is FailureCause.CRASH


async def test_a_timeout_fails_with_an_error_that_says_after_how_long(
    workshop: Workshop,
) -> None:
    """protocol.md#process."""
    result = await workshop.fire("BeforeTool", workshop.runs("sleep 60", timeout=100))
    hook = result.aggregated.hook_results[0]
    assert (hook.success, hook.timed_out, hook.output) == (False, True, None)
    assert "timed out after 100 ms" in (hook.error or "")


async def test_a_shell_that_cannot_start_fails_with_an_error_that_says_so(
    workshop: Workshop,
) -> None:
    """protocol.md#process."""
    hook = workshop.runs("true", shell="/no/such/shell")
    result = await workshop.fire("BeforeTool", hook)
    found = result.aggregated.hook_results[0]
    assert (found.success, found.exit_code, found.output) == (False, None, None)
    assert "could not start '/no/such/shell'" in (found.error or "")
    assert found.cause is FailureCause.SPAWN


async def test_a_missing_working_directory_is_named(workshop: Workshop) -> None:
    """Bad input: a missing working directory."""
    workshop.folder.rmdir()
    result = await workshop.fire("BeforeTool", workshop.runs("true"))
    error = result.aggregated.hook_results[0].error or ""
    assert str(workshop.folder) in error
    assert "is missing" in error


async def test_a_command_with_a_null_byte_is_a_failed_hook(
    workshop: Workshop,
) -> None:
    """Bad input: a command longer than the system takes."""
    result = await workshop.fire("BeforeTool", workshop.runs(f"true {'x' * 500_000}"))
    assert "could not start" in (result.aggregated.hook_results[0].error or "")
    assert not result.blocked


async def test_expect_json_makes_text_a_failure(workshop: Workshop) -> None:
    """protocol.md#settings: expect."""
    hook = workshop.runs("echo words", expect="json")
    result = await workshop.fire("BeforeTool", hook)
    found = result.aggregated.hook_results[0]
    assert (found.success, found.cause) == (False, FailureCause.OUTPUT)


async def test_json_too_deep_to_read_is_a_failure_and_not_a_message(
    workshop: Workshop,
) -> None:
    """A verdict that cannot be read must not pass for an allow."""
    deep = "python3 -c 'n=100000; print(chr(123)+chr(34)+chr(97)+chr(34)+chr(58)"
    hook = workshop.runs(deep + "+chr(91)*n+chr(93)*n+chr(125))'")
    result = await workshop.fire("BeforeTool", hook)
    assert result.aggregated.hook_results[0].cause is FailureCause.OUTPUT
    assert result.system_message is None


async def test_wrong_bytes_become_replacement_characters(workshop: Workshop) -> None:
    """protocol.md#process."""
    result = await workshop.fire("BeforeTool", workshop.runs(r"printf '\377abc'"))
    assert result.system_message == "\ufffdabc"


async def test_a_character_in_two_pieces_is_read_whole(workshop: Workshop) -> None:
    """protocol.md#process: output is decoded once it is complete."""
    halves = r"printf 'gr\303'; sleep 0.2; printf '\274n'"
    result = await workshop.fire("BeforeTool", workshop.runs(halves))
    assert result.system_message == "grün"


async def test_whole_numbers_of_any_size_survive(workshop: Workshop) -> None:
    """protocol.md#process."""
    number = 10**40 + 7
    result = await workshop.fire(
        "BeforeTool",
        workshop.says({"hookSpecificOutput": {"tool_input": {"n": number}}}),
    )
    assert result.final_output is not None
    changed = result.final_output.modified_tool_input
    assert changed == {"path": "a.txt", "content": "hello", "n": number}


async def test_a_byte_order_mark_does_not_hide_a_verdict(workshop: Workshop) -> None:
    """Some shells write one in front of everything."""
    hook = workshop.runs(r"""printf '\357\273\277{"decision":"block"}'""")
    assert (await workshop.fire("BeforeTool", hook)).blocked


async def test_a_system_message_is_kept_to_its_limit_with_a_mark(
    workshop: Workshop,
) -> None:
    """protocol.md#process: 64 KiB."""
    result = await workshop.fire("BeforeTool", workshop.runs("yes | head -c 200000"))
    message = result.system_message or ""
    assert message.endswith("[...]")
    assert len(message) == MAX_MESSAGE_BYTES + len("[...]")


async def test_a_warning_keeps_the_end_of_stderr_with_a_mark(
    workshop: Workshop,
) -> None:
    """protocol.md#process: the last 4 KiB."""
    noise = "yes | head -c 100000 >&2; echo the cause >&2; exit 1"
    result = await workshop.fire("BeforeTool", workshop.runs(noise))
    message = result.system_message or ""
    assert message.startswith("Warning: [...]")
    assert message.endswith("the cause")
    assert len(message) <= MAX_WARNING_BYTES + len("Warning: [...]")
