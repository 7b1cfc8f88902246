"""``hookline check``: find mistakes in settings files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hookline.config import Config
from hookline.engine.registry import HookRegistry
from hookline.settings.fields import Severity
from hookline.settings.lint import Checked, check_file, check_places
from hookline.settings.locations import PROJECT_FOLDER, SettingsPlaces, absolute

from .common import Options, Parser
from .terminal import paint, plural, print_json, printable

SUMMARY = "find mistakes in settings files"
DESCRIPTION = """\
Check settings files for invalid JSON or TOML, unknown events and keys (with the nearest
known one), wrong types, scripts that are missing or not executable, matchers that never
match, timeouts that look like seconds, and files that every user can write. Hints say
what would be faster. Also checked are the coding agents that 'hookline install' has set
up: whether they find the command, ask for all events that have hooks, and wait long
enough. No hook is run, so you can check a project that you do not trust.

  hookline check                          all settings files of this directory
  hookline check .hookline/settings.json  one file
  hookline check --strict --json          for continuous integration

Each finding is one line, 'file:line: error|warning|hint: field: message'.

exit status: 0 no errors, 1 errors (with --strict also warnings)"""

_STYLES = {"error": "red", "warning": "yellow", "hint": "blue"}


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "settings file (default: those of project, user and system)"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help=text)
    text = "project directory; relative paths in commands start there"
    parser.add_cwd(text, default=None)
    parser.add_flag("--strict", "exit with 1 for warnings too")
    parser.add_flag("--json", "print a JSON list of the findings")


def run(options: Options) -> int:
    """Print the findings."""
    cwd = None if options.cwd is None else Path(options.cwd)
    places = SettingsPlaces(project_dir=absolute(cwd or "."))
    file = options.file
    checked = _check_all(places) if file is None else check_file(file, cwd)
    if options.json:
        print_json(msgspec.to_builtins(checked.findings))
    else:
        _print_findings(checked)
        print(printable(_summary(checked, places)))
    counted = [Severity.ERROR, *([Severity.WARNING] if options.strict else [])]
    return 1 if any(checked.count(severity) for severity in counted) else 0


def _check_all(places: SettingsPlaces) -> Checked:
    from hookline.hosts.installed import find_installed

    checked = check_places(places)
    hooks = HookRegistry(Config.load(places.project_dir or ".").settings).all_hooks()
    workspace = places.workspace()
    installed = find_installed(workspace, hooks) if workspace else []
    files = (file for one in installed for file in one.files)
    findings = (finding for one in installed for finding in one.findings)
    return Checked((*checked.files, *files), (*checked.findings, *findings))


def _print_findings(checked: Checked) -> None:
    for finding in checked.findings:
        severity = finding.severity.value
        before, mark, after = printable(str(finding)).partition(f": {severity}: ")
        place = before.removeprefix(f"{absolute('.')}/")
        print(f"{place}{paint(mark, _STYLES[severity])}{after}")


def _summary(checked: Checked, places: SettingsPlaces) -> str:
    if not checked.files:
        folders = [place.folder for place in places.folders(places.workspace())]
        own = f"{places.project_dir}/{PROJECT_FOLDER}"
        return f"no settings files in {', '.join(dict.fromkeys((own, *folders)))}"
    found = {one: checked.count(one) for one in Severity}
    shown = (one for one in found if found[one] or one is not Severity.HINT)
    counts = ", ".join(plural(found[one], one) for one in shown)
    return f"{plural(len(checked.files), 'file')} checked: {counts}"
