"""Allow the agent to read everything and to change nothing.

Tools that are known to read pass; unknown ones are blocked. A shell line passes if
each of its commands is known to read, writes to no file and hides nothing.
``READ_ONLY_ALLOW`` names other tools to allow, separated by commas.
"""

import re
from typing import Any

from hookline.recipes.toolinput import (
    env_list,
    is_shell,
    only_reads,
    placed_commands,
    shell_line_of,
)
from hookline.script import Output, block, run
from hookline.shell.commands import SHELLS, Command

READERS = """
    cat head tail less more wc ls tree stat file du df pwd whoami id date uname env
    printenv echo printf grep egrep fgrep rg ag cut tr uniq nl diff cmp comm basename
    dirname realpath readlink which type test [ true false cd sort find git jq xxd od
    strings md5sum sha1sum sha256sum ps fi done esac
"""
GIT_READERS = """
    status log diff show blame grep ls-files ls-tree rev-parse describe shortlog
    cat-file for-each-ref rev-list name-rev merge-base count-objects
"""
WRAPPERS = """
    command builtin exec env sudo doas timeout nice ionice stdbuf setsid xargs busybox
    toybox caffeinate
"""
FIND = {"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fls"}
WRITING = {
    "sort": {"o", "output"},
    "tree": {"o"},
    "date": {"s", "set"},
    "xxd": {"r"},
    "rg": {"pre"},
    "file": {"C"},
    "less": {"o", "O", "log-file"},
}
HARMLESS = re.compile(r"(LANG|LC_\w+|TZ|NO_COLOR|COLUMNS|TERM)=")
NOWHERE = {"/dev/null", "/dev/stdout", "/dev/stderr"}


def check(event: dict[str, Any]) -> Output | None:
    """Block everything that may change something."""
    tool = event["tool_name"]
    if tool in env_list("READ_ONLY_ALLOW"):
        return None
    reasons = [changes(command) for command, _ in placed_commands(event)]
    if not is_shell(tool):
        reads = only_reads(tool, event["tool_input"])
        reasons = [None if reads else f"{tool} may change things"]
    elif not shell_line_of(event):
        reasons = [f"what {tool} runs is hidden"]
    why = next(filter(None, reasons), None)
    return block(f"read-only mode: {why}") if why else None


def changes(command: Command) -> str | None:
    """Why a command may change something, or None."""
    line = " ".join(command.words)[:120]
    written = [place for place in command.writes if place not in NOWHERE]
    if written:
        return f"{line!r} writes to {written[0]}"
    set_to = [one for one in command.assigned if not HARMLESS.match(one)]
    if set_to and command.words:
        return f"{set_to[0]!r} may change what {line!r} does"
    if command.opaque:
        return f"what {line!r} runs is hidden"
    if not set(command.wrappers) <= set(WRAPPERS.split()):
        return f"{command.wrappers[0]!r} may change something"
    if not command.words or (command.name in SHELLS and "c" in command.flags):
        return None  # an assignment; or a shell, and its line is checked separately
    if command.name not in READERS.split() or not _is_installed(command.words[0]):
        return f"{line!r} is not known to be harmless"
    return _special(command, line)


def _is_installed(program: str) -> bool:
    """Whether it is the system's program, not another one of the same name."""
    return "/" not in program or program.rpartition("/")[0] in ("/bin", "/usr/bin")


def _special(command: Command, line: str) -> str | None:
    if command.name == "git" and not _git_reads(command):
        return f"{line!r} may change the repository"
    if command.name == "find" and FIND & set(command.args):
        return f"{line!r} acts on what it finds"
    if command.flags & WRITING.get(command.name, set()):
        return f"{line!r} writes or changes something"
    if command.name in ("uniq", "xxd") and len(command.operands) > 1:
        return f"{line!r} writes a file"
    if command.name == "env" and command.operands:
        return f"{line!r} runs something else"
    return None


def _git_reads(command: Command) -> bool:
    words = list(command.args)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-c" or option.startswith(("--exec-path", "--config-env")):
            return False  # a setting may name a program to run
        if option == "-C" and words:
            words.pop(0)
    outputs = ("--output", "--ext-diff", "--textconv", "-O")
    writes = any(word.startswith(outputs) for word in words)
    return bool(words) and words[0] in GIT_READERS.split() and not writes


if __name__ == "__main__":
    run(check)
