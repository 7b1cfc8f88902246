"""``hookline check``: find the mistakes in settings files before an agent does."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.settings.findings import Checked, Finding
    from hookline.settings.locate import SettingsPlaces

SUMMARY = "check settings files for mistakes"
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
_STYLES = {"error": "bold red", "warning": "yellow"}


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
    from hookline.settings.findings import check_file, check_places
    from hookline.settings.locate import SettingsPlaces
    from hookline.settings.problems import Severity

    places = SettingsPlaces(project_dir=(options.cwd or Path.cwd()).absolute())
    if options.file is not None:
        checked = check_file(options.file, options.cwd)
    else:
        checked = check_places(places)
    if options.json:
        print(json.dumps([_as_json(finding) for finding in checked.findings], indent=2))
    else:
        _print_findings(checked)
        print(_printable(_summary(checked, places)))
    counted = list(Severity) if options.strict else [Severity.ERROR]
    return 1 if any(checked.count(severity) for severity in counted) else 0


def _as_json(finding: Finding) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(finding)
    return found


def _summary(checked: Checked, places: SettingsPlaces) -> str:
    if not checked.files:
        looked = ", ".join(str(folder) for folder in places.folders().values())
        return f"no settings files in {looked}"
    from hookline.settings.problems import Severity

    counts = ", ".join(
        _counted(checked.count(severity), severity) for severity in Severity
    )
    return f"{_counted(len(checked.files), 'file')} checked: {counts}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print_findings(checked: Checked) -> None:
    console = _console()
    for finding in checked.findings:
        line = _printable(str(finding))
        if console is None:
            print(line)
        else:
            console.print(_styled(line, finding.severity), soft_wrap=True)


def _printable(text: str) -> str:
    """Escape what the terminal cannot show, such as bytes in a path."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _console() -> Any:
    """Colours for a person at a terminal, where rich is installed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)


def _styled(line: str, severity: str) -> Any:
    from rich.text import Text

    text = Text(line)
    text.highlight_regex(rf"(?<=: ){severity}(?=: )", _STYLES[severity])
    return text
