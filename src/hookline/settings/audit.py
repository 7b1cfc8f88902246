"""What is probably a mistake in settings, though they can be read.

Looks at the raw mapping beside ``parse``, which reports what cannot be used. Never
runs or imports a hook.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hookline.errors import nearest
from hookline.events import TRAITS, HookEventName, Matching

from .fields import GROUP_FIELDS, HOOK_FIELDS, OPTION_FIELDS, ROOT_FIELDS
from .kinds import Field, is_number, is_text
from .problems import Report, Severity, quote
from .schema import HookType
from .scripts import NamedFile, named_files

LIKE_SECONDS_BELOW_MS = 100

_HOMES = {
    "the top level": ROOT_FIELDS,
    "a group": GROUP_FIELDS,
    "a hook": HOOK_FIELDS,
    "hooksConfig": OPTION_FIELDS,
}


def audit(raw: Mapping[str, Any], project_dir: Path | None, report: Report) -> None:
    """Report what looks wrong; paths are only followed where the project is known."""
    _check_keys(raw, ROOT_FIELDS, report)
    options = raw.get("hooksConfig")
    if isinstance(options, dict):
        _check_keys(options, OPTION_FIELDS, report.at("hooksConfig"))
    for event, group, there in _groups(raw, report):
        _check_keys(group, GROUP_FIELDS, there)
        _check_matcher(event, group.get("matcher"), there.at("matcher"))
        for index, hook in enumerate(_items(group.get("hooks"))):
            if isinstance(hook, dict):
                _check_hook(hook, project_dir, there.at("hooks", index))


def _groups(
    raw: Mapping[str, Any], report: Report
) -> Iterator[tuple[HookEventName, dict[str, Any], Report]]:
    hooks = raw.get("hooks")
    for event in HookEventName:
        definitions = hooks.get(event.value) if isinstance(hooks, dict) else None
        for index, group in enumerate(_items(definitions)):
            if isinstance(group, dict):
                yield event, group, report.at("hooks", event.value, index)


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _check_keys(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> None:
    for key, value in raw.items():
        field = fields.get(key)
        if field is None:
            report.at(key).say(f"unknown key {quote(key)}{_advice(key, fields)}")
        elif field.kind.members and isinstance(value, dict):
            _check_keys(value, field.kind.members, report.at(key))


def _advice(key: Any, fields: Mapping[str, Field]) -> str:
    homes = [home for home, known in _HOMES.items() if key in known]
    if homes:
        return f": it belongs to {' or '.join(homes)}"
    if near := nearest(key, fields):
        return f": did you mean {near!r}?"
    return f": one of {', '.join(fields)}"


def _check_matcher(event: HookEventName, matcher: Any, report: Report) -> None:
    if not isinstance(matcher, str) or (matcher := matcher.strip()) in ("", "*"):
        return
    traits = TRAITS[event]
    if traits.matching is Matching.NOTHING:
        message = f"{event} takes no matcher: the hooks run every time"
        report.say(message, Severity.WARNING)
    elif traits.matching is Matching.REGEX:
        if problem := _regex_problem(matcher):
            report.say(f"no regular expression ({problem}): it is compared literally")
    elif traits.choices and matcher not in list(traits.choices):
        known = ", ".join(traits.choices)
        message = f"{quote(matcher)} never matches: {traits.matched_field} is "
        report.say(f"{message}one of {known}", Severity.WARNING)


def _regex_problem(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__
    return None


def _check_hook(hook: dict[str, Any], project_dir: Path | None, report: Report) -> None:
    _check_keys(hook, HOOK_FIELDS, report)
    _check_timeout(hook, report.at("timeout"))
    if hook.get("type") in (HookType.COMMAND, HookType.WORKER):
        command = hook.get("command")
        files = named_files(command, project_dir) if is_text(command) else []
        for file in files:
            _check_file(file, project_dir, report.at("command"))
    shell = hook.get("shell")
    if is_text(shell) and "/" in shell:
        _check_file(NamedFile(shell, is_program=True), None, report.at("shell"))
    for index, name in enumerate(_items(hook.get("trustFiles"))):
        if is_text(name):
            file = NamedFile(name, is_program=False)
            _check_file(file, project_dir, report.at("trustFiles", index))


def _check_timeout(hook: dict[str, Any], report: Report) -> None:
    timeout = hook.get("timeout")
    if not is_number(timeout) or not 0 < timeout < LIKE_SECONDS_BELOW_MS:
        return
    # A function of this process may well be held to so little; a process never is.
    is_function = hook.get("type") == HookType.PYTHON
    report.say(
        f"{quote(timeout)} looks like seconds: it is in milliseconds, "
        f"for {quote(timeout)} s write {quote(int(timeout * 1000))}",
        Severity.WARNING if is_function else Severity.ERROR,
    )


def _check_file(file: NamedFile, project_dir: Path | None, report: Report) -> None:
    path = file.under(project_dir)
    if path is None:
        return
    if not os.path.exists(path):  # noqa: PTH110 - false, not an error, for odd names
        report.say(f"{quote(file.word)} does not exist")
    elif path.is_dir():
        report.say(f"{quote(file.word)} is a directory")
    elif file.is_program and not os.access(path, os.X_OK):
        report.say(f"{quote(file.word)} is not executable: run chmod +x on it")
