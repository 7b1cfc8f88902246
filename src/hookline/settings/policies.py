"""The files of a cedar hook: policies, entities and a schema, read and parsed.

``execute.cedar`` asks them; ``hookline check`` reports what is wrong with them. Every
mistake is a ``SettingsError`` that names file, line and policy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import MissingExtraError, SettingsError
from hookline.protocol.values import TooDeepError, decode, describe

from .model import HookConfig
from .places import resolved
from .read import read_text

if TYPE_CHECKING:
    import cedarpy

RELATIVE_PATH = "a relative path would be that of any project: name the whole path"

_TOKENS = r'//[^\n]*|"(?:[^"\\]|\\.)*"|;|[^\s;"/]+|["/]'
_NESTING = r'//[^\r\n]*|"(?:[^"\\]|\\.)*"|;|[\[({<>})\]]|&&|\|\||[-+*.]|\b(?:if|has)\b'
_POLICY_BRACKETS, _SCHEMA_BRACKETS = ("([{", ")]}"), ("([{<", ")]}>")
_MAX_LEVELS = 100
_MAX_OPERATORS = 3000
"""In one policy. Cedar's parser calls itself for each, and does not mind the stack:
thousands of them would end the process."""
_TOO_DEEP = "nested too deeply: use [...].contains(...), or several policies"
_MAX_ERROR = 500

_T = TypeVar("_T")
UsedFields: TypeAlias = "dict[str, UsedFields] | None"
"""The parts of a value that policies look at: None for all of it, no part where they
only ask whether it is there."""


class CedarFile(Struct, frozen=True):
    """One file of a cedar hook."""

    key: str
    """The key of the hook that names it."""
    name: str
    """As it is written in the settings."""
    path: str
    text: str = ""


class Policy(Struct, frozen=True):
    """One policy, as far as a verdict names it."""

    id: str
    """Its ``@id``, or its number in its file as Cedar gives it."""
    file: str
    effect: str
    reason: str | None = None

    @property
    def name(self) -> str:
        """What people know it by."""
        return f"{self.id} ({self.file})"

    @property
    def log(self) -> str:
        """What is recorded where it decides."""
        return f"{self.effect}: {self.name}"


class PolicyStore(Struct, frozen=True):
    """The parsed files of one hook."""

    policies: cedarpy.PolicySet
    entities: cedarpy.Entities
    schema: cedarpy.Schema | None
    known: tuple[Policy, ...]
    """In the order of the files: Cedar calls them policy0, policy1, ..."""
    used: UsedFields
    declared: frozenset[str]
    """All words of the schema."""


def cedar_files(hook: HookConfig, folder: str | None) -> list[CedarFile]:
    """The files that a cedar hook names, not read yet.

    ``folder`` is where relative paths start; None where they are refused.
    """
    named = [("policies", name) for name in hook.policies]
    named += [("entities", hook.entities)] if hook.entities else []
    named += [("schema", hook.schema)] if hook.schema else []
    for key, name in named:
        if folder is None and is_relative(name):
            raise SettingsError(f"{key} {describe(name)}: {RELATIVE_PATH}")
    return [CedarFile(key, name, resolved(name, folder or "")) for key, name in named]


def is_relative(name: str) -> bool:
    """Whether a path depends on the folder that it is used in."""
    return not os.path.isabs(os.path.expanduser(name))  # noqa: PTH111, PTH117


def parse_files(files: list[CedarFile]) -> PolicyStore:
    """Parse files that were read; raises ``SettingsError`` for the first mistake."""
    store, errors = _parse(files)
    if store is None:
        raise errors[0]
    return store


def find_mistakes(files: list[CedarFile]) -> list[SettingsError]:
    """Read and parse files; return all mistakes."""
    unread: list[SettingsError] = []
    read = [_attempt(unread, _read, file) for file in files]
    return unread or _parse([file for file in read if file is not None])[1]


def load_engine() -> Any:
    """Import the Cedar engine, or say how to install it."""
    try:
        import cedarpy
    except ImportError as error:
        raise MissingExtraError("cedar", "cedarpy") from error
    return cedarpy


def _read(file: CedarFile) -> CedarFile:
    return replace(file, text=read_text(file.path))


def _attempt(
    errors: list[SettingsError], step: Callable[..., _T], *args: Any
) -> _T | None:
    try:
        return step(*args)
    except SettingsError as error:
        errors.append(error)
        return None


def _parse(files: list[CedarFile]) -> tuple[PolicyStore | None, list[SettingsError]]:
    errors: list[SettingsError] = []
    sources = [file for file in files if file.key == "policies"]
    others = {file.key: file for file in files if file.key != "policies"}
    schema = _attempt(errors, _parse_schema, others.get("schema"))
    entities = _attempt(errors, _parse_entities, others.get("entities"), schema)
    parsed = [_attempt(errors, _parse_policies, file) for file in sources]
    if errors or entities is None:
        return None, errors
    known = [policy for part in parsed for policy in part or ()]
    text = "\n".join(file.text for file in sources)
    errors += _schema_errors(text, schema, known)
    if errors:
        return None, errors
    engine = load_engine()
    store = PolicyStore(
        policies=engine.PolicySet.from_str(text),
        entities=entities,
        schema=schema,
        known=tuple(one.policy for one in known),
        used=_used_fields([one.tree for one in known]),
        declared=frozenset(re.findall(r"\w+", str(schema or ""))),
    )
    return store, errors


class _Parsed(Struct, frozen=True):
    """One policy with its syntax tree, and its position in its file."""

    policy: Policy
    tree: Any
    file: CedarFile
    number: int

    @property
    def line(self) -> int | None:
        """Where it starts."""
        starts = _starts(self.file.text)
        if self.number >= len(starts):
            return None
        return self.file.text.count("\n", 0, starts[self.number]) + 1


def _parse_policies(file: CedarFile) -> list[_Parsed]:
    engine = load_engine()
    _refuse_deep(file, *_POLICY_BRACKETS)
    try:
        written = decode(engine.policies_to_json_str(file.text))
    except TooDeepError:
        raise SettingsError(_TOO_DEEP, file.path) from None
    except ValueError as error:
        raise _syntax_error(engine, file, error) from error
    if written["templates"]:
        problem = "a policy with ?principal or ?resource never applies: name them"
        raise SettingsError(problem, file.path)
    trees = written["staticPolicies"]
    # Cedar numbers the policies of a text from 0 on.
    ordered = [trees[f"policy{number}"] for number in range(len(trees))]
    return [
        _Parsed(_policy(file, number, tree), tree, file, number)
        for number, tree in enumerate(ordered)
    ]


def _refuse_deep(file: CedarFile, opening: str, closing: str) -> None:
    level = operators = 0
    for found in re.finditer(_NESTING, file.text, re.DOTALL):
        mark = found[0]
        if mark in opening:
            level += 1
        elif mark in closing:
            level = max(0, level - 1)
        elif mark == ";":
            operators = operators if level else 0
        elif mark[0] not in '/"':
            operators += 1
        if level > _MAX_LEVELS or operators > _MAX_OPERATORS:
            line = file.text.count("\n", 0, found.start()) + 1
            raise SettingsError(_TOO_DEEP, file.path, line)


def _policy(file: CedarFile, number: int, tree: Any) -> Policy:
    notes = tree.get("annotations") or {}
    return Policy(
        id=notes.get("id") or f"policy{number}",
        file=file.name,
        effect=tree["effect"],
        reason=notes.get("reason") or None,
    )


def _starts(text: str) -> list[int]:
    """Where each policy of a text starts; a semicolon ends one."""
    starts, ended = [], True
    for found in re.finditer(_TOKENS, text, re.DOTALL):
        if found[0].startswith("//"):
            continue
        if ended:
            starts.append(found.start())
        ended = found[0] == ";"
    return starts


def _syntax_error(engine: Any, file: CedarFile, error: ValueError) -> SettingsError:
    """The error, with the line of the first policy that does not parse alone."""
    starts = _starts(file.text)
    for start, end in zip(starts, [*starts[1:], len(file.text)], strict=True):
        try:
            engine.PolicySet.from_str(file.text[start:end])
        except ValueError as found:
            line = file.text.count("\n", 0, start) + 1
            problem = f"in the policy that starts here: {_cut(str(found))}"
            return SettingsError(problem, file.path, line)
    return SettingsError(_cut(str(error)), file.path)


def _parse_schema(file: CedarFile | None) -> Any:
    if file is None:
        return None
    schema = load_engine().Schema
    is_json = file.path.endswith(".json")
    if not is_json:
        _refuse_deep(file, *_SCHEMA_BRACKETS)
    try:
        return (schema.from_json_str if is_json else schema.from_str)(file.text)
    except ValueError as error:
        problem = f"not a valid Cedar schema: {_cut(str(error))}"
        raise SettingsError(problem, file.path) from error


def _parse_entities(file: CedarFile | None, schema: Any) -> Any:
    engine = load_engine()
    if file is None:
        return engine.Entities.from_json_str("[]", schema)
    try:
        decode(file.text)
        return engine.Entities.from_json_str(file.text, schema)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        detail = _entities_problem(engine, file.text, schema) if line is None else ""
        problem = f"not valid Cedar entities: {_cut(detail or str(error))}"
        raise SettingsError(problem, file.path, line) from error


def _entities_problem(engine: Any, text: str, schema: Any) -> str:
    """What is wrong, in detail: only a request tells it."""
    anybody = {"type": "Agent", "id": ""}
    parts = ("principal", "action", "resource")
    asked = engine.is_authorized(dict.fromkeys(parts, anybody), "", text, schema)
    found = " ".join(asked.diagnostics.errors)
    # The message starts with the whole text.
    return found.rpartition(f"{text}: ")[2]


def _schema_errors(
    text: str, schema: Any, known: list[_Parsed]
) -> Iterator[SettingsError]:
    if schema is None:
        return
    for error in load_engine().validate_policies(text, schema).errors:
        number = error.policy_id.removeprefix("policy")
        if not number.isdecimal():
            yield SettingsError(_cut(error.error))
            continue
        one = known[int(number)]
        problem = error.error.removeprefix(f"for policy `{error.policy_id}`, ")
        problem = f"policy {one.policy.id}: {_cut(problem)}"
        yield SettingsError(problem, one.file.path, one.line)


def _used_fields(trees: list[Any]) -> UsedFields:
    """Which parts of the context any policy looks at."""
    used: dict[str, UsedFields] = {}
    waiting = list(trees)
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            path = _context_path(node)
            if path is None:
                waiting += node.values()
            elif not path or "\ufffd" in "".join(path):
                return None  # that letter stands for others, in keys too
            else:
                _mark(used, path, whole="has" not in node)
    return used


def _context_path(node: dict[str, Any]) -> list[str] | None:
    """The attributes of ``context.a.b`` or ``context.a has b``; None for the rest."""
    path: list[str] = []
    while node != {"Var": "context"}:
        inner = node.get(".") or node.get("has") if len(node) == 1 else None
        if not isinstance(inner, dict) or not isinstance(inner.get("attr"), str):
            return None
        path.insert(0, inner["attr"])
        node = inner["left"]
    return path


def _mark(used: dict[str, UsedFields], path: list[str], *, whole: bool) -> None:
    for step in path[:-1]:
        deeper = used.setdefault(step, {})
        if deeper is None:
            return  # all of it is used anyway
        used = deeper
    if whole:
        used[path[-1]] = None
    else:
        used.setdefault(path[-1], {})


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}[...]"
