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
_OWN, _GEMINI = Dialect.HOOKLINE, Dialect.GEMINI
_PATH = "/usr/local/bin:/usr/bin:/bin"
_CREDENTIAL = (
    r"key|token|secret|pass|pwd|credential|auth|cookie|session|private|bearer|jwt"
)


def hook_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The host's environment by policy, Hookline's variables, then the hook's own."""
    env = _host.by(hook.options.env_policy)
    env["PATH"] = _hook_path(env["PATH"], call.cwd)
    for name in PROJECT_DIR_NAMES:
        env[name] = hook.project_dir or call.cwd
    if hook.config.dialect is not _OWN:
        _speak(hook.config.dialect, env)
    env["PWD"] = hook.project or call.cwd
    env["HOOKLINE_PYTHON"] = sys.executable
    env |= request_environment(hook, call)
    return env


def worker_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The same for a process kept warm: what an event brings comes with each request.

    A hook's own variable of the same name still counts, as it does for a command.
    """
    env = hook_environment(hook, call)
    for name in event_environment(hook, call).keys() - hook.config.env.keys():
        del env[name]
    env["HOOKLINE_WORKER"] = "1"
    return env


def request_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """What an event brings, and the hook's own."""
    env = event_environment(hook, call) | hook.config.env
    # Last, so that a hook's own env resets neither the depth nor what trust needs.
    env[DEPTH_VARIABLE] = str(call.depth + 1)
    if hook.approval is not None:
        env |= hook.approval.environment()
    return env


def event_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """What changes from one event to the next."""
    env = {
        "HOOKLINE_SESSION_ID": environment_text(call.session_id),
        "HOOKLINE_EVENT": call.event.value,
        "HOOKLINE_CWD": call.cwd,
        DEPTH_VARIABLE: str(call.depth + 1),
    }
    if call.recheck:
        env[RECHECK_VARIABLE] = "1"
    if hook.config.dialect is _GEMINI:
        session = env["HOOKLINE_SESSION_ID"]
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


def _speak(dialect: Dialect, env: dict[str, str]) -> None:
    """Leave a hook the variables by which it knows its host (protocol.md#dialects)."""
    hidden = FOREIGN_PREFIXES.get(dialect.value, ())
    for name in [name for name in env if name.startswith(hidden)]:
        del env[name]
    if dialect is Dialect.CLAUDE:
        env["CLAUDECODE"] = "1"


_MAX_ENVIRONMENT_TEXT = 256


@lru_cache(maxsize=16)
def environment_text(text: str) -> str:
    """A text that every process can be started with (protocol.md#process)."""
    return text_of(text.replace("\0", "")[:_MAX_ENVIRONMENT_TEXT])


class _HostEnvironment:
    """The host's variables by policy, read again only where they have changed."""

    def __init__(self) -> None:
        self._seen: dict[bytes, bytes] = {}
        self._kept: dict[str, dict[str, str]] = {}

    def by(self, policy: EnvPolicy) -> dict[str, str]:
        """A copy that the caller may change."""
        # Comparing the raw mapping takes a microsecond, decoding it fifty.
        raw = getattr(os.environ, "_data", None)
        if raw is None or raw != self._seen:
            self._seen, self._kept = dict(raw or {}), {}
        kept = self._kept.get(policy.value)
        if kept is None:
            kept = self._kept[policy.value] = _inherited(policy)
            # That this host is itself part of a re-check says nothing about its hooks.
            kept.pop(RECHECK_VARIABLE, None)
        return kept.copy()


_host = _HostEnvironment()


def _inherited(policy: EnvPolicy) -> dict[str, str]:
    env = dict(os.environ)
    # Without any, a shell would take its own default, which can hold ".".
    env["PATH"] = os.pathsep.join(absolute_entries(env.get("PATH", ""))) or _PATH
    if policy is EnvPolicy.INHERIT:
        return env
    return {
        name: value
        for name, value in env.items()
        if (name in CLEAN_NAMES or name.startswith("LC_"))
        and not re.search(_CREDENTIAL, name, re.IGNORECASE)
    }


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


def direct_start(command: str, cwd: str, env: Mapping[str, str]) -> Program | None:
    """How to run a command without bash; None where bash has something to do."""
    words = plain_words(command)
    if words is None or not _is_inherited_unchanged(cwd, env):
        return None
    argv = [word if isinstance(word, str) else word.known(env) or "" for word in words]
    program = _find_program(argv[0], env.get("PATH", ""))
    if program is None:
        return None
    return Program(program, argv)


