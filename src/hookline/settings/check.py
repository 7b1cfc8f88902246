"""What ``hookline check`` finds in settings files, beyond what parsing them reports.

Nothing is imported or run: people check projects that they do not trust. Each function
that yields problems looks for one kind of mistake in one hook.
"""

from __future__ import annotations

import ast
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, structs

from hookline.errors import MissingExtraError, SettingsError, nearest
from hookline.protocol.convert import KeyPath, keys_of
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
from .matcher_check import check_matcher
from .model import (
    FOREIGN_DIALECTS,
    FOREIGN_PREFIXES,
    INVALID_URL,
    ONLY_FOR,
    Dialect,
    HookConfig,
    HookGroup,
    HooksOptions,
    HookSource,
    HookType,
    OnFailure,
    Problem,
    SettingsFile,
    SettingsLayer,
    Severity,
    path_text,
    shown_url,
)
from .parse import LayerParser, WrittenGroup
from .places import PROJECT_FOLDER, SettingsPlaces, module_folders
from .policies import cedar_files, find_mistakes
from .read import Node, json_tree, parse_text, read_text

_LOOKS_LIKE_SECONDS_BELOW = 100
_MAX_MODULE_BYTES = 1024 * 1024


class Finding(Struct, frozen=True, kw_only=True):
    """One problem in one file."""

    file: str
    line: int | None = None
    """None in TOML, whose parser does not say where a value is."""
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
    findings = _findings(str(file), sources[0] if sources else source, project)
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
                findings += _findings(file, place.source, place.project)
    return Checked(tuple(files), tuple(findings))


def _findings(file: str, source: HookSource, project: str | None) -> list[Finding]:
    try:
        text = read_text(file)
        raw = parse_text(text, file)
    except SettingsError as error:
        return [_unusable(error, file)]
    tree = None if file.endswith(".toml") else json_tree(text)
    problems = find_problems(raw, source, project)
    problems += _repeated_keys(tree) if tree else ()
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    findings = []
    for problem in problems:
        line = column = None
        if tree is not None:
            offset = tree.offset_of(problem.path)
            line = bisect_right(starts, offset)
            column = offset - starts[line - 1] + 1
        finding = Finding(
            file=file,
            line=line,
            column=column,
            severity=problem.severity,
            where=path_text(problem.path),
            message=problem.message,
            rule=_rule_of(problem.path),
        )
        findings.append(finding)
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


def _repeated_keys(tree: Node) -> Iterator[Problem]:
    """Report keys that an object has more than once, where the object counts."""
    remaining: list[tuple[KeyPath, Node]] = [((), tree)]
    while remaining:
        path, node = remaining.pop()
        for index, child in enumerate(node.children):
            if child.key is None:
                remaining.append(((*path, index), child.node))
        for key, member in node.members.items():
            remaining.append(((*path, key), member.node))
        if len(node.children) > len(node.members) > 0:
            counts = Counter(child.key for child in node.children)
            for key in node.members:
                if counts[key] > 1:
                    message = "repeated key: only its last value counts"
                    yield Problem((*path, key), message)


def _rule_of(path: KeyPath) -> str:
    struct: type[Struct] = SettingsFile
    level = "settings"
    match path:
        case ("hooksConfig", str() as key, *_):
            level, struct = "config", HooksOptions
        case ("hooks", _, int(), "hooks", int(), str() as key, *_):
            level, struct = "hook", HookConfig
        case ("hooks", _, int(), str() as key, *_):
            level, struct = "group", HookGroup
        case ("hooks", str() as event) if event not in list(HookEventName):
            return "unknown-event"
        case ("hooks", *_) | ():
            return "hooks"
        case (key, *_):
            pass
    return f"{level}-{key}" if key in keys_of(struct) else "unknown-key"


