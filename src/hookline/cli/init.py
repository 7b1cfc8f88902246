"""``hookline init``: settings, hooks and a test to start from; never overwrites."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from hookline.errors import HooklineError
from hookline.recipes.catalog import STARTER, Recipe, find_recipe, settings_for

from .common import paint

SUMMARY = "set up hooks in a project"
DESCRIPTION = """\
Write .hookline/settings.json, hooks and their tests. Files that are there already stay
as they are; what would have to be added to them is shown instead.

  hookline init                                   a first hook to change
  hookline init --recipe secret-scan              one of 'hookline recipes'
  hookline init --recipe format-on-write --recipe tests-after-edit"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--recipe",
        action="append",
        default=[],
        metavar="NAME",
        help="set up this recipe; may be given several times",
    )
    parser.add_argument(
        "--cwd", default=".", metavar="DIR", help="the project (default: here)"
    )


def run(options: argparse.Namespace) -> int:
    """Write what is missing and say what to do next."""
    # All names first: a misspelt one must not leave half a set-up behind.
    recipes = [find_recipe(name) for name in options.recipe] or [STARTER]
    project = Path(options.cwd)
    if not project.is_dir():
        raise HooklineError(f"--cwd {options.cwd!r} is no directory")
    writer = _Writer(project)
    for recipe in dict.fromkeys(recipes):
        for file in recipe.files:
            writer.write(f"hooks/{file.name}", file.read_text("utf-8"))
    settings = settings_for(recipes)
    written = _write_settings(writer, settings)
    _explain(recipes, settings if not written else None, options.cwd)
    return 0


class _Writer:
    """Writes files that are not there yet, and says which are."""

    def __init__(self, project: Path) -> None:
        self._folder = project / ".hookline"

    def write(self, name: str, text: str) -> bool:
        place = self._folder / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            # Exclusive: neither a file nor a link in its place is written through.
            with place.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            print(f"{paint('kept', 'yellow')}   {place}")
            return False
        except OSError as error:
            raise HooklineError(f"{place}: {error.strerror}") from error
        print(f"{paint('wrote', 'green')}  {place}")
        return True

    def has(self, name: str) -> bool:
        return (self._folder / name).exists()


def _write_settings(writer: _Writer, settings: dict[str, object]) -> bool:
    if writer.has("settings.toml"):
        print(f"{paint('kept', 'yellow')}   .hookline/settings.toml")
        return False
    return writer.write("settings.json", json.dumps(settings, indent=2) + "\n")


def _explain(
    recipes: list[Recipe], missing: dict[str, object] | None, cwd: str
) -> None:
    if missing is not None:
        print("\nsettings are there already; add to them what is missing of this:\n")
        print(json.dumps(missing, indent=2))
    where = "" if cwd == "." else f" --cwd {shlex.quote(cwd)}"
    folder = shlex.quote(str(Path(cwd, ".hookline")))
    print("\nnext:")
    print(f"  hookline test {folder}   # run the tests that came with the hooks")
    print(f"  hookline trust{where}   # look at the hooks and agree to them")
    if recipes[0] is STARTER:
        print(
            f"  hookline fire BeforeTool{where} --tool write_file "
            """--tool-input '{"file_path": ".env"}'"""
        )
