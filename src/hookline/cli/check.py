"""``hookline check``: find mistakes in settings files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hookline.config import Config
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError
from hookline.settings.check import Checked, Finding, check_file, check_places
from hookline.settings.model import Severity
from hookline.settings.places import (
    FILE_STEM,
    PROJECT_FOLDER,
    SettingsPlaces,
    absolute,
    find_workspace,
    is_within,
)

from .options import Options, Parser
from .terminal import paint, plural, print_json, printable

SUMMARY = "find mistakes in settings files"
DESCRIPTION = """\
Check settings files for invalid JSON or TOML, unknown events and keys (with the
nearest known one), wrong types, scripts that are missing or not executable,
matchers that never match, timeouts that look like seconds, and files that every
user can write. Hints say what would be faster. Also checked are the coding
agents that 'hookline install' has set up: whether they find the command, ask
for all events that have hooks, and wait long enough. No hook is run, so you can
check a project that you do not trust.

  hookline check                          all settings files of this directory
  hookline check .hookline/settings.json  one file
  hookline check --strict --format github for GitHub Actions, at changed lines
  hookline check --json                   for other programs
  hookline check --system managed.json    a file that will be in /etc/hookline

Each finding is one line, 'file:line: error|warning|hint: field: message'. With
github the summary is on stderr, and paths start at the root of the
repository.

exit status: 0 no errors, 1 errors (with --strict also warnings or no settings)"""

_FORMATS = ("text", "json", "github")
_STYLES = {"error": "red", "warning": "yellow", "hint": "blue"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "hint": "notice"}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "settings file (default: those of project, user and system)"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=text)
    text = "project directory; relative paths in commands start there"
    parser.add_cwd(text, default=None)
    text = "exit with 1 for warnings too, and if there are no settings"
    parser.add_flag("--strict", text)
    text = "FILE is meant for /etc/hookline: check it as system settings"
    parser.add_flag("--system", text)
    text = f"{', '.join(_FORMATS)} (default: text)"
    parser.add_option("--format FORMAT", text, choices=_FORMATS, default="text")
    text = "print a JSON list of the findings, as --format json"
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help=text
    )


def run(options: Options) -> int:
    """Print the findings."""
    cwd = None if options.cwd is None else Path(options.cwd)
    places = SettingsPlaces(project_dir=absolute(cwd or "."))
    if options.file is not None:
        checked = check_file(options.file, cwd, is_system=options.system)
    elif options.system:
        raise HooklineError("--system needs a FILE; see 'hookline check --help'")
    else:
        checked = _check_all(places, strict=options.strict)
    summary = _summary(checked, places)
    if options.format == "json":
        print_json(msgspec.to_builtins(checked.findings))
    elif options.format == "github":
        _print_github(checked.findings, find_workspace(places.project_dir or ".").root)
        sys.stdout.flush()
        print(f"hookline: {summary}", file=sys.stderr)
    else:
        for finding in checked.findings:
            severity = finding.severity.value
            # A line of its own could pass for a finding, or a command for a CI system.
            text = printable(str(finding))
            place, mark, message = text.partition(f": {severity}: ")
            place = place.removeprefix(f"{absolute('.')}/")
            print(f"{place}{paint(mark, _STYLES[severity])}{message}")
        print(summary)
    is_bad = checked.count(Severity.ERROR) > 0
    if options.strict:
        is_bad = is_bad or checked.count(Severity.WARNING) > 0
    return 1 if is_bad else 0


def _check_all(places: SettingsPlaces, *, strict: bool) -> Checked:
    """Check all settings files, and the coding agents that ask their hooks."""
    from hookline.hosts.install.status import find_installed

    checked = check_places(places)
    files, findings = [*checked.files], [*checked.findings]
    workspace = places.workspace()
    if workspace:
        config = Config.load(places.project_dir or ".")
        hooks = HookRegistry(config.settings).all_hooks()
        for agent in find_installed(workspace, hooks):
            files += agent.files
            findings += agent.findings
    if strict and not checked.files:
        folders = _folders(places)
        hint = "run 'hookline init' to set up a first hook, or name a FILE"
        no_settings = Finding(
            file=f"{folders[0]}/{FILE_STEM}.json",
            severity=Severity.ERROR,
            message=f"no settings files in {', '.join(folders)}: {hint}",
            rule="no-settings",
        )
        findings.append(no_settings)
    return Checked((*files,), (*findings,))


def _folders(places: SettingsPlaces) -> list[str]:
    """Where settings are looked for, the project's own folder first."""
    folders = [place.folder for place in places.folders(places.workspace())]
    return list(dict.fromkeys((f"{places.project_dir}/{PROJECT_FOLDER}", *folders)))


def _summary(checked: Checked, places: SettingsPlaces) -> str:
    if not checked.files and not checked.findings:
        return printable(f"no settings files in {', '.join(_folders(places))}")
    counts = {severity: checked.count(severity) for severity in Severity}
    if not counts[Severity.HINT]:
        del counts[Severity.HINT]
    texts = [plural(count, severity) for severity, count in counts.items()]
    return f"{plural(len(checked.files), 'file')} checked: {', '.join(texts)}"


def _print_github(findings: Iterable[Finding], root: str) -> None:
    """Print workflow commands: GitHub Actions shows them at the lines of a change."""
    for finding in findings:
        # That is how annotations find their lines.
        folder, name = os.path.split(absolute(finding.file))
        path = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - a string
        if path != root and is_within(path, root):
            path = path.removeprefix(root).strip("/")
        else:
            path = absolute(finding.file)
        properties = {"file": path}
        if finding.line is not None:
            properties["line"] = str(finding.line)
            if finding.column is not None:
                properties["col"] = str(finding.column)
        properties["title"] = f"hookline check: {finding.rule}"
        texts = []
        for key, value in properties.items():
            text = _escaped(value).replace(":", "%3A").replace(",", "%2C")
            texts.append(f"{key}={text}")
        level = _GITHUB_LEVELS[finding.severity.value]
        print(f"::{level} {','.join(texts)}::{_escaped(finding.text)}")


def _escaped(text: str) -> str:
    """Text of settings, which must not become syntax of a workflow command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(escaped)
