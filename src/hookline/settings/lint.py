"""The findings of ``hookline check`` in settings files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.errors import MissingExtraError, SettingsError
from hookline.protocol.dialects import (
    DIALECTS,
    HostNames,
    listed_names,
    python_expression,
)
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.values import describe

from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
    Field,
    KeyPath,
    Problem,
    Report,
    Severity,
    path_text,
)
from .lint_hooks import check_decisions, check_hook
from .matcher_hints import foreign_names, written_as
from .model import FOREIGN_DIALECTS, TRANSLATED_TYPES, HookSource
from .parse import key_hint, parse_layer
from .places import PROJECT_FOLDER, SettingsPlaces
from .read import parse_text, read_text, scan_json, scan_toml


def lint(raw: Mapping[str, Any], project_dir: Path | None, report: Report) -> None:
    """Report what looks wrong; files are only checked where the project is known."""
    _check_keys(raw, ROOT_FIELDS, report)
    options = raw.get("hooksConfig")
    if isinstance(options, dict):
        _check_keys(options, OPTION_FIELDS, report.at("hooksConfig"))
        _check_telemetry(options.get("telemetry"), report.at("hooksConfig"))
    for event, group, there in _groups(raw, report):
        _check_keys(group, GROUP_FIELDS, there)
        for number, hook in _objects(group.get("hooks")):
            _check_keys(hook, HOOK_FIELDS, there.at("hooks", number))
            check_hook(hook, event, project_dir, there.at("hooks", number))


def undecidable(raw: Mapping[str, Any], folder: Path | None) -> list[Problem]:
    """What in settings could never decide anything, on whatever machine.

    ``folder`` is where relative paths of policies start.
    """
    report = Report()
    for event, group, there in _groups(raw, report):
        for number, hook in _objects(group.get("hooks")):
            check_decisions(hook, event, folder, there.at("hooks", number))
    found = (one for one in report.problems if one.severity is Severity.ERROR)
    return [one for one in found if not one.of_machine]


def _groups(
    raw: Mapping[str, Any], report: Report
) -> Iterator[tuple[HookEventName, dict[str, Any], Report]]:
    """The groups of hooks, each with a report; their matchers are checked."""
    hooks = raw.get("hooks")
    for event in HookEventName:
        groups = hooks.get(event.value) if isinstance(hooks, dict) else None
        for index, group in _objects(groups):
            there = report.at("hooks", event.value, index)
            members = [hook for _, hook in _objects(group.get("hooks"))]
            for dialect in dict.fromkeys(map(_dialect, members)) or (None,):
                check_matcher(event, group.get("matcher"), dialect, there.at("matcher"))
            yield event, group, there


def _check_telemetry(value: Any, report: Report) -> None:
    if not value:
        return
    try:
        is_there = find_spec("opentelemetry.trace") is not None
    except ModuleNotFoundError:  # nothing of OpenTelemetry is installed
        is_there = False
    if not is_there:
        problem = MissingExtraError("otel", "opentelemetry-api")
        report.at("telemetry").add(f"ignored: {problem}", Severity.WARNING)


def _objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(value, list | tuple):
        yield from ((i, item) for i, item in enumerate(value) if isinstance(item, dict))


def _check_keys(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> None:
    for key, value in raw.items():
        field = fields.get(key)
        if field is None:
            hint = key_hint(key, fields) or f"one of {', '.join(fields)}"
            report.at(key).add(f"unknown key {describe(key)}: {hint}")
        elif field.type.fields and isinstance(value, dict):
            _check_keys(value, field.type.fields, report.at(key))


def _dialect(hook: dict[str, Any]) -> str | None:
    """The dialect whose names a hook's matcher is compared with; None for ours."""
    dialect, kind = hook.get("dialect"), hook.get("type")
    is_foreign = dialect in list(FOREIGN_DIALECTS) and kind in list(TRANSLATED_TYPES)
    return dialect if is_foreign else None


