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
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _is_name(value: object) -> bool:
    return is_text(value) and "=" not in value


def _is_function(value: object) -> bool:
    return is_text(value) and re.fullmatch(_FUNCTION, value) is not None


def _is_url(value: object) -> bool:
    return is_text(value) and re.match(_URL, value) is not None


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

    spawn: OnFailure | None = None
    """It cannot be started (also exit 126 and 127)."""
    crash: OnFailure | None = None
    """It exits with a status other than 0 and 2."""
    timeout: OnFailure | None = None
    """It does not end in time."""
    output: OnFailure | None = None
    """Its output is truncated, or not the expected JSON."""
    changed: OnFailure | None = None
    """A project hook changed since it was approved."""

    def get(self, cause: FailureCause) -> OnFailure | None:
        """The setting for one cause, if there is one."""
        return getattr(self, cause.value)  # type: ignore[no-any-return]


OnError = Annotated[FailurePolicy, Expected("'allow', 'block' or an object of causes")]


class TelemetryOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What is told of events and hooks, and to whom."""

    exporter: Exporter = Exporter.OTEL
    """Where it goes."""
    content: bool = False
    """Export inputs, outputs and reasons too."""


class Breaker(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """When a hook that keeps timing out is skipped, and for how long."""

    timeouts: Positive = 3
    """Timeouts in a row that open the breaker."""
    cooldown_ms: Milliseconds = 300_000
    """How long the hook is skipped."""


class HookConfig(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """One configured hook."""

    type: HookType
    """How the hook runs."""
    command: Text | None = None
    """The shell command of a command or worker hook."""
    function: Function | None = None
    """The function of a python hook, 'package.module:name'."""
    name: Text = ""
    """For logs, lists and 'disabled'; default: the command."""
    description: str | None = None
    """What the hook is for."""
    timeout_ms: Milliseconds = field(default=DEFAULT_TIMEOUT_MS, name="timeout")
    """In milliseconds."""
    env: Environment = {}
    """Environment variables for this hook."""
    shell: Text | None = None
    """The shell for the command; default: bash, else sh."""
    on_error: OnError = FailurePolicy()
    """What a failure means; default: 'allow'."""
    expect: Expect = Expect.ANY
    """'json' makes any other output a failure."""
    env_policy: EnvPolicy | None = None
    """'clean' hides the host's environment."""
    mode: HookMode = HookMode.ENFORCE
    """'observe' only records the verdict."""
    dialect: Dialect = Dialect.HOOKLINE
    """Whose names and fields the hook expects."""
    trust_files: Texts = ()
    """Files that the approval covers too; '!path' does not."""
    pool: Positive = 1
    """How many processes a worker hook keeps running."""
    managed: bool = False
    """In system settings: nothing turns this hook off."""
    recheck: bool = True
    """false: not asked again if others change the input."""
    condition: Text | None = field(default=None, name="if")
    """An expression: the hook runs only if it is true."""
    is_async: bool = field(default=False, name="async")
    """Start the hook and do not wait for it."""
    standby: Count = 0
    """How many processes of a command start ahead."""
    when: Text | None = None
    """The expression of a rule."""
    then: dict[str, Any] | None = None
    """What a rule says if it is true; default: it denies."""
    policies: Annotated[
        tuple[Text, ...], Meta(min_length=1), Expected("a path or a list of paths")
    ] = ()
    """The policy files of a cedar hook."""
    entities: Text | None = None
    """The JSON file with a cedar hook's entities."""
    schema: Text | None = None
    """The Cedar schema of a cedar hook's policies and events."""
    principal: Text | None = None
    """Who asks: Agent::"<principal>"; default: "default"."""
    url: Url | None = None
    """Where an http hook posts the event."""
    headers: Headers = {}
    """Headers of the request; '${NAME}' is a variable."""
    allowed_env: Texts = ()
    """The variables that headers may name."""

    @property
    def subject(self) -> str:
        """What it runs, asks or decides by; of a url only what is no credential."""
        url = None if self.url is None else shown_url(self.url)
        subjects = (self.command, self.function, self.when, url)
        return next(filter(None, subjects), ", ".join(self.policies))

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
    match = re.fullmatch(parts, url, re.DOTALL)
    return "".join(match.groups("")) if match else INVALID_URL


class HookGroup(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Hooks that share a matcher."""

    matcher: str | None = None
    """Which tools or causes match; default: all."""
    sequential: bool = False
    """Run the hooks one after the other."""
    hooks: tuple[HookConfig, ...] = ()
    """The hooks of this group."""


Groups = dict[HookEventName, tuple[HookGroup, ...]]


class HooksOptions(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The ``hooksConfig`` of one layer; None where it is not set."""

    disabled: Annotated[frozenset[Text], Expected("a list of names")] = frozenset()
    """Names of hooks that do not run."""
    tool_selection: ToolSelection | None = None
    """How tool lists are combined."""
    on_error: OnError = FailurePolicy()
    """What a hook's failure means."""
    env_policy: EnvPolicy | None = None
    """What hooks see of the environment."""
    journal: Annotated[
        bool | Text | None, Expected("true, false or the path of a file")
    ] = None
    """Record events, and in which file."""
    max_output_bytes: Positive | None = None
    """Output kept per stream; default: 8 MiB."""
    max_processes: Positive | None = None
    """Processes of an event loop; default: 4 per core."""
    breaker: Annotated[
        Breaker | bool | None,
        Expected("false or an object with timeouts and cooldownMs"),
    ] = None
    """When a hook that keeps timing out is skipped; false: never."""
    max_depth: Positive | None = None
    """How deep hooks can fire hooks; default: 4."""
    worker_idle_ms: Milliseconds | None = None
    """When an idle worker is stopped."""
    on_ask: OnFailure | None = None
    """The answer to 'ask' where no person can answer."""
    untrusted: Untrusted | None = None
    """'block' closes the events of hooks that are not trusted."""
    telemetry: Annotated[
        TelemetryOptions | bool | None,
        Meta(extra_json_schema={"not": {"const": True}}),
        Expected(
            "false, 'otel' or an object with exporter and content",
            lambda value: value is not True,
        ),
    ] = None
    """Spans and metrics of events and hooks; false: none."""
    notifications: Any = None
    """Accepted for compatibility, and ignored."""


class SettingsFile(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The keys of a settings file."""

    schema: Annotated[Any, Meta(extra_json_schema={"type": "string"})] = field(
        default=None, name="$schema"
    )
    """The schema, for editors; ignored."""
    enable_hooks: bool = True
    """False switches hooks off."""
    hooks: dict[HookEventName, tuple[HookGroup, ...]] = {}
    """For each event, its groups of hooks."""
    hooks_config: HooksOptions = HooksOptions()
    """Options for hooks."""


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


Stamp = object
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
        changed_groups: Groups = {}
        for event, groups in self.groups.items():
            for group in groups:
                changed = (change(event, group, hook) for hook in group.hooks)
                if hooks := tuple(hook for hook in changed if hook is not None):
                    earlier = changed_groups.get(event, ())
                    changed_groups[event] = (*earlier, replace(group, hooks=hooks))
        return changed_groups
