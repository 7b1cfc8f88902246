"""Commands that a message tells people to type work in the installation at hand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from hookline.cli import demo
from hookline.errors import install_command

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
OURS = {"adapters", "dev", "test"}
"""Of contributors, not of users."""


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - OURS))
def test_requirements_of_an_extra_are_those_that_the_package_declares(
    extra: str,
) -> None:
    declared = [requirement.partition(";")[0] for requirement in EXTRAS[extra]]
    printed = shlex.split(install_command(extra, extra))[2:]
    assert set(map(_characters, printed)) == set(map(_characters, declared))


def _characters(requirement: str) -> str:
    """Build backends order the parts of a requirement: ``<1,>=0`` for ``>=0,<1``."""
    return "".join(sorted(requirement))


def test_the_page_lists_every_extra_with_its_packages() -> None:
    page = (ROOT / "docs" / "how-to" / "installing.md").read_text()
    rows = re.findall(r"^\| (`.+) \| .+ \| (.+) \|$", page, re.MULTILINE)
    listed = [extra for names, _ in rows for extra in re.findall(r"`(.+?)`", names)]
    packages = [name for _, names in rows for name in names.split(", ")]
    assert sorted(listed) == sorted(set(EXTRAS) - OURS)
    declared = [requirement for extra in listed for requirement in EXTRAS[extra]]
    assert packages == [
        re.split(r"[\[<>=]", requirement)[0] for requirement in declared
    ]


def test_nothing_says_to_install_from_an_index() -> None:
    """The package is on none: whoever registers its name would be installed."""
    places = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*"),
    ]
    places += ROOT.glob("src/**/*.py")
    wrong = re.compile(r"(pip|pipx|uv tool) install '?hookline\b")
    files = [
        place for place in places if place.is_file() and "decisions" not in place.parts
    ]
    assert [
        str(file) for file in files if wrong.search(file.read_text(errors="replace"))
    ] == []


def test_a_later_version_or_an_unknown_package_is_named_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = install_command("genai", "google-genai", "3.1")
    assert later == "pip install 'google-genai>=3.1'"

    def not_installed(_name: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "requires", not_installed)
    assert install_command("nats", "nats-py") == "pip install 'nats-py'"


def test_the_folder_of_the_command_is_known_unless_it_is_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = Path(sys.executable).with_name("hookline")
    (tmp_path / "hookline").symlink_to(command)  # as pipx and uv do it
    for started_as in (str(command), "/x/hookline/__main__.py"):
        monkeypatch.setattr(sys, "argv", [started_as])
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        assert demo._folder_missing_on_path() == str(command.parent)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
        assert demo._folder_missing_on_path() is None


def test_the_command_that_is_printed_is_understood_by_pip(tmp_path: Path) -> None:
    """Every requirement is there already, so that nothing is installed."""
    printed = install_command("inspect", "starlette")
    ended = subprocess.run(
        f"{sys.executable} -m {printed} --dry-run --no-index --quiet",
        shell=True,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
