"""``hookline init``: write settings, hooks and tests to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

from hookline.recipes.catalog import (
    STARTER,
    STARTER_RULE,
    Recipe,
    find_recipe,
    settings_for,
)
from hookline.settings.locations import find_workspace, is_within

from .common import Options, Parser, file_errors
from .terminal import paint, pretty_json

SUMMARY = "set up hooks in a project"
DESCRIPTION = """\
Write .hookline/settings.json, hooks and their tests. Existing files are not changed; if
settings exist, the command shows what to add to them. In a subdirectory of a project it
sets up that project.

  hookline init --rule                            a first rule to adapt: no script
  hookline init                                   a first hook to adapt, as a script
  hookline init --recipe secret-scan              one of 'hookline recipes'
  hookline init --recipe format-on-write --recipe tests-after-edit"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "set up this recipe; can be repeated"
    parser.add_option("--recipe NAME", text, action="append", default=[])
    parser.add_flag("--rule", "set up a first rule, which needs no script")
    parser.add_cwd()


def run(options: Options) -> None:
    """Write what is missing and show the next steps."""
    # Look up all names first: a misspelt one must not leave a partial setup.
    recipes = [find_recipe(name) for name in options.recipe]
    if options.rule:
        recipes.insert(0, STARTER_RULE)
    recipes = recipes or [STARTER]
    cwd = _project_dir(options.cwd)
    folder = Path(cwd, ".hookline")
    for recipe in dict.fromkeys(recipes):
        for file in recipe.files:
            _write(folder / "hooks" / file.name, file.read_text("utf-8"))
    settings = settings_for(recipes)
    if not _write_settings(folder, settings):
        print("\nsettings exist already; add what is missing from these:\n")
        print(pretty_json(settings))
    _print_next_steps(recipes, cwd)


def _project_dir(cwd: str) -> str:
    """The project that applies here already, else a new one in this directory."""
    workspace = find_workspace(cwd)
    found = workspace.project_dir
    if found is None or found == workspace.folder:
        return cwd
    if not is_within(found, workspace.root):
        return cwd  # a trusted project around the repository is another one
    print(f"using the project {found}: it applies in this directory")
    hint = "for a project of its own here, make the directory .hookline first"
    print(f"{hint}\n")
    return found


def _write_settings(folder: Path, settings: dict[str, object]) -> bool:
    if (folder / "settings.toml").exists():
        print(f"{paint('kept', 'yellow')}   {folder / 'settings.toml'}")
        return False
    return _write(folder / "settings.json", pretty_json(settings) + "\n")


def _write(path: Path, text: str) -> bool:
    """Write a new file; False if it exists."""
    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # "x" refuses existing files and links.
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            print(f"{paint('kept', 'yellow')}   {path}")
            return False
    print(f"{paint('wrote', 'green')}  {path}")
    return True


def _print_next_steps(recipes: list[Recipe], cwd: str) -> None:
    where = "" if cwd == "." else f" --cwd {shlex.quote(cwd)}"
    folder = shlex.quote(str(Path(cwd, ".hookline")))
    print(f"\nnext:\n  hookline test {folder}   # run the tests of the hooks")
    print(f"  hookline trust{where}   # review and approve the hooks")
    if recipes[0] in {STARTER, STARTER_RULE}:
        tool = """--tool write_file --tool-input '{"file_path": ".env"}'"""
        print(f"  hookline fire BeforeTool{where} {tool}")
