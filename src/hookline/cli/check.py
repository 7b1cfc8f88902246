"""``hookline check``: find the mistakes in settings files before an agent does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hookline.errors import SettingsError

from .common import paint, plain, print_json

if TYPE_CHECKING:
    from hookline.settings.lint import Checked
    from hookline.settings.locations import SettingsPlaces

SUMMARY = "find mistakes in settings files"
DESCRIPTION = """\
Check settings files: what is no JSON or TOML, unknown events and keys (with the
nearest real one), wrong types, scripts that are missing or not executable, matchers
that cannot match, timeouts that look like seconds, files that anybody may write.
Nothing is run: a hook of a project that you do not trust can be checked too.

  hookline check                          all places that count in this directory
  hookline check .hookline/settings.json  one file
  hookline check --strict --json          for continuous integration

Each finding is one line, 'file:line: error|warning: where: message'. The exit status
is 1 if there is an error (with --strict also for a warning), and 0 otherwise.
"""
_STYLES = {"error": "red", "warning": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a settings file; without it, the project's, the user's and the system's",
    )
    parser.add_argument(
        "--cwd",
        type=Path,
        metavar="DIR",
        help="the project, which relative paths in commands start from",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 for warnings too"
    )
    parser.add_argument(
        "--json", action="store_true", help="print a JSON list of the findings"
    )


def run(options: argparse.Namespace) -> int:
    """Check, print, and say by the exit status whether all is well."""
    from hookline.settings.fields import Severity
    from hookline.settings.lint import check_file, check_places
    from hookline.settings.locations import SettingsPlaces

    if options.cwd is not None and not options.cwd.is_dir():
        raise SettingsError(f"--cwd {str(options.cwd)!r} is no directory")
    places = SettingsPlaces(project_dir=(options.cwd or Path.cwd()).absolute())
    if options.file is not None:
        checked = check_file(options.file, options.cwd)
    else:
        checked = check_places(places)
    if options.json:
        print_json(msgspec.to_builtins(checked.findings))
    else:
        _print_findings(checked)
        print(plain(_summary(checked, places)))
    counted = list(Severity) if options.strict else [Severity.ERROR]
    return 1 if any(checked.count(severity) for severity in counted) else 0


def _print_findings(checked: Checked) -> None:
    for finding in checked.findings:
        severity = finding.severity.value
        before, mark, after = plain(str(finding)).partition(f": {severity}: ")
        place = before.removeprefix(f"{Path.cwd()}/")
        print(f"{place}{paint(mark, _STYLES[severity])}{after}")


def _summary(checked: Checked, places: SettingsPlaces) -> str:
    if not checked.files:
        looked = ", ".join(places.folders().values())
        return f"no settings files in {looked}"
    from hookline.settings.fields import Severity

    counts = ", ".join(
        _counted(checked.count(severity), severity) for severity in Severity
    )
    return f"{_counted(len(checked.files), 'file')} checked: {counts}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
