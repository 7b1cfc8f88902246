"""What ``hookline check`` finds in settings files, beyond what parsing them reports.

Nothing is imported or run: people check projects that they do not trust.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, structs

from hookline.errors import MissingExtraError, SettingsError, nearest
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import EVENT_FIELDS
from hookline.protocol.outputs import read_output
from hookline.protocol.values import describe
from hookline.rules.failure import FAILURE_CONDITIONS
from hookline.rules.program import (
    EVENT,
    EngineMissingError,
    ExpressionError,
    Uses,
    compile_expression,
)
from hookline.rules.template import expressions_in
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

from . import headers
from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
    Field,
    KeyPath,
    Problem,
    Report,
    Severity,
    path_text,
)
from .matcher_check import check_matcher
from .model import (
    FOREIGN_DIALECTS,
    FOREIGN_PREFIXES,
    INVALID_URL,
    TRANSLATED_TYPES,
    Dialect,
    HookConfig,
    HookSource,
    HookType,
    OnFailure,
    shown_url,
)
from .parse import key_hint, parse_hook, parse_layer
from .places import PROJECT_FOLDER, SettingsPlaces, module_folders
from .policies import cedar_files, find_mistakes
from .read import parse_text, read_text, scan_json, scan_toml

_LOOKS_LIKE_SECONDS_BELOW = 100
_MAX_MODULE_BYTES = 1024 * 1024
_SHELL_TYPES = (HookType.COMMAND, HookType.WORKER)
_ONLY_FOR: dict[str, tuple[HookType, ...]] = {
    "command": (*_SHELL_TYPES, HookType.PLUGIN),
    "function": (HookType.PYTHON, HookType.PLUGIN),
    **dict.fromkeys(("when", "then"), (HookType.RULE,)),
    **dict.fromkeys(("policies", "entities", "schema", "principal"), (HookType.CEDAR,)),
    **dict.fromkeys(("url", "headers", "allowedEnv"), (HookType.HTTP,)),
    **dict.fromkeys(("shell", "envPolicy"), _SHELL_TYPES),
    "env": (*_SHELL_TYPES, HookType.HTTP),  # has words of its own
    "expect": (*_SHELL_TYPES, HookType.HTTP),
    "pool": (HookType.WORKER,),
}


class Finding(Struct, frozen=True, kw_only=True):
    """One problem in one file."""

    file: str
    line: int | None = None
    column: int | None = None
    severity: Severity
    where: str = ""
    message: str
    rule: str = "coding-agent"
    """What it is about: a key of the settings, or a general rule."""

    @property
    def text(self) -> str:
        """Where in the file, and the message."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        # Where a field is named, the line is enough to find it.
        is_named = self.column is None or self.where
        column = "" if is_named else f" (column {self.column})"
        return f"{self.file}{line}: {self.severity}: {self.text}{column}"


class Checked(Struct, frozen=True):
    """The files that were checked, and what was found."""

    files: tuple[str, ...]
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def check_file(
    file: Path, project_dir: Path | None = None, *, is_system: bool = False
) -> Checked:
    """Check one file, by where it is, or as a file of the system."""
    folder = file.absolute().parent
    places = SettingsPlaces().folders()
    sources = [place.source for place in places if Path(place.folder) == folder]
    is_project = folder.name == PROJECT_FOLDER
    source = HookSource.PROJECT if is_project else HookSource.EXPLICIT
    if is_system:
        sources, project_dir = [HookSource.SYSTEM], None
    elif project_dir is None and not sources:
        project_dir = folder.parent if is_project else Path.cwd()
    project = None if project_dir is None else str(project_dir.absolute())
    findings = _findings(file, sources[0] if sources else source, project)
    return Checked((str(file),), tuple(findings))


def check_places(places: SettingsPlaces) -> Checked:
    """Check the files of all places."""
    files: list[str] = []
    findings: list[Finding] = []
    for place in places.folders(places.workspace()):
        for stem in place.stems:
            try:
                file = place.find(stem)
            except SettingsError as error:
                files.append(error.file or place.folder)
                findings.append(_unusable(error, place.folder))
                continue
            if file is not None:
                files.append(file)
                # User and system settings belong to no project that has files.
                findings += _findings(Path(file), place.source, place.project)
    return Checked(tuple(files), tuple(findings))


