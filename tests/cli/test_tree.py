"""All commands in one parser, and the man page that is made of it (issue 17)."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from hookline.cli.main import COMMANDS
from hookline.cli.tree import arguments_of, command_tree
from tests.support import manpage

ROOT = Path(__file__).parents[2]


def test_man_page_is_current() -> None:
    assert manpage.FILE.read_text() == manpage.man_page(), "run 'make manpage'"


def test_man_page_is_installed_beside_the_program() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    shared = built["build"]["targets"]["wheel"]["shared-data"]
    name = str(manpage.FILE.relative_to(ROOT))
    assert shared[name] == "share/man/man1/hookline.1"


@pytest.mark.parametrize("columns", [80, 40])
def test_man_page_shows_every_command_and_option(columns: int) -> None:
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        pytest.skip("mandoc is not installed")
    lint = [mandoc, "-T", "lint", "-W", "error", str(manpage.FILE)]
    assert subprocess.run(lint, capture_output=True, check=True).stdout == b""
    wide = [mandoc, "-T", "ascii", "-O", f"width={columns}", str(manpage.FILE)]
    done = subprocess.run(wide, capture_output=True, text=True, check=True)
    text = re.sub(r".\x08", "", done.stdout)  # bold is printed twice
    parts = re.split(r"^   hookline (\w+)$", text, flags=re.MULTILINE)
    shown = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert [*shown] == [*COMMANDS, "help"]
    for name, parser in command_tree().commands.items():
        for argument in arguments_of(parser):
            if argument.dest != "help":
                listed = argument.option_strings or [str(argument.metavar)]
                pattern = rf"^ {{3,7}}{re.escape(listed[0])}\b"
                assert re.search(pattern, shown[name], re.MULTILINE), (name, listed)
