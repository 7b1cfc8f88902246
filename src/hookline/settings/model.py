"""The typed values of settings: hooks, groups, options, layers.

A *layer* is one settings file, or one mapping from an extension; ``Settings`` is all
layers of a run in priority order. The Structs with a key for each field are the table
of keys: ``parse`` converts to them, ``hookline check`` knows the keys by them, and the
JSON Schema is made from them. A hook is one Struct for all types: most keys hold for
every type, and what has no effect on a type is a finding of ``check``, not an unknown
key; ``REQUIRED_BY_TYPE`` and ``ONLY_FOR`` say which keys belong to which.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeGuard

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from hookline.protocol.convert import Expected, KeyPath
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from hookline.protocol.values import describe

DEFAULT_TIMEOUT_MS = 60_000
MAX_NUMBER = 2**53
"""Larger numbers are rejected: clocks and selectors overflow on them."""


class Severity(StrEnum):
    """An error does not work as written; a warning has no effect; a hint is advice."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Problem(Struct, frozen=True):
    """One mistake in settings."""

    path: KeyPath
    message: str
    severity: Severity = Severity.ERROR
    of_machine: bool = False
    """Whether the settings are right, and something is not installed."""

    def __str__(self) -> str:
        return f"{path_text(self.path)}: {self.message}" if self.path else self.message


def path_text(path: KeyPath) -> str:
    """Format a path as ``hooks.BeforeTool[0].hooks[1]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            is_plain = step.isprintable() and len(step) <= 80
            text += f".{step if is_plain else describe(step)}"
    return text.removeprefix(".")


class HookSource(StrEnum):
    """Where a hook comes from, highest priority first."""

    RUNTIME = "runtime"
    EXPLICIT = "explicit"
    """A file that was named (``--settings``, ``Settings.from_file``)."""
    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"
    EXTENSIONS = "extensions"


class HookType(StrEnum):
    """How a hook runs."""

    COMMAND = "command"
    WORKER = "worker"
    PYTHON = "python"
    RULE = "rule"
    CEDAR = "cedar"
    HTTP = "http"
    PLUGIN = "plugin"

    __hash__ = str.__hash__  # Enum's own is a Python function: slow in lookups


class OnFailure(StrEnum):
    """What a failed hook means for the event."""

    ALLOW = "allow"
    BLOCK = "block"


class EnvPolicy(StrEnum):
    """Which of the host's environment variables a hook sees."""

    INHERIT = "inherit"
    CLEAN = "clean"


