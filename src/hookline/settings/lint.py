"""What ``hookline check`` reports about settings files."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.errors import SettingsError, nearest
from hookline.protocol.events import TRAITS, HookEventName, Matching

from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
    Field,
    Problem,
    Report,
    Severity,
    is_number,
    is_text,
    quote,
    where,
)
from .locations import PROJECT_FOLDER, SettingsPlaces, find_settings_file
from .model import HookSource, HookType
from .parse import read_layer
from .read import Positions, parse_text, read_text, scan_json, scan_toml
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


class Finding(Struct, frozen=True, kw_only=True):
    """One problem of one file."""

    file: str
    line: int | None = None
    column: int | None = None
    severity: Severity
    where: str = ""
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        about = f"{self.where}: " if self.where else ""
        column = "" if self.column is None else f" (column {self.column})"
        return f"{place}: {self.severity}: {about}{self.message}{column}"


class Checked(Struct, frozen=True):
    """The outcome of checking."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def check_file(file: Path, project_dir: Path | None = None) -> Checked:
    """Check one file that somebody named."""
    folder = file.absolute().parent
    source = _source_of(folder)
    explicit = source is HookSource.PROJECT and folder.name != PROJECT_FOLDER
    if project_dir is None and source is HookSource.PROJECT:
        project_dir = Path.cwd() if explicit else folder.parent
    findings = _findings(file, source, project_dir, explicit=explicit)
    return Checked((str(file),), tuple(findings))


def check_places(places: SettingsPlaces) -> Checked:
    """Check the files of all places."""
    files: list[str] = []
    findings: list[Finding] = []
    for source, folder in places.folders().items():
        try:
            file = find_settings_file(folder)
        except SettingsError as error:
            files.append(error.file or folder)
            findings.append(_refusal(error, folder))
            continue
        if file is not None:
            files.append(file)
            # Only a project's own settings are about one project.
            own = source is HookSource.PROJECT
            findings += _findings(
                Path(file), source, Path(folder).parent if own else None
            )
    return Checked(tuple(files), tuple(findings))


def _source_of(folder: Path) -> HookSource:
    places = SettingsPlaces().folders().items()
    sources = [source for source, place in places if Path(place) == folder]
    return sources[0] if sources else HookSource.PROJECT


def _findings(
    file: Path, source: HookSource, project_dir: Path | None, *, explicit: bool = False
) -> list[Finding]:
    try:
        text = read_text(file)
        raw = parse_text(text, file)
    except SettingsError as error:
        return [_refusal(error, str(file))]
    positions = scan_toml(text) if file.suffix == ".toml" else scan_json(text)
    _, problems = read_layer(raw, source, str(file), explicit=explicit)
    report = Report(problems)
    audit(raw, project_dir and project_dir.absolute(), report)
    found = [_finding(file, problem, positions) for problem in report.problems]
    found += _repetitions(file, positions)
    return sorted(found, key=lambda finding: finding.line or 0)


def _finding(file: Path, problem: Problem, positions: Positions) -> Finding:
    return Finding(
        file=str(file),
        line=positions.line_of(problem.path),
        severity=problem.severity,
        where=where(problem.path),
        message=problem.message,
    )


def _repetitions(file: Path, positions: Positions) -> list[Finding]:
    return [
        Finding(
            file=str(file),
            line=line,
            severity=Severity.ERROR,
            where=where(path),
            message="the key is there twice: the first one is lost",
        )
        for path, line in positions.repeated
    ]


def _refusal(error: SettingsError, place: str) -> Finding:
    return Finding(
        file=error.file or place,
        line=error.line,
        column=error.column,
        severity=Severity.ERROR,
        message=error.problem,
    )
