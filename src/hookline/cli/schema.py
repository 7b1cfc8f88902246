"""``hookline schema``: the JSON Schema of the settings, for editors."""

from __future__ import annotations

from hookline.settings.schema import settings_schema

from .options import Options, Parser
from .terminal import print_json

SUMMARY = "print the JSON Schema of the settings, for editors"
DESCRIPTION = """\
Print the JSON Schema (draft 2020-12) of settings files, so that an editor can complete
keys and mark mistakes while you type.

  hookline schema > .hookline/schema.json

Then add this as the first key of .hookline/settings.json:

  "$schema": "./schema.json"
"""


def add_arguments(_: Parser) -> None:
    """Add no options."""


def run(_: Options) -> None:
    """Print the schema."""
    print_json(settings_schema(), pretty=True)
