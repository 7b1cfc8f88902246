"""``hookline fire``: fire one event and show the verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from hookline._internal.log import logger
from hookline.config import Config
from hookline.errors import HooklineError
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.outputs import HookOutput
from hookline.protocol.results import (
    HookExecutionResult,
    ProcessedHookResult,
    Stage,
    make_empty_success_result,
)
from hookline.protocol.values import encode
from hookline.protocol.verdict import Word, event_verdict, hook_verdict
from hookline.settings.model import HookType

from .common import Options, Parser, load_config, log_to_stderr, parse_json, read_input
from .terminal import (
    format_duration,
    one_line,
    paint,
    plural,
    print_json,
    printable,
    printable_text,
    shorten,
    show_waiting,
    verdict_output,
)

SUMMARY = "fire one event and show the verdict"
DESCRIPTION = """\
Run the hooks of one event, as an agent would, and show what they decide.

  hookline fire BeforeTool --tool write_file --tool-input '{"path": ".env"}'
  hookline fire BeforeAgent --input prompt.json
  echo '{"source": "startup"}' | hookline fire SessionStart --input - --json
  hookline fire BeforeTool --tool write_file --record; hookline log

exit status: 0 allowed, 2 blocked or stopped, 1 usage error"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    add_event_arguments(parser)
    parser.add_settings()
    parser.add_flag("--record", "record the event in the journal")
    parser.add_journal("record the event in this journal")
    parser.add_flag("--json", "print one JSON object and nothing else")
    parser.add_flag("-v --verbose", "log details to stderr")


def add_event_arguments(parser: Parser, *, optional: bool = False) -> None:
    """Add the event and its input."""
    number = "?" if optional else None
    text = ", ".join(HookEventName)
    parser.add_argument("event", metavar="EVENT", nargs=number, help=text)
    parser.add_option("--tool NAME", "name of the tool (tool events)")
    parser.add_option(
        "--tool-input JSON", "input of the tool, a JSON object (default: {})"
    )
    parser.add_input()
    parser.add_option("--session-id ID", "session of the event (default: a new one)")


def run(options: Options) -> int:
    """Fire the event and show the verdict."""
    log_to_stderr(logging.DEBUG if options.verbose else logging.WARNING)
    if not options.json and not options.verbose:
        # The printed verdict shows the failures of hooks already.
        logging.getLogger("hookline.hooks").setLevel(logging.ERROR)
    event = HookEventName.of(options.event)
    event_input = read_event_input(options, event)
    config = load_config(options, options.session_id)
    if options.record or options.journal is not None:
        _record(config, options.journal)

    def show(result: ProcessedHookResult) -> None:
        with verdict_output():
            if options.json:
                print_json(to_json(event, result))
            else:
                print_verdict(event, result)
                if not result.aggregated.hook_results:
                    _print_left_out(config, event, event_input)

    return exit_status(fire_once(config, event, event_input, show))


def exit_status(result: ProcessedHookResult) -> int:
    """2 for blocked or stopped, else 0."""
    return 2 if result.blocked or result.should_stop else 0


def read_event_input(
    options: Options, event: HookEventName, *, require_tool: bool = True
) -> dict[str, Any]:
    """The event's fields from ``--input``, ``--tool`` and ``--tool-input``."""
    event_input = read_input(options)
    if options.session_id is not None:
        event_input.pop("session_id", None)
    if options.tool is not None:
        event_input["tool_name"] = options.tool
    if options.tool_input is not None:
        event_input["tool_input"] = parse_json(options.tool_input, "--tool-input")
    if require_tool and TRAITS[event].matched_field == "tool_name":
        if "tool_name" not in event_input:
            hint = "use --tool NAME, or tool_name in --input"
            raise HooklineError(f"{event.value} needs a tool name: {hint}")
        event_input.setdefault("tool_input", {})
    return event_input


def _record(config: Config, journal: str | None) -> None:
    system = config.get_hook_system()
    if system is None:
        logger.warning("hooks are disabled (enableHooks is false): nothing is recorded")
    else:
        system.record_to(journal)


Show = Callable[[ProcessedHookResult], None]


def fire_once(
    config: Config, event: HookEventName, event_input: dict[str, Any], show: Show
) -> ProcessedHookResult:
    """Fire an event and show its result; raises if its fields are invalid.

    Hooks that nobody waits for have a moment to finish after that.
    """
    return asyncio.run(_fire(config, event, event_input, show))


async def _fire(
    config: Config, event: HookEventName, event_input: dict[str, Any], show: Show
) -> ProcessedHookResult:
    system = config.get_hook_system()
    if system is None:
        result = ProcessedHookResult(aggregated=make_empty_success_result())
        show(result)
        return result
    await system.initialize()
    try:
        async with show_waiting("waiting for hooks"):
            result = await system.event_handler.fire(event, event_input)
        errors = result.aggregated.errors
        if errors and errors[0].stage is Stage.VALIDATION:
            raise HooklineError(errors[0].message)
        show(result)
    finally:
        await system.dispose(background_s=BACKGROUND_S)
    return result