def _findings(file: Path, source: HookSource, project: str | None) -> list[Finding]:
    try:
        text = read_text(file)
        raw = parse_text(text, file)
    except SettingsError as error:
        return [_unusable(error, str(file))]
    positions = scan_toml(text) if file.suffix == ".toml" else scan_json(text)
    report = Report()
    parse_layer(raw, source, str(file), report=report)
    lint(raw, project, report)
    for path in positions.repeated:
        report.at(*path).add("repeated key: only its last value counts")
    errors = {
        (problem.path, problem.message)
        for problem in report.problems
        if problem.severity is Severity.ERROR
    }
    findings = [
        Finding(
            file=str(file),
            line=positions.line_of(problem.path),
            column=positions.column_of(problem.path),
            severity=problem.severity,
            where=path_text(problem.path),
            message=problem.message,
            rule=_rule_of(problem.path),
        )
        for problem in report.problems
        # What loading only warns of may be an error here.
        if problem.severity is Severity.ERROR
        or (problem.path, problem.message) not in errors
    ]
    return sorted(findings, key=lambda finding: finding.line or 0)


def _unusable(error: SettingsError, file: str) -> Finding:
    return Finding(
        file=error.file or file,
        line=error.line,
        column=error.column,
        severity=Severity.ERROR,
        message=error.problem,
        rule="unusable-file",
    )


def _rule_of(path: KeyPath) -> str:
    level, fields = "settings", ROOT_FIELDS
    match path:
        case ("hooksConfig", str() as key, *_):
            level, fields = "config", OPTION_FIELDS
        case ("hooks", _, int(), "hooks", int(), str() as key, *_):
            level, fields = "hook", HOOK_FIELDS
        case ("hooks", _, int(), str() as key, *_):
            level, fields = "group", GROUP_FIELDS
        case ("hooks", str() as event) if event not in list(HookEventName):
            return "unknown-event"
        case ("hooks", *_) | ():
            return "hooks"
        case (key, *_):
            pass
    return f"{level}-{key}" if key in fields else "unknown-key"


def lint(raw: Mapping[str, Any], project: str | None, report: Report) -> None:
    """Report what looks wrong; files are only checked where the project is known."""
    _check_keys(raw, ROOT_FIELDS, report)
    options = raw.get("hooksConfig")
    if isinstance(options, dict):
        _check_keys(options, OPTION_FIELDS, report.at("hooksConfig"))
        if options.get("telemetry") and not _is_installed("opentelemetry.trace"):
            missing = MissingExtraError("otel", "opentelemetry-api")
            telemetry = report.at("hooksConfig", "telemetry")
            telemetry.add(f"ignored: {missing}", Severity.WARNING)
    for event, group, there in _groups(raw, report):
        _check_keys(group, GROUP_FIELDS, there)
        for raw_hook, at_hook in _objects(group.get("hooks"), there.at("hooks")):
            _check_keys(raw_hook, HOOK_FIELDS, at_hook)
            if hook := _parsed(raw_hook, event, project, at_hook):
                _check_hook(hook)
                _check_decisions(hook)


def undecidable(raw: Mapping[str, Any], folder: str | None) -> list[Problem]:
    """What in settings could never decide anything, on whatever machine.

    ``folder`` is where relative paths of policies start.
    """
    report = Report()
    for event, group, there in _groups(raw, report):
        for raw_hook, at_hook in _objects(group.get("hooks"), there.at("hooks")):
            if hook := _parsed(raw_hook, event, folder, at_hook):
                _check_decisions(hook)
    errors = (one for one in report.problems if one.severity is Severity.ERROR)
    return [problem for problem in errors if not problem.of_machine]


def _groups(
    raw: Mapping[str, Any], report: Report
) -> Iterator[tuple[HookEventName, dict[str, Any], Report]]:
    """The groups of hooks, each with a report; their matchers are checked."""
    events = raw.get("hooks")
    groups_of = events if isinstance(events, dict) else {}
    for event in HookEventName:
        for group, there in _objects(groups_of.get(event), report.at("hooks", event)):
            hooks = [hook for hook, _ in _objects(group.get("hooks"), there)]
            for dialect in dict.fromkeys(map(_dialect, hooks)) or (None,):
                check_matcher(event, group.get("matcher"), dialect, there.at("matcher"))
            yield event, group, there


def _objects(value: object, report: Report) -> Iterator[tuple[dict[str, Any], Report]]:
    for index, item in enumerate(value if isinstance(value, list | tuple) else ()):
        if isinstance(item, dict):
            yield item, report.at(index)


