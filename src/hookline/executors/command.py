"""Command hooks: a process for each event (PROTOCOL section 4)."""

from __future__ import annotations

import os
import re
import string
import sys
from collections.abc import Mapping
from functools import lru_cache

from hookline.executors.contract import DEPTH_VARIABLE, RegisteredHook
from hookline.processes.process import ProcessOutcome, ProcessSlots, run_process
from hookline.processes.spawn import DirectStart, ProcessSpec
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import EnvPolicy

from .contract import HookCall
from .exit_table import RunEnd, as_text, failed_result, read_end

PROJECT_DIR_NAMES = tuple(
    f"{brand}_PROJECT_DIR" for brand in ("HOOKLINE", "LLXPRT", "GEMINI", "CLAUDE")
)

CLEAN_NAMES = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR"),
        *("TZ", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
        *("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOOKLINE_REPLAY"),
    }
)
"""What passes under ``"envPolicy": "clean"``, beside ``LC_*`` and the hook's own."""

_CREDENTIAL = (
    r"key|token|secret|pass|pwd|credential|auth|cookie|session|private|bearer|jwt"
)


def hook_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The host's environment by policy, Hookline's variables, then the hook's own."""
    env = _host.by(hook.options.env_policy)
    for name in PROJECT_DIR_NAMES:
        env[name] = call.cwd
    env["PWD"] = call.cwd
    env["HOOKLINE_PYTHON"] = sys.executable
    if hook.approval is not None:
        # A cached module beside a trusted one would count as a change of the folder.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    env |= request_environment(hook, call)
    return env


def worker_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The same for a process kept warm: what an event brings comes with each request.

    A hook's own variable of the same name still counts, as it does for a command.
    """
    env = hook_environment(hook, call)
    for name in event_environment(call).keys() - hook.config.env.keys():
        del env[name]
    env["HOOKLINE_WORKER"] = "1"
    return env


def request_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """What an event brings, and the hook's own."""
    env = event_environment(call) | hook.config.env
    # Last: no hook talks itself out of how deep it runs.
    env[DEPTH_VARIABLE] = str(call.depth + 1)
    return env


def event_environment(call: HookCall) -> dict[str, str]:
    """What changes from one event to the next."""
    return {
        "HOOKLINE_SESSION_ID": call.session_id,
        "HOOKLINE_EVENT": call.event.value,
        DEPTH_VARIABLE: str(call.depth + 1),
    }


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
        return kept.copy()


_host = _HostEnvironment()


def _inherited(policy: EnvPolicy) -> dict[str, str]:
    if policy is EnvPolicy.INHERIT:
        return dict(os.environ)
    return {
        name: value
        for name, value in os.environ.items()
        if (name in CLEAN_NAMES or name.startswith("LC_"))
        and not re.search(_CREDENTIAL, name, re.IGNORECASE)
    }


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


_PROJECT_DIR = (
    r"\$(?:\{(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR\}"
    r"|(?:HOOKLINE|LLXPRT|GEMINI|CLAUDE)_PROJECT_DIR(?![A-Za-z0-9_]))"
)
_HEREDOC = r"<<-?\s*(?:\"(\w+)\"|'(\w+)'|\\?(\w+))"
_POSIX_SHELLS = ("bash", "sh", "dash", "ksh", "zsh", "ash")


@lru_cache(maxsize=4096)
def shell_argv(command: str, shell: str | None = None) -> tuple[str, ...]:
    """The words that run a command under its shell."""
    program = shell or default_shell()
    if os.path.basename(program) in _POSIX_SHELLS:  # noqa: PTH119 - plain text
        command = quote_project_dirs(command)
    return (program, "-c", command)


@lru_cache(maxsize=1)
def default_shell() -> str:
    """``bash`` where there is one, else ``sh``."""
    for folder in os.get_exec_path():
        candidate = f"{folder}/bash"
        if os.access(candidate, os.X_OK):
            return candidate
    return "/bin/sh"


@lru_cache(maxsize=1)
def default_shell_is_bash() -> bool:
    """Whether commands run under bash, unless they name another shell."""
    return default_shell().endswith("/bash")


def quote_project_dirs(command: str) -> str:
    """Put double quotes around each project directory that stands unquoted."""
    if "_PROJECT_DIR" not in command:
        return command
    return _Quoter(command).result()


