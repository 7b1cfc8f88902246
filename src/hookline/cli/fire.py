"""A verdict for people: what was decided, and what each hook did."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from typing import Any

from hookline.config import Config
from hookline.errors import HooklineError
from hookline.log import logger
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.jsontext import encode
from hookline.protocol.results import (
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    make_empty_success_result,
)

from .common import (
    add_settings_arguments,
    load_config,
    log_to_stderr,
    paint,
    parse_object,
    plain,
    print_json,
    read_object,
)


def print_verdict(event: HookEventName, result: ProcessedHookResult) -> None:
    """Print the verdict on one event."""
    print(f"{event.value}: {_headline(result)}")
    for hook in result.aggregated.hook_results:
        print(f"  {_hook_line(hook)}")
    for label, text in _effects(result):
        print(f"{label}: {plain(text)}")
    for hook in result.aggregated.hook_results:
        for warning in hook.warnings:
            told = plain(f"hook {hook.hook_name!r}: {warning}")
            print(f"{paint('warning', 'yellow')}: {told}")
    for error in result.aggregated.errors:
        print(f"{paint('error', 'red')}: {plain(error.message)}")


def _headline(result: ProcessedHookResult) -> str:
    if result.should_stop:
        return f"{paint('stopped', 'red')}: {plain(result.stop_reason or '')}"
    if result.blocked:
        return f"{paint('blocked', 'red')}: {plain(result.reason or '')}"
    if result.ask:
        return f"{paint('ask', 'yellow')}: {plain(_asked(result))}"
    if not result.aggregated.hook_results:
        return f"{paint('allowed', 'green')}, no hook ran"
    return paint("allowed", "green")


def _asked(result: ProcessedHookResult) -> str:
    final = result.final_output
    return (final.reason if final else None) or "a person should decide"


def _hook_line(hook: HookExecutionResult) -> str:
    took = f"{hook.duration:.1f} ms"
    return f"{_mark(hook)} {plain(hook.hook_name)} ({hook.source}, {took})"


def _mark(hook: HookExecutionResult) -> str:
    if hook.would_block:
        return paint("would block", "yellow")
    if hook.output is not None and hook.output.is_blocking:
        return paint("block", "red")
    if hook.failed:
        return paint(f"failed: {plain(hook.error or '')}:", "yellow")
    return paint("ok", "green")


def _effects(result: ProcessedHookResult) -> list[tuple[str, str]]:
    final = result.final_output
    found: list[tuple[str, str]] = []
    if final is None:
        return found
    if final.modified_tool_input is not None:
        found.append(("tool input now", encode(final.modified_tool_input).decode()))
    if final.llm_request is not None:
        found.append(("model request changed", encode(final.llm_request).decode()))
    if final.llm_response is not None:
        found.append(("model response", encode(final.llm_response).decode()))
    if final.tool_config is not None:
        found.append(("tools", encode(final.tool_config).decode()))
    if final.additional_context is not None:
        found.append(("context for the model", final.additional_context))
    if result.system_message is not None:
        found.append(("message for the model", result.system_message))
    return found


SUMMARY = "fire one event for real and show the verdict"
DESCRIPTION = """\
Run the hooks of one event, as an agent would, and show what they decided.

  hookline fire BeforeTool --tool write_file --tool-input '{"path": ".env"}'
  hookline fire BeforeAgent --input prompt.json
  echo '{"source": "startup"}' | hookline fire SessionStart --input - --json
  hookline fire BeforeTool --tool write_file --record; hookline log