def _dialect(hook: dict[str, Any]) -> str | None:
    """The dialect whose names a hook's matcher is compared with; None for ours."""
    dialect, kind = hook.get("dialect"), hook.get("type")
    is_foreign = dialect in list(FOREIGN_DIALECTS) and kind in list(TRANSLATED_TYPES)
    return dialect if is_foreign else None


class _Hook(Struct, frozen=True):
    """One hook, and where to report on it."""

    raw: dict[str, Any]
    config: HookConfig
    event: HookEventName
    folder: str | None
    """Its project, or where relative paths of policies start."""
    report: Report

    def warn(self, key: str, message: str) -> None:
        """Report what has no effect, or another one than its author thinks."""
        self.report.at(key).add(message, Severity.WARNING)


def _parsed(
    raw: dict[str, Any], event: HookEventName, folder: str | None, report: Report
) -> _Hook | None:
    config = parse_hook(raw, HookSource.PROJECT, Report())
    if config is not None:
        return _Hook(raw, config, event, folder, report)
    url = raw.get("url")
    if raw.get("type") == HookType.HTTP and isinstance(url, str) and url.strip():
        _check_url(url, report.at("url"))
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def _check_keys(
    raw: Mapping[str, Any], fields: Mapping[str, Field], report: Report
) -> None:
    for key, value in raw.items():
        field = fields.get(key)
        if field is None:
            hint = key_hint(key, fields) or f"one of {', '.join(fields)}"
            report.at(key).add(f"unknown key {describe(key)}: {hint}")
        elif field.type.fields and isinstance(value, dict):
            _check_keys(value, field.type.fields, report.at(key))


def _check_hook(hook: _Hook) -> None:
    """Report what looks wrong with one hook; files where the project is known."""
    config, kind = hook.config, hook.config.type
    if config.timeout_ms < _LOOKS_LIKE_SECONDS_BELOW:
        seconds = describe(config.timeout_ms)
        # A function in this process can be that fast; starting a process takes longer.
        is_function = kind is HookType.PYTHON
        hook.report.at("timeout").add(
            f"{seconds} looks like seconds: it is in milliseconds, "
            f"for {seconds} s write {describe(int(config.timeout_ms * 1000))}",
            Severity.WARNING if is_function else Severity.ERROR,
        )
    if kind in _SHELL_TYPES and config.command is not None:
        _check_command(hook, config.command)
    if kind is HookType.PYTHON and config.function and hook.folder:
        _check_function(config.function, hook.folder, hook.report.at("function"))
    for name in risky_variables(config.env):
        message = "changes which programs or files the command uses"
        hook.report.at("env", name).add(message, Severity.WARNING)
    if config.shell is not None and config.shell.startswith("/"):
        shell = ExecutedFile(config.shell, is_program=True)
        if problem := script_problem(shell, "/"):
            hook.report.at("shell").add(problem)
    if config.trust_files:
        _check_trust_files(hook, hook.raw["trustFiles"])
    for key in hook.raw:
        if kind not in _ONLY_FOR.get(key, (kind,)):
            hook.warn(key, f"has no effect on a {kind} hook")
    if config.is_async and OnFailure.BLOCK in structs.astuple(config.on_error):
        hook.warn("onError", "has no effect: nobody waits for an async hook")
    if config.dialect is Dialect.OPA and kind is not HookType.HTTP:
        message = "has no effect: only http hooks ask Open Policy Agent"
        hook.warn("dialect", message)
    elif config.dialect in FOREIGN_DIALECTS and not config.is_foreign:
        message = f"has no effect on a {kind} hook: it sees Hookline's names"
        hook.warn("dialect", message)
    if config.standby and (kind is not HookType.COMMAND or config.is_async):
        why = "not waited for" if config.is_async else f"no command, but a {kind}"
        hook.warn("standby", f"no effect: the hook is {why}")


def _check_trust_files(hook: _Hook, names: Iterable[object]) -> None:
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in hook.config.trust_files:
            continue
        path = os.path.join(hook.folder or "", name)  # noqa: PTH118 - a string
        is_certain = path.startswith("/") and "$" not in name
        report = hook.report.at("trustFiles", index)
        if name.startswith("!"):
            if f"/{PROJECT_FOLDER}/" in f"/{name[1:].removeprefix('./')}/":
                message = f"has no effect: everything in {PROJECT_FOLDER} is pinned"
                report.add(f"{describe(name)} {message}", Severity.WARNING)
        elif is_certain and name[0] != "~" and not os.path.exists(path):  # noqa: PTH110
            report.add(f"{describe(name)} does not exist")


