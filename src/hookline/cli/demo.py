"""``hookline demo``: a short agent session with hooks, offline."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hookline.errors import SettingsError

from .common import paint

if TYPE_CHECKING:
    from hookline.demo.timeline import Timeline

SUMMARY = "watch an agent obey its hooks, offline"
DESCRIPTION = """\
Play a short agent session in a temporary project: a scripted model drives the real
agent loop, and every hook is a real script in its own process. Shows one line per hook
that ran, then a summary. Needs no network and no API key.

  hookline demo
  hookline demo --plain            for logs: one line per fact, in ASCII
  hookline demo --keep try-it      keep the project, to change its hooks"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--plain", action="store_true", help="ASCII without colours, for logs"
    )
    parser.add_argument(
        "--keep",
        metavar="DIR",
        help="create the project in DIR, a new directory, and keep it",
    )


def run(options: argparse.Namespace) -> int:
    """Play the demo."""
    from hookline.demo.timeline import make_timeline

    timeline = make_timeline(paint, plain=options.plain)
    if options.keep is not None:
        return _play(_new_folder(options.keep), timeline)
    with tempfile.TemporaryDirectory(prefix="hookline-demo-") as folder:
        return _play(Path(folder), timeline)


def _new_folder(name: str) -> Path:
    folder = Path(name)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise SettingsError(f"--keep {name!r} exists: choose a new directory")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--keep {name}: {error.strerror}") from error
    return folder


def _play(folder: Path, timeline: Timeline) -> int:
    from hookline.demo.play import Project, play

    project = Project(folder.resolve())
    project.create()
    asyncio.run(play(project, timeline))
    return 0