exit status: 0 allowed, 2 blocked or stopped, 1 a mistake in the call"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("event", metavar="EVENT", help=", ".join(HookEventName))
    add_input_arguments(parser)
    add_settings_arguments(parser)
    parser.add_argument(
        "--record", action="store_true", help="record the event in the journal"
    )
    parser.add_argument(
        "--journal", metavar="FILE", help="record it in this journal instead"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="log what happens to stderr"
    )


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what an event is fired with."""
    parser.add_argument("--tool", metavar="NAME", help="the tool's name (tool events)")
    parser.add_argument(
        "--tool-input", metavar="JSON", help="the tool's input, a JSON object"
    )
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="the event's fields as a JSON object; '-' reads standard input",
    )
    parser.add_argument("--session-id", metavar="ID", help="the session to fire in")


def run(options: argparse.Namespace) -> int:
    """Fire the event and return the exit status."""
    log_to_stderr(logging.DEBUG if options.verbose else logging.WARNING)
    if not options.json and not options.verbose:
        # The verdict shows what went wrong with hooks; once is enough.
        logging.getLogger("hookline.hooks").setLevel(logging.ERROR)
    event = HookEventName.of(options.event)
    event_input = read_event_input(options, event)
    config = load_config(options, options.session_id)
    if options.record or options.journal is not None:
        _record(config, options.journal)
    result = fire_once(config, event, event_input)
    if options.json:
        print_json(to_json(event, result))
    else:
        print_verdict(event, result)
    return 2 if result.blocked or result.should_stop else 0


def to_json(event: HookEventName, result: ProcessedHookResult) -> dict[str, Any]:
    """The answer in the shape that ``--json`` promises."""
    aggregated, final = result.aggregated, result.final_output
    return {
        "event": event.value,
        "success": aggregated.success,
        "blocked": result.blocked,
        "reason": result.reason,
        "ask": result.ask,
        "should_stop": result.should_stop,
        "stop_reason": result.stop_reason,
        "system_message": result.system_message,
        "suppress_output": result.suppress_output,
        "additional_context": final.additional_context if final else None,
        "final_output": final.to_wire() if final else None,
        "all_outputs": [output.to_wire() for output in aggregated.all_outputs],
        "errors": [error.to_wire() for error in aggregated.errors],
        "total_duration_ms": round(aggregated.total_duration, 3),
        "hooks": [hook.to_wire() for hook in aggregated.hook_results],
    }


def fire_once(
    config: Config, event: HookEventName, event_input: dict[str, Any]
) -> ProcessedHookResult:
    """Fire an event; a mistake in its fields is the caller's."""
    result = asyncio.run(_fire(config, event, event_input))
    if _is_mistake(result):
        raise HooklineError(result.aggregated.errors[0].message)
    return result


async def _fire(
    config: Config, event: HookEventName, event_input: dict[str, Any]
) -> ProcessedHookResult:
    system = config.get_hook_system()
    if system is None:
        return ProcessedHookResult(aggregated=make_empty_success_result())
    async with system:
        if not sys.stderr.isatty():
            return await system.event_handler.fire(event, event_input)
        from .common import waiting

        async with waiting("waiting for hooks"):
            return await system.event_handler.fire(event, event_input)


def _record(config: Config, journal: str | None) -> None:
    if journal is not None and not journal.strip():
        raise HooklineError("--journal needs the name of a file")
    system = config.get_hook_system()
    if system is None:
        logger.warning("hooks are switched off: nothing is recorded")
    else:
        system.record_to(journal and os.path.abspath(journal))  # noqa: PTH100


def _is_mistake(result: ProcessedHookResult) -> bool:
    errors = result.aggregated.errors
    return bool(errors) and errors[0].stage is Stage.VALIDATION


def read_event_input(
    options: argparse.Namespace, event: HookEventName, *, need_tool: bool = True
) -> dict[str, Any]:
    """The event's fields, from the options and the file that they name."""
    event_input = {} if options.input is None else read_object(options.input)
    if options.session_id is not None:
        event_input.pop("session_id", None)
    if options.tool is not None:
        event_input["tool_name"] = options.tool
    if options.tool_input is not None:
        event_input["tool_input"] = parse_object(options.tool_input, "--tool-input")
    if need_tool and TRAITS[event].matched_field == "tool_name":
        _need_tool(event, event_input)
    return event_input


def _need_tool(event: HookEventName, event_input: dict[str, Any]) -> None:
    if "tool_name" not in event_input:
        raise HooklineError(
            f"{event.value} needs the tool's name: --tool NAME, or tool_name in --input"
        )
    event_input.setdefault("tool_input", {})