_ALWAYS_SET = frozenset(
    {
        *(*PROJECT_DIR_NAMES, "HOOKLINE_CWD", "HOOKLINE_SESSION_ID"),
        *("HOOKLINE_EVENT", "HOOKLINE_PYTHON", "HOOKLINE_DEPTH", "HOOKLINE_RECHECK"),
        *("HOOKLINE_WORKER", "HOOKLINE_REPLAY"),
    }
)
_SET_BY_DIALECT: dict[Dialect, tuple[str, ...]] = {
    Dialect.CLAUDE: ("CLAUDECODE",),
    Dialect.GEMINI: ("GEMINI_SESSION_ID", "GEMINI_CWD"),
}
_ADVICE = {
    "CLAUDE_PLUGIN_ROOT": 'set it to the folder of the plugin in "env" of the hook',
    "CLAUDE_ENV_FILE": "Hookline has no such file, so take it out",
}
_PYTHON_VARIABLE = r"\$(?:HOOKLINE_PYTHON\b|\{HOOKLINE_PYTHON\})"
_SLOW_TO_START = {
    "Node": rf"{'|'.join(NODES)}|.*\.[cm]?[jt]s",
    "Python": rf"{PYTHON}|.*\.py",
}


def _check_command(hook: _Hook, command: str) -> None:
    config, project = hook.config, hook.folder
    for file in executed_files(command, project):
        if project is None and not file.path.startswith("/"):
            continue  # it depends on the project
        if problem := script_problem(file, project or "/"):
            hook.report.at("command").add(problem)
    is_listed = any(not name.startswith("!") for name in config.trust_files)
    if project is not None and not is_listed:
        _check_pinning(hook, command, project)

    # A variable that nothing sets is an empty text for the command.
    if config.shell is None or Path(config.shell).name in POSIX_SHELLS:
        hidden = FOREIGN_PREFIXES.get(config.dialect, ())
        usual = {*_ALWAYS_SET, *os.environ, *_SET_BY_DIALECT.get(config.dialect, ())}
        names = {name for name in usual if not name.startswith(hidden)}
        names |= {*SHELL_VARIABLES, *config.env}
        if (config.dialect, hook.event) == (Dialect.CLAUDE, HookEventName.SessionStart):
            names.add("CLAUDE_ENV_FILE")  # Claude Code sets it there
        is_named = config.name == hook.raw.get("name")
        title = f"hook {describe(config.name)} uses" if is_named else "uses"
        for name in used_variables(command):
            todo = 'set it in "env" of the hook'
            why = f"nothing sets: {_ADVICE.get(name, todo)}"
            if name.startswith(hidden):
                dialect = f'"dialect": {describe(hook.raw["dialect"])}'
                why = f"hooks with {dialect} do not see: {todo}"
            if name not in names:
                hook.warn("command", f"{title} ${name}, which {why}")

    traits = TRAITS[hook.event]
    is_frequent = traits.matched_field == "tool_name" or traits.model_fields
    is_cold = config.type is HookType.COMMAND and not config.standby
    if is_frequent and is_cold and not config.is_async:
        languages = [
            language
            for name in programs(re.sub(_PYTHON_VARIABLE, "python3", command))
            for language, pattern in _SLOW_TO_START.items()
            if re.fullmatch(pattern, name)
        ]
        if languages:
            hook.report.at("command").add(
                f"starts {languages[0]} for every {hook.event}: "
                '"type": "worker" or "standby": 1 saves its start-up time',
                Severity.HINT,
            )


def _check_pinning(hook: _Hook, command: str, project: str) -> None:
    """Warn about code that an approval cannot pin."""
    env = hook.config.env
    known = {**project_variables(project), "HOOKLINE_PYTHON": "python3", **env}
    for use in command_files(command, project, known, hook.config.shell, env):
        if use.why:
            message = f"{use.path[:500]!r} cannot be pinned by trust: {use.why}"
            hook.warn("command", message)
            continue
        is_python = use.role is Role.CODE and use.form is Form.PYTHON
        is_pinned = use.path.startswith(f"{project}/{PROJECT_FOLDER}/")
        module = next(modules_beside(use.path), None) if is_python else None
        if module and use.path.startswith(f"{project}/") and not is_pinned:
            paths = (use.path, module)
            script, other = (describe(os.path.relpath(p, project)) for p in paths)
            hook.warn(
                "command",
                f"{script} can import the modules beside it, such as {other}, and "
                "those it does not name are not pinned by trust: move them into "
                f"{PROJECT_FOLDER}, or list them in trustFiles",
            )


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
_HARMLESS_NAMES = """
PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PYTHONDONTWRITEBYTECODE
"""