class HookMode(StrEnum):
    """Whether a hook's verdict counts."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class Dialect(StrEnum):
    """For which host a hook was written: whose names it expects."""

    HOOKLINE = "hookline"
    CLAUDE = "claude"
    GEMINI = "gemini"
    LLXPRT = "llxprt"
    OPA = "opa"


FOREIGN_DIALECTS = (Dialect.CLAUDE, Dialect.GEMINI, Dialect.LLXPRT)
"""Of other hosts: what such a hook is shown and says is translated."""
FOREIGN_PREFIXES: dict[str, tuple[str, ...]] = {
    Dialect.CLAUDE.value: ("GEMINI_", "LLXPRT_"),
    Dialect.GEMINI.value: ("CLAUDECODE",),
    # llxprt-code sets its own alone; a key of Gemini's API is no variable of a host.
    Dialect.LLXPRT.value: (
        *("CLAUDECODE", "CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"),
        *("GEMINI_SESSION_ID", "GEMINI_CWD"),
    ),
}
"""The variables of other hosts, which the hooks of a dialect do not see."""
TRANSLATED_TYPES = (HookType.COMMAND, HookType.WORKER, HookType.HTTP)
"""The types whose hooks can be written for another host."""


class Expect(StrEnum):
    """What a hook must print."""

    ANY = "any"
    JSON = "json"


class ToolSelection(StrEnum):
    """How the tool lists of several hooks are combined."""

    UNION = "union"
    INTERSECT = "intersect"


class Untrusted(StrEnum):
    """What hooks of a project that nobody has approved mean for their events."""

    SKIP = "skip"
    BLOCK = "block"


class Exporter(StrEnum):
    """Where telemetry goes."""

    OTEL = "otel"


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number that settings may hold; a boolean is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MAX_NUMBER


def is_text(value: object) -> TypeGuard[str]:
    """Whether a process can take this text: not blank, no NUL, no surrogate."""
    return _can_be_passed(value) and bool(value.strip())


def _can_be_passed(value: object) -> TypeGuard[str]:
    try:
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _is_name(value: object) -> bool:
    return is_text(value) and "=" not in value


def _is_function(value: object) -> bool:
    return is_text(value) and re.fullmatch(_FUNCTION, value) is not None


def _is_url(value: object) -> bool:
    return is_text(value) and re.match(_URL, value) is not None


def _says(description: str) -> Meta:
    return Meta(description=description)


def _pattern(pattern: str) -> Meta:
    return Meta(extra_json_schema={"pattern": pattern})


_DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
_FUNCTION = f"^{_DOTTED}:{_DOTTED}$"
_URL = r"^https?://\S+$"

Text = Annotated[str, _pattern(r"\S"), Expected("some text", is_text)]
Function = Annotated[
    str,
    _pattern(_FUNCTION),
    Expected("'package.module:name'", _is_function),
]
Url = Annotated[
    str,
    _pattern(_URL),
    Expected(
        "an address that starts with http:// or https://, without blanks",
        _is_url,
        is_private=True,
    ),
]
Milliseconds = Annotated[
    float, Meta(gt=0, le=MAX_NUMBER), Expected("a number of milliseconds above 0")
]
Count = Annotated[int, Meta(ge=0, le=MAX_NUMBER), Expected("an integer of at least 0")]
Positive = Annotated[
    int, Meta(ge=1, le=MAX_NUMBER), Expected("an integer of at least 1")
]
Texts = Annotated[tuple[Text, ...], Expected("a list of strings")]
_Name = Annotated[
    str,
    _pattern("^[^=]+$"),
    Expected("a valid name of an environment variable", _is_name),
]
_Value = Annotated[str, Expected("text or a number", _can_be_passed)]
_Secret = Annotated[str, Expected("text or a number", _can_be_passed, is_private=True)]
Environment = Annotated[dict[_Name, _Value], Expected("an object of names and values")]
Headers = Annotated[
    dict[_Name, _Secret], Expected("an object of names and values", is_private=True)
]


class FailurePolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What each cause of failure means; None leaves it to the layer above."""

    spawn: Annotated[
        OnFailure | None, _says("It cannot be started (also exit 126 and 127).")
    ] = None
    crash: Annotated[
        OnFailure | None, _says("It exits with a status other than 0 and 2.")
    ] = None
    timeout: Annotated[OnFailure | None, _says("It does not end in time.")] = None
    output: Annotated[
        OnFailure | None, _says("Its output is truncated, or not the expected JSON.")
    ] = None
    changed: Annotated[
        OnFailure | None, _says("A project hook changed since it was approved.")
    ] = None

    def get(self, cause: FailureCause) -> OnFailure | None:
        """The setting for one cause, if there is one."""
        return getattr(self, cause.value)  # type: ignore[no-any-return]


OnError = Annotated[FailurePolicy, Expected("'allow', 'block' or an object of causes")]


class TelemetryOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What is told of events and hooks, and to whom."""

    exporter: Annotated[Exporter, _says("Where it goes.")] = Exporter.OTEL
    content: Annotated[bool, _says("Export inputs, outputs and reasons too.")] = False


class Breaker(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """When a hook that keeps timing out is skipped, and for how long."""

    timeouts: Annotated[Positive, _says("Timeouts in a row that open the breaker.")] = 3
    cooldown_ms: Annotated[Milliseconds, _says("How long the hook is skipped.")] = (
        300_000
    )


class HookConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One configured hook."""

    type: Annotated[HookType, _says("How the hook runs.")]
    command: Annotated[
        Text | None, _says("The shell command of a command or worker hook.")
    ] = None
    function: Annotated[
        Function | None, _says("The function of a python hook, 'package.module:name'.")
    ] = None
    name: Annotated[
        Text, _says("For logs, lists and 'disabled'; default: the command.")
    ] = ""
    description: Annotated[str | None, _says("What the hook is for.")] = None
    timeout_ms: Annotated[Milliseconds, _says("In milliseconds.")] = field(
        default=DEFAULT_TIMEOUT_MS, name="timeout"
    )
    env: Annotated[Environment, _says("Environment variables for this hook.")] = {}
    shell: Annotated[
        Text | None, _says("The shell for the command; default: bash, else sh.")
    ] = None
    on_error: Annotated[OnError, _says("What a failure means; default: 'allow'.")] = (
        FailurePolicy()
    )
    expect: Annotated[Expect, _says("'json' makes any other output a failure.")] = (
        Expect.ANY
    )
    env_policy: Annotated[
        EnvPolicy | None, _says("'clean' hides the host's environment.")
    ] = None
    mode: Annotated[HookMode, _says("'observe' only records the verdict.")] = (
        HookMode.ENFORCE
    )
    dialect: Annotated[Dialect, _says("Whose names and fields the hook expects.")] = (
        Dialect.HOOKLINE
    )
    trust_files: Annotated[
        Texts, _says("Files that the approval covers too; '!path' does not.")
    ] = ()
    pool: Annotated[
        Positive, _says("How many processes a worker hook keeps running.")
    ] = 1
    managed: Annotated[
        bool, _says("In system settings: nothing turns this hook off.")
    ] = False
    recheck: Annotated[
        bool, _says("false: not asked again if others change the input.")
    ] = True
    condition: Annotated[
        Text | None, _says("An expression: the hook runs only if it is true.")
    ] = field(default=None, name="if")
    is_async: Annotated[bool, _says("Start the hook and do not wait for it.")] = field(
        default=False, name="async"
    )
    standby: Annotated[Count, _says("How many processes of a command start ahead.")] = 0
    when: Annotated[Text | None, _says("The expression of a rule.")] = None
    then: Annotated[
        dict[str, Any] | None,
        _says("What a rule says if it is true; default: it denies."),
    ] = None
    policies: Annotated[
        tuple[Text, ...],
        Meta(min_length=1, description="The policy files of a cedar hook."),
        Expected("a path or a list of paths"),
    ] = ()
    entities: Annotated[
        Text | None, _says("The JSON file with a cedar hook's entities.")
    ] = None
    schema: Annotated[
        Text | None, _says("The Cedar schema of a cedar hook's policies and events.")
    ] = None
    principal: Annotated[
        Text | None, _says('Who asks: Agent::"<principal>"; default: "default".')
    ] = None
    url: Annotated[Url | None, _says("Where an http hook posts the event.")] = None
    headers: Annotated[
        Headers, _says("Headers of the request; '${NAME}' is a variable.")
    ] = {}
    allowed_env: Annotated[Texts, _says("The variables that headers may name.")] = ()

    @property
    def subject(self) -> str:
        """What it runs, asks or decides by; of a url only what is no credential."""
        url = None if self.url is None else shown_url(self.url)
        given = (self.command, self.function, self.when, url)
        return next(filter(None, given), ", ".join(self.policies))

    @property
    def is_foreign(self) -> bool:
        """Whether it is shown the names of another host, and answers in them."""
        return self.dialect in FOREIGN_DIALECTS and self.type in TRANSLATED_TYPES

    @property
    def key(self) -> tuple[str, str, str]:
        """What a hook is called and what it runs, for records about it."""
        return (self.type, self.name, self.subject)


