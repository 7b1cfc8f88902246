"""Where recipes keep their state: outside the project.

The agent can write in the project, and could reset a budget or edit a log there. All
of ``.hookline`` is pinned by trust, so that no hook may write there either.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def state_folder(cwd: str, name: str) -> Path:
    """The folder of one recipe for one project; ``HOOK_STATE_DIR`` overrides it."""
    configured = os.environ.get("HOOK_STATE_DIR")
    folder = Path(configured) if configured else project_folder(os.path.realpath(cwd))
    folder = folder / name
    for made in (*reversed(folder.parents), folder):
        made.mkdir(exist_ok=True, mode=0o700)  # approvals are kept in one of them
    return folder


def project_folder(project: str) -> Path:
    """The folder of all recipes for one project, which may not exist."""
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:16]
    return home / "hookline" / "recipes" / f"{Path(project).name}-{digest}"
