"""The typed values of settings: hooks, groups, options, layers.

A *layer* is one settings file, or one mapping from an extension; ``Settings`` is all
layers of a run in priority order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause

DEFAULT_TIMEOUT_MS = 60_000


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


class FailurePolicy(Struct, frozen=True):
    """What each cause of failure means; None leaves it to the layer above."""

    spawn: OnFailure | None = None
    crash: OnFailure | None = None
    timeout: OnFailure | None = None
    output: OnFailure | None = None
    changed: OnFailure | None = None

    def get(self, cause: FailureCause) -> OnFailure | None:
        """The setting for one cause, if there is one."""
        return getattr(self, cause.value)  # type: ignore[no-any-return]


class Exporter(StrEnum):
    """Where telemetry goes."""

    OTEL = "otel"


class TelemetryOptions(Struct, frozen=True):
    """What is told of events and hooks, and to whom."""

    exporter: Exporter = Exporter.OTEL
    content: bool = False
    """Whether inputs, outputs and reasons are exported too."""


class Breaker(Struct, frozen=True):
    """When a hook that keeps timing out is skipped, and for how long."""

    timeouts: int = 3
    cooldown_ms: float = 300_000


class HookConfig(Struct, frozen=True, kw_only=True):
    """One configured hook."""

    type: HookType
    command: str | None = None
    function: str | None = None
    name: str
    description: str | None = None
    timeout_ms: float = DEFAULT_TIMEOUT_MS
    env: dict[str, str] = {}
    shell: str | None = None
    on_error: FailurePolicy = FailurePolicy()
    expect: Expect = Expect.ANY
    env_policy: EnvPolicy | None = None
    mode: HookMode = HookMode.ENFORCE
    dialect: Dialect = Dialect.HOOKLINE
    trust_files: tuple[str, ...] = ()
    pool: int = 1
    managed: bool = False
    recheck: bool = True
    """Whether it is asked again where others changed what it was shown."""
    condition: str | None = None
    """The key ``if``: an expression that must be true for the hook to run."""
    is_async: bool = False
    """The key ``async``: it is started and not waited for."""
    standby: int = 0
    """How many processes of a command are started ahead."""
    when: str | None = None
    then: dict[str, Any] | None = None
    """What a rule says where its expression is true; None for a plain denial."""
    policies: tuple[str, ...] = ()
    entities: str | None = None
    schema: str | None = None
    principal: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    allowed_env: tuple[str, ...] = ()

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


class HookGroup(Struct, frozen=True, kw_only=True):
    """Hooks that share a matcher."""

    hooks: tuple[HookConfig, ...]
    matcher: str | None = None
    sequential: bool = False


Groups = dict[HookEventName, tuple[HookGroup, ...]]


class HooksOptions(Struct, frozen=True, kw_only=True):
    """The ``hooksConfig`` of one layer; None where it is not set."""

    disabled: frozenset[str] = frozenset()
    tool_selection: ToolSelection | None = None
    on_error: FailurePolicy = FailurePolicy()
    env_policy: EnvPolicy | None = None
    journal: bool | str | None = None
    max_output_bytes: int | None = None
    max_processes: int | None = None
    breaker: Breaker | bool | None = None
    """False switches the breaker off."""
    max_depth: int | None = None
    worker_idle_ms: float | None = None
    on_ask: OnFailure | None = None
    untrusted: Untrusted | None = None
    telemetry: TelemetryOptions | bool | None = None
    """False switches telemetry off."""


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
