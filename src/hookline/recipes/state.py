"""Where a recipe keeps what it must remember: outside the project.

An agent works in the project and could reset a budget or rewrite a log there; and the
project's own ``.hookline`` is trusted byte for byte, so that nothing may change in it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def state_folder(cwd: str, name: str) -> Path:
    """The folder of one recipe for one project; ``HOOK_STATE_DIR`` moves it."""
    configured = os.environ.get("HOOK_STATE_DIR")
    folder = Path(configured) if configured else _user_folder() / _project(cwd)
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _user_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return home / "hookline" / "recipes"


def _project(cwd: str) -> str:
    real = os.path.realpath(cwd)
    return f"{Path(real).name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"
