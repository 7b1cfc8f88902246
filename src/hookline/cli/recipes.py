"""``hookline recipes``: list the recipes, or show the source of one."""

from __future__ import annotations

from hookline.recipes.catalog import RECIPES, Recipe, find_recipe

from .options import Options, Parser
from .terminal import paint, print_json

SUMMARY = "show the ready-made hooks"
DESCRIPTION = """\
List the hooks that 'hookline init --recipe NAME' sets up, or show the source of one.

  hookline recipes                all, with their events
  hookline recipes secret-scan    the hook and its tests
  hookline recipes --json         for programs"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    text = "show the source of this recipe"
    parser.add_argument("name", nargs="?", metavar="NAME", help=text)
    parser.add_flag("--json", "print a JSON list")


def run(options: Options) -> None:
    """Print the recipes."""
    chosen = [find_recipe(options.name)] if options.name else list(RECIPES.values())
    if options.json:
        print_json([_as_json(recipe) for recipe in chosen])
    elif options.name:
        for file in chosen[0].files:
            print(paint(f"# {file.name}", "dim"))
            print(file.read_text("utf-8"))
    else:
        _print_list(chosen)


def _as_json(recipe: Recipe) -> dict[str, object]:
    return {
        "name": recipe.name,
        "event": recipe.event.value,
        "description": recipe.description,
        "events": [place.event.value for place in recipe.places],
        "files": [file.name for file in recipe.files],
    }


def _print_list(recipes: list[Recipe]) -> None:
    name_width = max(len(recipe.name) for recipe in recipes)
    event_width = max(len(recipe.event) for recipe in recipes)
    for recipe in recipes:
        name = paint(f"{recipe.name:{name_width}}", "bold")
        print(f"{name}  {recipe.event.value:{event_width}}  {recipe.description}")
    print("\nset one up: hookline init --recipe NAME")
