"""What a matcher was probably meant to be."""

from __future__ import annotations

import re
from collections.abc import Callable

from hookline.protocol.dialects import DIALECTS

_RULE = r"([A-Z]\w*)\([^|()]*\)"
_FILES = r"[\w*/.-]*\*\.\w+"
_LIST = r"[\w.*-]+(?:\s*,\s*[\w.*-]+)+"
_GLOB = r"(?<!\\)(?:^|(?<=[A-Za-z0-9_:/*-]))\*"
_ESCAPED = r"\\."


def written_as(matcher: str) -> str | None:
    """What to write instead of a glob, a list or a permission rule; None if it is none.

    ``write_*`` is a regular expression too, for ``write`` and any number of ``_``.
    """
    text = matcher.strip()
    if rule := re.fullmatch(_RULE, text):
        hint = "the matcher is only the name of the tool"
        return f"{hint}: did you mean {rule[1]!r}? Its input is for 'if'"
    if re.fullmatch(_FILES, text):
        return "it is compared with names of tools, not of files: use 'if' for those"
    if re.fullmatch(r"/.+/", text):
        return f"write it without slashes: did you mean {text[1:-1]!r}?"
    if re.fullmatch(_LIST, text):
        meant = "|".join(re.split(r"\s*,\s*", text))
        return f"did you mean {meant!r}?"
    if re.search(_GLOB, re.sub(_ESCAPED, "..", text)):
        meant = re.sub(r"(?<!\.)\*+", ".*", text)
        return f"it is a regular expression, not a glob: did you mean {meant!r}?"
    return None


def why_not(matcher: str, target: str, matches: Callable[[str, str], bool]) -> str:
    """Why a matcher does not match a name that it may be meant for; or nothing."""
    for dialect, theirs in DIALECTS.items():
        for name, ours in theirs.tools.items():
            if target in ours and name not in ours and matches(matcher, name):
                hint = f'{name!r} is its name for "dialect": "{dialect}"'
                return f"; {hint}: set that on the hooks, or write {target!r}"
    if meant := written_as(matcher):
        return f"; {meant}"
    is_case = matcher != matcher.lower() and matches(matcher.lower(), target.lower())
    return "; upper and lower case count" if is_case else ""


def foreign_names(matcher: str) -> tuple[str, str] | None:
    """A dialect, and our name, if a matcher lists names of another host only."""
    names = matcher.strip().split("|")
    for dialect, theirs in DIALECTS.items():
        if all(name in theirs.tools and name not in _ours() for name in names):
            return dialect, theirs.tools[names[0]][0]
    return None


def _ours() -> set[str]:
    return {
        name
        for one in DIALECTS.values()
        for ours in one.tools.values()
        for name in ours
    }
