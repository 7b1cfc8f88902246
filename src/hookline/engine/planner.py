"""Choose which hooks run for one event, and in what order.

No I/O, no clock, no awaiting. Plans are cached for each event and name until the
registry changes. A hook with a ``dialect`` is matched by the names that it is shown
(protocol.md#dialects).

Names come from a model, and ``re`` backtracks: ``^(a+)+$`` takes seconds on a name of
30 characters. So the text of an expression tells how long a name may be for it. In a
longer one it counts as a match, and the hook runs (decision 0093).
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from math import comb, inf
from typing import Any

from msgspec import Struct

from hookline._internal.log import logger
from hookline.plan import HookPlan, RegisteredHook
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.values import plain_text
from hookline.settings.model import HookType

from .registry import HookRegistry

_READERS = frozenset({HookType.RULE, HookType.CEDAR})
"""Types of hooks that read the values of the input, at once."""
MAX_NAME = 256
"""A longer name matches every matcher, so that it cannot evade a guard."""
MAX_PATTERN = 8192
"""The time that ``re`` takes to compile one is not bounded by its length alone."""
_MAX_WAYS = 1_000_000
"""In which ``re`` may try to find an expression: a few milliseconds."""
_USUAL_NAME = 64
"""Few APIs of models take longer names of tools."""
_ESCAPE_OR_SET = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_AROUND = re.compile(r"^(?:\.\*\??)+(?![+*?{]|\(\?)|(?<!\\)(?:\.\*\??)+\Z")
"""What a search finds the same without, in fewer ways."""
_INNERMOST_GROUP = re.compile(r"\(([^()]*)\)")
_ITEM = re.compile(
    r"(.) (?: ([*+?]) | \{ (?=[\d,]) (\d*) (,?) (\d*) \} )? [?+]?",
    re.DOTALL | re.VERBOSE,
)
_SIGNS = {"": (1, 1.0), "*": (0, inf), "+": (1, inf), "?": (0, 1.0)}
_FIRST_FOLDED = 0xF0000
"""The first of the characters that stand for groups; no alphabet has them."""

_MAX_CACHED = 4096
_PLAIN_NAMES = (str, type(None))
_MATCHED_FIELDS = {event: traits.matched_field for event, traits in TRAITS.items()}
_TOOL_NAMES = ("tool_name", "our_tool_name")
"""In ``host``: what a coding agent calls the tool, and we, where hooks see its name."""


class Judgement(StrEnum):
    """Why a hook runs or not, in the order of the checks."""

    DISABLED = "disabled"
    UNTRUSTED = "untrusted"
    NOT_MATCHING = "not matching"
    DUPLICATE = "duplicate"
    RUNS = "runs"


class JudgedHook(Struct, frozen=True):
    """A hook, the planner's decision, and what it was decided by."""

    hook: RegisteredHook
    judgement: Judgement
    names: tuple[str, ...] | None = None
    """What its matcher is compared with; None if every matcher matches."""
    matched_name: str | None = None
    duplicate_of: RegisteredHook | None = None


class HookPlanner:
    """Plans for one registry."""

    def __init__(self, registry: HookRegistry) -> None:
        self._registry = registry

    def plan_for(
        self, event: HookEventName, fields: Mapping[str, Any]
    ) -> HookPlan | None:
        """The plan for an event with these fields; None if no hook runs.

        Without fields it is the one in which every matcher matches.
        """
        name = fields.get(_MATCHED_FIELDS[event])
        plans = self._registry.plans[event]
        # A subclass of str may lie about its hash and get another name's plan.
        is_cacheable = type(name) in _PLAIN_NAMES and "host" not in fields
        if is_cacheable:
            try:
                return plans[name]
            except KeyError:  # not planned yet
                pass
        hooks = self._registry.for_event(event)
        plan = make_plan(event, hooks, fields)
        # Hooks of a dialect are matched by other fields too, such as the MCP server.
        is_cacheable &= not any(hook.config.is_foreign for hook in hooks)
        if is_cacheable and len(name or "") <= MAX_NAME:
            if len(plans) >= _MAX_CACHED:  # names come from a model
                plans.clear()
            plans[name] = plan
        return plan