def check_matcher(
    event: HookEventName, matcher: Any, dialect: str | None, report: Report
) -> None:
    """Report a matcher that does not mean what its author thinks."""
    if not isinstance(matcher, str) or (matcher := matcher.strip()) in ("", "*"):
        return
    traits = TRAITS[event]
    if dialect is not None and traits.matching is not Matching.NOTHING:
        _check_foreign(event, matcher, dialect, report)
        return
    if traits.matching is Matching.NOTHING:
        message = f"ignored: {event} takes no matcher, the hooks run every time"
        report.add(message, Severity.WARNING)
    elif traits.matching is Matching.REGEX:
        _check_expression(matcher, report)
    elif traits.choices and matcher not in list(traits.choices):
        known = ", ".join(traits.choices)
        message = f"{describe(matcher)} never matches: {traits.matched_field} is "
        report.add(f"{message}one of {known}", Severity.WARNING)


def _check_expression(matcher: str, report: Report) -> None:
    hint = written_as(matcher)
    if problem := _regex_problem(matcher):
        message = f"invalid regular expression ({problem}): compared literally"
        report.add(f"{message}: {hint}" if hint else message)
    elif hint is not None:
        report.add(f"{describe(matcher)}: {hint}", Severity.WARNING)
    elif foreign := foreign_names(matcher):
        dialect, ours = foreign
        message = f"{describe(matcher)} is what {dialect} calls it, here it is {ours!r}"
        todo = f'set "dialect": "{dialect}" on the hooks if they are written for that'
        report.add(f"{message}: {todo}", Severity.HINT)


_CHEAP = r"[\w\s|^$()?:-]*"
"""Expressions that take no time to search, whoever wrote them."""


def _check_foreign(
    event: HookEventName, matcher: str, dialect: str, report: Report
) -> None:
    """Check a matcher as the host of the dialect reads it (protocol.md#dialects)."""
    theirs, traits = DIALECTS[dialect], TRAITS[event]
    is_tool = traits.matching is Matching.REGEX
    names = listed_names(theirs, matcher)
    if names is None and (theirs.searches_all or is_tool):
        expression = python_expression(matcher)
        if problem := _regex_problem(expression):
            message = f"not a regular expression that Python can read ({problem})"
            report.add(f"{message}: compared literally")
        elif is_tool and re.fullmatch(_CHEAP, expression):
            search = re.compile(expression).search
            _check_tool(theirs, matcher, lambda name: bool(search(name)), report)
        return
    values = theirs.values.get(event, {})
    choices = traits.choices and {values.get(one, one) for one in traits.choices}
    for name in names or (matcher,):
        if choices and name not in choices:
            field = f"{traits.matched_field} is one of {', '.join(sorted(choices))}"
            message = f"{describe(name)} never matches: {field}"
            report.add(message, Severity.WARNING)
        elif is_tool:
            _check_tool(theirs, name, name.__eq__, report)


def _check_tool(
    theirs: HostNames, matcher: str, matches: Callable[[str], bool], report: Report
) -> None:
    """Warn about a matcher that names tools as we do, and not as the host does."""
    if any(map(matches, theirs.tools)):
        return
    found = [one for one, ours in theirs.tools.items() if any(map(matches, ours))]
    if found:
        shown = " or ".join(map(describe, found))
        message = f"{describe(matcher)} never matches: the hook is shown {shown}"
        report.add(message, Severity.WARNING)


