"""``hookline list``: show the configured hooks; never runs or imports one."""

from __future__ import annotations

import argparse
from typing import Any

from hookline.config import Config
from hookline.engine.admission import CircuitBreaker
from hookline.engine.registry import HookRegistry
from hookline.executors.contract import RegisteredHook
from hookline.log import logger
from hookline.settings.model import TrustStatus

from .common import (
    add_settings_arguments,
    load_config,
    log_to_stderr,
    paint,
    plain,
    print_json,
)

SUMMARY = "show the configured hooks"
DESCRIPTION = """\
Show every configured hook: its event, matcher, name, source, type, and whether it is
switched on. Nothing is run.

  hookline list
  hookline list --settings other.json --json"""

_COLUMNS = ("event", "matcher", "name", "source", "type", "enabled")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_settings_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(options: argparse.Namespace) -> int:
    """Print the hooks."""
    log_to_stderr()
    config = load_config(options)
    for problem in (*config.settings.errors, *config.settings.warnings):
        logger.warning("%s", problem)
    hooks = HookRegistry(config.settings).all_hooks()
    breaker = CircuitBreaker(config.working_dir)
    if options.json:
        print_json([_entry(hook, bool(breaker.open_for(hook))) for hook in hooks])
    elif hooks:
        _print_table([_row(hook, bool(breaker.open_for(hook))) for hook in hooks])
    else:
        print(_nothing(config))
    return 0


def _nothing(config: Config) -> str:
    if any(layer.groups for layer in config.settings.layers):
        return "hooks are switched off here (enableHooks is false)"
    return "no hooks are configured: see 'hookline check' for where settings go"


def _entry(hook: RegisteredHook, tripped: bool) -> dict[str, Any]:
    return {
        "event": hook.event.value,
        "matcher": hook.matcher,
        "name": hook.name,
        "source": hook.source.value,
        "type": hook.config.type.value,
        "enabled": hook.enabled,
        "trust": hook.trust.value,
        "tripped": tripped,
        "sequential": hook.sequential,
        "managed": hook.config.managed,
        "command": hook.config.command or hook.config.function,
        "description": hook.config.description,
        "timeout_ms": hook.config.timeout_ms,
        "file": hook.file,
    }


def _row(hook: RegisteredHook, tripped: bool) -> tuple[str, ...]:
    return (
        hook.event.value,
        plain(hook.matcher or "*"),
        plain(hook.name).replace("\n", " "),
        hook.source.value,
        hook.config.type.value,
        _state(hook, tripped),
    )


def _state(hook: RegisteredHook, tripped: bool) -> str:
    if not hook.enabled:
        return "no"
    if hook.trust is not TrustStatus.TRUSTED:
        return hook.trust.value
    return "skipped: it kept timing out" if tripped else "yes"


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [
        min(max(map(len, column)), 48) for column in zip(_COLUMNS, *rows, strict=True)
    ]
    print(paint(_line(_COLUMNS, widths), "bold"))
    for row in rows:
        print(_line(row, widths))


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    fitted = (
        cell if len(cell) <= width else cell[: width - 1] + "…"
        for cell, width in zip(cells, widths, strict=True)
    )
    padded = (f"{cell:{width}}" for cell, width in zip(fitted, widths, strict=True))
    return "  ".join(padded).rstrip()