def make_plan(
    event: HookEventName, hooks: Iterable[RegisteredHook], fields: Mapping[str, Any]
) -> HookPlan | None:
    """Plan without a cache."""
    judged = judge(hooks, fields)
    planned = tuple(item.hook for item in judged if item.judgement is Judgement.RUNS)
    if not planned:
        return None
    # If other settings repeat a hook of a sequential group, its order stays.
    is_sequential = any(hook.sequential for hook in planned) or any(
        item.hook.sequential and item.duplicate_of.file != item.hook.file
        for item in judged
        if item.duplicate_of is not None
    )
    is_special = any(h.config.condition or h.config.is_async for h in planned)
    needs_json = is_special or any(h.config.type not in _READERS for h in planned)
    return HookPlan(event, planned, is_sequential, is_special, needs_json)


def judge(
    hooks: Iterable[RegisteredHook], fields: Mapping[str, Any]
) -> list[JudgedHook]:
    """Decide for every hook whether it runs, and if not, why."""
    judged = [_judge_alone(hook, fields) for hook in hooks]
    running = [item.hook for item in judged if item.judgement is Judgement.RUNS]
    keys = {hook: hook.key for hook in running}
    # Two settings files may name one command; running it twice would double its side
    # effects, so a repeat is dropped rather than merged. Of equal ones a managed hook
    # stays, and else the first.
    first_by_key: dict[object, RegisteredHook] = {}
    for hook in sorted(running, key=lambda hook: not hook.config.managed):
        first_by_key.setdefault(keys[hook], hook)
    firsts = {hook: first_by_key[key] for hook, key in keys.items()}
    return [
        item
        if (first := firsts.get(item.hook, item.hook)) is item.hook
        else JudgedHook(item.hook, Judgement.DUPLICATE, duplicate_of=first)
        for item in judged
    ]


def _judge_alone(hook: RegisteredHook, fields: Mapping[str, Any]) -> JudgedHook:
    if not hook.enabled:
        return JudgedHook(hook, Judgement.DISABLED)
    if not hook.is_active:
        return JudgedHook(hook, Judgement.UNTRUSTED)
    names, matched_name = match_names(hook, fields)
    is_matched = names is None or matched_name is not None
    judgement = Judgement.RUNS if is_matched else Judgement.NOT_MATCHING
    return JudgedHook(hook, judgement, names, matched_name)


def match_names(
    hook: RegisteredHook, fields: Mapping[str, Any]
) -> tuple[tuple[str, ...] | None, str | None]:
    """What a hook's matcher is compared with, and the first that it matches.

    Without names every matcher matches. For a tool that a coding agent calls by another
    name they are our name and theirs (protocol.md#planning).
    """
    traits, host = TRAITS[hook.event], fields.get("host")
    dialect, is_regex = None, traits.matching is Matching.REGEX
    names = [name_of(fields.get(traits.matched_field))]
    if hook.config.is_foreign:
        # Most hosts have no such hook and need not load the tables.
        from hookline.protocol import dialects

        dialect = dialects.DIALECTS[hook.config.dialect.value]
        if names[0] is not None:
            their_names = dialects.shown_names(dialect, hook.event, fields)
            names = [*map(name_of, their_names or [None])]
    elif names[0] is not None and is_regex and isinstance(host, Mapping):
        names += [name_of(host[k]) for k in _TOOL_NAMES if host.get(k) is not None]
    texts = tuple(dict.fromkeys(name for name in names if name is not None))
    if None in names:
        return None, None
    # Gemini CLI ignores surrounding spaces too.
    matcher = "" if hook.matcher is None else hook.matcher.strip()
    if traits.matching is Matching.NOTHING or matcher in {"", "*"}:
        return texts, texts[0]
    listed: tuple[str, ...] | None = None if is_regex else (matcher,)
    if dialect is not None:
        if listed is None or dialect.searches_all:
            listed = dialects.listed_names(dialect, matcher)
        matcher = dialects.python_expression(matcher)
    if listed is not None:
        return texts, next((name for name in texts if name in listed), None)
    expression = compile_matcher(matcher)
    matched = [name for name in texts if expression.matches(name)]
    # "Every tool but this one" must hold for each of its names.
    if expression.excludes and dialect is None and len(matched) < len(texts):
        return texts, None
    return texts, matched[0] if matched else None


