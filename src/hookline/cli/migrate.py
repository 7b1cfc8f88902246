"""``hookline migrate``: turn another agent's hook settings into ours."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from hookline.errors import HooklineError
from hookline.hosts.migration import Migrated, Origin, migrate
from hookline.settings.load import Settings
from hookline.settings.read import read_settings

from .common import paint, plain

SUMMARY = "turn the settings of another agent into ours"
DESCRIPTION = """\
Read the hooks in another agent's settings and write .hookline/settings.json: event and
tool names, matchers and timeouts are translated, scripts stay as they are. What does
not carry over is listed.

  hookline migrate --from claude                      reads .claude/settings.json
  hookline migrate --from gemini ~/code/app           reads .gemini/settings.json there
  hookline migrate --from llxprt settings.json --output -

exit status: 0 done, 1 nothing written"""

_FOLDERS = {
    Origin.CLAUDE: ".claude",
    Origin.GEMINI: ".gemini",
    Origin.LLXPRT: ".llxprt",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--from",
        dest="origin",
        required=True,
        choices=[origin.value for origin in Origin],
        help="whose settings they are",
    )
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="the settings file, or its project"
    )
    parser.add_argument(
        "--cwd", default=".", metavar="DIR", help="the project to write to"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write here instead; '-' prints it"
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite settings that are there"
    )


def run(options: argparse.Namespace) -> int:
    """Translate, write, and say what was left behind."""
    origin = Origin(options.origin)
    if not Path(options.cwd).is_dir():
        raise HooklineError(f"--cwd {options.cwd!r} is no directory")
    source = _source(origin, options)
    migrated = migrate(origin, read_settings(source))
    text = json.dumps(migrated.settings, indent=2, ensure_ascii=False) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
        _tell(migrated, sys.stderr)
        return 0
    target = Path(options.output or Path(options.cwd, ".hookline", "settings.json"))
    _write(target, text, force=options.force)
    print(f"{paint('wrote', 'green')}  {target} ({_count(migrated.hook_count)})")
    _tell(migrated, sys.stdout)
    if migrated.hook_count and not options.output:
        where = "" if options.cwd == "." else f" --cwd {shlex.quote(options.cwd)}"
        print(
            f"\nnext:\n  hookline trust{where}   # look at the hooks and agree to them"
        )
    return 0


def _source(origin: Origin, options: argparse.Namespace) -> Path:
    given = Path(options.path or options.cwd)
    if not given.is_dir():
        return given
    inside = given / _FOLDERS[origin] / "settings.json"
    beside = given / "settings.json"
    if not inside.is_file() and given.name == _FOLDERS[origin] and beside.is_file():
        return beside
    if not inside.is_file():
        raise HooklineError(f"there is no {inside}: name the settings file to read")
    return inside


def _write(target: Path, text: str, *, force: bool) -> None:
    other = target.with_suffix(".toml" if target.suffix == ".json" else ".json")
    for taken in (target, other):
        if (taken.exists() or taken.is_symlink()) and not (force and taken == target):
            hint = (
                "use --force to overwrite it" if taken == target else "remove it first"
            )
            raise HooklineError(f"{taken} is there already: {hint}, or --output FILE")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: half a settings file would switch the others off.
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".settings-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except OSError as error:
        raise HooklineError(f"{target}: {error.strerror}") from error


def _tell(migrated: Migrated, stream: Any) -> None:
    notes = [*migrated.notes, *Settings.from_mapping(migrated.settings).warnings]
    if notes:
        print("\nnot carried over:", file=stream)
        for note in notes:
            print(f"  {plain(note)}", file=stream)


def _count(hooks: int) -> str:
    return "1 hook" if hooks == 1 else f"{hooks} hooks"
