"""``hookline migrate``: convert another agent's hook settings."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from hookline.errors import HooklineError, MissingExtraError
from hookline.hosts.converter import Migrated, joined
from hookline.hosts.migration import (
    SOURCES,
    HookFile,
    MigrationSource,
    find_hooks,
    has_hooks,
    migrate,
    unread_hooks,
)
from hookline.hosts.registry import HOSTS
from hookline.rules.failure import FAILURE_CONDITIONS
from hookline.settings.load import Settings
from hookline.settings.places import PROJECT_FOLDER, find_workspace

from .common import Options, Parser, file_errors, refuse_outside
from .terminal import paint, plural, pretty_json, printable

SUMMARY = "convert the hook settings of another agent"
DESCRIPTION = """\
Read the hooks in another agent's settings and write .hookline/settings.json. Hooks keep
their matchers and are shown the names of the agent they were written for; scripts are
not changed or moved. Everything that cannot be converted is listed with the reason.

  hookline migrate --from claude                   of this repository
  hookline migrate --from claude . plugins/guard   with the hooks of a plugin
  hookline migrate --from gemini ~/code/app        of another project
  hookline migrate --from llxprt settings.json --output -

Your own hooks, for all projects:

  hookline migrate --from claude ~/.claude \\
    --output ~/.config/hookline/settings.json

Without PATH it reads .claude/settings.json, here or further up in the repository, and
writes the hooks of .claude/settings.local.json to settings.local.json.

A plugin is a folder with .claude-plugin/plugin.json or hooks/hooks.json, for Gemini CLI
an extension with gemini-extension.json. Its hooks get the variable that leads them to
its files, such as CLAUDE_PLUGIN_ROOT, in 'env'.

exit status: 0 done, 1 nothing written"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "the agent that the settings belong to"
    parser.add_argument(
        "--from", dest="source", required=True, choices=[*SOURCES], help=text
    )
    text = "settings file, plugin, or the project that contains settings"
    parser.add_argument("paths", nargs="*", metavar="PATH", help=text)
    parser.add_cwd("project to write to (default: the current directory)")
    parser.add_option("--output FILE", "write to this file; '-' prints the settings")
    parser.add_flag("--force", "overwrite existing settings")


def run(options: Options) -> None:
    """Convert and write the settings, and list what cannot be converted."""
    source = SOURCES[options.source]
    project = options.cwd if options.paths else _project_dir(source, options.cwd)
    paths = [Path(one) for one in options.paths or [project]]
    files = [file for path in paths for file in find_hooks(source, path)]
    unread = [file.problem for file in files if file.problem]
    unread += [note for path in paths for note in unread_hooks(source, path)]
    files = [file for file in files if not file.problem]
    parts = [_converted(source, file, several=len(files) > 1) for file in files]
    migrated = joined([*parts, _notes_only(unread)])
    migrated = replace(migrated, remarks=(*migrated.remarks, *_extras(migrated)))
    if options.output == "-":
        sys.stdout.write(_text(migrated))
        _print_notes(migrated, sys.stderr)
        return
    written = _targets(options.output, project, files, parts)
    for target in written:
        folders = (
            up.parent for up in target.absolute().parents if up.name == PROJECT_FOLDER
        )
        refuse_outside(str(target), str(next(folders, project)))
        _refuse_existing(target, force=options.force)
    for target, part in written.items():
        _write(target, _text(part))
        hooks = plural(part.hook_count, "hook")
        print(f"{paint('wrote', 'green')}  {target} ({hooks})")
    for file in files:
        if data_folder := file.env.get("CLAUDE_PLUGIN_DATA"):
            with file_errors(data_folder):  # it exists in Claude Code
                Path(data_folder).mkdir(parents=True, exist_ok=True)
    if not written:
        print("nothing to write: no hooks")
    _print_notes(migrated, sys.stdout)
    if migrated.hook_count and not options.output:
        where = "" if project == "." else f" --cwd {shlex.quote(project)}"
        print(f"\nnext:\n  hookline trust{where}   # review and approve the hooks")
        if options.source in HOSTS:
            once = "to use them there: remove the old ones, or both run"
            print(f"  hookline install {options.source}{where}   # {once}")


def _project_dir(source: MigrationSource, cwd: str) -> str:
    """The nearest folder up to the repository's root that has such settings."""
    if has_hooks(source, Path(cwd)):
        return cwd
    workspace = find_workspace(cwd)
    for folder in Path(workspace.folder).parents:
        if not folder.is_relative_to(workspace.root):
            break
        if has_hooks(source, folder):
            return str(folder)
    return cwd


def _converted(source: MigrationSource, file: HookFile, *, several: bool) -> Migrated:
    found = migrate(source, file.theirs, file.env)
    remarks = [
        f"{variable} is {value!r}, a path on this machine"
        for variable, value in file.env.items()
    ]
    notes, remarks = list(found.notes), [*found.remarks, *remarks]
    if several:
        notes = [f"{file.path}: {note}" for note in notes]
        remarks = [f"{file.path}: {remark}" for remark in remarks]
    return replace(found, notes=tuple(notes), remarks=tuple(remarks))


def _notes_only(notes: list[str]) -> Migrated:
    return Migrated({"enableHooks": True, "hooks": {}}, tuple(notes))


def _extras(migrated: Migrated) -> list[str]:
    """What must be installed for the hooks to work, and is not."""
    events = migrated.settings["hooks"].values()
    hooks = [hook for groups in events for group in groups for hook in group["hooks"]]
    conditions = {hook.get("if") for hook in hooks} - {None, *FAILURE_CONDITIONS}
    needed = {
        ("conditions", "rules", "cel-expr-python"): bool(conditions),
        ("http hooks", "http", "httpx"): any(one["type"] == "http" for one in hooks),
    }
    return [
        f"{what}: {MissingExtraError(extra, package)}"
        for (what, extra, package), is_needed in needed.items()
        if is_needed and find_spec(package.replace("-", "_")) is None
    ]


def _targets(
    output: str | None, project: str, files: list[HookFile], parts: list[Migrated]
) -> dict[Path, Migrated]:
    """What goes into which file; local settings stay local, unless one is named."""
    folder = Path(project, ".hookline")
    shared = Path(output) if output else folder / "settings.json"
    local = shared if output else folder / "settings.local.json"
    found: dict[Path, list[Migrated]] = {}
    for file, part in zip(files, parts, strict=True):
        if not file.is_local:
            found.setdefault(shared, []).append(part)
        elif part.hook_count or not part.settings["enableHooks"]:
            found.setdefault(local, []).append(part)
    return {target: joined(some) for target, some in found.items()}


def _text(migrated: Migrated) -> str:
    return pretty_json(migrated.settings) + "\n"


def _refuse_existing(target: Path, *, force: bool) -> None:
    other = target.with_suffix(".toml" if target.suffix == ".json" else ".json")
    for taken in (target, other):
        if (taken.exists() or taken.is_symlink()) and not (force and taken == target):
            own = taken == target
            hint = "use --force to overwrite it" if own else "remove it first"
            raise HooklineError(f"{taken} exists already: {hint}, or use --output FILE")


def _write(target: Path, text: str) -> None:
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
    for title, texts in (("not converted", notes), ("to check", migrated.remarks)):
        if texts:
            print(f"\n{title}:", file=stream)
            for text in texts:
                print(f"  {printable(text)}", file=stream)