def risky_variables(env: Iterable[str]) -> list[str]:
    """The variables that make a shell or an interpreter run or load something else."""
    return [
        name
        for name in env
        if name in _RISKY_NAMES.split()
        or name.endswith("_PROJECT_DIR")
        or (name.startswith(_RISKY_PREFIXES) and name not in _HARMLESS_NAMES.split())
    ]


def _check_function(function: str, project: str, report: Report) -> None:
    """Report a function that its module in the project does not have.

    A module that is not in the project may be installed where the agent runs.
    """
    module, _, name = function.partition(":")
    stems = [f"{one}/{module.replace('.', '/')}" for one in module_folders(project)]
    files = [f"{stem}{end}" for stem in stems for end in ("/__init__.py", ".py")]
    file = next(filter(os.path.isfile, files), None)
    if file is None:
        return
    shown = os.path.relpath(file, project)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - a string
            text = opened.read(_MAX_MODULE_BYTES).decode(errors="replace")
        ast.parse(text)
    except SyntaxError as error:
        report.add(f"{shown}, line {error.lineno}: {error.msg}")
        return
    except (OSError, ValueError, RecursionError, MemoryError):
        return  # loading it will say more
    words = set(re.findall(r"\w+", text))
    if "import *" in text or not words.isdisjoint({name.split(".")[0], "__getattr__"}):
        return
    near = nearest(name, words)
    hint = f": did you mean {near!r}?" if near else ""
    message = f"{shown} has no function {describe(name)}{hint}"
    report.add(message, Severity.WARNING)


def _check_decisions(hook: _Hook) -> None:
    """Report what a hook could never decide by: expressions, policies, addresses."""
    config, report = hook.config, hook.report
    if config.type is HookType.CEDAR:
        _check_policies(hook)
    if config.type is HookType.HTTP:
        _check_http(hook)
    if config.condition is not None and config.condition not in FAILURE_CONDITIONS:
        _check_expression(config.condition, hook.event, report.at("if"))
    if config.type is HookType.RULE:
        _check_expression(config.when or "", hook.event, report.at("when"))
        for path, text in _texts(config.then or {}, ("then",)):
            for _, source in expressions_in(text):
                inside = report.at(*path)
                _check_expression(source.strip(), hook.event, inside, source)
        output, problems = read_output(_literal(config.then or {}), hook.event)
        if output.unreadable is not None:
            report.at("then").add(output.unreadable)
        for problem in problems:
            hook.warn("then", problem)


def _check_policies(hook: _Hook) -> None:
    if not TRAITS[hook.event].can_block:
        message = f"{hook.event} cannot be blocked: what the policies deny goes on"
        hook.warn("policies", message)
    try:
        files = cedar_files(hook.config, hook.folder)
        keys = {file.path: file.key for file in files}
        for problem in find_mistakes(files):
            key = keys.get(problem.file or "", "policies")
            hook.report.at(key).add(str(problem))
    except MissingExtraError as error:
        message = f"{error}; until then the hook fails"
        hook.report.at("type").add(message, of_machine=True)
    except SettingsError:
        return  # a relative path, which is reported with the other keys


def _check_http(hook: _Hook) -> None:
    config, url = hook.config, hook.config.url or ""
    if not _is_installed("httpx"):
        message = str(MissingExtraError("http", "httpx"))
        hook.report.at("type").add(message, of_machine=True)
    _check_url(url, hook.report.at("url"))
    if "/v1/data/" in url and config.dialect is not Dialect.OPA:
        message = 'looks like Open Policy Agent, whose answers need "dialect": "opa"'
        hook.warn("url", message)
    if config.env:
        message = "has no effect on an http hook: headers use the host's variables"
        hook.warn("env", message)
    # As written: those that are dropped have to be mended too.
    written = hook.raw.get("headers") if config.headers or "headers" in hook.raw else {}
    items = written.items() if isinstance(written, dict) else ()
    texts = {name: value for name, value in items if isinstance(value, str)}
    if problem := headers.names_problem(config.headers):
        hook.report.at("headers", problem[0]).add(problem[1])
    named: set[str] = set()
    for name, value in texts.items():
        report = hook.report.at("headers", name)
        named.update(variables := headers.variables(value))
        if text := headers.value_problem(value):
            report.add(text)
        for variable in variables:
            if variable not in config.allowed_env:
                report.add(f"names {describe(variable)}, which is not in allowedEnv")
            elif not os.environ.get(variable, "").strip():
                message = f"names {describe(variable)}, which is not set here"
                report.add(f"{message}: export it", Severity.WARNING)
        if headers.looks_like_variable(value):
            message = "is sent as written: a variable is '${NAME}'"
            report.add(message, Severity.WARNING)
        elif headers.is_credential(name) and value.strip() and not variables:
            message = "holds a credential: name a variable, '${NAME}', and list it in"
            report.add(f"{message} allowedEnv", Severity.WARNING)
    for name in dict.fromkeys(config.allowed_env):
        if name not in named:
            hook.warn("allowedEnv", f"no header names {describe(name)}: remove it")