def _is_inherited_unchanged(cwd: str, env: Mapping[str, str]) -> bool:
    """Whether bash would pass this environment on as it is, without a warning."""
    if env.get("PWD") != cwd or not _is_normal(cwd):
        return False
    if env.get("LC_ALL", "") not in _QUIET_LOCALES:
        return False  # bash warns about a locale that is not installed
    level = env.get("SHLVL", "0")
    if not re.fullmatch("0|[1-9][0-9]{0,2}", level) or int(level) > _MAX_SHELL_LEVEL:
        return False
    if "OLDPWD" in env and not os.path.isdir(env["OLDPWD"]):  # noqa: PTH112
        return False
    return not _has_special_variables(frozenset(env))


@lru_cache(maxsize=256)
def _has_special_variables(names: frozenset[str]) -> bool:
    special = any(name.startswith("BASH") for name in names)
    return special or not _SPECIAL_VARIABLES.isdisjoint(names)


@lru_cache(maxsize=256)
def _is_normal(path: str) -> bool:
    return path.startswith("/") and os.path.normpath(path) == path


def _find_program(word: str, path: str) -> str | None:
    """The file that bash would execute; None where it would not find one."""
    if "/" in word:
        return word
    if word in _BUILTINS or not re.fullmatch("[A-Za-z0-9_.][A-Za-z0-9_.+=-]*", word):
        return None
    for folder in path.split(":"):
        if not folder.startswith("/"):
            return None  # a place that depends on the working directory
        candidate = f"{folder}/{word}"
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):  # noqa: PTH113
            return candidate
    return None


@lru_cache(maxsize=4096)
def shell_argv(command: str, shell: str) -> tuple[str, ...]:
    """The arguments that run a command under its shell."""
    if os.path.basename(shell) in POSIX_SHELLS:  # noqa: PTH119 - plain text
        command = quote_folders(command)
    return (shell, "-c", command)


def hook_shell(hook: RegisteredHook, cwd: str) -> str:
    """The shell of a hook: never one that a project brings along.

    Only the hook of a project can name a file in that project; it is approved with it.
    """
    name = hook.config.shell
    if name is None:
        return default_shell(cwd)
    if "/" in name:
        return os.path.join(hook.project or cwd, name)  # noqa: PTH118
    # Where there is none, the attempt to start this one says so.
    return program_outside(name, cwd) or f"/usr/bin/{name}"


def default_shell(cwd: str) -> str:
    """``bash`` where there is one, else ``sh``."""
    return program_outside("bash", cwd) or _system_shell()


def _system_shell() -> str:
    known = ("/bin/bash", "/usr/bin/bash")
    return next((one for one in known if os.access(one, os.X_OK)), "/bin/sh")


def program_outside(name: str, cwd: str) -> str | None:
    """The program of this name on the ``PATH`` that no project brings along."""
    return _program_outside(name, cwd, os.environ.get("PATH", ""))


@lru_cache(maxsize=256)
def _program_outside(name: str, cwd: str, path: str) -> str | None:
    zones = find_workspace(cwd).zones
    for folder in absolute_entries(path) if "/" not in name else [""]:
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
    zones, own = find_workspace(cwd).zones, os.path.realpath(sys.prefix)

    def is_foreign(entry: str) -> bool:
        place = os.path.realpath(entry)
        return not is_within(place, own) and shipped_by(place, zones) is not None

    return os.pathsep.join(sorted(path.split(os.pathsep), key=is_foreign))


def absolute_entries(path: str) -> list[str]:
    """The entries of a ``PATH`` that are the same in every folder.

    An empty or relative one would run what an untrusted project calls ``ls``.
    """
    return [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117


class CommandExecutor(Executor):
    """Runs commands, so many at a time."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    async def run(self, hook: RegisteredHook, call: HookCall) -> RunEnd:
        """Run the command once; its timeout starts when it has a slot."""
        spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
        async with self._runtimes.here().slots:
            return await run_process(spec)


def command_spec(
    hook: RegisteredHook,
    call: HookCall,
    timeout_s: float,
    *,
    warm: bool = False,
    traced: bool = True,
) -> ProcessSpec:
    """How a hook's command is to be run, for one event or to be kept warm.

    ``traced``: the trace context is in its environment, if there is one.
    """
    assert hook.config.command is not None  # settings drop such a hook
    command, shell = hook.config.command, hook_shell(hook, call.cwd)
    env = worker_environment(hook, call) if warm else hook_environment(hook, call)
    if traced and not warm:
        env |= trace_environment(hook, call)
    cwd, direct = hook.project or call.cwd, None
    if hook.config.shell is None and shell.endswith("/bash"):
        direct = direct_start(command, cwd, env)
        if direct is not None:
            # As bash would leave them; if it is started after all, it sets its own.
            env = {"SHLVL": "0", **env, "_": direct.path}
    return ProcessSpec(
        argv=shell_argv(command, shell),
        direct=direct,
        cwd=cwd,
        env=env,
        stdin=call.payload,
        timeout_s=timeout_s,
        max_output_bytes=hook.options.max_output_bytes,
        on_start=call.on_start,
    )