def name_of(value: object) -> str | None:
    """A text by which hooks are chosen; None for what matches every matcher."""
    name = plain_text(value)
    return None if name is None or len(name) > MAX_NAME else name


class Matcher(Struct, frozen=True):
    """A compiled matcher."""

    search: Callable[[str], object]
    longest: int = MAX_NAME
    """Longer names match: to search them may take too long."""
    excludes: bool = False
    """Whether it says what it does not match, by a negative lookaround."""

    def matches(self, name: str) -> bool:
        """Whether it is found in a name, or nobody can tell in the time there is."""
        return len(name) > self.longest or bool(self.search(name))


@lru_cache(maxsize=16384)
def compile_matcher(pattern: str) -> Matcher:
    """Compile a matcher; an invalid expression is compared literally."""
    longest, search, searched, plain = -1, None, "", ""
    if len(pattern) <= MAX_PATTERN:
        try:
            with warnings.catch_warnings():
                # A mere warning about the pattern must not raise in a strict host.
                warnings.simplefilter("ignore")
                searched = _AROUND.sub("", pattern)
                search = re.compile(searched).search
        except (re.error, OverflowError, ValueError) as error:
            logger.warning(
                "matcher %r is not a valid regular expression (%s): compared literally",
                pattern,
                error,
            )
            return Matcher(pattern.__eq__)
        except (RecursionError, MemoryError):
            pass
    if search is not None:
        plain = _ESCAPE_OR_SET.sub("a", searched)
        longest = _longest_name(plain)
    if longest < _USUAL_NAME:
        logger.warning(
            "matcher %s is too complex: matches every name%s",
            repr(pattern) if len(pattern) <= 80 else f"{pattern[:77]!r}...",
            f" of more than {longest} characters" if longest > 0 else "",
        )
    return Matcher(search or bool, longest, "(?!" in plain or "(?<!" in plain)


def _longest_name(plain: str) -> int:
    """The longest name in which a search takes bounded time; -1 if there is none.

    ``plain`` is an expression with "a" for each escape and set. An alternative adds a
    way to match, an option doubles them, and ends of unbounded repeats follow one
    another in the name, as does the start of the search: ``k`` of them have
    ``comb(length + k, k)`` ways. A choice inside a repeat has no useful bound.
    """
    if re.search(r"\(\?(#|[a-zA-Z]*x)", plain):
        return -1  # comments may look like anything
    costs: dict[str, tuple[float, int]] = {}

    def fold(group: re.Match[str]) -> str:
        """A character for a group, in ``costs`` its ways and unbounded repeats."""
        all_ways, most_repeats = 0.0, 0
        for alternative in group[1].split("|"):
            ways, repeats = 1.0, 0
            for item, sign, least, comma, most in _ITEM.findall(alternative):
                inside, inside_repeats = costs.get(item, (1.0, 0))
                fewest, largest = _SIGNS[sign]
                if least or comma:
                    fewest = int(least or 0)
                    largest = int(most) if most else inf if comma else fewest
                repeats += inside_repeats
                if largest <= 1:
                    ways *= inside + 1 - fewest
                elif inside > 1 or inside_repeats or MAX_NAME < largest < inf:
                    ways = inf
                elif largest == inf:
                    repeats += 1
                else:
                    ways *= largest - fewest + 1
            all_ways, most_repeats = all_ways + ways, max(most_repeats, repeats)
        folded = chr(_FIRST_FOLDED + len(costs))
        costs[folded] = all_ways, most_repeats
        return folded

    count, plain = 1, f"({plain})"
    while count:
        plain, count = _INNERMOST_GROUP.subn(fold, plain)
    ways, repeats = costs.get(plain, (inf, 0))

    def ways_to_search(length: int) -> int:
        return comb(length + repeats + 1, repeats + 1)

    lengths = range(MAX_NAME + 1)
    return bisect_right(lengths, _MAX_WAYS / ways, key=ways_to_search) - 1