def _check_url(url: str, report: Report) -> None:
    try:
        parts = urlsplit(url)
        is_valid = shown_url(url) != INVALID_URL and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        report.add("invalid: expected http:// or https://, a host, a port and a path")
        return
    if "${" in url:
        report.add("is sent as written: variables are replaced in headers only")
    keys = [key for key, value in parse_qsl(parts.query) if value]
    if parts.password or any(map(headers.is_credential, keys)):
        message = "holds a credential: send it in a header, from a variable"
        report.add(message, Severity.WARNING)
    host = parts.hostname or ""
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False  # a name, such as 127.0.0.1.example.com
    if parts.scheme == "http" and not is_local:
        message = "is not encrypted: others can read the events and answer them"
        report.add(f"{message}: use https", Severity.WARNING)


_SHAPES = {
    "tool_response": "llmContent returnDisplay metadata error",
    "llm_request": "model messages config toolConfig",
    "llm_response": "text candidates usageMetadata",
}
"""The fields that these always have."""
_TOOL_INPUTS = """
path paths file_path filePath absolute_path notebook_path target_file file files dir
dir_path directory folder cwd workdir content contents text new_string old_string
new_str old_str edits patch diff replacement instruction command cmd script args argv
commands description timeout url urls uri prompt query sql pattern glob include exclude
recursive offset limit start_line end_line source destination name id data body headers
method todos message subject language code replace_all is_background case_sensitive
"""
"""What the tools of coding agents call their inputs: to name the nearest one."""


def _check_expression(
    source: str, event: HookEventName, report: Report, inside: str | None = None
) -> None:
    """Report mistakes in an expression, which may be one ``inside`` a text."""
    start = "" if inside is None else f"in {describe('${' + inside + '}')}: "
    try:
        program = compile_expression(source)
    except EngineMissingError as error:
        if inside is None:  # once for a rule, not for each of its texts
            report.add(str(error), of_machine=True)
        return
    except ExpressionError as error:
        report.add(f"{start}{error}")
        return
    for path, problem in _doubts(program.uses, event):
        place = ExpressionError(problem, *program.place_of(*path))
        report.add(f"{start}{place}", Severity.WARNING)


def _doubts(
    uses: Uses, event: HookEventName, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The keys that lead to a field, and what is doubtful about it."""
    for name, keys in uses.items():
        owners = [one.value for one in HookEventName if name in EVENT_FIELDS[one]]
        if name == EVENT and not above:
            yield from _doubts(keys or Uses(), event, (EVENT,))
        elif owners or above:  # any other name is one of CEL's: a type, or the time
            if event.value not in owners:
                hint = f", unlike {', '.join(owners)}" if owners else ""
                yield (*above, name), f"{event.value} has no field {name!r}{hint}"
            for key in keys or ():
                if problem := _doubtful_key(name, key):
                    yield (*above, name, key), problem


def _doubtful_key(name: str, key: str) -> str | None:
    if name == "tool_input":  # every tool has inputs of its own
        near = nearest(key, _TOOL_INPUTS.split(), 0.75)
        if near is None or key in _TOOL_INPUTS.split():
            return None
        return f"no known tool has an input {key!r}: did you mean {near!r}?"
    keys = _SHAPES.get(name, key).split()
    if key in keys:
        return None
    near = nearest(key, keys)
    hint = f"did you mean {near!r}?" if near else f"one of {', '.join(keys)}"
    return f"{name} has no field {key!r}: {hint}"


def _texts(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """All texts in an object, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _literal(value: Any) -> Any:
    """An object without the values that an expression gives."""
    if not isinstance(value, dict):
        return value
    return {
        key: _literal(item)
        for key, item in value.items()
        if not (isinstance(item, str) and re.fullmatch(r"(?s)\$\{.*\}", item))
    }
