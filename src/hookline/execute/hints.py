"""What to do about a run that ended in a way its author hardly meant.

Loaded for failures and odd blocks only. A hint never changes a verdict.
"""

from __future__ import annotations

import os
import re
import signal

from hookline.plan import RegisteredHook, RunEnd
from hookline.protocol.events import TRAITS
from hookline.protocol.results import FailureCause
from hookline.settings.model import HookSource, HookType
from hookline.settings.places import PROJECT_FOLDER
from hookline.shell.parse import executed_files
from hookline.shell.scripts import script_problem

LOOKS_LIKE_SECONDS_BELOW = 100
_COMMANDS = (HookType.COMMAND, HookType.WORKER)
_NO_TERMINAL = (
    r"/dev/tty|EOF when reading a line|not a (?:tty|terminal)|a terminal is required"
    r"|Inappropriate ioctl for device|terminal prompts disabled"
)
_PYTHON_ERROR = r"(?m)^(?:Traceback \(most recent call last\):|SyntaxError: )"
_QUESTION = r"(?i:\?|\[y/n\]|\(y/n\)|\(yes/no\)|password[^\n]*:|passphrase[^\n]*:)\s*$"
_NOT_FOUND = (
    r"(?m)(?:^|: )([^\s:]+): (?:command )?not found$"
    r"|^\S*env: \W?([\w.+/-]+)\W*: No such file"
)
_ASK = 'hooks have no terminal: answer {"decision": "ask"} to ask a person'


def hint_about(hook: RegisteredHook, end: RunEnd) -> str | None:
    """What its author should know about a run that failed or blocked."""
    if end.cause is None:
        return _block_hint(hook, end)
    if end.cause is not FailureCause.TIMEOUT:
        return _failure_hint(hook, end)
    output = end.stderr or end.stdout
    if re.search(_NO_TERMINAL, output) or re.search(_QUESTION, output[-200:]):
        return f"its output ends like a question, and {_ASK}"
    timeout_ms = hook.config.timeout_ms
    # In code ``timeout_ms`` says it.
    if timeout_ms < LOOKS_LIKE_SECONDS_BELOW and hook.source is not HookSource.RUNTIME:
        milliseconds = f"for {timeout_ms:g} s write {timeout_ms * 1000:g}"
        return f"timeout is in milliseconds: {milliseconds}"
    return None


def _block_hint(hook: RegisteredHook, end: RunEnd) -> str | None:
    if problem := _file_problem(hook, end):
        return f"exit 2 blocked here, but not by the script's decision: {problem}"
    if end.stdout and (not end.stderr or end.stdout.startswith("{")):
        where = "print the reason to stderr, or print JSON and exit 0"
        return f"with exit 2 the reason is read from stderr, not from stdout: {where}"
    if end.stderr.startswith("usage:"):
        return "a usage error exits with 2 by itself, which blocks: fix the arguments"
    if "syntax error" in end.stderr:
        return "the shell exits with 2 at a syntax error, which blocks: fix the script"
    return _ASK if "/dev/tty" in end.stderr else None


def _failure_hint(hook: RegisteredHook, end: RunEnd) -> str | None:
    if problem := _file_problem(hook, end):
        return problem
    if re.search(_NO_TERMINAL, end.stderr):
        return _ASK
    code = end.exit_code or 0
    if 128 < code <= 128 + 64:
        try:
            name = signal.Signals(code - 128).name
        except ValueError:
            name = "a signal"
        return f"status {code} is 128 + {code - 128}: {name} ended a program in it"
    if code <= 0 or not TRAITS[hook.event].can_block:
        return None
    if code == 1 and re.search(_PYTHON_ERROR, end.stderr):
        return 'the script crashed, which is a failure: "onError": "block" blocks then'
    hint = f"exit 2 blocks; exit {code} counts as a failure"
    return f"{hint}, and its stdout is not read" if end.stdout else hint


def _file_problem(hook: RegisteredHook, end: RunEnd) -> str | None:
    """What is wrong with a file or program that the command names."""
    command, folder = hook.config.command, hook.project or end.cwd or ""
    if hook.config.type not in _COMMANDS or command is None:
        return None
    files = executed_files(command, hook.project_dir or folder) if folder else ()
    for file in files:
        if problem := script_problem(file, folder):
            if os.path.exists(os.path.join(folder, file.path)):  # noqa: PTH110, PTH118
                return problem
            name = os.path.basename(file.path)  # noqa: PTH119
            for near in (f"{PROJECT_FOLDER}/{name}", f"{PROJECT_FOLDER}/hooks/{name}"):
                if os.path.isfile(f"{folder}/{near}"):  # noqa: PTH113
                    return f"{problem} in {folder}: did you mean {near!r}?"
            return f"{problem} in {folder}: fix the path in its command"
    if missing := re.search(_NOT_FOUND, end.stderr):
        name = missing[1] or missing[2]
        if folder and os.path.isfile(f"{folder}/{name}"):  # noqa: PTH113
            return f"{name!r} is not on the PATH: did you mean './{name}'?"
        return f"{name!r} is not installed, or not on the PATH that the hook gets"
    return None
