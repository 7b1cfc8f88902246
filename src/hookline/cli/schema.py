"""``hookline schema``: the JSON Schema of the settings, for editors."""

from __future__ import annotations

from .common import Options, Parser, print_json

SUMMARY = "print the JSON Schema of the settings, for editors"
DESCRIPTION = """\
Print the JSON Schema (draft 2020-12) of settings files, so that an editor can complete
keys and mark mistakes while you type.

  hookline schema > .hookline/schema.json

Then add this as the first key of .hookline/settings.json:

  "$schema": "./schema.json"
"""


def add_arguments(parser: Parser) -> None:
    """Add no options."""
    del parser


def run(options: Options) -> int:
    """Print the schema."""
    del options
    from hookline.settings.fields import settings_schema

    print_json(settings_schema(), pretty=True)
    return 0
