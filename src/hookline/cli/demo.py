"""``hookline demo``: a short agent session with hooks, offline."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from hookline.errors import HooklineError

from .options import Options, Parser, file_errors
from .terminal import paint

SUMMARY = "watch an agent obey its hooks, offline"
DESCRIPTION = """\
Play a short agent session in a temporary project: a scripted model drives the real
agent loop, and every hook is a real script in its own process. Shows each effect of
each hook once. Needs no network and no API key. The events are recorded in your
journal, for 'hookline inspect' and 'hookline log --everywhere'.

  hookline demo
  hookline demo --all              all that is said, every hook that ran, a summary
  hookline demo --plain            for logs: one line per fact, in ASCII
  hookline demo --keep try-it      keep the project, to change its hooks"""


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_flag("--all", "show every message and every hook that ran")
    parser.add_flag("--plain", "ASCII without colours, for logs")
    text = "create the project in DIR, a new directory, and keep it"
    parser.add_option("--keep DIR", text)


def run(options: Options) -> None:
    """Play the demo."""
    from hookline.demo.play import Project, play
    from hookline.demo.timeline import make_timeline

    timeline = make_timeline(paint, plain=options.plain, brief=not options.all)
    with _new_folder(options.keep) as folder:
        project = Project(Path(folder).resolve())
        project.create()
        asyncio.run(play(project, timeline))
    steps = []
    folder_missing = _folder_missing_on_path()
    if folder_missing is not None:
        export = f'export PATH={quote(folder_missing)}:"$PATH"'
        steps.append((export, "once per shell"))
    if find_spec("cel_expr_python"):
        steps.append(("hookline init --rule", "a first rule, and how to try it"))
    else:
        steps.append(("hookline init", "a first hook, and how to try it"))
    steps.append(("hookline trust", "review and approve it"))
    steps.append(("hookline install claude", "let a coding agent ask it"))
    if find_spec("starlette") and find_spec("uvicorn"):
        steps.append(("hookline inspect", "this session, in the browser"))
    else:
        steps.append(("hookline log --everywhere", "this session, recorded"))
    if not options.all:
        steps.append(("hookline demo --all", "every line of this session"))
    timeline.next_steps("Next, in a project of yours:", steps)


def _folder_missing_on_path() -> str | None:
    """Where our ``hookline`` is, if typing its name does not start it."""
    started_as = Path(sys.argv[0])
    if started_as.stem != "hookline":  # python -m hookline
        started_as = Path(sys.executable).with_name("hookline")
    command = shutil.which("hookline")
    if command and Path(command).resolve() == started_as.resolve():
        return None
    return str(started_as.parent.absolute())


def _new_folder(name: str | None) -> AbstractContextManager[str]:
    if name is None:
        return tempfile.TemporaryDirectory(prefix="hookline-demo-")
    folder = Path(name)
    with file_errors(f"--keep {name}"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise HooklineError(f"--keep {name!r} exists: choose a new directory")
        folder.mkdir(parents=True, exist_ok=True)
    return nullcontext(name)