def to_json(event: HookEventName, result: ProcessedHookResult) -> dict[str, Any]:
    """The result in the documented shape of ``--json``."""
    aggregated, final = result.aggregated, result.final_output
    shown = {
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
    said = result.user_message
    return shown if said is None else {**shown, "user_message": said}


BACKGROUND_S = 2.0
"""How long a command waits for hooks that nobody waits for."""


def print_verdict(event: HookEventName, result: ProcessedHookResult) -> None:
    """Print what was decided and what each hook did."""
    hooks = result.aggregated.hook_results
    print(f"{event.value}: {_headline(event, result)}")
    for hook in hooks:
        print(f"  {_outcome(hook)} {printable(hook.hook_name)} ({_facts(hook)})")
    for label, text in _effects(result):
        print(f"{label}: {printable_text(text)}")
    for hook in hooks:
        for warning in hook.warnings:
            text = printable(f"hook {hook.hook_name!r}: {warning}")
            print(f"{paint('warning', 'yellow')}: {text}")
        is_process = hook.hook_type in (HookType.COMMAND, HookType.WORKER)
        if is_process and hook.success and hook.output is None and hook.stderr:
            text = printable(f"hook {hook.hook_name!r}: {one_line(hook.stderr)}")
            print(f"stderr, ignored with exit 0: {shorten(text, 200)}")
    for error in result.aggregated.errors:
        print(f"{paint('error', 'red')}: {printable_text(error.message)}")
    for hook in hooks:
        if hook.failed and hook.hook_type == HookType.PYTHON and hook.stderr:
            print(f"\n{printable_text(hook.stderr.rstrip())}")


_LEFT_OUT = {"not matching", "condition false", "disabled", "switched off"}
_MAX_LEFT_OUT = 5


def _print_left_out(
    config: Config, event: HookEventName, event_input: dict[str, Any]
) -> None:
    """Print why the hooks of the event did not run, those with a hint first."""
    from hookline.engine.explain import Explainer

    hooks = Explainer(config, event, event_input).explain()
    # A message on standard error tells of hooks that are not trusted.
    left_out = [one for one in hooks if one.judgement in _LEFT_OUT]
    left_out.sort(key=lambda one: "; " not in one.why)
    for hook in left_out[:_MAX_LEFT_OUT]:
        name, why = printable(hook.hook.name), printable(hook.why)
        print(f"  {paint('not run', 'dim')} {name}: {why}")
    if (more := len(left_out) - _MAX_LEFT_OUT) > 0:
        print(f"  and {plural(more, 'more hook')}: 'hookline explain' shows all")
    if not hooks:
        print(f"  no hook is configured for {event.value} here")


def _facts(hook: HookExecutionResult) -> str:
    if hook.is_async:
        return f"{hook.source}, not waited for"
    again = ", asked again about the final input" if hook.recheck else ""
    return f"{hook.source}, {format_duration(hook.duration)}{again}"


def _headline(event: HookEventName, result: ProcessedHookResult) -> str:
    verdict = event_verdict(event, result)
    reason = verdict.reason
    match verdict.word:
        case Word.STOPPED | Word.BLOCKED:
            return f"{paint(verdict.word, 'red')}: {printable_text(reason or '')}"
        case Word.ASK:
            question = reason or "the user has to decide"
            return f"{paint('ask', 'yellow')}: {printable_text(question)}"
    # What hooks changed is shown below; errors too.
    note = "" if result.aggregated.hook_results else ", no hook ran"
    return f"{paint('allowed', 'green')}{note}"


_OUTCOMES = {
    Word.NOT_WAITED_FOR: ("started", "green"),
    Word.WOULD_BLOCK: ("would block", "yellow"),
    Word.STOPPED: ("stop", "red"),
    Word.BLOCKED: ("block", "red"),
    Word.FAILED: ("failed", "yellow"),
}


def _outcome(hook: HookExecutionResult) -> str:
    return paint(*_OUTCOMES.get(hook_verdict(hook).word, ("ok", "green")))


def _effects(result: ProcessedHookResult) -> Iterator[tuple[str, str]]:
    final = result.final_output or HookOutput()
    withheld = "withheld from the model" if final.withholds_result else None
    for label, value in (
        ("tool input now", final.modified_tool_input),
        ("tool result", withheld),
        ("model request changed", final.llm_request),
        ("model response", final.llm_response),
        ("tools", final.tool_config),
        ("context for the model", final.additional_context),
        ("message for the model", result.system_message),
        ("message for the user", result.user_message),
    ):
        if value is not None:
            yield label, value if isinstance(value, str) else encode(value).decode()
