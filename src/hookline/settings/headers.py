"""The headers of http hooks: the variables they name, and what cannot be sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_VARIABLE = r"(?<!\$)\$\{([^{}]*)\}"
_MISTAKEN = r"(?<!\$)\$(?:\{|[A-Z_]{2})"
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CONTROL = r"[\x00-\x08\x0a-\x1f\x7f]"
_CREDENTIAL = r"auth|token|secret|key|cookie|passw|credential|signature"
_FRAMING = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "host"),
        *("keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"),
        "upgrade",
    }
)
OWN_PREFIX = "x-hookline-"
"""Headers that say where an event comes from; a hook cannot set these."""


def variables(value: str) -> list[str]:
    """The names between ``${`` and ``}``, in order; ``$${`` starts none."""
    return re.findall(_VARIABLE, value)


def looks_like_variable(value: str) -> bool:
    """Whether ``$NAME`` or ``${NAME`` is sent as written, and probably by mistake."""
    return not variables(value) and re.search(_MISTAKEN, value) is not None


def replace_variables(value: str, look_up: Callable[[str], str]) -> str:
    """The value of a header with its variables replaced."""
    return re.sub(_VARIABLE, lambda match: look_up(match[1]), value)


def is_credential(name: str) -> bool:
    """Whether a header or a parameter of this name looks like a credential."""
    return re.search(_CREDENTIAL, name, re.IGNORECASE) is not None


def names_problem(names: Iterable[str]) -> tuple[str, str] | None:
    """The first header that cannot be sent, and why; None if all can."""
    lowered_names: set[str] = set()
    for name in names:
        lowered = name.lower()
        if re.fullmatch(_NAME, name) is None:
            return name, "is not a valid name of a header"
        if lowered in _FRAMING or lowered.startswith(OWN_PREFIX):
            return name, "is set by Hookline: remove it"
        if lowered in lowered_names:
            return name, "is given twice, in different spellings: remove one"
        lowered_names.add(lowered)
    return None


def value_problem(value: str) -> str | None:
    """Why a value cannot be sent in a header; None if it can."""
    if re.search(_CONTROL, value):
        return "holds a line break or another control character: remove it"
    return None