class _Hook(Struct, frozen=True):
    """One hook, and where it is."""

    raw: dict[str, Any]
    config: HookConfig
    event: HookEventName
    folder: str | None
    """Its project, or where relative paths of policies start."""
    path: KeyPath

    def error(self, message: str, *keys: str | int) -> Problem:
        """What cannot work."""
        return Problem((*self.path, *keys), message)

    def missing(self, message: str, *keys: str | int) -> Problem:
        """What is not installed on this machine."""
        return Problem((*self.path, *keys), message, of_machine=True)

    def warning(self, message: str, *keys: str | int) -> Problem:
        """What has no effect, or another one than its author thinks."""
        return Problem((*self.path, *keys), message, Severity.WARNING)


def find_problems(
    raw: dict[str, Any], source: HookSource, project: str | None
) -> list[Problem]:
    """What is wrong; files are only checked where the project is known."""
    parser = LayerParser(SettingsLayer(source=source, raw=raw), thorough=True)
    parser.parse()
    problems = [*parser.problems, *parser.unknown_keys]
    options = raw.get("hooksConfig")
    telemetry = options.get("telemetry") if isinstance(options, dict) else None
    if telemetry and not _is_installed("opentelemetry.trace"):
        message = f"ignored: {MissingExtraError('otel', 'opentelemetry-api')}"
        path = ("hooksConfig", "telemetry")
        problems.append(Problem(path, message, Severity.WARNING))
    return [*problems, *_hook_problems(parser.groups, project, with_looks=True)]


def undecidable(raw: dict[str, Any], folder: str | None) -> list[Problem]:
    """What in settings could never decide anything, on whatever machine.

    ``folder`` is where relative paths of policies start.
    """
    parser = LayerParser(SettingsLayer(source=HookSource.PROJECT, raw=raw))
    parser.parse()
    problems = _hook_problems(parser.groups, folder, with_looks=False)
    errors = (problem for problem in problems if problem.severity is Severity.ERROR)
    return [problem for problem in errors if not problem.of_machine]


def _hook_problems(
    groups: list[WrittenGroup], folder: str | None, *, with_looks: bool
) -> Iterator[Problem]:
    for group in groups:
        event, configs = group.event, [hook.config for hook in group.hooks]
        # Those whose names the matcher is compared with; None for ours.
        dialects = (it.dialect if it and it.is_foreign else None for it in configs)
        for dialect in dict.fromkeys(dialects) or (None,):
            if finding := check_matcher(event, group.raw.get("matcher"), dialect):
                severity, message = finding
                yield Problem((*group.path, "matcher"), message, severity)
        for written in group.hooks:
            config = written.config
            if config is None:
                continue
            hook = _Hook(written.raw, config, event, folder, written.path)
            condition = config.condition
            if condition is not None and condition not in FAILURE_CONDITIONS:
                yield from _expression_problems(hook, condition, ("if",))
            for check in _DECISIONS.get(config.type, ()):
                yield from check(hook)
            if with_looks:
                looks = (*_LOOKS.get(config.type, ()), _check_keys, _check_trust_files)
                for check in looks:
                    yield from check(hook)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in
        return False


def _check_keys(hook: _Hook) -> Iterator[Problem]:
    """Report values that mean something else, and keys without an effect."""
    config, kind = hook.config, hook.config.type
    if config.timeout_ms < _LOOKS_LIKE_SECONDS_BELOW:
        seconds = describe(config.timeout_ms)
        message = f"{seconds} looks like seconds: it is in milliseconds, for {seconds}"
        message = f"{message} s write {describe(int(config.timeout_ms * 1000))}"
        # A function in this process can be that fast; starting a process takes longer.
        report = hook.warning if kind is HookType.PYTHON else hook.error
        yield report(message, "timeout")
    for name in risky_variables(config.env):
        message = "changes which programs or files the command uses"
        yield hook.warning(message, "env", name)
    if config.shell is not None and config.shell.startswith("/"):
        shell = ExecutedFile(config.shell, is_program=True)
        if problem := script_problem(shell, "/"):
            yield hook.error(problem, "shell")
    for key in hook.raw:
        if kind not in ONLY_FOR.get(key, (kind,)):
            yield hook.warning(f"has no effect on a {kind} hook", key)
    if config.is_async and OnFailure.BLOCK in structs.astuple(config.on_error):
        message = "has no effect: nobody waits for an async hook"
        yield hook.warning(message, "onError")
    if config.dialect is Dialect.OPA and kind is not HookType.HTTP:
        message = "has no effect: only http hooks ask Open Policy Agent"
        yield hook.warning(message, "dialect")
    elif config.dialect in FOREIGN_DIALECTS and not config.is_foreign:
        message = f"has no effect on a {kind} hook: it sees Hookline's names"
        yield hook.warning(message, "dialect")
    if config.standby and (kind is not HookType.COMMAND or config.is_async):
        why = "not waited for" if config.is_async else f"no command, but a {kind}"
        yield hook.warning(f"no effect: the hook is {why}", "standby")


