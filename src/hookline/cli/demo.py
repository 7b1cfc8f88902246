"""``hookline demo``: a short agent session with hooks, offline."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from hookline.errors import HooklineError

from .common import Options, Parser, file_errors
from .terminal import paint

SUMMARY = "watch an agent obey its hooks, offline"
DESCRIPTION = """\
Play a short agent session in a temporary project: a scripted model drives the real
agent loop, and every hook is a real script in its own process. Shows one line per hook
that ran, then a summary. Needs no network and no API key. The events are recorded in
your journal, for 'hookline inspect' and 'hookline log --everywhere'.

  hookline demo
  hookline demo --plain            for logs: one line per fact, in ASCII
  hookline demo --keep try-it      keep the project, to change its hooks"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_flag("--plain", "ASCII without colours, for logs")
    text = "create the project in DIR, a new directory, and keep it"
    parser.add_option("--keep DIR", text)


def run(options: Options) -> None:
    """Play the demo."""
    from hookline.demo.play import Project, play
    from hookline.demo.timeline import make_timeline

    timeline = make_timeline(paint, plain=options.plain)
    with _new_folder(options.keep) as folder:
        project = Project(Path(folder).resolve())
        project.create()
        asyncio.run(play(project, timeline))
    commands = "'hookline inspect' or 'hookline log --everywhere'"
    print(f"\nrecorded: look at it with {commands}")


def _new_folder(name: str | None) -> AbstractContextManager[str]:
    if name is None:
        return tempfile.TemporaryDirectory(prefix="hookline-demo-")
    folder = Path(name)
    with file_errors(f"--keep {name}"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise HooklineError(f"--keep {name!r} exists: choose a new directory")
        folder.mkdir(parents=True, exist_ok=True)
    return nullcontext(name)
