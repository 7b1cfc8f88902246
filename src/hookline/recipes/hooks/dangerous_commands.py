"""Block shell commands and statements that delete or overwrite too much.

It checks the commands that would really run, through quoting, wrappers, ``bash -c``,
substitutions and variables (``hookline.shell.commands``). Deleting a folder of the
project passes; deleting the project, the home directory or the system does not, nor
what destroys as much in a cloud, a database or git (``hookline.recipes.destruction``).
"""

import re
from typing import Any

from hookline.recipes.destruction import (
    deletes_too_much,
    destroys,
    is_broad,
    is_root,
    program_line,
    tool_destruction,
)
from hookline.recipes.toolinput import (
    fields_in,
    only_reads,
    shell_line_of,
    snake_case,
)
from hookline.script import Output, block, run
from hookline.shell.commands import Command, commands

NEVER = {
    "mkfs",
    "mkswap",
    "wipefs",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "fdisk",
    "parted",
}
DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper)")
VITAL = re.compile(r"/(bin|boot|etc|lib\w*|proc|sbin|sys|usr)(/|$)")
INTERPRETER = r"(python|perl|ruby|node|php|awk|gawk|osascript|deno|bun)[\d.]*"
PERMISSIONS = {"chmod", "chown", "chgrp", "chattr", "setfacl"}
CODE = re.compile(
    r"rmtree|unlink|rmSync|rmdirSync|remove_dir_all|removedirs|rm_rf|\brm\("
)
HOME = re.compile(r"expanduser|Path\.home|process\.env\.HOME|os\.homedir|ENV\[.HOME")
RUNS = re.compile(r"subprocess|exec|spawn|system|popen|shell|check_call|passthru|`|qx")
QUOTED = re.compile(r"""(["'`])(.*?)\1""")
FORK_BOMB = re.compile(
    r"(?<![\w:.])([\w:.]{1,40})\s{0,9}\(\)\s{0,9}\{[^}]{0,99}\1\s{0,9}\|\s{0,9}\1"
)


def check(event: dict[str, Any]) -> Output | None:
    """Block the first dangerous command in the line."""
    name, tool_input = event["tool_name"], event["tool_input"]
    tool, fields = snake_case(name), list(fields_in(tool_input))
    line = program_line(tool, shell_line_of(event))
    if FORK_BOMB.search(line):
        return block("this is a fork bomb")
    for command in commands(line):
        if why := danger(command):
            text = " ".join(command.words)[:120] or line[:120]
            return block(f"{why}: {text!r}. Ask the user to run it if it is needed.")
    if why := None if only_reads(name, tool_input) else tool_destruction(tool, fields):
        return block(f"{why}. Ask the user to do it if it is needed.")
    code = [text for key, text in fields if key == "code"]
    why = next(filter(None, map(code_danger, code)), None)
    return block(f"{why}. Ask the user to run it if it is needed.") if why else None


def danger(command: Command) -> str | None:
    """Why a command is dangerous, or None."""
    name = command.name
    if any(DISK.match(place) or VITAL.match(place) for place in command.writes):
        return "this overwrites a part of the system"
    if name.partition(".")[0] in NEVER:
        return f"agents may not run {name}"
    if command.opaque:
        return "what this will run is hidden"
    judges = (deletes_too_much, _moving, _permissions, _machine, _code, destroys)
    return next(filter(None, (judge(command) for judge in judges)), None)


def _moving(command: Command) -> str | None:
    targets = command.operands
    if command.name == "mv" and any(is_root(target) for target in targets[:-1]):
        return "this moves a home or system directory"
    if command.name == "rsync" and any(f.startswith("delete") for f in command.flags):
        emptied = targets and is_broad(targets[-1])
        return "this deletes everything that is not in the source" if emptied else None
    vital = any(VITAL.match(one) or DISK.match(one) or is_broad(one) for one in targets)
    if command.name in ("shred", "truncate") and vital:
        return "this destroys a part of the system"
    return None


def _permissions(command: Command) -> str | None:
    broad = any(map(is_broad, command.operands[1:]))
    recursive = command.name in PERMISSIONS and command.flags & {
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


def _code(command: Command) -> str | None:
    if re.fullmatch(INTERPRETER, command.name):
        return code_danger(" ".join((*command.args, command.input_text)))
    return None


def code_danger(code: str) -> str | None:
    """Why a program in another language is dangerous, or None."""
    texts = [text for _, text in QUOTED.findall(code)]
    if CODE.search(code) and (HOME.search(code) or any(map(is_broad, texts))):
        return "this code deletes a whole tree"
    texts = [*texts, " ".join(texts)] if RUNS.search(code) else []
    lines = (inner for text in texts if " " in text for inner in commands(text))
    return next(filter(None, map(danger, lines)), None)


if __name__ == "__main__":
    run(check)
