"""Save a checkpoint of the project before each tool that may change it.

The whole tree, untracked files included, is saved as a commit on its own ref
(``refs/hookline/SESSION``). Index, branch, stash and working tree do not change, no
git hook runs and nothing is signed. To list: ``git log refs/hookline/SESSION``; to
restore: ``git restore --source=COMMIT --worktree .``.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hookline.recipes.toolinput import only_reads
from hookline.script import Output, run

WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "hookline"), ("EMAIL", "hookline@localhost"))
}


def check(event: dict[str, Any]) -> Output | None:
    """Save a checkpoint; a project without git is skipped."""
    if only_reads(event["tool_name"]):
        return None
    env = {**os.environ, **WHO, "GIT_OPTIONAL_LOCKS": "0"}
    git = partial(_git, event["cwd"], env)
    if not git("rev-parse", "--git-dir"):
        return None
    # A session id may hold any character; a ref may not.
    session = re.sub(r"[^A-Za-z0-9_-]", "-", event["session_id"])[:80] or "session"
    with tempfile.TemporaryDirectory() as folder:
        env["GIT_INDEX_FILE"] = str(Path(folder, "index"))
        git("add", "--all", "--", ".")
        tree = git("write-tree")
    _keep(git, tree, f"refs/hookline/{session}", event["tool_name"])
    return None


def _git(cwd: str, env: dict[str, str], *words: str) -> str:
    """Run a git command; a failure returns an empty string."""
    ended = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _keep(git: Callable[..., str], tree: str, ref: str, tool: str) -> None:
    last = git("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}")
    if not tree or (last and git("rev-parse", f"{last}^{{tree}}") == tree):
        return
    parent = ["-p", last] if last else []
    title = " ".join(f"before {tool}".split())[:100]
    if commit := git("commit-tree", tree, *parent, "-m", title):
        git("update-ref", ref, commit)


if __name__ == "__main__":
    run(check)
