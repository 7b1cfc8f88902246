"""Check settings files as a whole: each problem with its file and line.

Reads files and nothing else: no hook is run or imported, and no extension loaded.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from hookline.errors import SettingsError

from .audit import audit
from .locate import PROJECT_FOLDER, SettingsPlaces, find_settings_file
from .parse import read_layer
from .positions import Positions, scan_json, scan_toml
from .problems import Problem, Report, Severity, where
from .read import parse_text, read_text
from .schema import HookSource


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