def _check_trust_files(hook: _Hook) -> Iterator[Problem]:
    valid_names = hook.config.trust_files
    for index, name in enumerate(hook.raw["trustFiles"] if valid_names else ()):
        if name not in valid_names:
            continue
        path = os.path.join(hook.folder or "", name)  # noqa: PTH118 - a string
        is_certain = path.startswith("/") and "$" not in name and name[0] != "~"
        if name.startswith("!"):
            if f"/{PROJECT_FOLDER}/" in f"/{name[1:].removeprefix('./')}/":
                message = f"has no effect: everything in {PROJECT_FOLDER} is pinned"
                yield hook.warning(f"{describe(name)} {message}", "trustFiles", index)
        elif is_certain and not os.path.exists(path):  # noqa: PTH110
            yield hook.error(f"{describe(name)} does not exist", "trustFiles", index)


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


def _check_command(hook: _Hook) -> Iterator[Problem]:
    config, project = hook.config, hook.folder
    command, env = config.command or "", config.env
    for file in executed_files(command, project):
        if project is None and not file.path.startswith("/"):
            continue  # it depends on the project
        if problem := script_problem(file, project or "/"):
            yield hook.error(problem, "command")

    # A variable that nothing sets is an empty text for the command.
    if config.shell is None or Path(config.shell).name in POSIX_SHELLS:
        hidden = FOREIGN_PREFIXES.get(config.dialect, ())
        usual = {*_ALWAYS_SET, *os.environ, *_SET_BY_DIALECT.get(config.dialect, ())}
        names = {name for name in usual if not name.startswith(hidden)}
        names |= {*SHELL_VARIABLES, *env}
        if (config.dialect, hook.event) == (Dialect.CLAUDE, HookEventName.SessionStart):
            names.add("CLAUDE_ENV_FILE")  # Claude Code sets it there
        is_named = config.name == hook.raw.get("name")
        title = f"hook {describe(config.name)} uses" if is_named else "uses"
        todo = 'set it in "env" of the hook'
        for name in used_variables(command):
            why = f"nothing sets: {_ADVICE.get(name, todo)}"
            if name.startswith(hidden):
                dialect = f'"dialect": {describe(hook.raw["dialect"])}'
                why = f"hooks with {dialect} do not see: {todo}"
            if name not in names:
                yield hook.warning(f"{title} ${name}, which {why}", "command")

    traits = TRAITS[hook.event]
    is_frequent = traits.matched_field == "tool_name" or traits.model_fields
    is_cold = config.type is HookType.COMMAND and not config.standby
    if is_frequent and is_cold and not config.is_async:
        for name in programs(re.sub(_PYTHON_VARIABLE, "python3", command)):
            slow = (
                it for it in _SLOW_TO_START if re.fullmatch(_SLOW_TO_START[it], name)
            )
            if language := next(slow, None):
                message = f"starts {language} for every {hook.event}: "
                message += '"type": "worker" or "standby": 1 saves its start-up time'
                yield Problem((*hook.path, "command"), message, Severity.HINT)
                break


