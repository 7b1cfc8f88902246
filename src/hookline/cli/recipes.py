"""``hookline recipes``: the ready hooks, and what is in each."""

from __future__ import annotations

import argparse

from hookline.recipes.catalog import RECIPES, Recipe, find_recipe

from .common import paint, print_json

SUMMARY = "show the ready hooks"
DESCRIPTION = """\
List the hooks that 'hookline init --recipe NAME' sets up, or show the source of one.

  hookline recipes
  hookline recipes secret-scan
  hookline recipes --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="show this one's source"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(options: argparse.Namespace) -> int:
    """Print the recipes."""
    chosen = [find_recipe(options.name)] if options.name else list(RECIPES.values())
    if options.json:
        print_json([_entry(recipe) for recipe in chosen])
    elif options.name:
        _print_source(chosen[0])
    else:
        _print_table(chosen)
    return 0


def _entry(recipe: Recipe) -> dict[str, object]:
    return {
        "name": recipe.name,
        "event": recipe.event.value,
        "description": recipe.description,
        "events": [place.event.value for place in recipe.places],
        "files": [file.name for file in recipe.files],
    }


def _print_table(recipes: list[Recipe]) -> None:
    name = max(len(recipe.name) for recipe in recipes)
    event = max(len(recipe.event) for recipe in recipes)
    for recipe in recipes:
        shown = paint(f"{recipe.name:{name}}", "bold")
        print(f"{shown}  {recipe.event.value:{event}}  {recipe.description}")
    print("\nset one up: hookline init --recipe NAME")


def _print_source(recipe: Recipe) -> None:
    for file in recipe.files:
        print(paint(f"# {file.name}", "dim"))
        print(file.read_text("utf-8"))
