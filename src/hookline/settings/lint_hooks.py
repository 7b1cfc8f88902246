"""The findings of ``hookline check`` in one hook."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from hookline.errors import MissingExtraError, SettingsError
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.values import describe
from hookline.shell.commands import programs
from hookline.shell.files import command_files
from hookline.shell.parse import (
    POSIX_SHELLS,
    PROJECT_DIR_NAMES,
    ExecutedFile,
    executed_files,
    project_variables,
)
from hookline.shell.programs import NODES, PYTHON
from hookline.shell.scripts import script_problem
from hookline.shell.uses import Form, Role, modules_beside
from hookline.shell.variables import SHELL_VARIABLES, used_variables

from .fields import (
    HOOK_FIELDS,
    Report,
    Severity,
    is_number,
    is_text,
    parse_fields,
)
from .headers import (
    is_credential,
    looks_like_variable,
    names_problem,
    value_problem,
    variables,
)
from .model import (
    FOREIGN_DIALECTS,
    FOREIGN_PREFIXES,
    INVALID_URL,
    TRANSLATED_TYPES,
    Dialect,
    HookConfig,
    HookType,
    shown_url,
)
from .places import PROJECT_FOLDER

LOOKS_LIKE_SECONDS_BELOW = 100
EXPRESSIONS = frozenset({"if", "when", "then"})
"""The keys that hold expressions."""
_TYPES = frozenset(HookType)

_RISKY_NAMES = """
BASH_ENV ENV PATH CDPATH IFS PS4 SHELLOPTS BASHOPTS PROMPT_COMMAND ZDOTDIR FPATH HOME
NODE_OPTIONS NODE_PATH CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
GCONV_PATH MAKEFLAGS MAKEFILES AWKPATH AWKLIBPATH LESSOPEN LESSCLOSE TCLLIBPATH
EDITOR VISUAL PAGER PHPRC PHP_INI_SCAN_DIR SSL_CERT_FILE SSL_CERT_DIR
"""
_RISKY_PREFIXES = (
    *("LD_", "DYLD_", "PYTHON", "PERL", "RUBY", "GEM_", "BUNDLE_", "GIT_", "LUA_"),
    *("BASH_FUNC_", "npm_config_", "NPM_CONFIG_", "XDG_", "HOOKLINE_"),
)
_HARMLESS_NAMES = (
    *("PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED"),
    "PYTHONDONTWRITEBYTECODE",
)


def risky_variables(env: Iterable[str]) -> list[str]:
    """The variables that make a shell or an interpreter run or load something else."""
    return [
        name
        for name in env
        if name not in _HARMLESS_NAMES
        and (
            name in _RISKY_NAMES.split()
            or name.startswith(_RISKY_PREFIXES)
            or name.endswith("_PROJECT_DIR")
        )
    ]


def check_hook(
    hook: dict[str, Any],
    event: HookEventName,
    project_dir: Path | None,
    report: Report,
) -> None:
    """Report what looks wrong with one hook; files where the project is known."""
    _check_values(hook, project_dir, report)
    _check_effects(hook, report)
    _check_dialect(hook, report.at("dialect"))
    _check_start(hook, event, report)
    check_decisions(hook, event, project_dir, report)


def check_decisions(
    hook: dict[str, Any],
    event: HookEventName,
    project_dir: Path | None,
    report: Report,
) -> None:
    """Report what a hook could never decide by: expressions, policies, addresses."""
    if hook.get("type") == HookType.CEDAR:
        _check_policies(hook, project_dir, report)
    if hook.get("type") == HookType.HTTP:
        _check_http(hook, report)
    if not EXPRESSIONS.isdisjoint(hook):
        # Few settings have any, and the engine takes time to load.
        from .lint_expressions import check_expressions

        check_expressions(hook, event, report)


def _check_values(
    hook: dict[str, Any], project_dir: Path | None, report: Report
) -> None:
    _check_timeout(hook, report.at("timeout"))
    if hook.get("type") in (HookType.COMMAND, HookType.WORKER):
        _check_command(hook, project_dir, report)
    if hook.get("type") == HookType.PYTHON:
        _check_function(hook.get("function"), project_dir, report.at("function"))
    _check_env(hook.get("env"), report.at("env"))
    shell = hook.get("shell")
    if is_text(shell) and "/" in shell:
        _check_file(ExecutedFile(shell, is_program=True), None, report.at("shell"))
    names = hook.get("trustFiles")
    for index, name in enumerate(names if isinstance(names, list | tuple) else ()):
        if is_text(name):
            _check_trust_file(name, project_dir, report.at("trustFiles", index))


def _check_command(
    hook: dict[str, Any], project_dir: Path | None, report: Report
) -> None:
    command = hook.get("command")
    if not is_text(command):
        return
    project = None if project_dir is None else str(project_dir)
    for file in executed_files(command, project):
        _check_file(file, project_dir, report.at("command"))
    if project is not None:
        _check_pinning(hook, project, report)
    _check_variables(hook, report.at("command"))


def _check_function(function: Any, project_dir: Path | None, report: Report) -> None:
    if is_text(function) and project_dir is not None:
        from .lint_python import check_function  # few settings have any

        check_function(function, project_dir, report)


_ONLY_FOR: dict[str, tuple[str, ...]] = {
    "command": (HookType.COMMAND, HookType.WORKER, HookType.PLUGIN),
    "function": (HookType.PYTHON, HookType.PLUGIN),
    **dict.fromkeys(("when", "then"), (HookType.RULE,)),
    **dict.fromkeys(("policies", "entities", "schema", "principal"), (HookType.CEDAR,)),
    **dict.fromkeys(("url", "headers", "allowedEnv"), (HookType.HTTP,)),
    **dict.fromkeys(("shell", "envPolicy"), (HookType.COMMAND, HookType.WORKER)),
    "env": (HookType.COMMAND, HookType.WORKER, HookType.HTTP),  # has words of its own
    "expect": (HookType.COMMAND, HookType.WORKER, HookType.HTTP),
    "pool": (HookType.WORKER,),
}


def _check_dialect(hook: dict[str, Any], report: Report) -> None:
    kind, dialect = hook.get("type"), hook.get("dialect")
    if dialect == Dialect.OPA and kind != HookType.HTTP:
        message = "has no effect: only http hooks ask Open Policy Agent"
        report.add(message, Severity.WARNING)
    elif dialect in FOREIGN_DIALECTS and kind in _TYPES.difference(TRANSLATED_TYPES):
        message = f"has no effect on a {kind} hook: it sees Hookline's names"
        report.add(message, Severity.WARNING)


def _check_effects(hook: dict[str, Any], report: Report) -> None:
    """Warn about keys that a hook of this type does not have, and about async ones."""
    hook_type = hook.get("type")
    for key in hook:
        types = _ONLY_FOR.get(key, (hook_type,))
        if is_text(hook_type) and hook_type in _TYPES and hook_type not in types:
            message = f"has no effect on a {hook_type} hook"
            report.at(key).add(message, Severity.WARNING)
    closes = hook.get("onError") == "block" or (
        isinstance(hook.get("onError"), dict) and "block" in hook["onError"].values()
    )
    if hook.get("async") is True and closes:
        message = "has no effect: nobody waits for an async hook"
        report.at("onError").add(message, Severity.WARNING)


def _check_start(hook: dict[str, Any], event: HookEventName, report: Report) -> None:
    """Report a standby without effect, and what would profit from one."""
    kind, is_async = hook.get("type"), hook.get("async") is True
    if hook.get("standby"):
        if kind != HookType.COMMAND or is_async:
            why = "not waited for" if is_async else f"no command, but a {kind}"
            message = f"no effect: the hook is {why}"
            report.at("standby").add(message, Severity.WARNING)
        return
    command, traits = hook.get("command"), TRAITS[event]
    is_frequent = traits.matched_field == "tool_name" or traits.model_fields
    if kind != HookType.COMMAND or is_async or not is_frequent or not is_text(command):
        return
    if language := _slow_start(command):
        report.at("command").add(
            f"starts {language} for every {event}: "
            '"type": "worker" or "standby": 1 saves its start-up time',
            Severity.HINT,
        )


_LANGUAGES = {"Python": rf"{PYTHON}|.*\.py", "Node": r".*\.[cm]?[jt]s"}


def _slow_start(command: str) -> str | None:
    """The language of a program that takes long to start, if a command starts one."""
    known = re.sub(r"\$(?:HOOKLINE_PYTHON\b|\{HOOKLINE_PYTHON\})", "python3", command)
    for name in programs(known):
        if name in NODES:
            return "Node"
        for language, pattern in _LANGUAGES.items():
            if re.fullmatch(pattern, name):
                return language
    return None


_ALWAYS_SET = frozenset(
    {
        *(*PROJECT_DIR_NAMES, "HOOKLINE_CWD", "HOOKLINE_SESSION_ID"),
        *("HOOKLINE_EVENT", "HOOKLINE_PYTHON", "HOOKLINE_DEPTH", "HOOKLINE_RECHECK"),
        *("HOOKLINE_WORKER", "HOOKLINE_REPLAY"),
    }
)
_SET_BY_DIALECT: dict[Any, tuple[str, ...]] = {
    "claude": ("CLAUDECODE",),
    "gemini": ("GEMINI_SESSION_ID", "GEMINI_CWD"),
}


def _check_variables(hook: dict[str, Any], report: Report) -> None:
    """Warn about variables that nothing sets: the command gets an empty text."""
    shell, own = hook.get("shell"), hook.get("env")
    if is_text(shell) and Path(shell).name not in POSIX_SHELLS:
        return
    dialect = hook.get("dialect") if is_text(hook.get("dialect")) else None
    hidden: tuple[str, ...] = FOREIGN_PREFIXES.get(dialect or "", ())
    known = {*_ALWAYS_SET, *os.environ, *_SET_BY_DIALECT.get(dialect, ())}
    known = {name for name in known if not name.startswith(hidden)}
    known |= {*SHELL_VARIABLES, *(own if isinstance(own, dict) else ())}
    if dialect == Dialect.CLAUDE and HookEventName.SessionStart in report.path:
        known.add("CLAUDE_ENV_FILE")  # Claude Code sets it there
    for name in used_variables(hook["command"]):
        if name not in known:
            report.add(_unset(hook, name, hidden), Severity.WARNING)


def _unset(hook: dict[str, Any], name: str, hidden: tuple[str, ...]) -> str:
    whose = f"hook {describe(hook['name'])} " if is_text(hook.get("name")) else ""
    if hidden and name.startswith(hidden):
        why = f'hooks with "dialect": {describe(hook["dialect"])} do not see'
        return f'{whose}uses ${name}, which {why}: set it in "env" of the hook'
    known = {
        "CLAUDE_PLUGIN_ROOT": 'set it to the folder of the plugin in "env" of the hook',
        "CLAUDE_ENV_FILE": "Hookline has no such file, so take it out",
    }
    todo = known.get(name, 'set it in "env" of the hook')
    return f"{whose}uses ${name}, which nothing sets: {todo}"


def _check_policies(
    hook: dict[str, Any], project_dir: Path | None, report: Report
) -> None:
    # Most settings have no such hook and need not load the engine.
    from .policies import cedar_files, find_mistakes

    event = HookEventName(str(report.path[1]))
    if not TRAITS[event].can_block:
        message = f"{event} cannot be blocked: what the policies deny goes on"
        report.at("policies").add(message, Severity.WARNING)
    fields = parse_fields(hook, HOOK_FIELDS, Report())
    if "policies" not in fields:
        return  # the hook is dropped, and that is reported
    config = HookConfig(**{"name": "", **fields})
    folder = None if project_dir is None else str(project_dir)
    try:
        files = cedar_files(config, folder)
        keys = {file.path: file.key for file in files}
        for problem in find_mistakes(files):
            report.at(keys.get(problem.file or "", "policies")).add(str(problem))
    except MissingExtraError as error:
        message = f"{error}; until then the hook fails"
        report.at("type").add(message, of_machine=True)
    except SettingsError:
        return  # a relative path, which is reported with the other keys


def _check_http(hook: dict[str, Any], report: Report) -> None:
    if find_spec("httpx") is None:
        message = str(MissingExtraError("http", "httpx"))
        report.at("type").add(message, of_machine=True)
    if is_text(hook.get("url")):
        _check_url(hook["url"], report.at("url"))
        if "/v1/data/" in hook["url"] and hook.get("dialect") != Dialect.OPA:
            message = (
                'looks like Open Policy Agent, whose answers need "dialect": "opa"'
            )
            report.at("url").add(message, Severity.WARNING)
    if hook.get("env"):
        message = "has no effect on an http hook: headers use the host's variables"
        report.at("env").add(message, Severity.WARNING)
    given, headers = hook.get("allowedEnv"), hook.get("headers")
    allowed = [name for name in given if is_text(name)] if _is_list(given) else []
    sent = headers.items() if isinstance(headers, dict) else ()
    texts = {name: value for name, value in sent if isinstance(value, str)}
    if problem := names_problem(filter(is_text, texts)):
        report.at("headers", problem[0]).add(problem[1])
    for name, value in texts.items():
        _check_header(name, value, allowed, report.at("headers", name))
    named = {name for value in texts.values() for name in variables(value)}
    for name in dict.fromkeys(allowed):
        if name not in named:
            message = f"no header names {describe(name)}: remove it"
            report.at("allowedEnv").add(message, Severity.WARNING)


def _is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _check_header(name: str, value: str, allowed: list[str], report: Report) -> None:
    if problem := value_problem(value):
        report.add(problem)
    for variable in variables(value):
        if variable not in allowed:
            report.add(f"names {describe(variable)}, which is not in allowedEnv")
        elif not os.environ.get(variable, "").strip():
            message = f"names {describe(variable)}, which is not set here: export it"
            report.add(message, Severity.WARNING)
    if looks_like_variable(value):
        report.add("is sent as written: a variable is '${NAME}'", Severity.WARNING)
    elif is_credential(name) and value.strip() and not variables(value):
        message = "holds a credential: name a variable, '${NAME}', and list it in "
        report.add(f"{message}allowedEnv", Severity.WARNING)


def _check_url(url: str, report: Report) -> None:
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(url)
        valid = shown_url(url) != INVALID_URL and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        report.add("invalid: expected http:// or https://, a host, a port and a path")
        return
    if "${" in url:
        report.add("is sent as written: variables are replaced in headers only")
    keys = [key for key, value in parse_qsl(parts.query) if value]
    if parts.password or any(map(is_credential, keys)):
        message = "holds a credential: send it in a header, from a variable"
        report.add(message, Severity.WARNING)
    if parts.scheme == "http" and not _is_local(parts.hostname or ""):
        message = "is not encrypted: others can read the events and answer them"
        report.add(f"{message}: use https", Severity.WARNING)


def _is_local(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False  # a name, such as 127.0.0.1.example.com


def _check_env(env: Any, report: Report) -> None:
    for name in risky_variables(env if isinstance(env, dict) else ()):
        message = "changes which programs or files the command uses"
        report.at(name).add(message, Severity.WARNING)


def _check_pinning(hook: dict[str, Any], project: str, report: Report) -> None:
    """Warn about code that an approval cannot pin, unless ``trustFiles`` is used."""
    names = hook.get("trustFiles")
    given = names if isinstance(names, list | tuple) else ()
    if any(is_text(name) and not name.startswith("!") for name in given):
        return
    env, shell = hook.get("env"), hook.get("shell")
    given_env = env.items() if isinstance(env, dict) else ()
    own = {name: value for name, value in given_env if is_text(value)}
    variables = {**project_variables(project), "HOOKLINE_PYTHON": "python3", **own}
    shell = shell if is_text(shell) else None
    for use in command_files(hook["command"], project, variables, shell, own):
        if use.why:
            message = f"{use.path[:500]!r} cannot be pinned by trust: {use.why}"
            report.at("command").add(message, Severity.WARNING)
        elif use.role is Role.CODE and use.form is Form.PYTHON:
            _check_imports(use.path, project, report.at("command"))


def _check_imports(script: str, project: str, report: Report) -> None:
    inside = script.startswith(f"{project}/{PROJECT_FOLDER}/")
    module = next(modules_beside(script), None)
    if inside or module is None or not script.startswith(f"{project}/"):
        return
    shown, beside = (os.path.relpath(path, project) for path in (script, module))
    report.add(
        f"{describe(shown)} can import the modules beside it, such as "
        f"{describe(beside)}, and those it does not name are not pinned by trust: "
        f"move them into {PROJECT_FOLDER}, or list them in trustFiles",
        Severity.WARNING,
    )


def _check_trust_file(name: str, project_dir: Path | None, report: Report) -> None:
    if name.startswith("!"):
        if f"/{PROJECT_FOLDER}/" in f"/{name[1:].removeprefix('./')}/":
            message = f"{describe(name)} has no effect: everything in {PROJECT_FOLDER} "
            report.add(f"{message}is pinned", Severity.WARNING)
        return
    path = Path(name) if project_dir is None else project_dir / name
    certain = path.is_absolute() and "$" not in name and not name.startswith("~")
    if certain and not os.path.exists(path):  # noqa: PTH110 - odd names are no error
        report.add(f"{describe(name)} does not exist")


def _check_timeout(hook: dict[str, Any], report: Report) -> None:
    timeout = hook.get("timeout")
    if not is_number(timeout) or not 0 < timeout < LOOKS_LIKE_SECONDS_BELOW:
        return
    # A function in this process can be that fast; starting a process takes longer.
    is_function = hook.get("type") == HookType.PYTHON
    report.add(
        f"{describe(timeout)} looks like seconds: it is in milliseconds, "
        f"for {describe(timeout)} s write {describe(int(timeout * 1000))}",
        Severity.WARNING if is_function else Severity.ERROR,
    )


def _check_file(file: ExecutedFile, project_dir: Path | None, report: Report) -> None:
    if project_dir is None and not Path(file.path).is_absolute():
        return  # it depends on the project
    if problem := script_problem(file, str(project_dir or "/")):
        report.add(problem)
