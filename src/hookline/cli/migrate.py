"""``hookline migrate``: convert another agent's hook settings."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from hookline.errors import HooklineError
from hookline.hosts.migration import Migrated, MigrationSource, migrate
from hookline.settings.load import Settings
from hookline.settings.locations import find_workspace
from hookline.settings.read import read_settings

from .common import Options, Parser, file_errors
from .terminal import paint, plural, pretty_json, printable

SUMMARY = "convert the hook settings of another agent"
DESCRIPTION = """\
Read the hooks in another agent's settings and write .hookline/settings.json. Event and
tool names, matchers and timeouts are converted; scripts are not changed. Everything
that cannot be converted is listed.

  hookline migrate --from claude                      reads .claude/settings.json, here
                                                      or further up in the repository
  hookline migrate --from gemini ~/code/app           reads .gemini/settings.json there
  hookline migrate --from llxprt settings.json --output -

exit status: 0 done, 1 nothing written"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    sources = [source.value for source in MigrationSource]
    text = "the agent that the settings belong to"
    parser.add_argument(
        "--from", dest="source", required=True, choices=sources, help=text
    )
    text = "settings file, or the project that contains it"
    parser.add_argument("path", nargs="?", metavar="PATH", help=text)
    parser.add_cwd("project to write to (default: the current directory)")
    parser.add_option("--output FILE", "write to this file; '-' prints the settings")
    parser.add_flag("--force", "overwrite existing settings")


def run(options: Options) -> None:
    """Convert and write the settings, and list what cannot be converted."""
    source = MigrationSource(options.source)
    project = options.cwd
    if options.path is None:
        project = _project_dir(source, options.cwd)
    file = _settings_file(source, Path(options.path or project))
    migrated = migrate(source, read_settings(file))
    text = pretty_json(migrated.settings) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
        _print_notes(migrated, sys.stderr)
        return
    target = Path(options.output or Path(project, ".hookline", "settings.json"))
    _write(target, text, force=options.force)
    hooks = plural(migrated.hook_count, "hook")
    print(f"{paint('wrote', 'green')}  {target} ({hooks})")
    _print_notes(migrated, sys.stdout)
    if migrated.hook_count and not options.output:
        where = "" if project == "." else f" --cwd {shlex.quote(project)}"
        print(f"\nnext:\n  hookline trust{where}   # review and approve the hooks")


def _project_dir(source: MigrationSource, cwd: str) -> str:
    """The nearest folder up to the repository's root that has such settings."""
    if Path(cwd, f".{source.value}", "settings.json").is_file():
        return cwd
    workspace = find_workspace(cwd)
    for folder in Path(workspace.folder).parents:
        if not folder.is_relative_to(workspace.root):
            break
        if (folder / f".{source.value}" / "settings.json").is_file():
            return str(folder)
    return cwd


def _settings_file(source: MigrationSource, given: Path) -> Path:
    if not given.is_dir():
        return given
    folder = f".{source.value}"
    inside, beside = given / folder / "settings.json", given / "settings.json"
    if inside.is_file():
        return inside
    if given.name == folder and beside.is_file():
        return beside
    raise HooklineError(f"{inside} does not exist: name the settings file to read")


def _write(target: Path, text: str, *, force: bool) -> None:
    other = target.with_suffix(".toml" if target.suffix == ".json" else ".json")
    for taken in (target, other):
        if (taken.exists() or taken.is_symlink()) and not (force and taken == target):
            own = taken == target
            hint = "use --force to overwrite it" if own else "remove it first"
            raise HooklineError(f"{taken} exists already: {hint}, or use --output FILE")
    with file_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Atomic: a partial settings file would disable the hooks in it.
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".settings-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(target)


def _print_notes(migrated: Migrated, stream: TextIO) -> None:
    notes = [*migrated.notes, *Settings.from_mapping(migrated.settings).warnings]
    if notes:
        print("\nnot converted:", file=stream)
        for note in notes:
            print(f"  {printable(note)}", file=stream)
