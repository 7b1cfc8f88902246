"""What is wrong with a matcher, and what it was probably meant to be.

Apart from ``check``: a program that registers a hook with a matcher needs this alone,
and the reader of shell text behind the other findings takes 12 ms to load.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import chain

from hookline.protocol.dialects import DIALECTS, listed_names, python_expression
from hookline.protocol.events import TRAITS, HookEventName, Matching
from hookline.protocol.values import describe

from .model import Severity


def check_matcher(
    event: HookEventName, matcher: object, dialect: str | None
) -> tuple[Severity, str] | None:
    """What is wrong with a matcher that does not mean what its author thinks."""
    if not isinstance(matcher, str) or (matcher := matcher.strip()) in ("", "*"):
        return None
    traits = TRAITS[event]
    if traits.matching is Matching.NOTHING:
        message = f"ignored: {event} takes no matcher, the hooks run every time"
        return Severity.WARNING, message
    if dialect is not None:
        return _check_foreign_matcher(event, matcher, dialect)
    if traits.choices and matcher not in list(traits.choices):
        field = f"{traits.matched_field} is one of {', '.join(traits.choices)}"
        return Severity.WARNING, f"{describe(matcher)} never matches: {field}"
    if traits.matching is not Matching.REGEX:
        return None
    hint = _written_as(matcher)
    if problem := _regex_problem(matcher):
        message = f"invalid regular expression ({problem}): compared literally"
        return Severity.ERROR, f"{message}: {hint}" if hint else message
    if hint is not None:
        return Severity.WARNING, f"{describe(matcher)}: {hint}"
    names = matcher.split("|")
    our_tools = (it for host in DIALECTS.values() for it in host.tools.values())
    if set(names).isdisjoint(chain(*our_tools)):
        for dialect, host in DIALECTS.items():
            if all(name in host.tools for name in names):
                name = host.tools[names[0]][0]
                message = f"is what {dialect} calls it, here it is {name!r}"
                todo = f'set "dialect": "{dialect}" on the hooks'
                message = f"{describe(matcher)} {message}: {todo}"
                return Severity.HINT, f"{message} if they are written for that"
    return None


_CHEAP = r"[\w\s|^$()?:-]*"
"""Expressions that take no time to search, whoever wrote them."""


def _check_foreign_matcher(
    event: HookEventName, matcher: str, dialect: str
) -> tuple[Severity, str] | None:
    """Check a matcher as the host of the dialect reads it (protocol.md#dialects)."""
    host, traits = DIALECTS[dialect], TRAITS[event]
    is_tool = traits.matching is Matching.REGEX
    names = listed_names(host, matcher)
    tests: dict[str, Callable[[str], object]]
    tests = {name: name.__eq__ for name in names or (matcher,)}
    if names is None and (host.searches_all or is_tool):
        expression = python_expression(matcher)
        if problem := _regex_problem(expression):
            message = f"not a regular expression that Python can read ({problem})"
            return Severity.ERROR, f"{message}: compared literally"
        is_cheap = is_tool and re.fullmatch(_CHEAP, expression)
        tests = {matcher: re.compile(expression).search} if is_cheap else {}
    values = host.values.get(event, {})
    choices = sorted(values.get(choice, choice) for choice in traits.choices or ())
    for name, matches in tests.items():
        why = ""
        if is_tool and not any(map(matches, host.tools)):
            # It may name them as we do.
            tools = (it for it in host.tools if any(map(matches, host.tools[it])))
            names_there = " or ".join(map(describe, tools))
            why = f"the hook is shown {names_there}" if names_there else ""
        elif choices and name not in choices:
            why = f"{traits.matched_field} is one of {', '.join(choices)}"
        if why:
            return Severity.WARNING, f"{describe(name)} never matches: {why}"
    return None


def _regex_problem(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error) or type(error).__name__
    return None


def _written_as(matcher: str) -> str | None:
    """What to write instead of a glob, a list or a permission rule; None if it is none.

    ``write_*`` is a regular expression too, for ``write`` and any number of ``_``.
    """
    if rule := re.fullmatch(r"([A-Z]\w*)\([^|()]*\)", matcher):
        hint = "the matcher is only the name of the tool"
        return f"{hint}: did you mean {rule[1]!r}? Its input is for 'if'"
    if re.fullmatch(r"[\w*/.-]*\*\.\w+", matcher):
        return "it is compared with names of tools, not of files: use 'if' for those"
    if re.fullmatch(r"/.+/", matcher):
        return f"write it without slashes: did you mean {matcher[1:-1]!r}?"
    if re.fullmatch(r"[\w.*-]+(?:\s*,\s*[\w.*-]+)+", matcher):
        pattern = re.sub(r"\s*,\s*", "|", matcher)
        return f"did you mean {pattern!r}?"
    without_escapes = re.sub(r"\\.", "..", matcher)
    if re.search(r"(?<!\\)(?:^|(?<=[A-Za-z0-9_:/*-]))\*", without_escapes):
        pattern = re.sub(r"(?<!\.)\*+", ".*", matcher)
        return f"it is a regular expression, not a glob: did you mean {pattern!r}?"
    return None


def why_not(matcher: str, target: str, matches: Callable[[str, str], bool]) -> str:
    """Why a matcher does not match a name that it may be meant for; or nothing."""
    for dialect, host in DIALECTS.items():
        for name, our_names in host.tools.items():
            is_other = target in our_names and name not in our_names
            if is_other and matches(matcher, name):
                hint = f'{name!r} is its name for "dialect": "{dialect}"'
                return f"; {hint}: set that on the hooks, or write {target!r}"
    if other := _written_as(matcher.strip()):
        return f"; {other}"
    is_case = matcher != matcher.lower() and matches(matcher.lower(), target.lower())
    return "; upper and lower case count" if is_case else ""
