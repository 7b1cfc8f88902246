"""``hookline init``: set up hooks, or add them to the settings that exist."""

from __future__ import annotations

import os
import shlex
from importlib.util import find_spec
from pathlib import Path

from hookline.config import Config
from hookline.engine.registry import HookRegistry
from hookline.errors import HooklineError, SettingsError, install_command
from hookline.hosts.host_files import Scope
from hookline.hosts.install.changes import Change, apply, read_inside, require_unchanged
from hookline.hosts.install.json_edit import text_of
from hookline.hosts.install.status import find_installed
from hookline.recipes.catalog import (
    STARTER,
    STARTER_RULE,
    Recipe,
    find_recipe,
    settings_for,
)
from hookline.recipes.merge import Merged, Presence, merge_groups
from hookline.settings.places import (
    PROJECT_FOLDER,
    find_settings_file,
    find_workspace,
    is_within,
    record_path,
)
from hookline.settings.read import parse_text

from .install import print_diffs
from .options import Options, Parser, file_errors, refuse_outside
from .terminal import paint, pretty_json, printable

SUMMARY = "set up hooks in a project"
DESCRIPTION = """\
Write .hookline/settings.json, hooks and their tests. Settings that exist get the new
hooks at the end, shown as a diff; everything else in them stays as it is. Hooks and
files that exist already are kept. In a subdirectory of a project it sets up that
project.

  hookline init --rule                            a first rule to adapt: no script
  hookline init                                   a first hook to adapt, as a script
  hookline init --recipe secret-scan              one of 'hookline recipes'
  hookline init --recipe format-on-write --recipe tests-after-edit"""

_NEW, _KEPT = "wrote", "kept"


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "set up this recipe; can be repeated"
    parser.add_option("--recipe NAME", text, action="append", default=[])
    parser.add_flag("--rule", "set up a first rule, which needs no script")
    parser.add_flag("--dry-run", "show what would be written and write nothing")
    parser.add_cwd()


def run(options: Options) -> int:
    """Write what is missing and show the next steps."""
    # Look up all names first: a misspelt one must not leave a partial setup.
    recipes = [find_recipe(name) for name in options.recipe]
    if options.rule:
        recipes.insert(0, STARTER_RULE)
    recipes = recipes or [STARTER]
    cwd = _project_dir(options.cwd)
    folder = Path(cwd, PROJECT_FOLDER)
    for path in (folder, folder / "hooks"):
        refuse_outside(str(path), cwd)
    # Settings that cannot be changed are an error before anything is written.
    change, merged = _planned(folder, recipes)
    adapted = {*merged.hooks.get(Presence.ADAPTED, ())}
    recipes = [r for r in recipes if not adapted.intersection(r.hook_names)]
    files = _missing_files(folder, recipes)
    if options.dry_run:
        _show(change, merged)
        for path in files:
            print(f"would write {printable(str(path))}")
    else:
        _write_all(files, change, merged)
        if files or change.is_needed:
            _print_next_steps(recipes, cwd, changed=change.before is not None)
    return 1 if merged.by_hand else 0


def _project_dir(cwd: str) -> str:
    """The project that applies here already, else a new one in this directory."""
    workspace = find_workspace(cwd)
    project = workspace.project_dir
    if project is None or project == workspace.folder:
        return cwd
    if not is_within(project, workspace.root):
        return cwd  # a trusted project around the repository is another one
    print(f"using the project {project}: it applies in this directory")
    print("for a project of its own here, make the directory .hookline first\n")
    return project


def _planned(folder: Path, recipes: list[Recipe]) -> tuple[Change, Merged]:
    """New settings, or the present ones with the hooks that are missing."""
    settings = settings_for(recipes)
    file = find_settings_file(folder)
    if file is None:
        path, text = str(folder / "settings.json"), f"{pretty_json(settings)}\n"
        return Change(path=path, before=None, after=text.encode()), Merged(text, {})
    before = read_inside(file, find_workspace(folder.parent).root)
    if before is None:
        raise SettingsError("is a link that leads nowhere: remove it", file)
    merged = merge_groups(text_of(before, file), file, settings["hooks"])
    change = Change(path=file, before=before, after=merged.text.encode())
    require_unchanged(change)
    return change, merged


