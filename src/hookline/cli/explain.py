"""``hookline explain``: why each hook would or would not run, and what it contributed.

The plan is explained without running anything; with ``--run`` the event is fired.
"""

from __future__ import annotations

import msgspec

from hookline.engine.explain import (
    Explainer,
    HookExplanation,
    Outcome,
    summarize,
    to_json,
    trace_result,
)
from hookline.errors import HooklineError
from hookline.hosts.registry import host_of
from hookline.protocol.events import HookEventName
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.model import Dialect, HookMode

from . import explain_host, fire, render
from .messages import log_problems, log_to_stderr
from .options import Options, Parser, load_config
from .terminal import one_line, paint, print_json, short_json, shorten

SUMMARY = "show why each hook would or would not run"
DESCRIPTION = """\
Show every hook that is configured for an event, why it would or would not run, in which
order, and whether in parallel. No hook is run.

  hookline explain BeforeTool --tool write_file
  hookline explain BeforeTool                    for any tool
  hookline explain SessionStart --input start.json
  hookline explain BeforeTool --tool write_file --settings new.json --json

With --run the event is fired as by 'hookline fire'. Each field of the result is shown
with the values that the hooks gave for it, and whether they were used or overridden.

  hookline explain BeforeTool --tool write_file --input event.json --run

With --host it also says what a coding agent makes of it: its name of the event, and
what it cannot do. Without an event: for all events that have hooks.

  hookline explain --host codex
  hookline explain BeforeTool --tool write_file --host codex

exit status: 0, or with --run as for 'hookline fire'"""

_MAX_TEXT = 60
_STYLES = {
    "runs": "green",
    **dict.fromkeys(("skipped", "untrusted", "changed", "condition false"), "yellow"),
}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    fire.add_event_arguments(parser, optional=True)
    parser.add_option("--host HOST", "what a coding agent can express, such as codex")
    parser.add_flag("--run", "fire the event and show which hook set each field")
    parser.add_flag("--json", "print one JSON object")
    parser.add_settings()


def run(options: Options) -> int:
    """Explain the plan, and with ``--run`` the result."""
    log_to_stderr()
    host = None if options.host is None else host_of(options.host)
    config = load_config(options, options.session_id)
    if options.event is None:
        needs_event = (options.tool, options.tool_input, options.input)
        if host is None or options.run or any(v is not None for v in needs_event):
            raise HooklineError("which event? see 'hookline explain --help'")
        log_problems(config)
        explain_host.print_overview(host, config, as_json=options.json)
        return 0
    event = HookEventName.of(options.event)
    event_input = fire.read_event_input(options, event, require_tool=options.run)
    if options.run and config.get_hook_system() is None:
        raise HooklineError("hooks are disabled (enableHooks is false): nothing to run")
    explainer = Explainer(config, event, event_input)
    target, hooks = explainer.target, explainer.explain()

    def show(result: ProcessedHookResult | None) -> None:
        in_host = None
        if host is not None:
            in_host = explain_host.event_json(host, event, result)
        if options.json:
            report = to_json(event, target, hooks)
            if in_host is not None:
                report["host"] = in_host
            if result is not None:
                report["result"] = render.to_json(event, result)
                report["origins"] = msgspec.to_builtins(trace_result(result))
            print_json(report)
            return
        name = "" if target is None else f" {one_line(str(target))}"
        print(f"{event.value}{shorten(name, _MAX_TEXT)}: {one_line(summarize(hooks))}")
        for hook in hooks:
            _print_hook(hook)
        if result is not None:
            print()
            render.print_result(event, result)
            _print_origins(result)
        if host is not None and in_host is not None:
            explain_host.print_event(host, event, in_host)

    if options.run:
        return fire.exit_status(fire.fire_once(config, event, event_input, show))
    log_problems(config)
    show(None)
    return 0


def _print_hook(explanation: HookExplanation) -> None:
    hook, config = explanation.hook, explanation.hook.config
    number = "-" if explanation.order is None else f"{explanation.order}."
    style = _STYLES.get(explanation.judgement, "dim")
    judgement = paint(explanation.judgement, style)
    print(f"\n{number:>3} {shorten(one_line(hook.name), _MAX_TEXT)}: {judgement}")
    print(f"    {one_line(explanation.why)}")
    facts = f"{hook.source.value} {config.type.value}"
    if config.mode is HookMode.OBSERVE:
        facts += ", observes only: its verdict has no effect"
    facts += ", managed" if config.managed else ""
    if config.dialect is not Dialect.HOOKLINE:
        facts += f", dialect {config.dialect.value}"
    facts += ", sequential" if hook.sequential else ""
    facts += ", not waited for" if config.is_async else ""
    print(f"    {facts}; {one_line(hook.file or 'registered in code')}")
    expressions = {"if": explanation.condition, "when": explanation.rule}
    for label, expression in expressions.items():
        if expression is None:
            continue
        print(f"    {label}: {one_line(expression.source)}")
        print(f"      = {_painted(expression.outcome)}")
        for part in expression.parts:
            print(f"        {one_line(part.text)} = {_painted(part.outcome)}")
        for path, value in expression.values.items():
            print(f"      {one_line(path)} = {short_json(value, _MAX_TEXT)}")


def _painted(outcome: str) -> str:
    word, colon, reason = outcome.partition(":")
    style = {"true": "green", "false": "yellow"}.get(word, "red")
    return paint(word, style) + (f": {one_line(reason)}" if colon else "")


def _print_origins(result: ProcessedHookResult) -> None:
    """Print each field of the result with the values that hooks gave for it."""
    fields = trace_result(result)
    if fields:
        print("\nfields and the hooks behind them")
    for field in fields:
        value = "dropped" if field.value is None else short_json(field.value, _MAX_TEXT)
        print(f"  {one_line(field.field)} = {value}")
        for contribution in field.contributions:
            is_lost = contribution.outcome is Outcome.OVERRIDDEN
            name = contribution.outcome.name.lower()
            outcome = paint(name, "dim" if is_lost else "green")
            value = short_json(contribution.value, _MAX_TEXT)
            print(f"    {one_line(contribution.hook)}: {value} ({outcome})")
