"""Command hooks: a process for each event (protocol.md#process)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache

from hookline.execute.child import ProcessSpec, Program, run_process
from hookline.plan import DEPTH_VARIABLE, Executor, HookCall, RegisteredHook, RunEnd
from hookline.protocol.values import text_of
from hookline.settings.model import FOREIGN_PREFIXES, Dialect, EnvPolicy
from hookline.settings.places import find_workspace, is_within, shipped_by
from hookline.shell.parse import (
    POSIX_SHELLS,
    PROJECT_DIR_NAMES,
    plain_words,
    quote_folders,
)

from .runtime import Runtimes

CLEAN_NAMES = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR"),
        *("CLAUDE_ENV_FILE", "TZ", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
        "XDG_CONFIG_HOME",
        *("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOOKLINE_REPLAY"),
    }
)
"""What passes under ``"envPolicy": "clean"``, beside ``LC_*`` and the hook's own."""

RECHECK_VARIABLE = "HOOKLINE_RECHECK"
"""Set for a hook that is asked again, on the input after all changes."""

# On Python 3.11 finding a member in its enum costs more than a call.
_HOOKLINE, _GEMINI, _CLAUDE = Dialect.HOOKLINE, Dialect.GEMINI, Dialect.CLAUDE
_CLEAN = EnvPolicy.CLEAN
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CREDENTIAL = (
    r"key|token|secret|pass|pwd|credential|auth|cookie|session|private|bearer|jwt"
)
_MAX_ENVIRONMENT_TEXT = 256

_BUILTINS = """
. : [ alias bg bind break builtin caller cd command compgen complete compopt continue
declare dirs disown echo enable eval exec exit export false fc fg getopts hash help
history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly
return set shift shopt source suspend test times trap true type typeset ulimit umask
unalias unset wait
if then else elif fi case esac for select while until do done in function time coproc
"""
_VARIABLES = """
DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FUNCNAME GROUPS HISTCMD IFS LINENO
OPTERR OPTIND POSIXLY_CORRECT PPID RANDOM SECONDS SHELLOPTS SRANDOM UID
"""
_LEFT_TO_BASH = frozenset(_BUILTINS.split())
_VARIABLES_OF_BASH = frozenset(_VARIABLES.split())


class CommandExecutor(Executor):
    """Runs commands, so many at a time."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Run the command once; its timeout starts when it has a slot."""
        spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
        async with self._runtimes.here().slots:
            call.check_start()
            return await run_process(spec)


def command_spec(
    hook: RegisteredHook, call: HookCall, timeout_s: float, *, warm: bool = False
) -> ProcessSpec:
    """How a hook's command is to be run, for one event or to be kept warm."""
    assert hook.config.command is not None  # settings drop such a hook
    command, cwd = hook.config.command, hook.project or call.cwd
    env = _environment(hook, call, warm=warm)
    direct, shell = None, hook.config.shell
    if shell is None:
        shell = default_shell(call.cwd)
        direct = direct_start(command, env) if shell.endswith("/bash") else None
    elif "/" in shell:
        # Only the hook of a project can name a file in it; it is approved with it.
        shell = os.path.join(cwd, shell)  # noqa: PTH118
    else:
        # Where there is none, the attempt to start this one says so.
        shell = program_outside(shell, call.cwd) or f"/usr/bin/{shell}"
    if direct is not None:
        # As bash leaves them; where it is started after all, it sets its own.
        env = {"SHLVL": "0", **env, "_": direct.path}
    return ProcessSpec(
        argv=_shell_argv(command, shell),
        direct=direct,
        cwd=cwd,
        env=env,
        stdin=call.payload,
        timeout_s=timeout_s,
        max_output_bytes=hook.options.max_output_bytes,
        on_start=call.on_start,
    )


def _environment(hook: RegisteredHook, call: HookCall, *, warm: bool) -> dict[str, str]:
    """The host's environment by policy, Hookline's variables, then the hook's own."""
    env = dict(os.environ)
    if hook.options.env_policy is _CLEAN:
        env = {
            name: value
            for name, value in env.items()
            if (name in CLEAN_NAMES or name.startswith("LC_"))
            and not re.search(_CREDENTIAL, name, re.IGNORECASE)
        }
    # That this host is itself part of a re-check says nothing about its hooks.
    env.pop(RECHECK_VARIABLE, None)
    env["PATH"] = _hook_path(env.get("PATH", ""), call.cwd)
    for name in PROJECT_DIR_NAMES:
        env[name] = hook.project_dir or call.cwd
    dialect = hook.config.dialect
    if dialect is not _HOOKLINE:
        # The variables by which it knows its host, and none of another.
        hidden = FOREIGN_PREFIXES.get(dialect.value, ())
        for name in [name for name in env if name.startswith(hidden)]:
            del env[name]
        if dialect is _CLAUDE:
            env["CLAUDECODE"] = "1"
    env["PWD"] = hook.project or call.cwd
    env["HOOKLINE_PYTHON"] = sys.executable
    env |= request_environment(hook, call)
    if not warm:
        env |= trace_environment(hook, call)
    else:
        # What an event brings comes with each request; a hook's own variable of the
        # same name still counts, as it does for a command.
        for name in _event_environment(hook, call).keys() - hook.config.env.keys():
            del env[name]
        env["HOOKLINE_WORKER"] = "1"
    return env


