"""The Hooks view: what is configured, how it ran, and what an expression saw.

Nothing is run here, and nothing of a hook's environment or headers is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from copy import deepcopy
from itertools import islice
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.engine.breaker import CircuitBreaker
from hookline.errors import JournalError
from hookline.execute.rule import scope_of
from hookline.journal.query import (
    EDGES_MS,
    MAX_RUNS,
    EventFilter,
    FullEntry,
    RunKey,
    Runs,
)
from hookline.journal.redact import Masker
from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.events import HookEventName
from hookline.protocol.values import encode
from hookline.protocol.verdict import Word, recorded_verdict
from hookline.rules.reasons import Explained, explain
from hookline.settings.model import HookType, TrustStatus

from .answers import number_of, reply
from .desk import Desk
from .inventory import ListedHook, Owners, Recorded, configured_hooks

MAX_RECORDED = 200
"""Hooks that are in the journal only; a journal may hold any number of names."""
MAX_FAILURES = 20
MAX_HOOKS = 2_000
MAX_PROBLEMS = 50
MAX_TEXT = 4_000
"""Of what a hook wrote: the event has all of it."""
_MAX_NAME = 300


def routes(desk: Desk) -> list[BaseRoute]:
    """What this view is asked."""

    async def hooks(_: Request) -> Response:
        return reply(await desk.in_thread(list_hooks, desk))

    async def failures(request: Request) -> Response:
        query = dict(request.query_params)
        return reply(await desk.in_thread(list_failures, desk, query))

    async def values(request: Request) -> Response:
        key, event = request.query_params.get("key", ""), number_of(request, "event")
        return reply(await desk.in_thread(explain_values, desk, key, event))

    return [
        Route("/api/hooks", hooks, methods=["GET"]),
        Route("/api/hooks/failures", failures, methods=["GET"]),
        Route("/api/hooks/values", values, methods=["GET"]),
    ]


def list_hooks(desk: Desk) -> dict[str, Any]:
    """Everything the view shows at first."""
    config = desk.config
    listed = configured_hooks(config)
    owners, runs, problem = Owners(config, listed), {}, None
    try:
        with desk.read() as reader:
            runs = reader.runs(EventFilter(), MAX_RUNS)
            by_owner = _by_owner(runs, owners)
            figures = {key: _figures(runs) for key, runs in by_owner.items()}
    except JournalError as error:  # it must not hide the hooks
        figures, problem = {}, str(error)
    breaker = CircuitBreaker(config.working_dir)
    problems = [*map(str, config.settings.errors), *config.settings.warnings]
    recorded = [(key, of) for key, of in figures.items() if isinstance(key, Recorded)]
    recorded.sort(key=lambda pair: -pair[1]["runs"])
    namesakes = Counter(listed_hook.identity for listed_hook in listed)
    of_runs = sum(len(runs.durations) for runs in runs.values())
    return {
        "hooks": [
            _facts(listed_hook, breaker)
            | {
                "figures": figures.get(listed_hook.key),
                "namesakes": namesakes[listed_hook.identity] - 1,
            }
            for listed_hook in listed[:MAX_HOOKS]
        ],
        "hooks_left_off": max(0, len(listed) - MAX_HOOKS),
        "recorded": [
            # The name is also what its failures are looked up by.
            msgspec.to_builtins(hook)
            | {"label": _cut(hook.name, _MAX_NAME), "figures": of_hook}
            for hook, of_hook in recorded[:MAX_RECORDED]
        ],
        "recorded_left_off": max(0, len(recorded) - MAX_RECORDED),
        "of_runs": of_runs,
        "complete": of_runs < MAX_RUNS,
        "journal_problem": problem,
        "cwd": config.working_dir,
        "switched_off": not config.settings.hooks_enabled,
        "problems": problems[:MAX_PROBLEMS],
        "problems_left_off": max(0, len(problems) - MAX_PROBLEMS),
    }


def _by_owner(runs_by_key: dict[RunKey, Runs], owners: Owners) -> dict[Hashable, Runs]:
    by_owner: dict[Hashable, Runs] = {}
    for key, runs in runs_by_key.items():
        for owner in owners.of(key):
            if owner in by_owner:
                by_owner[owner].add(runs)
            else:
                by_owner[owner] = deepcopy(runs)  # several may own it
    return by_owner


def _figures(runs: Runs) -> dict[str, Any]:
    figures = runs.figures()
    counts = zip([*EDGES_MS, None], figures["histogram"], strict=True)
    histogram = [{"le": edge, "count": count} for edge, count in counts]
    newest = {"last_at": runs.last_at, "last_event": runs.last_event}
    return {**figures, "histogram": histogram, **newest}


def _facts(listed: ListedHook, breaker: CircuitBreaker) -> dict[str, Any]:
    hook, config = listed.hook, listed.hook.config
    is_rule = config.type is HookType.RULE
    policy: dict[str, Any] = msgspec.to_builtins(hook.options.on_error)
    return {
        **hook.facts(),
        "key": listed.key,
        "name": _cut(hook.name, _MAX_NAME),
        "matcher": _clean(hook.matcher),
        "condition": _clean(config.condition),
        "expression": _clean(config.when) if is_rule else None,
        "runs": None if is_rule else _clean(config.subject),
        "trust_problem": _trust_problem(hook),
        "why": listed.why,
        "breaker": _breaker(hook, breaker),
        "on_error": policy,
        "description": _clean(config.description),
    }


def _trust_problem(hook: RegisteredHook) -> str | None:
    if hook.trust is TrustStatus.CHANGED and hook.approval is not None:
        return hook.approval.check()[0]
    return None


def _breaker(hook: RegisteredHook, breaker: CircuitBreaker) -> dict[str, Any]:
    """Its state for events in this folder, as all processes have counted it."""
    rule = hook.options.breaker
    if rule is None or hook.config.managed:
        return {"state": "off"}
    skipped = breaker.skipped(hook)
    limits = {"timeouts": rule.timeouts, "cooldown_ms": rule.cooldown_ms}
    return {
        "state": "open" if skipped else "closed",
        "skipped": [
            {"tool": tool, "timeouts": timeouts.count, "until": timeouts.until}
            for tool, timeouts in skipped.items()
        ],
        **limits,
    }


def list_failures(desk: Desk, query: dict[str, str]) -> dict[str, Any]:
    """The last failures of a configured hook by its key, or of recorded ones."""
    listed = configured_hooks(desk.config)
    owners, key = Owners(desk.config, listed), query.get("key")
    name = _found(listed, key).hook.name if key else query.get("name")
    if not name:
        raise HTTPException(400, "choose a hook: 'key' or 'name' is missing")
    names = RunKey.__struct_fields__
    fields = {k: query[k] for k in names if k != "name" and query.get(k)}

    def is_wanted(run: dict[str, Any]) -> bool:
        hooks = owners.of(RunKey(*(run[field] for field in names)))
        if key:
            return key in hooks
        kinds = [hook.kind for hook in hooks if isinstance(hook, Recorded)]
        if query.get("kind") and query["kind"] not in kinds:
            return False
        return all(run[k] == value for k, value in fields.items())

    with desk.read() as reader:
        newest = islice(reader.failures(name), MAX_RUNS)
        failures = [*islice(filter(is_wanted, newest), MAX_FAILURES)]
    return {"failures": [_shown_failure(run) for run in failures], "most": MAX_FAILURES}


def _shown_failure(run: dict[str, Any]) -> dict[str, Any]:
    names = ("event_id", "at", "event", "target", "session", "cwd", "exit_code")
    error, stderr = (str(run[name] or "") for name in ("error", "stderr"))
    return {
        **{name: run[name] for name in (*names, "duration_ms")},
        "cause": _cause(run),
        "error": error[:MAX_TEXT],
        "stderr": stderr[:MAX_TEXT],
        "stderr_is_longer": len(stderr) > MAX_TEXT,
        "recheck": bool(run["recheck"]),
        "masked": bool(run["output_masked"]),
        "cut": bool(run["output_cut"] or run["truncated"]),
    }


def _cause(run: dict[str, Any]) -> str:
    """What the journal tells of why it failed."""
    if str(run["error"]).startswith("skipped:"):
        return "skipped"
    if run["timed_out"]:
        return "timed out"
    if run["exit_code"] is None:
        return "no exit code"
    return f"exit code {run['exit_code']}"


def explain_values(desk: Desk, key: str, event_id: int | None) -> dict[str, Any]:
    """A hook's ``if`` and rule, with the values of one recorded event."""
    listed = _found(configured_hooks(desk.config), key)
    hook = listed.hook
    with desk.read() as reader:
        full = None if event_id is None else reader.find(event_id)
    if full is None:
        raise HTTPException(404, f"no event {event_id} is recorded: choose another one")
    entry = full.entry
    if entry.event != hook.event.value:
        problem = f"event {event_id} is {entry.event}"
        raise HTTPException(400, f"{problem}: choose one that is {hook.event.value}")
    scope = scope_of(hook, _call(hook.event, full))
    texts = {"condition": hook.config.condition, "rule": hook.config.when}
    return {
        "id": entry.id,
        "at": entry.at,
        "event": entry.event,
        "target": entry.target,
        "masked": entry.input_masked,
        "cut": entry.input_cut,
        "bytes": entry.input_bytes,
        "ran": [_outcome(hook.event, run) for run in full.hooks if _is_of(run, listed)],
        **{
            name: None if text is None else _shown(explain(text, scope))
            for name, text in texts.items()
        },
    }


