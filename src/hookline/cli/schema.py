"""``hookline schema``: the JSON Schema of the settings, for editors."""

from __future__ import annotations

import argparse
import json

SUMMARY = "print the JSON Schema of the settings, for editors"
DESCRIPTION = """\
Print the JSON Schema (draft 2020-12) of settings files, so that an editor completes
keys and marks mistakes while you type.

  hookline schema > .hookline/schema.json

and then, as the first key of .hookline/settings.json:

  "$schema": "./schema.json"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""
    del parser


def run(options: argparse.Namespace) -> int:
    """Print the schema."""
    del options
    from hookline.settings.fields import settings_schema

    print(json.dumps(settings_schema(), indent=2))
    return 0
