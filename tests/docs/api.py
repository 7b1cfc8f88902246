"""The public callables: their parameters, and what their docstrings explain.

Read from the source, so that adapters count whose frameworks are not installed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe
from msgspec import Struct

from .pages import ROOT

API = ROOT / "docs" / "reference" / "python"
_LISTED = re.compile(r"^::: (\S+)$((?:\n {4}.*)*)", re.MULTILINE)


class Parameters(Struct, frozen=True):
    """One public callable."""

    name: str
    """Dotted, as on its page: ``hookline.agent.hooked_tool``."""
    names: frozenset[str]
    """Its parameters."""
    optional: frozenset[str]
    """Those with a default."""
    takes_any: bool
    """Whether it takes other keywords too."""
    docs: str
    """Its docstring, and that of its class."""

    @property
    def called(self) -> str:
        """The name that it is called by on pages."""
        name = self.name.removesuffix(".__init__")
        return name.rpartition(".")[2]


def public_callables() -> list[Parameters]:
    """All on the pages of the Python API: functions, constructors, methods."""
    source = griffe.GriffeLoader(search_paths=[ROOT / "src"], allow_inspection=False)
    package = source.load("hookline")
    found: dict[str, Parameters] = {}
    for page in sorted(API.glob("*.md")):
        for name, options in _LISTED.findall(page.read_text()):
            subject = package[name.removeprefix("hookline.")]
            for one in _callables(name, subject, _members(options)):
                found.setdefault(one.name, one)
    return list(found.values())


def _members(options: str) -> set[str] | None:
    """The methods that a page shows; None for all."""
    listed = re.search(r"members: (?:false|\[(.*)\])", options)
    return None if listed is None else set(re.findall(r"\w+", listed[1] or ""))


def _callables(
    name: str, subject: Any, members: set[str] | None
) -> Iterator[Parameters]:
    if subject.is_module:  # all that it defines
        for inner, one in subject.members.items():
            if inner[0] != "_" and not one.is_alias and not one.is_module:
                yield from _callables(f"{name}.{inner}", one, members)
    elif subject.is_function:
        yield _parameters(name, subject, "")
    elif subject.is_class:
        if fields := _fields(subject):
            listed = " ".join(fields)  # each has its own line on the page
            yield Parameters(f"{name}.__init__", fields, frozenset(), False, listed)
        for method, one in _methods(subject):
            if method == "__init__" or _is_shown(method, members):
                yield _parameters(f"{name}.{method}", one, _docs(subject))


def _is_shown(method: str, members: set[str] | None) -> bool:
    return method[0] != "_" if members is None else method in members


def _methods(subject: Any) -> Iterator[tuple[str, Any]]:
    """The methods of a class, and what is made of one: ``fire = wait(fire_async)``."""
    found = {name: one for name, one in subject.members.items() if one.is_function}
    yield from found.items()
    for name, one in subject.members.items():
        if "class-attribute" in one.labels and "(" in str(one.value):
            for word in found.keys() & set(re.findall(r"\w+", str(one.value))):
                yield name, found[word]


def _fields(subject: Any) -> frozenset[str]:
    """The fields of a struct, which its constructor takes."""
    if "Struct" not in map(str, subject.bases):
        return frozenset()
    attributes = (one for one in subject.members.values() if one.is_attribute)
    return frozenset(
        one.name
        for one in attributes
        if one.annotation is not None and "property" not in one.labels
    )


def _docs(subject: Any) -> str:
    return subject.docstring.value if subject.docstring else ""


def _parameters(name: str, subject: Any, docs: str) -> Parameters:
    kinds = griffe.ParameterKind
    variadic = (kinds.var_positional, kinds.var_keyword)
    named = [
        one
        for one in subject.parameters
        if one.kind not in variadic and one.name not in ("self", "cls")
    ]
    return Parameters(
        name=name,
        names=frozenset(one.name for one in named),
        optional=frozenset(one.name for one in named if one.default is not None),
        takes_any=any(one.kind is kinds.var_keyword for one in subject.parameters),
        docs=f"{docs}\n{_docs(subject)}",
    )