INVALID_URL = "(invalid url)"


def shown_url(url: str) -> str:
    """A url without user, password, query and fragment, which may be secrets."""
    host = r"[^/?#@:\[\]]+|\[[^/?#@\]]+\]"
    parts = rf"(https?://)(?:[^/?#]*@)?((?:{host})(?::\d*)?)(/[^?#]*)?(?:[?#].*)?"
    found = re.fullmatch(parts, url, re.DOTALL)
    return "".join(found.groups("")) if found else INVALID_URL


class HookGroup(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Hooks that share a matcher."""

    matcher: Annotated[
        str | None, _says("Which tools or causes match; default: all.")
    ] = None
    sequential: Annotated[bool, _says("Run the hooks one after the other.")] = False
    hooks: Annotated[tuple[HookConfig, ...], _says("The hooks of this group.")] = ()


Groups = dict[HookEventName, tuple[HookGroup, ...]]


class HooksOptions(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The ``hooksConfig`` of one layer; None where it is not set."""

    disabled: Annotated[
        frozenset[Text],
        _says("Names of hooks that do not run."),
        Expected("a list of names"),
    ] = frozenset()
    tool_selection: Annotated[
        ToolSelection | None, _says("How tool lists are combined.")
    ] = None
    on_error: Annotated[OnError, _says("What a hook's failure means.")] = (
        FailurePolicy()
    )
    env_policy: Annotated[
        EnvPolicy | None, _says("What hooks see of the environment.")
    ] = None
    journal: Annotated[
        bool | Text | None,
        _says("Record events, and in which file."),
        Expected("true, false or the path of a file"),
    ] = None
    max_output_bytes: Annotated[
        Positive | None, _says("Output kept per stream; default: 8 MiB.")
    ] = None
    max_processes: Annotated[
        Positive | None, _says("Processes of an event loop; default: 4 per core.")
    ] = None
    breaker: Annotated[
        Breaker | bool | None,
        _says("When a hook that keeps timing out is skipped; false: never."),
        Expected("false or an object with timeouts and cooldownMs"),
    ] = None
    max_depth: Annotated[
        Positive | None, _says("How deep hooks can fire hooks; default: 4.")
    ] = None
    worker_idle_ms: Annotated[
        Milliseconds | None, _says("When an idle worker is stopped.")
    ] = None
    on_ask: Annotated[
        OnFailure | None, _says("The answer to 'ask' where no person can answer.")
    ] = None
    untrusted: Annotated[
        Untrusted | None,
        _says("'block' closes the events of hooks that are not trusted."),
    ] = None
    telemetry: Annotated[
        TelemetryOptions | bool | None,
        _says("Spans and metrics of events and hooks; false: none."),
        Meta(extra_json_schema={"not": {"const": True}}),
        Expected(
            "false, 'otel' or an object with exporter and content",
            lambda value: value is not True,
        ),
    ] = None
    notifications: Annotated[Any, _says("Accepted for compatibility, and ignored.")] = (
        None
    )


class SettingsFile(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The keys of a settings file."""

    schema: Annotated[
        Any,
        _says("The schema, for editors; ignored."),
        Meta(extra_json_schema={"type": "string"}),
    ] = field(default=None, name="$schema")
    enable_hooks: Annotated[bool, _says("False switches hooks off.")] = True
    hooks: Annotated[
        dict[HookEventName, tuple[HookGroup, ...]],
        _says("For each event, its groups of hooks."),
    ] = {}
    hooks_config: Annotated[HooksOptions, _says("Options for hooks.")] = HooksOptions()


LEVELS: dict[str, type[Struct]] = {
    "the top level": SettingsFile,
    "a group": HookGroup,
    "a hook": HookConfig,
    "hooksConfig": HooksOptions,
}
"""Where keys can be."""
REQUIRED_BY_TYPE = {
    HookType.COMMAND: "command",
    HookType.WORKER: "command",
    HookType.PYTHON: "function",
    HookType.RULE: "when",
    HookType.CEDAR: "policies",
    HookType.HTTP: "url",
}
_OF_SHELL = (HookType.COMMAND, HookType.WORKER)
ONLY_FOR: dict[str, tuple[HookType, ...]] = {
    "command": (*_OF_SHELL, HookType.PLUGIN),
    "function": (HookType.PYTHON, HookType.PLUGIN),
    **dict.fromkeys(("when", "then"), (HookType.RULE,)),
    **dict.fromkeys(("policies", "entities", "schema", "principal"), (HookType.CEDAR,)),
    **dict.fromkeys(("url", "headers", "allowedEnv"), (HookType.HTTP,)),
    **dict.fromkeys(("shell", "envPolicy"), _OF_SHELL),
    "env": (*_OF_SHELL, HookType.HTTP),  # has words of its own
    "expect": (*_OF_SHELL, HookType.HTTP),
    "pool": (HookType.WORKER,),
}
"""The types that a key has an effect on, where that is not all."""


class TrustStatus(StrEnum):
    """Whether a person has approved a hook, byte for byte."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"


Stamp = tuple[Any, ...]
"""The state of some paths, for whoever took it to compare."""


class Approval:
    """Tells whether a hook is still as it was approved.

    This one belongs to a hook of which nobody can tell: it never runs.
    """

    digests: Mapping[str, str] = {}
    """The approved SHA-256 of each file of the hook, by its path."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    def check(self) -> tuple[str | None, Stamp]:
        """What changed, as a message or None, and a stamp for ``unchanged_since``."""
        return self._problem, ()

    def unchanged_since(self, _: Stamp) -> bool:
        """Whether no file was touched since the stamp was taken."""
        return False

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call back whenever the files turn out not to be the approved ones."""

    def environment(self) -> dict[str, str]:
        """Variables that keep a process from loading what was not approved."""
        return {}


class SettingsLayer(Struct, frozen=True, kw_only=True):
    """What one file or one extension contributes."""

    source: HookSource
    file: str | None = None
    """The path of the file, or a name such as ``extension 'acme'``."""
    project: str | None = None
    """The folder of the project that it belongs to, resolved."""
    enable_hooks: bool = True
    groups: Groups = {}
    options: HooksOptions = HooksOptions()
    explicit: bool = False
    """Named by the user (``--settings``), which approves it."""
    warnings: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Those of the warnings that are errors: something in it has no effect."""
    raw: dict[str, Any] = {}
    """The mapping as it was read."""
    trust: Callable[[HookConfig], Approval | None] | None = None
    """For a project's layer: returns a hook's approval; None if it has none at all."""

    @property
    def is_project(self) -> bool:
        """Whether it is a project's own, which needs approval and overrides nothing."""
        return self.source is HookSource.PROJECT and not self.explicit

    @property
    def is_guest(self) -> bool:
        """Whether it can only narrow what its hooks see of the environment."""
        return self.is_project or self.source is HookSource.EXTENSIONS

    @property
    def is_unapproved(self) -> bool:
        """Whether its hooks need an approval that they do not have."""
        return self.is_project and self.trust is None

    def hooks(self) -> Iterator[tuple[HookEventName, HookGroup, HookConfig]]:
        """All hooks, with the event and the group they are in."""
        for event, groups in self.groups.items():
            for group in groups:
                for hook in group.hooks:
                    yield event, group, hook

    def map_hooks(self, change: Callable[..., HookConfig | None]) -> Groups:
        """Call ``change(event, group, hook)`` for each hook; None leaves it out."""
        found: Groups = {}
        for event, groups in self.groups.items():
            for group in groups:
                changed = (change(event, group, hook) for hook in group.hooks)
                hooks = tuple(hook for hook in changed if hook is not None)
                if hooks:
                    kept = found.get(event, ())
                    found[event] = (*kept, replace(group, hooks=hooks))
        return found
