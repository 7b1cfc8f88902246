"""``hookline check``: find mistakes in settings files."""

from __future__ import annotations

import sys
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
)

from .common import Options, Parser
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

_STYLES = {"error": "red", "warning": "yellow", "hint": "blue"}


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
    text = f"{', '.join(_PRINTERS)} (default: text)"
    parser.add_option("--format FORMAT", text, choices=list(_PRINTERS), default="text")
    text = "print a JSON list of the findings, as --format json"
    parser.add_argument(
        "--json", dest="format", action="store_const", const="json", help=text
    )


def run(options: Options) -> int:
    """Print the findings."""
    cwd = None if options.cwd is None else Path(options.cwd)
    places = SettingsPlaces(project_dir=absolute(cwd or "."))
    file = options.file
    if file is None and options.system:
        raise HooklineError("--system needs a FILE; see 'hookline check --help'")
    if file is None:
        checked = _check_all(places, strict=options.strict)
    else:
        checked = check_file(file, cwd, is_system=options.system)
    _PRINTERS[options.format](checked, places)
    counted = [Severity.ERROR, *([Severity.WARNING] if options.strict else [])]
    return 1 if any(checked.count(severity) for severity in counted) else 0


def _check_all(places: SettingsPlaces, *, strict: bool) -> Checked:
    from hookline.hosts.install.status import find_installed

    checked = check_places(places)
    hooks = HookRegistry(Config.load(places.project_dir or ".").settings).all_hooks()
    workspace = places.workspace()
    installed = find_installed(workspace, hooks) if workspace else []
    files = (file for one in installed for file in one.files)
    findings = [finding for one in installed for finding in one.findings]
    if strict and not checked.files:
        findings.append(_nothing_to_check(places))
    return Checked((*checked.files, *files), (*checked.findings, *findings))


def _nothing_to_check(places: SettingsPlaces) -> Finding:
    folders = _folders(places)
    hint = "run 'hookline init' to set up a first hook, or name a FILE"
    return Finding(
        file=f"{folders[0]}/{FILE_STEM}.json",
        severity=Severity.ERROR,
        message=f"no settings files in {', '.join(folders)}: {hint}",
        rule="no-settings",
    )


def _folders(places: SettingsPlaces) -> list[str]:
    """Where settings are looked for, the project's own folder first."""
    folders = [place.folder for place in places.folders(places.workspace())]
    return list(dict.fromkeys((f"{places.project_dir}/{PROJECT_FOLDER}", *folders)))


def _print_text(checked: Checked, places: SettingsPlaces) -> None:
    for finding in checked.findings:
        severity = finding.severity.value
        # A line of its own could pass for a finding, or be a command for a CI system.
        text = printable(str(finding))
        before, mark, after = text.partition(f": {severity}: ")
        place = before.removeprefix(f"{absolute('.')}/")
        print(f"{place}{paint(mark, _STYLES[severity])}{after}")
    print(_summary(checked, places))


def _print_json(checked: Checked, _places: SettingsPlaces) -> None:
    print_json(msgspec.to_builtins(checked.findings))


def _print_github(checked: Checked, places: SettingsPlaces) -> None:
    from .check_formats import github_lines

    for line in github_lines(checked.findings, _root(places)):
        print(line)
    _print_summary(checked, places)


_PRINTERS = {
    "text": _print_text,
    "json": _print_json,
    "github": _print_github,
}


def _root(places: SettingsPlaces) -> str:
    return find_workspace(places.project_dir or ".").root


def _print_summary(checked: Checked, places: SettingsPlaces) -> None:
    sys.stdout.flush()
    print(f"hookline: {_summary(checked, places)}", file=sys.stderr)


def _summary(checked: Checked, places: SettingsPlaces) -> str:
    if not checked.files and not checked.findings:
        return printable(f"no settings files in {', '.join(_folders(places))}")
    found = {one: checked.count(one) for one in Severity}
    shown = (one for one in found if found[one] or one is not Severity.HINT)
    counts = ", ".join(plural(found[one], one) for one in shown)
    return f"{plural(len(checked.files), 'file')} checked: {counts}"
