"""``hookline fire``: fire one event and show the verdict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hookline._internal.log import logger
from hookline.config import Config
from hookline.errors import HooklineError
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.results import (
    ProcessedHookResult,
    Stage,
    make_empty_success_result,
)

from .messages import log_to_stderr
from .options import Options, Parser, load_config, parse_json, read_input
from .render import print_result, to_json
from .terminal import (
    paint,
    plural,
    print_json,
    printable,
    show_waiting,
    verdict_output,
)

BACKGROUND_S = 2.0
"""How long a command waits for hooks that nobody waits for."""
_NOT_RUN = {"not matching", "condition false", "disabled", "switched off"}
_MAX_NOT_RUN = 5

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
        system = config.get_hook_system()
        if system is not None:
            system.record_to(options.journal)
        else:
            disabled = "hooks are disabled (enableHooks is false)"
            logger.warning("%s: nothing is recorded", disabled)

    def show(result: ProcessedHookResult) -> None:
        with verdict_output():
            if options.json:
                print_json(to_json(event, result))
                return
            print_result(event, result)
            if not result.aggregated.hook_results:
                _print_not_run(config, event, event_input)

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


def fire_once(
    config: Config,
    event: HookEventName,
    event_input: dict[str, Any],
    show: Callable[[ProcessedHookResult], None],
) -> ProcessedHookResult:
    """Fire an event and show its result; raises if its fields are invalid.

    Hooks that nobody waits for have a moment to finish after that.
    """

    async def fire() -> ProcessedHookResult:
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

    return asyncio.run(fire())


def _print_not_run(
    config: Config, event: HookEventName, event_input: dict[str, Any]
) -> None:
    """Print why the hooks of the event did not run, those with a hint first."""
    from hookline.engine.explain import Explainer

    explanations = Explainer(config, event, event_input).explain()
    # A message on standard error tells of hooks that are not trusted.
    not_run = [item for item in explanations if item.judgement in _NOT_RUN]
    not_run.sort(key=lambda item: "; " not in item.why)
    for item in not_run[:_MAX_NOT_RUN]:
        name, why = printable(item.hook.name), printable(item.why)
        print(f"  {paint('not run', 'dim')} {name}: {why}")
    more = len(not_run) - _MAX_NOT_RUN
    if more > 0:
        print(f"  and {plural(more, 'more hook')}: 'hookline explain' shows all")
    if not explanations:
        print(f"  no hook is configured for {event.value} here")
