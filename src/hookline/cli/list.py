"""``hookline list``: show the configured hooks without running or importing any."""

from __future__ import annotations

import os
from typing import Any

from hookline.engine.breaker import CircuitBreaker
from hookline.engine.registry import HookRegistry
from hookline.plan import RegisteredHook
from hookline.settings.model import Dialect, Severity, TrustStatus
from hookline.settings.places import find_workspace

from .messages import log_problems, log_to_stderr
from .options import Options, Parser, load_config
from .terminal import one_line, print_json, print_table

SUMMARY = "show the configured hooks"
DESCRIPTION = """\
Show every configured hook: event, matcher, name, source, type, whether it is
enabled, and its mode: a hook in observe mode runs, and its verdict is only
recorded ('hookline log --would-block' shows them). Below them, the coding
agents that 'hookline install' has set up to ask these hooks, and whether that
would work. No hook is run.

  hookline list
  hookline list --settings other.json --json"""

_HEADINGS = ("event", "matcher", "name", "source", "type", "enabled", "mode")


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_settings()
    parser.add_flag("--json", "print a JSON list")


def run(options: Options) -> None:
    """Print the hooks."""
    log_to_stderr()
    config = load_config(options)
    log_problems(config)
    breaker = CircuitBreaker(config.working_dir)
    hooks = HookRegistry(config.settings).all_hooks()
    rows = [_as_json(hook, bool(breaker.skipped(hook))) for hook in hooks]
    if options.json:
        print_json(rows)
        return
    if rows:
        _print_hooks(rows, config.settings.folder)
    elif any(layer.groups for layer in config.settings.layers):
        print("hooks are disabled: enableHooks is false in the settings")
    else:
        hint = "'hookline check' shows where settings files belong"
        print(f"no hooks are configured: 'hookline init' sets up a first one, {hint}")
    if options.settings is None:
        _print_agents(config.working_dir, hooks)


def _as_json(hook: RegisteredHook, tripped: bool) -> dict[str, Any]:
    return {
        **hook.facts(),
        "tripped": tripped,
        "recheck": hook.config.recheck,
        "command": hook.config.subject,
        "if": hook.config.condition,
    }


def _print_hooks(hooks: list[dict[str, Any]], folder: str | None) -> None:
    """Print a table; with the projects where one is not the current directory."""
    headings = [*_HEADINGS]
    if any(hook["project"] not in {None, folder} for hook in hooks):
        headings.append("project")
    rows = []
    for hook in hooks:
        state = "skipped: repeated timeouts" if hook["tripped"] else "yes"
        if not hook["enabled"]:
            state = "no"
        elif hook["trust"] != TrustStatus.TRUSTED.value:
            state = hook["trust"]
        is_foreign = hook["dialect"] != Dialect.HOOKLINE.value
        cells = {
            **hook,
            "matcher": hook["matcher"] or "*",
            "source": hook["source"] + (", managed" if hook["managed"] else ""),
            "type": hook["type"] + (f", {hook['dialect']}" if is_foreign else ""),
            "enabled": state,
            "mode": hook["mode"] + ("" if hook["recheck"] else ", no recheck"),
        }
        if hook["if"] is not None:
            cells["matcher"] += f" if {hook['if']}"
        if hook["async"]:
            cells["type"] += ", async"
        if hook["project"] is not None:
            cells["project"] = os.path.relpath(hook["project"], folder)
        rows.append([one_line(cells[heading]) for heading in headings])
    print_table(headings, rows)


def _print_agents(folder: str, hooks: list[RegisteredHook]) -> None:
    from hookline.hosts.install.status import find_installed
    from hookline.hosts.registry import HOSTS

    from .install import shown_path

    rows = []
    for agent in find_installed(find_workspace(folder), hooks):
        works = HOSTS[agent.host].files.approval or "yes"
        if any(finding.severity is not Severity.HINT for finding in agent.findings):
            works = "'hookline check' has findings"
        file, events = shown_path(agent.files[0]), ", ".join(agent.events)
        cells = (agent.host, agent.scope, file, events, works)
        rows.append([one_line(cell) for cell in cells])
    if rows:
        print()
        print_table(("agent", "settings", "file", "events", "works"), rows)