def _check_pinning(hook: _Hook) -> Iterator[Problem]:
    """Report code that an approval cannot pin."""
    project, env = hook.folder, hook.config.env
    is_listed = any(not name.startswith("!") for name in hook.config.trust_files)
    if project is None or is_listed:
        return
    values = {**project_variables(project), "HOOKLINE_PYTHON": "python3", **env}
    command, shell = hook.config.command or "", hook.config.shell
    for use in command_files(command, project, values, shell, env):
        if use.why:
            message = f"{use.path[:500]!r} cannot be pinned by trust: {use.why}"
            yield hook.warning(message, "command")
            continue
        is_python = use.role is Role.CODE and use.form is Form.PYTHON
        is_pinned = use.path.startswith(f"{project}/{PROJECT_FOLDER}/")
        module = next(modules_beside(use.path), None) if is_python else None
        if module and use.path.startswith(f"{project}/") and not is_pinned:
            paths = (use.path, module)
            script, other = (describe(os.path.relpath(p, project)) for p in paths)
            yield hook.warning(
                f"{script} can import the modules beside it, such as {other}, and "
                "those it does not name are not pinned by trust: move them into "
                f"{PROJECT_FOLDER}, or list them in trustFiles",
                "command",
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


def _check_function(hook: _Hook) -> Iterator[Problem]:
    """Report a function that its module in the project does not have.

    A module that is not in the project may be installed where the agent runs.
    """
    if (project := hook.folder) is None:
        return
    module, _, name = (hook.config.function or "").partition(":")
    stems = [f"{it}/{module.replace('.', '/')}" for it in module_folders(project)]
    files = [f"{stem}{end}" for stem in stems for end in ("/__init__.py", ".py")]
    file = next(filter(os.path.isfile, files), None)
    if file is None:
        return
    label = os.path.relpath(file, project)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - a string
            text = opened.read(_MAX_MODULE_BYTES).decode(errors="replace")
        ast.parse(text)
    except SyntaxError as error:
        yield hook.error(f"{label}, line {error.lineno}: {error.msg}", "function")
        return
    except (OSError, ValueError, RecursionError, MemoryError):
        return  # loading it will say more
    words = set(re.findall(r"\w+", text))
    if "import *" in text or not words.isdisjoint({name.split(".")[0], "__getattr__"}):
        return
    near = nearest(name, words)
    hint = f": did you mean {near!r}?" if near else ""
    yield hook.warning(f"{label} has no function {describe(name)}{hint}", "function")


def _check_policies(hook: _Hook) -> Iterator[Problem]:
    if not TRAITS[hook.event].can_block:
        message = f"{hook.event} cannot be blocked: what the policies deny goes on"
        yield hook.warning(message, "policies")
    try:
        files = cedar_files(hook.config, hook.folder)
        keys = {file.path: file.key for file in files}
        for mistake in find_mistakes(files):
            yield hook.error(str(mistake), keys.get(mistake.file or "", "policies"))
    except MissingExtraError as error:
        message = f"{error}; until then the hook fails"
        yield hook.missing(message, "type")
    except SettingsError:
        return  # a relative path, which is reported with the other keys


def _check_url(hook: _Hook) -> Iterator[Problem]:
    url = hook.config.url or ""
    if hook.config.env:
        message = "has no effect on an http hook: headers use the host's variables"
        yield hook.warning(message, "env")
    if not _is_installed("httpx"):
        message = str(MissingExtraError("http", "httpx"))
        yield hook.missing(message, "type")
    if "/v1/data/" in url and hook.config.dialect is not Dialect.OPA:
        message = 'looks like Open Policy Agent, whose answers need "dialect": "opa"'
        yield hook.warning(message, "url")
    try:
        parts = urlsplit(url)
        is_valid = shown_url(url) != INVALID_URL and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        message = "invalid: expected http:// or https://, a host, a port and a path"
        yield hook.error(message, "url")
        return
    if "${" in url:
        message = "is sent as written: variables are replaced in headers only"
        yield hook.error(message, "url")
    keys = [key for key, value in parse_qsl(parts.query) if value]
    if parts.password or any(map(headers.is_credential, keys)):
        message = "holds a credential: send it in a header, from a variable"
        yield hook.warning(message, "url")
    host = parts.hostname or ""
    try:
        is_local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_local = False  # a name, such as 127.0.0.1.example.com
    if parts.scheme == "http" and not is_local:
        message = "is not encrypted: others can read the events and answer them"
        yield hook.warning(f"{message}: use https", "url")


def _check_headers(hook: _Hook) -> Iterator[Problem]:
    config = hook.config
    if problem := headers.names_problem(config.headers):
        yield hook.error(problem[1], "headers", problem[0])
    # As written: those that are dropped have to be mended too.
    written = hook.raw.get("headers")
    variables_in_use: set[str] = set()
    for name, value in written.items() if isinstance(written, dict) else ():
        if not isinstance(value, str):
            continue
        variables = headers.variables(value)
        variables_in_use.update(variables)
        if text := headers.value_problem(value):
            yield hook.error(text, "headers", name)
        for variable in variables:
            message = f"names {describe(variable)}, which is not"
            if variable not in config.allowed_env:
                yield hook.error(f"{message} in allowedEnv", "headers", name)
            elif not os.environ.get(variable, "").strip():
                message = f"{message} set here: export it"
                yield hook.warning(message, "headers", name)
        if headers.looks_like_variable(value):
            message = "is sent as written: a variable is '${NAME}'"
            yield hook.warning(message, "headers", name)
        elif headers.is_credential(name) and value.strip() and not variables:
            message = "holds a credential: name a variable, '${NAME}', and list it in"
            yield hook.warning(f"{message} allowedEnv", "headers", name)
    for name in dict.fromkeys(config.allowed_env):
        if name not in variables_in_use:
            message = f"no header names {describe(name)}: remove it"
            yield hook.warning(message, "allowedEnv")


def _check_rule(hook: _Hook) -> Iterator[Problem]:
    yield from _expression_problems(hook, hook.config.when or "", ("when",))
    then = hook.config.then or {}
    for path, text in _texts(then, ("then",)):
        for _, source in expressions_in(text):
            yield from _expression_problems(hook, source.strip(), path, source)
    output, problems = read_output(_literal(then), hook.event)
    if output.unreadable is not None:
        yield hook.error(output.unreadable, "then")
    for problem in problems:
        yield hook.warning(problem, "then")


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


def _expression_problems(
    hook: _Hook, source: str, path: KeyPath, inside: str | None = None
) -> Iterator[Problem]:
    """Report mistakes in an expression, which may be one ``inside`` a text."""
    start = "" if inside is None else f"in {describe('${' + inside + '}')}: "
    try:
        program = compile_expression(source)
    except EngineMissingError as error:
        if inside is None:  # once for a rule, not for each of its texts
            yield hook.missing(str(error), *path)
        return
    except ExpressionError as error:
        yield hook.error(f"{start}{error}", *path)
        return
    for fields, problem in _doubts(program.uses, hook.event):
        place = ExpressionError(problem, *program.place_of(*fields))
        yield hook.warning(f"{start}{place}", *path)


def _doubts(
    uses: Uses, event: HookEventName, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The keys that lead to a field, and what is doubtful about it."""
    for name, keys in uses.items():
        owners = [it.value for it in HookEventName if name in EVENT_FIELDS[it]]
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


_Checks: TypeAlias = tuple[Callable[[_Hook], Iterator[Problem]], ...]
_LOOKS: dict[HookType, _Checks] = {
    HookType.COMMAND: (_check_pinning, _check_command),
    HookType.WORKER: (_check_pinning, _check_command),
    HookType.PYTHON: (_check_function,),
}
_DECISIONS: dict[HookType, _Checks] = {
    HookType.CEDAR: (_check_policies,),
    HookType.HTTP: (_check_url, _check_headers),
    HookType.RULE: (_check_rule,),
}
"""What a hook could never decide by: policies, addresses, expressions."""
