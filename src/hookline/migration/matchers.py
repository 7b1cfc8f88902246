"""Claude Code's matchers in ours, which are searched in tool names of our own.

Theirs: none, blank or ``*`` match everything; a name, or names with ``|`` between,
match exactly; anything else is a regular expression, searched in the tool's name.
"""

from __future__ import annotations

import re

from msgspec import Struct

from hookline.dialects import CLAUDE_TOOLS

_NAMES = re.compile(r"[A-Za-z0-9_\-| ]+")
_OUR_NAMES = tuple(dict.fromkeys(our for ours in CLAUDE_TOOLS.values() for our in ours))
_EVERYTHING = (".*", "^.*$", ".+", "^.+$", "(.*)")

_OWN_NAMES = (
    "matcher {!r} meets the tool names of your own host: "
    "see that its servers' tools are named so"
)


class Matcher(Struct, frozen=True):
    """Matchers in our spelling, any of which is to match, and what to know of them."""

    patterns: tuple[str | None, ...]
    notes: tuple[str, ...] = ()


EVERYTHING = Matcher((None,))


def tool_matcher(theirs: str | None) -> Matcher:
    """Translate the matcher of a tool event."""
    if _is_everything(theirs):
        return EVERYTHING
    assert theirs is not None
    notes: tuple[str, ...] = ()
    if _NAMES.fullmatch(theirs):
        pattern = _by_names([name.strip() for name in theirs.split("|")])
    else:
        pattern, notes = _by_expression(theirs)
    if "mcp__" in theirs:
        notes += (_OWN_NAMES.format(theirs),)
    return Matcher((pattern,), notes)


def plain_matcher(theirs: str | None, known: dict[str, str]) -> Matcher:
    """Translate a matcher that is compared exactly here: one for each value it names.

    ``known`` maps their values to ours.
    """
    if _is_everything(theirs):
        return EVERYTHING
    assert theirs is not None
    values = _values(theirs, known)
    unknown = [value for value in values if value not in known]
    return Matcher(
        tuple(known[value] for value in values if value in known),
        tuple(f"matcher {value!r}: this never happens here" for value in unknown),
    )


def _is_everything(theirs: str | None) -> bool:
    return theirs is None or theirs.strip() in ("", "*", *_EVERYTHING)


def _values(theirs: str, known: dict[str, str]) -> list[str]:
    if _NAMES.fullmatch(theirs):
        return [value.strip() for value in theirs.split("|")]
    try:
        expression = re.compile(theirs)
    except re.error:
        return [theirs]
    return [value for value in known if expression.search(value)] or [theirs]


def _by_names(names: list[str]) -> str:
    ours = [our for name in names for our in CLAUDE_TOOLS.get(name, (re.escape(name),))]
    return _exactly(ours)


def _exactly(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return f"^{unique[0]}$" if len(unique) == 1 else f"^(?:{'|'.join(unique)})$"


def _by_expression(theirs: str) -> tuple[str, tuple[str, ...]]:
    try:
        expression = re.compile(theirs)
    except re.error as error:
        return theirs, (f"matcher {theirs!r} is no regular expression here ({error})",)
    tools = [name for name in CLAUDE_TOOLS if expression.search(name)]
    meant = [our for name in tools for our in CLAUDE_TOOLS[name]]
    simple = f"{_exactly(meant)}|{theirs}" if meant else theirs
    if all(bool(re.search(simple, our)) == (our in meant) for our in _OUR_NAMES):
        return simple, ()
    # Their expression would match one of our names by accident: it judges others only.
    others = f"^(?!(?:{'|'.join(_OUR_NAMES)})$)(?=.*?(?:{theirs}))"
    return (f"{_exactly(meant)}|{others}" if meant else others), ()
