"""Hooks that misbehave in known ways, and the verdict that each must lead to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from hookline.protocol.results import FailureCause, ProcessedHookResult

FIVE_MINUTES = "sleep 300"  # longer than any test: what is left of it is a leak
DENY_JSON = """echo '{"decision": "deny", "reason": "no"}'"""


class Fault(Struct, frozen=True, kw_only=True):
    """One way to misbehave."""

    name: str
    command: str
    cause: FailureCause | None = None
    """None: it is no failure, and ``blocks`` says what the verdict must be."""
    blocks: bool = False
    timeout_ms: int = 60_000
    weight: int = 10
    more: dict[str, Any] = {}
    beside: str | None = None
    """A second hook on the same event, which changes what this one was shown."""

    def hooks(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The hook under both policies, by the tool that it is for."""
        hook = {"type": "command", "command": self.command, "timeout": self.timeout_ms}
        for policy in ("allow", "block"):
            tool = f"{self.name}-{policy}"
            yield tool, {**hook, "name": tool, "onError": policy, **self.more}


def expected_block(fault: Fault, policy: str) -> bool:
    """What the verdict must be."""
    return fault.blocks if fault.cause is None else policy == "block"


def wrong_verdict(fault: Fault, policy: str, result: ProcessedHookResult) -> str | None:
    """What is wrong with a verdict, if anything."""
    hooks = result.aggregated.hook_results
    # With another hook beside it: that one, and then this one again.
    expected = 1 if fault.beside is None else 3
    if len(hooks) != expected:
        return f"{len(hooks)} hooks ran: {result.aggregated.errors}"
    if hooks[0].cause is not fault.cause:
        return f"cause {hooks[0].cause}, expected {fault.cause}: {hooks[0].error}"
    if result.blocked is not expected_block(fault, policy):
        return f"blocked is {result.blocked}: {result.reason}"
    return None


def settings() -> dict[str, Any]:
    """One group for each hook, matched by its own tool name."""
    groups: list[dict[str, Any]] = []
    for fault in FAULTS:
        beside = {"type": "command", "command": fault.beside, "name": "beside"}
        others = [] if fault.beside is None else [beside]
        for tool, hook in fault.hooks():
            groups.append({"matcher": f"^{tool}$", "hooks": [hook, *others]})
    options = {"breaker": False, "maxOutputBytes": 1_000_000, "maxProcesses": 12}
    return {"hooks": {"BeforeTool": groups}, "hooksConfig": options}


_SPAWN, _CRASH = FailureCause.SPAWN, FailureCause.CRASH
_TIMEOUT, _OUTPUT = FailureCause.TIMEOUT, FailureCause.OUTPUT

FAULTS = (
    Fault(name="healthy", command="cat >/dev/null", weight=30),
    Fault(name="silent", command="true", weight=30),
    Fault(name="denying", command="echo no >&2; exit 2", blocks=True, weight=30),
    Fault(name="denying-json", command=DENY_JSON, blocks=True, weight=30),
    Fault(name="half-json", command="""printf '{"decision": "deny"'""", cause=_OUTPUT),
    Fault(
        name="rewritten",
        command="grep -q 'rm -rf' && exit 2; exit 0",
        blocks=True,
        beside="""echo '{"hookSpecificOutput": {"tool_input": {"do": "rm -rf"}}}'""",
    ),
    Fault(name="crash", command="exit 1", cause=_CRASH),
    Fault(name="crash-json", command=f"{DENY_JSON}; exit 3", cause=_CRASH),
    Fault(name="missing", command="/no/such/program", cause=_SPAWN),
    Fault(name="not-executable", command="/etc/passwd", cause=_SPAWN),
    Fault(name="killed", command="kill -9 $$", cause=_CRASH),
    Fault(name="terminated", command="kill -TERM $$", cause=_CRASH),
    Fault(name="segfault", command="kill -SEGV $$", cause=_CRASH),
    Fault(name="hang", command=FIVE_MINUTES, cause=_TIMEOUT, timeout_ms=200),
    Fault(
        name="sigterm-ignored",
        command=f"trap '' TERM; while :; do {FIVE_MINUTES}; done",
        cause=_TIMEOUT,
        timeout_ms=200,
        weight=2,
    ),
    Fault(
        name="child-ignores-sigterm",
        command=f"(trap '' TERM; {FIVE_MINUTES}) & {FIVE_MINUTES}",
        cause=_TIMEOUT,
        timeout_ms=100,
        weight=2,
    ),
    Fault(name="spin", command="while :; do :; done", cause=_TIMEOUT, timeout_ms=150),
    Fault(
        name="forks-and-hangs",
        command=f"for i in 1 2 3 4 5 6 7 8 9; do {FIVE_MINUTES} & done; wait",
        cause=_TIMEOUT,
        timeout_ms=300,
        weight=4,
    ),
    Fault(
        name="fork-bomb",
        command="f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & wait; }; }; "
        "f 4; exit 2",
        blocks=True,
        weight=3,
    ),
    Fault(name="closed-stdin", command="exec 0<&-; exit 2", blocks=True),
    Fault(name="closed-outputs", command="exec 1>&- 2>&-; exit 2", blocks=True),
    Fault(
        name="closed-and-hanging",
        command=f"exec 0<&- 1>&- 2>&-; {FIVE_MINUTES}",
        cause=_TIMEOUT,
        timeout_ms=200,
    ),
    Fault(
        name="huge-output",
        command="head -c 3000000 /dev/zero | tr '\\0' x",
        cause=_OUTPUT,
        weight=4,
    ),
    Fault(
        name="huge-stderr",
        command="head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 2",
        blocks=True,
        weight=4,
    ),
    Fault(name="endless", command="yes", cause=_TIMEOUT, timeout_ms=200, weight=4),
    Fault(
        name="text-for-json",
        command="echo hello",
        cause=_OUTPUT,
        more={"expect": "json"},
    ),
    # Children that outlive their hook on purpose end soon, so that only what should
    # have been killed is left after a while.
    Fault(
        name="setsid-grandchild",
        command=f"setsid sleep 2 & {DENY_JSON}",
        blocks=True,
        weight=4,
    ),
    Fault(
        name="setsid-and-hang",
        command=f"setsid sleep 2 & {FIVE_MINUTES}",
        cause=_TIMEOUT,
        timeout_ms=200,
        weight=4,
    ),
    Fault(
        name="left-behind",
        command="sleep 1 >/dev/null 2>&1 </dev/null & exit 2",
        blocks=True,
        weight=4,
    ),
)