def _missing_files(folder: Path, recipes: list[Recipe]) -> dict[Path, str]:
    """What to write beside the settings; existing files are kept, and named."""
    missing = {}
    for recipe in dict.fromkeys(recipes):
        for file in recipe.files:
            path, text = folder / "hooks" / file.name, file.read_text("utf-8")
            if not os.path.lexists(path):
                missing[path] = text
                continue
            with file_errors(path):
                is_same = path.is_file() and path.read_bytes() == text.encode()
            _report(_KEPT, path, "" if is_same else ": it differs from the recipe's")
    return missing


def _write_all(files: dict[Path, str], change: Change, merged: Merged) -> None:
    """Write the files of the recipes, then the settings that name them."""
    for path, text in files.items():
        with file_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        with file_errors(path):
            try:
                # "x" refuses existing files and links.
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError as error:
                problem = "written in the meantime: try again"
                raise HooklineError(f"{path}: {problem}") from error
        _report(_NEW, path)
    if change.is_needed:
        apply([change])
    if change.before is None:
        _report(_NEW, change.path)
    else:
        if change.is_needed:
            _report("added", change.path, f": {merged.names(Presence.ADDED)}")
        _show(change, merged)


def _show(change: Change, merged: Merged) -> None:
    """Show how the settings change, and which hooks stay as they are."""
    path = change.path
    for presence, why in (
        (Presence.SAME, "is in it already"),
        (Presence.ADAPTED, "differs from the recipe's, and stays as it is"),
    ):
        if names := merged.names(presence):
            _report(_KEPT, path, f": {names} {why}")
    if merged.by_hand:
        hint = "its hooks are written as inline values, so add this by hand"
        print(f"\n{printable(path)}: {hint}:\n\n{merged.by_hand}")
    elif change.is_needed:
        print()
        print_diffs([change], "add")
    if parse_text(merged.text.removeprefix("\ufeff"), path).get("enableHooks") is False:
        print(f"\nnote: enableHooks is false in {printable(path)}: no hook runs")


def _report(done: str, path: Path | str, more: str = "") -> None:
    style = "yellow" if done == _KEPT else "green"
    print(f"{paint(done, style)}{' ' * (7 - len(done))}{printable(f'{path}{more}')}")


def _print_next_steps(recipes: list[Recipe], cwd: str, *, changed: bool) -> None:
    where = "" if cwd == "." else f" --cwd {shlex.quote(cwd)}"
    folder = shlex.quote(str(Path(cwd, PROJECT_FOLDER)))
    record = record_path(str(Path(cwd).resolve()))
    is_approved = record is not None and Path(record).exists()
    until_then = " again: until then they block" if changed and is_approved else ""
    print("\nnext:")
    if any(recipe.when for recipe in recipes) and find_spec("cel_expr_python") is None:
        install = install_command("rules", "cel-expr-python")
        print(f"  {install}   # the engine of rules, which is missing")
    print(f"  hookline test {folder}   # run the tests of the hooks")
    print(f"  hookline trust{where}   # review and approve the hooks{until_then}")
    hooks = HookRegistry(Config.load(cwd).settings).all_hooks()
    for installed in find_installed(find_workspace(cwd), hooks):
        if installed.missing:
            user = " --user" if installed.scope is Scope.USER else ""
            command = f"hookline install {installed.host}{user}{where}"
            print(f"  {command}   # again: it misses events")
    if {STARTER, STARTER_RULE} & set(recipes):
        tool = """--tool write_file --tool-input '{"file_path": ".env"}'"""
        print(f"  hookline fire BeforeTool{where} {tool}")