def _regex_problem(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__
    return None


_RULE_LEVELS = {
    "settings": ROOT_FIELDS,
    "group": GROUP_FIELDS,
    "hook": HOOK_FIELDS,
    "config": OPTION_FIELDS,
}


def _rule_of(path: KeyPath) -> str:
    match path:
        case ("hooksConfig", str() as key, *_):
            level = "config"
        case ("hooks", _, int(), "hooks", int(), str() as key, *_):
            level = "hook"
        case ("hooks", _, int(), str() as key, *_):
            level = "group"
        case ("hooks", str() as event):
            return "hooks" if event in list(HookEventName) else "unknown-event"
        case ("hooks", *_) | ():
            return "hooks"
        case (key, *_):
            level = "settings"
    return f"{level}-{key}" if key in _RULE_LEVELS[level] else "unknown-key"


class Finding(Struct, frozen=True, kw_only=True):
    """One problem in one file."""

    file: str
    line: int | None = None
    column: int | None = None
    severity: Severity
    where: str = ""
    message: str
    rule: str = "coding-agent"
    """What it is about: a key of the settings, or a general rule."""

    @property
    def text(self) -> str:
        """Where in the file, and the message."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        # Where a field is named, the line is enough to find it.
        is_named = self.column is None or self.where
        column = "" if is_named else f" (column {self.column})"
        return f"{self.file}{line}: {self.severity}: {self.text}{column}"


class Checked(Struct, frozen=True):
    """The files that were checked, and what was found."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def check_file(
    file: Path, project_dir: Path | None = None, *, is_system: bool = False
) -> Checked:
    """Check one file, by where it is, or as a file of the system."""
    if is_system:
        findings = _findings(file, HookSource.SYSTEM, None)
        return Checked((str(file),), tuple(findings))
    folder = file.absolute().parent
    known = SettingsPlaces().folders()
    sources = [place.source for place in known if Path(place.folder) == folder]
    is_project = folder.name == PROJECT_FOLDER
    local = HookSource.PROJECT if is_project else HookSource.EXPLICIT
    if project_dir is None and not sources:
        project_dir = folder.parent if is_project else Path.cwd()
    findings = _findings(file, sources[0] if sources else local, project_dir)
    return Checked((str(file),), tuple(findings))


def check_places(places: SettingsPlaces) -> Checked:
    """Check the files of all places."""
    files: list[str] = []
    findings: list[Finding] = []
    for place in places.folders(places.workspace()):
        # User and system settings belong to no project that files could be in.
        project_dir = None if place.project is None else Path(place.project)
        for stem in place.stems:
            try:
                file = place.find(stem)
            except SettingsError as error:
                files.append(error.file or place.folder)
                findings.append(_unusable(error, place.folder))
                continue
            if file is not None:
                files.append(file)
                findings += _findings(Path(file), place.source, project_dir)
    return Checked(tuple(files), tuple(findings))


def _findings(
    file: Path, source: HookSource, project_dir: Path | None
) -> list[Finding]:
    try:
        text = read_text(file)
        raw = parse_text(text, file)
    except SettingsError as error:
        return [_unusable(error, str(file))]
    positions = scan_toml(text) if file.suffix == ".toml" else scan_json(text)
    report = Report()
    parse_layer(raw, source, str(file), report=report)
    lint(raw, project_dir and project_dir.absolute(), report)
    for path in positions.repeated:
        report.at(*path).add("repeated key: only its last value counts")
    found = [
        Finding(
            file=str(file),
            line=positions.line_of(problem.path),
            column=positions.column_of(problem.path),
            severity=problem.severity,
            where=path_text(problem.path),
            message=problem.message,
            rule=_rule_of(problem.path),
        )
        for problem in _strictest(report.problems)
    ]
    return sorted(found, key=lambda finding: finding.line or 0)


def _strictest(problems: list[Problem]) -> list[Problem]:
    """Each problem once: what loading only warns of may be an error here."""
    errors = {
        (one.path, one.message) for one in problems if one.severity is Severity.ERROR
    }
    return [
        one
        for one in problems
        if one.severity is Severity.ERROR or (one.path, one.message) not in errors
    ]


def _unusable(error: SettingsError, file: str) -> Finding:
    return Finding(
        file=error.file or file,
        line=error.line,
        column=error.column,
        severity=Severity.ERROR,
        message=error.problem,
        rule="unusable-file",
    )
