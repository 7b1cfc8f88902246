"""Block shell commands that delete or overwrite too much.

It checks the commands that would really run, through quoting, wrappers, ``bash -c``,
substitutions and variables (``hookline.shelltext.commands``). Deleting a folder of the
project passes; deleting the project, the home directory or the system does not.
"""

import os
import re
from fnmatch import fnmatch
from typing import Any

from hookline.recipes.toolinput import shell_line
from hookline.script import Output, block, run
from hookline.shelltext.commands import Command, commands

NEVER = {"mkfs", "wipefs", "shutdown", "reboot", "halt", "poweroff", "fdisk", "parted"}
BROAD = {"/", "~", ".", "..", "*", ".*", "$HOME", "${HOME}", "$PWD", "$OLDPWD", "{}"}
SYSTEM = re.compile(r"/(bin|boot|dev|etc|home|lib\w*|opt|root|sbin|srv|sys|usr|var)")
DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper)")
VITAL = re.compile(r"/(bin|boot|etc|lib\w*|sbin|sys|usr)(/|$)")
CODE = re.compile(r"rmtree|unlink|rmSync|rmdirSync|remove_dir_all|removedirs")
QUOTED = re.compile(r"""(["'])(.*?)\1""")
FORK_BOMB = re.compile(r"(\S+)\s*\(\)\s*\{[^}]*\1\s*\|\s*\1")


def check(event: dict[str, Any]) -> Output | None:
    """Block the first dangerous command in the line."""
    line = shell_line(event.get("tool_input") or {})
    if FORK_BOMB.search(line):
        return block("this is a fork bomb")
    for command in commands(line):
        if why := danger(command):
            text = " ".join(command.words)[:120] or line[:120]
            return block(f"{why}: {text!r}. Ask the user to run it if it is needed.")
    return None


def danger(command: Command) -> str | None:
    """Why a command is dangerous, or None."""
    name = command.name
    if any(DISK.match(place) or VITAL.match(place) for place in command.writes):
        return "this overwrites a part of the system"
    if name.partition(".")[0] in NEVER:
        return f"agents may not run {name}"
    if command.opaque:
        return "what this will run is hidden"
    judges = (_deletion, _moving, _permissions, _machine, _git, _code)
    return next(filter(None, (judge(command) for judge in judges)), None)


def _deletion(command: Command) -> str | None:
    name = command.name.lower()  # it may hold wildcards
    if fnmatch("rm", name) and command.flags & {"r", "R", "recursive"}:
        broad = command.appended or any(is_broad(one) for one in command.operands)
        return "this deletes too much" if broad else None
    if fnmatch("find", name) and {"-delete", "-exec", "-execdir"} & set(command.args):
        starts = [word for word in command.args[:1] if not word.startswith("-")]
        if any(is_broad(s) for s in starts or ["."]) and "-name" not in command.args:
            return "this deletes everything it finds"
    return None


def _moving(command: Command) -> str | None:
    targets = command.operands
    if command.name == "mv" and any(_is_root(target) for target in targets[:-1]):
        return "this moves a home or system directory"
    if command.name == "rsync" and any(f.startswith("delete") for f in command.flags):
        emptied = targets and _is_root(targets[-1])
        return "this deletes everything that is not in the source" if emptied else None
    if command.name in ("shred", "truncate") and any(map(VITAL.match, targets)):
        return "this destroys a part of the system"
    return None


def _permissions(command: Command) -> str | None:
    broad = any(map(is_broad, command.operands[1:]))
    recursive = command.name in ("chmod", "chown") and command.flags & {
        "R",
        "recursive",
    }
    return "this changes the permissions of everything" if broad and recursive else None


def _machine(command: Command) -> str | None:
    if command.name == "dd" and any(DISK.match(w[3:]) for w in command.args):
        return "this overwrites a device"
    ends = {"poweroff", "reboot", "halt", "0", "6"} & set(command.args)
    if command.name in ("systemctl", "init", "telinit") and ends:
        return "this shuts the machine down"
    if command.name == "kill" and "-1" in command.args[1:]:
        return "this kills every process"
    return None


def _git(command: Command) -> str | None:
    if command.name != "git":
        return None
    if "clean" in command.args and "f" in command.flags and command.flags & {"d", "x"}:
        return "this deletes files that git cannot restore"
    if "push" not in command.args:
        return None
    forced = command.flags & {"force", "f", "mirror", "delete", "d"}
    plus = any(word.startswith("+") for word in command.args)
    return "this rewrites published history" if forced or plus else None


def _code(command: Command) -> str | None:
    if not re.fullmatch(r"(python|perl|ruby|node|php)[\d.]*", command.name):
        return None
    code = " ".join(command.args) + (command.fed or "")
    texts = [text for _, text in QUOTED.findall(code)]
    if CODE.search(code) and any(is_broad(text) for text in texts):
        return "this code deletes a whole tree"
    lines = (inner for text in texts if " " in text for inner in commands(text))
    return next(filter(None, map(danger, lines)), None)


def is_broad(target: str) -> bool:
    """Whether a target is a whole project, home or system."""
    if target in BROAD or (target.startswith(("$()", "~")) and "/" not in target[2:]):
        return True
    plain = target.rstrip("*/") or ("/" if target.startswith("/") else "*")
    plain = os.path.normpath(plain)
    if plain in BROAD or plain.startswith("../.."):
        return True
    return bool(SYSTEM.match(plain)) and plain.count("/") <= 2


def _is_root(target: str) -> bool:
    return is_broad(target) and target.startswith(("/", "~", "$"))


if __name__ == "__main__":
    run(check)
