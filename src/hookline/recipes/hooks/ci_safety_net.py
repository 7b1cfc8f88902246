"""In continuous integration: let the agent build and test, not publish or deploy.

Active where ``CI`` is set. Pushing, publishing, deploying, merging and changing the
pipeline's own files are blocked, however the command is wrapped.
"""

from __future__ import annotations

import os
import re
from typing import Any

from hookline.recipes.shell import Command
from hookline.recipes.toolinput import (
    is_shell,
    only_reads,
    paths_in,
    placed_commands,
    project_path,
    resolved,
    shell_line,
)
from hookline.script import Output, block, run

# A program, and the words that make it publish, after any options.
PUBLISHES = {
    "git": ("push", "send-pack"),
    "hub": ("push", "release"),
    "make": ("deploy", "publish", "release"),
    "npm": ("publish", "unpublish", "dist-tag", "run deploy", "run publish"),
    "pnpm": ("publish",),
    "yarn": ("publish", "npm publish"),
    "twine": ("upload",),
    "uv": ("publish",),
    "poetry": ("publish",),
    "cargo": ("publish", "yank"),
    "gem": ("push", "yank"),
    "docker": ("push", "image push"),
    "podman": ("push",),
    "gh": ("release", "pr merge", "workflow run", "secret", "api"),
    "kubectl": ("apply", "delete", "create", "replace", "scale", "rollout", "exec"),
    "helm": ("install", "upgrade", "uninstall"),
    "terraform": ("apply", "destroy", "import"),
    "aws": ("",),
    "gcloud": ("",),
}
CHANGERS = {"cp", "mv", "rm", "tee", "sed", "ln", "install", "touch", "truncate", "dd"}
PIPELINES = re.compile(
    r"^(\.github/(workflows|actions)/|\.gitlab-ci\.yml$|\.circleci/|jenkinsfile$"
    r"|azure-pipelines\.yml$)",
    re.IGNORECASE,
)


def check(event: dict[str, Any]) -> Output | None:
    """Block what would leave the build."""
    if os.environ.get("CI", "").lower() in ("", "0", "false"):
        return None
    tool, tool_input, cwd = event["tool_name"], event["tool_input"], event["cwd"]
    if not is_shell(tool):
        paths = [] if only_reads(tool) else list(paths_in(tool_input))
        return _check_paths(paths, cwd)
    for command, place in placed_commands(shell_line(tool_input), cwd):
        if command.opaque or publishes(command):
            shown = " ".join(command.words)[:120]
            return block(f"not in CI: {shown!r} reaches beyond this build")
        changed = command.operands if command.name in CHANGERS else []
        written = [resolved(name, place) for name in (*command.writes, *changed)]
        found = _check_paths(written, cwd)
        if found:
            return found
    return None


def publishes(command: Command) -> bool:
    """Whether a command sends something out."""
    name, words = command.name.lower(), list(command.args)
    if re.fullmatch(r"python[\d.]*", name) and words[:1] == ["-m"] and len(words) > 1:
        name, words = words[1], words[2:]
    verbs = PUBLISHES.get(name, ())
    return any(_begins(words, verb.split()) for verb in verbs)


def _begins(words: list[str], verb: list[str]) -> bool:
    """Whether the verb comes first, after options and perhaps their values."""
    if not verb:
        return True
    for index, word in enumerate(words):
        if words[index : index + len(verb)] == verb:
            return True
        after_option = index > 0 and words[index - 1].startswith("-")
        if not word.startswith("-") and not after_option:
            return False
    return False


def _check_paths(paths: list[str], cwd: str) -> Output | None:
    for path in paths:
        place = project_path(path, cwd) or ""
        if PIPELINES.search(place):
            return block(f"not in CI: {place} is the pipeline itself")
    return None


if __name__ == "__main__":
    run(check)