def request_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """What an event brings, and the hook's own."""
    env = _event_environment(hook, call) | hook.config.env
    # Last, so that a hook's own env resets neither the depth nor what trust needs.
    env[DEPTH_VARIABLE] = str(call.depth + 1)
    if hook.approval is not None:
        env |= hook.approval.environment()
    return env


def _event_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    session = environment_text(call.session_id)
    env = {
        "HOOKLINE_SESSION_ID": session,
        "HOOKLINE_EVENT": call.event.value,
        "HOOKLINE_CWD": call.cwd,
        DEPTH_VARIABLE: str(call.depth + 1),
    }
    if call.recheck:
        env[RECHECK_VARIABLE] = "1"
    if hook.config.dialect is _GEMINI:
        env |= {"GEMINI_SESSION_ID": session, "GEMINI_CWD": call.cwd}
    return env


def trace_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The trace context of the hook's span, unless the hook has one of its own."""
    if call.telemetry is None or "TRACEPARENT" in hook.config.env:
        return {}
    carrier = call.telemetry.carrier()
    if "traceparent" not in carrier:
        return {}
    env = {"TRACEPARENT": carrier["traceparent"]}
    state = carrier.get("tracestate", "")
    # An inherited one belongs to another trace.
    if state or "TRACESTATE" in os.environ:
        env["TRACESTATE"] = state
    return env


@lru_cache(maxsize=16)
def environment_text(text: str) -> str:
    """A text that every process can be started with (protocol.md#process)."""
    return text_of(text.replace("\0", "")[:_MAX_ENVIRONMENT_TEXT])


def direct_start(command: str, env: Mapping[str, str]) -> Program | None:
    """How to run a command without bash; None where bash has something to do."""
    words = plain_words(command)
    if words is None or not _VARIABLES_OF_BASH.isdisjoint(env):
        return None
    if any(name.startswith("BASH") for name in env):
        return None
    argv = [word if isinstance(word, str) else word.known(env) or "" for word in words]
    name = argv[0]
    if "/" in name:
        return Program(name, argv)
    if name in _LEFT_TO_BASH or not re.fullmatch(
        "[A-Za-z0-9_.][A-Za-z0-9_.+=-]*", name
    ):
        return None
    for folder in env["PATH"].split(":"):
        if not folder.startswith("/"):
            return None  # a place that depends on the working directory
        path = f"{folder}/{name}"
        if os.access(path, os.X_OK) and os.path.isfile(path):  # noqa: PTH113
            return Program(path, argv)
    return None


@lru_cache(maxsize=4096)
def _shell_argv(command: str, shell: str) -> tuple[str, ...]:
    if os.path.basename(shell) in POSIX_SHELLS:  # noqa: PTH119 - plain text
        command = quote_folders(command)
    return (shell, "-c", command)


def default_shell(cwd: str) -> str:
    """``bash`` where there is one, else ``sh``; never one that a project brings."""
    bash = program_outside("bash", cwd)
    return bash or ("/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh")


def program_outside(name: str, cwd: str) -> str | None:
    """The program of this name on the ``PATH`` that no project brings along."""
    return _program_outside(name, cwd, os.environ.get("PATH", ""))


@lru_cache(maxsize=256)
def _program_outside(name: str, cwd: str, path: str) -> str | None:
    zones = find_workspace(cwd).zones
    for folder in _absolute_entries(path) if "/" not in name else [""]:
        candidate = os.path.join(folder, name)  # noqa: PTH118
        if not os.path.isabs(candidate) or not os.access(candidate, os.X_OK):  # noqa: PTH117
            continue
        # 'npm run' puts the project's own programs first, by their absolute path.
        places = map(os.path.realpath, (os.path.dirname(candidate), candidate))  # noqa: PTH120
        if not any(shipped_by(place, zones) for place in places):
            return candidate
    return None


@lru_cache(maxsize=256)
def _hook_path(path: str, cwd: str) -> str:
    """A ``PATH`` with the entries inside projects last, but for our own environment.

    What a project adds can be used, but no ``bash`` or ``python3`` of it comes first.
    """
    zones, prefix = find_workspace(cwd).zones, os.path.realpath(sys.prefix)

    def is_foreign(entry: str) -> bool:
        place = os.path.realpath(entry)
        return not is_within(place, prefix) and shipped_by(place, zones) is not None

    # Without any, a shell would take its own default, which can hold ".".
    return os.pathsep.join(sorted(_absolute_entries(path), key=is_foreign)) or _PATH


def _absolute_entries(path: str) -> list[str]:
    """The entries of a ``PATH`` that are the same in every folder.

    An empty or relative one would run what an untrusted project calls ``ls``.
    """
    return [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117