class _Quoter:
    """Walks over shell text and knows which quotes it is in."""

    def __init__(self, command: str) -> None:
        self._text = command
        self._at = 0
        self._out: list[str] = []
        self._nesting: list[str] = []
        self._heredocs: list[str] = []

    def result(self) -> str:
        while self._at < len(self._text):
            self._step()
        return "".join(self._out)

    @property
    def _inside(self) -> str:
        return self._nesting[-1] if self._nesting else ""

    def _step(self) -> None:
        char = self._text[self._at]
        if char == "\\":
            self._copy(2)
        elif char == "$":
            self._dollar()
        elif char == '"':
            self._toggle('"')
        elif char == "`":
            self._toggle("`")
        elif self._inside == '"':
            self._copy(1)
        else:
            self._unquoted(char)

    def _unquoted(self, char: str) -> None:
        if char == "'":
            self._copy_through("'", self._at + 1)
        elif char == "#" and self._starts_word():
            self._copy_comment()
        elif char == "\n":
            self._copy(1)
            self._copy_heredocs()
        elif char == "<" and (found := self._match(_HEREDOC)):
            self._heredocs.append(next(word for word in found.groups() if word))
            self._copy(len(found.group()))
        elif char == "<" and self._text.startswith("<<<", self._at):
            self._copy(3)
        else:
            self._parenthesis(char)

    def _parenthesis(self, char: str) -> None:
        if char == "(":
            self._nesting.append("(")
        elif char == ")" and self._inside == "(":
            self._nesting.pop()
        self._copy(1)

    def _dollar(self) -> None:
        found = self._match(_PROJECT_DIR)
        if found:
            quoted = found.group() if self._inside == '"' else f'"{found.group()}"'
            self._out.append(quoted)
            self._at = found.end()
        elif self._text.startswith("$(", self._at):
            self._nesting.append("(")
            self._copy(2)
        elif self._text.startswith("$'", self._at) and self._inside != '"':
            self._copy_ansi_quoted()
        else:
            self._copy(1)

    def _match(self, expression: str) -> re.Match[str] | None:
        # Compiled on first use, and kept by re: most commands need none of it.
        return re.compile(expression).match(self._text, self._at)

    def _toggle(self, mark: str) -> None:
        if self._inside == mark:
            self._nesting.pop()
        else:
            self._nesting.append(mark)
        self._copy(1)

    def _starts_word(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in " \t\n;&|("

    def _copy(self, count: int) -> None:
        self._out.append(self._text[self._at : self._at + count])
        self._at += count

    def _copy_through(self, mark: str, start: int) -> None:
        end = self._text.find(mark, start)
        self._copy((len(self._text) if end < 0 else end + 1) - self._at)

    def _copy_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._copy((len(self._text) if end < 0 else end) - self._at)

    def _copy_ansi_quoted(self) -> None:
        end = self._at + 2
        while end < len(self._text) and self._text[end] != "'":
            end += 2 if self._text[end] == "\\" else 1
        self._copy(end + 1 - self._at)

    def _copy_heredocs(self) -> None:
        for word in self._heredocs:
            closing = re.compile(rf"^\t*{re.escape(word)}$", re.MULTILINE)
            found = closing.search(self._text, self._at)
            end = len(self._text) if found is None else found.end()
            self._copy(end - self._at)
        self._heredocs = []


class CommandExecutor:
    """Runs commands, so many at a time."""

    def __init__(self, slots: ProcessSlots) -> None:
        self._slots = slots

    async def run(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Run the command once; waiting for a slot does not eat its timeout."""
        spec = command_spec(hook, call, hook.config.timeout_ms / 1000)
        await self._slots.acquire()
        try:
            outcome = await run_process(spec)
        finally:
            self._slots.release()
        return read_outcome(hook, outcome)

    async def close(self) -> None:
        """Nothing is kept between events."""


def command_spec(
    hook: RegisteredHook, call: HookCall, timeout_s: float, *, warm: bool = False
) -> ProcessSpec:
    """How a hook's command is to be run, for one event or to be kept warm."""
    assert hook.config.command is not None  # settings drop such a hook
    command, shell, cwd = hook.config.command, hook.config.shell, call.cwd
    env = worker_environment(hook, call) if warm else hook_environment(hook, call)
    direct = None
    if shell is None and default_shell_is_bash():
        direct = direct_start(command, cwd, env)
    return ProcessSpec(
        argv=shell_argv(command, shell),
        direct=direct,
        cwd=cwd,
        env=env,
        stdin=call.payload,
        timeout_s=timeout_s,
        max_output_bytes=hook.options.max_output_bytes,
    )


def read_outcome(
    hook: RegisteredHook, outcome: ProcessOutcome, *, reran: bool = False
) -> HookExecutionResult:
    """Read the end of a process by the table."""
    end = RunEnd(
        exit_code=outcome.exit_code,
        stdout=as_text(outcome.stdout),
        stderr=as_text(outcome.stderr),
        stdout_truncated=outcome.stdout_truncated,
        truncated=outcome.stdout_truncated or outcome.stderr_truncated,
        duration=outcome.duration_ms,
        reran=reran,
    )
    if outcome.spawn_error is not None:
        return failed_result(hook, end, FailureCause.SPAWN, outcome.spawn_error)
    if outcome.timed_out:
        return timed_out_result(hook, end)
    return read_end(hook, end)


def timed_out_result(hook: RegisteredHook, end: RunEnd) -> HookExecutionResult:
    """A run that was ended at its deadline."""
    error = f"timed out after {hook.config.timeout_ms:g} ms"
    return failed_result(hook, end, FailureCause.TIMEOUT, error)
