"""Commands of plain words, started without the shell that would only hand them over.

``python3 .hookline/hooks/secrets.py`` needs no shell, and starting one takes a
millisecond. The shell is left out only where bash would do nothing but find the program
and become it: no builtin, no expansion but the project's directory, no start-up file,
no variable of bash's own. The program then gets to the byte what bash would have given
it. Wherever that is in doubt, and for every message about a program that is missing or
cannot run, the shell is started after all (decision 0071).
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Mapping
from functools import lru_cache

from hookline.process import DirectStart

_NAME = r"(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR"
_VARIABLE = rf"\$(?:{_NAME}(?![A-Za-z0-9_])|\{{{_NAME}\}})"
_SAFE = r"[A-Za-z0-9_./:@%+,=-]"
_WORD = rf'(?:{_SAFE}|{_VARIABLE}|"(?:{_SAFE}| |{_VARIABLE})*")+'
_COMMAND = rf" *{_WORD}(?: +{_WORD})* *"
_PIECES = rf'"|{_VARIABLE}'
_PLAIN = frozenset(string.ascii_letters + string.digits + "_./:@%+,=- ")
_ODD_IN_A_PROGRAM = frozenset(":@%,")

_BUILTIN_NAMES = """
. : [ alias bg bind break builtin caller cd command compgen complete compopt continue
declare dirs disown echo enable eval exec exit export false fc fg getopts hash help
history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly
return set shift shopt source suspend test times trap true type typeset ulimit umask
unalias unset wait
if then else elif fi case esac for select while until do done in function time coproc
"""
_VARIABLE_NAMES = """
DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FUNCNAME GROUPS HISTCMD IFS LINENO
OPTERR OPTIND POSIXLY_CORRECT PPID RANDOM SECONDS SHELLOPTS SRANDOM UID
"""
_BUILTINS = frozenset(_BUILTIN_NAMES.split())
_SPECIAL_VARIABLES = frozenset(_VARIABLE_NAMES.split())
_QUIET_LOCALES = frozenset({"", "C", "POSIX", "C.UTF-8", "C.utf8"})
_MAX_SHELL_LEVEL = 900


def direct_start(command: str, cwd: str, env: Mapping[str, str]) -> DirectStart | None:
    """How to run a command without bash; None where bash has something to do."""
    words = _split(command)
    if words is None or not _is_undisturbed(cwd, env):
        return None
    argv = [_expand(word, env) for word in words]
    program = _find(argv[0], env.get("PATH", ""))
    if program is None:
        return None
    return DirectStart(program, argv, _as_from_bash(program, env))


@lru_cache(maxsize=4096)
def _split(command: str) -> tuple[str, ...] | None:
    # Compiling an expression would take longer than the shell that it saves.
    if _PLAIN.issuperset(command):
        words = tuple(word for word in command.split(" ") if word)
    elif re.fullmatch(_COMMAND, command, re.ASCII):
        words = tuple(re.findall(_WORD, command, re.ASCII))
    else:
        return None
    if not words or words[0] in _BUILTINS:
        return None
    if "=" in words[0]:
        return None  # it sets a variable
    return words


def _expand(word: str, env: Mapping[str, str]) -> str:
    if '"' not in word and "$" not in word:
        return word
    return re.sub(_PIECES, lambda found: _value(found.group(), env), word)


def _value(piece: str, env: Mapping[str, str]) -> str:
    return "" if piece == '"' else env.get(piece.strip("${}"), "")


def _is_undisturbed(cwd: str, env: Mapping[str, str]) -> bool:
    """Whether bash would pass this environment on as it is, and say nothing."""
    if env.get("PWD") != cwd or not _is_normal(cwd):
        return False
    if env.get("LC_ALL", "") not in _QUIET_LOCALES:
        return False  # bash warns about a locale that is not installed
    level = env.get("SHLVL", "0")
    if not level.isdecimal() or str(int(level)) != level:
        return False
    if int(level) > _MAX_SHELL_LEVEL:
        return False
    if "OLDPWD" in env and not os.path.isdir(env["OLDPWD"]):  # noqa: PTH112
        return False
    return _names_are_plain(frozenset(env))


@lru_cache(maxsize=256)
def _names_are_plain(names: frozenset[str]) -> bool:
    if names & _SPECIAL_VARIABLES:
        return False
    return not any(name.startswith("BASH") for name in names)


@lru_cache(maxsize=256)
def _is_normal(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path


def _find(word: str, path: str) -> str | None:
    """The file that bash would execute; None where it would not find one."""
    if "/" in word:
        return word
    if word in _BUILTINS or word[:1] in {"", "-", "+"}:
        return None
    if not _ODD_IN_A_PROGRAM.isdisjoint(word):
        return None
    for folder in path.split(":"):
        if not folder.startswith("/"):
            return None  # a place that depends on the working directory
        candidate = f"{folder}/{word}"
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):  # noqa: PTH113
            return candidate
    return None


def _as_from_bash(program: str, env: Mapping[str, str]) -> dict[str, str]:
    return {"SHLVL": "0", **env, "_": program}
