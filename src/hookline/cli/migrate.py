"""``hookline migrate``: convert another agent's hook settings."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from msgspec.structs import replace

from hookline.errors import HooklineError, MissingExtraError
from hookline.hosts.converter import Migrated, joined
from hookline.hosts.install.changes import Change, apply, read_inside
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

from .options import Options, Parser, file_errors, refuse_outside
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
    paths = [Path(path) for path in options.paths or [project]]
    all_files = [file for path in paths for file in find_hooks(source, path)]
    unread = [file.problem for file in all_files if file.problem]
    unread += [note for path in paths for note in unread_hooks(source, path)]
    files = [file for file in all_files if not file.problem]
    parts = [_converted(source, file, has_others=len(files) > 1) for file in files]
    migrated = joined(parts)
    migrated = replace(
        migrated,
        notes=tuple(dict.fromkeys((*migrated.notes, *unread))),
        remarks=(*migrated.remarks, *_missing_extras(migrated)),
    )
    if options.output == "-":
        print(pretty_json(migrated.settings))
        _print_notes(migrated, sys.stderr)
        return
    targets = _targets(options.output, project, zip(files, parts, strict=True))
    changes = [
        _change(target, pretty_json(part.settings), project, force=options.force)
        for target, part in targets.items()
    ]
    apply(changes)
    for target, part in targets.items():
        hooks = plural(part.hook_count, "hook")
        print(f"{paint('wrote', 'green')}  {target} ({hooks})")
    for file in files:
        if data_folder := file.env.get("CLAUDE_PLUGIN_DATA"):
            with file_errors(data_folder):  # it exists in Claude Code
                Path(data_folder).mkdir(parents=True, exist_ok=True)
    if not targets:
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
    workspace = find_workspace(cwd)
    if has_hooks(source, Path(cwd)):
        return cwd
    for folder in Path(workspace.folder).parents:
        if folder.is_relative_to(workspace.root) and has_hooks(source, folder):
            return str(folder)
    return cwd


def _converted(
    source: MigrationSource, file: HookFile, *, has_others: bool
) -> Migrated:
    """The hooks of one file; notes name it if there are others."""
    converted = migrate(source, file.content, file.env)
    prefix = f"{file.path}: " if has_others else ""
    remarks = [
        *converted.remarks,
        *(
            f"{name} is {path!r}, a path on this machine"
            for name, path in file.env.items()
        ),
    ]
    return replace(
        converted,
        notes=tuple(f"{prefix}{note}" for note in converted.notes),
        remarks=tuple(f"{prefix}{remark}" for remark in remarks),
    )


def _missing_extras(migrated: Migrated) -> Iterator[str]:
    """What must be installed for the hooks to work, and is not."""
    events = migrated.settings["hooks"].values()
    hooks = [hook for groups in events for group in groups for hook in group["hooks"]]
    conditions = {hook.get("if") for hook in hooks} - {None, *FAILURE_CONDITIONS}
    has_http = any(hook["type"] == "http" for hook in hooks)
    for is_needed, hooks_of, extra, package in (
        (bool(conditions), "conditions", "rules", "cel-expr-python"),
        (has_http, "http hooks", "http", "httpx"),
    ):
        if is_needed and find_spec(package.replace("-", "_")) is None:
            yield f"{hooks_of}: {MissingExtraError(extra, package)}"


def _targets(
    output: str | None, project: str, parts: Iterable[tuple[HookFile, Migrated]]
) -> dict[Path, Migrated]:
    """What goes into which file; local settings stay local, unless one is named."""
    folder = Path(project, PROJECT_FOLDER)
    shared = Path(output) if output else folder / "settings.json"
    local = shared if output else folder / "settings.local.json"
    by_target: dict[Path, list[Migrated]] = {}
    for file, part in parts:
        if not file.is_local:
            by_target.setdefault(shared, []).append(part)
        elif part.hook_count or not part.settings["enableHooks"]:
            by_target.setdefault(local, []).append(part)
    return {target: joined(listed) for target, listed in by_target.items()}


def _change(target: Path, text: str, project: str, *, force: bool) -> Change:
    """The writing of a file, which must not exist or lie behind a link elsewhere."""
    for parent in target.absolute().parents:
        if parent.name == PROJECT_FOLDER:
            project = str(parent.parent)
            break
    refuse_outside(str(target), project)
    other = target.with_suffix(".toml" if target.suffix == ".json" else ".json")
    for path in (target, other):
        if os.path.lexists(path) and not (force and path == target):
            hint = "remove it first" if path == other else "use --force to overwrite it"
            raise HooklineError(f"{path} exists already: {hint}, or use --output FILE")
    before = read_inside(str(target), None)
    return Change(path=str(target), before=before, after=f"{text}\n".encode())


def _print_notes(migrated: Migrated, stream: TextIO) -> None:
    notes = [*migrated.notes, *Settings.from_mapping(migrated.settings).warnings]
    for title, texts in (("not converted", notes), ("to check", migrated.remarks)):
        if texts:
            print(f"\n{title}:", file=stream)
        for text in texts:
            print(f"  {printable(text)}", file=stream)
