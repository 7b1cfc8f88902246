"""In continuous integration, allow building and testing, not publishing or deploying.

Active where ``CI`` is set. Pushing, publishing, deploying, merging and changing the
pipeline's own files are blocked, however the command is wrapped.
"""

import os
import re
from typing import Any

from hookline.recipes.toolinput import placed_commands, project_paths, written_paths
from hookline.script import Output, block, run
from hookline.shelltext.commands import Command

# A program, and the arguments that make it publish, after any options.
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
    r"(?i)^(\.github/(workflows|actions)/|\.gitlab-ci\.yml$|\.circleci/|jenkinsfile$"
    r"|azure-pipelines\.yml$)"
)


def check(event: dict[str, Any]) -> Output | None:
    """Block what has an effect outside this build."""
    if os.environ.get("CI", "").lower() in ("", "0", "false"):
        return None
    for command, _ in placed_commands(event):
        if command.opaque or publishes(command):
            line = " ".join(command.words)[:120]
            return block(f"not in CI: {line!r} reaches beyond this build")
    for file in project_paths(written_paths(event, CHANGERS), event["cwd"]):
        if PIPELINES.search(file):
            return block(f"not in CI: {file} is part of the pipeline")
    return None


def publishes(command: Command) -> bool:
    """Whether a command publishes or deploys something."""
    name, words = command.name.lower(), list(command.args)
    if re.fullmatch(r"python[\d.]*", name) and words[:1] == ["-m"] and len(words) > 1:
        name, words = words[1], words[2:]
    return any(_begins(words, verb.split()) for verb in PUBLISHES.get(name, ()))


def _begins(words: list[str], verb: list[str]) -> bool:
    """Whether these come first, after options and possibly their values."""
    if not verb:
        return True
    for index, word in enumerate(words):
        if words[index : index + len(verb)] == verb:
            return True
        after_option = index > 0 and words[index - 1].startswith("-")
        if not word.startswith("-") and not after_option:
            return False
    return False


if __name__ == "__main__":
    run(check)