def _call(event: HookEventName, full: FullEntry) -> HookCall:
    """The event as it was recorded: its own folder, session and time."""
    facts = {"cwd": full.entry.cwd, "session_id": full.entry.session}
    # A journal is a file: what it holds may have another shape.
    whole: Any = full.input
    items = whole.items() if isinstance(whole, dict) else ()
    fields = {k: v for k, v in items if k not in facts or isinstance(v, str)}
    return HookCall(event, facts | fields)


def _is_of(run: dict[str, Any], listed: ListedHook) -> bool:
    return (run["name"], run["source"], run["type"]) == listed.identity[1:]


_OUTCOMES = {
    Word.WOULD_BLOCK: "would have blocked",
    Word.STOPPED: "stopped",
    Word.BLOCKED: "blocked",
}


def _outcome(event: HookEventName, run: dict[str, Any]) -> str:
    """What a run came to, in a word or two."""
    verdict = recorded_verdict(event, run)
    outcome = _OUTCOMES.get(verdict.word, "did not block")
    if verdict.failed:
        outcome = "failed"  # why is shown beside it, whatever its policy made of it
    return f"{outcome}, asked again" if run["recheck"] else outcome


def _shown(explained: Explained) -> dict[str, Any]:
    return {
        "source": _cut(explained.source, MAX_TEXT),
        "outcome": _cut(explained.outcome, MAX_TEXT),
        "parts": [
            {k: _cut(getattr(part, k), MAX_TEXT) for k in ("text", "outcome")}
            for part in explained.parts
        ],
        "values": [_value(path, value) for path, value in explained.values.items()],
    }


def _value(path: str, value: Any) -> dict[str, Any]:
    text = encode(value).decode()
    return {"path": path, "text": _cut(text, MAX_TEXT), "chars": len(text)}


def _found(listed: list[ListedHook], key: str | None) -> ListedHook:
    configured = next((hook for hook in listed if hook.key == key), None)
    if configured is None:
        raise HTTPException(404, "this hook is no longer configured: reload the page")
    return configured


def _clean(text: str | None) -> str | None:
    """Settings may hold credentials, where a command is given one."""
    return None if text is None else _cut(Masker(texts=True).mask_text(text), MAX_TEXT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
