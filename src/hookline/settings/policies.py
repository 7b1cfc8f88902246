"""The files of a cedar hook: policies, entities and a schema, read and parsed.

``execute.cedar`` asks them; ``hookline check`` reports what is wrong with them. Every
mistake is a ``SettingsError`` that names file, line and policy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from hookline.errors import MissingExtraError, SettingsError
from hookline.protocol.values import TooDeepError, decode, describe

from .model import HookConfig
from .places import resolved
from .read import read_text

if TYPE_CHECKING:
    import cedarpy

_TOKENS = r'//[^\n]*|"(?:[^"\\]|\\.)*"|;|[^\s;"/]+|["/]'
_NESTING = r'//[^\r\n]*|"(?:[^"\\]|\\.)*"|;|[\[({<>})\]]|&&|\|\||[-+*.]|\b(?:if|has)\b'
_POLICY_BRACKETS, _SCHEMA_BRACKETS = ("([{", ")]}"), ("([{<", ")]}>")
_MAX_LEVELS = 100
_MAX_OPERATORS = 3000
"""In one policy. Cedar's parser calls itself for each, and does not mind the stack:
thousands of them would end the process."""
_TOO_DEEP = "nested too deeply: use [...].contains(...), or several policies"
_MAX_ERROR = 500


class CedarFile(Struct, frozen=True):
    """One file of a cedar hook."""

    key: str
    """The key of the hook that names it."""
    name: str
    """As it is written in the settings."""
    path: str
    text: str = ""


class Policy(Struct, frozen=True):
    """One policy, as far as a verdict or a mistake names it."""

    id: str
    """Its ``@id``, or its number in its file as Cedar gives it."""
    file: CedarFile
    line: int
    effect: str
    reason: str | None = None

    @property
    def name(self) -> str:
        """What people know it by."""
        return f"{self.id} ({self.file.name})"


class PolicyStore(Struct, frozen=True):
    """The parsed files of one hook."""

    policy_set: cedarpy.PolicySet
    entities: cedarpy.Entities
    schema: cedarpy.Schema | None
    policies: tuple[Policy, ...]
    """In the order of the files: Cedar calls them policy0, policy1, ..."""
    words: frozenset[str]
    """All words of the policies, the names of fields among them."""
    declared: frozenset[str] | None
    """All words of the schema, if there is one."""


def cedar_files(hook: HookConfig, folder: str | None) -> list[CedarFile]:
    """The files that a cedar hook names, not read yet.

    ``folder`` is where relative paths start; None where they are refused.
    """
    named = [("policies", name) for name in hook.policies]
    named += [("entities", hook.entities)] if hook.entities else []
    named += [("schema", hook.schema)] if hook.schema else []
    for key, name in named:
        if folder is None and not os.path.isabs(os.path.expanduser(name)):  # noqa: PTH111, PTH117
            problem = "a relative path would be that of any project: name the whole"
            raise SettingsError(f"{key} {describe(name)}: {problem} path")
    return [CedarFile(key, name, resolved(name, folder or "")) for key, name in named]


def load_engine() -> Any:
    """Import the Cedar engine, or say how to install it."""
    try:
        import cedarpy
    except ImportError as error:
        raise MissingExtraError("cedar", "cedarpy") from error
    return cedarpy


def find_mistakes(files: list[CedarFile]) -> list[SettingsError]:
    """Read and parse files; return all mistakes."""
    errors: list[SettingsError] = []
    files_with_text = []
    for file in files:
        with _collecting(errors):
            files_with_text.append(replace(file, text=read_text(file.path)))
    return errors or parse_files(files_with_text)[1]


def parse_files(
    files: list[CedarFile],
) -> tuple[PolicyStore | None, list[SettingsError]]:
    """Parse files that were read; without a store where there are mistakes."""
    engine = load_engine()
    errors: list[SettingsError] = []
    file_of = {file.key: file for file in files}
    schema = entities = None
    with _collecting(errors):
        schema = _parse_schema(engine, file_of.get("schema"))
    with _collecting(errors):
        entities = _parse_entities(engine, file_of.get("entities"), schema)
    sources = [file for file in files if file.key == "policies"]
    policies: list[Policy] = []
    for file in sources:
        with _collecting(errors):
            policies += _parse_policies(engine, file)
    text = "\n".join(file.text for file in sources)
    if schema is not None and not errors:
        errors += _schema_errors(engine, text, schema, policies)
    if errors:
        return None, errors
    store = PolicyStore(
        policy_set=engine.PolicySet.from_str(text),
        entities=entities,
        schema=schema,
        policies=tuple(policies),
        words=frozenset(re.findall(r"[\w-]+", text)),
        declared=schema and frozenset(re.findall(r"\w+", str(schema))),
    )
    return store, []


@contextmanager
def _collecting(errors: list[SettingsError]) -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        errors.append(error)


def _parse_policies(engine: Any, file: CedarFile) -> list[Policy]:
    _refuse_deep(file, *_POLICY_BRACKETS)
    lines = [(start, file.text.count("\n", 0, start) + 1) for start in _starts(file)]
    try:
        syntax = decode(engine.policies_to_json_str(file.text))
    except TooDeepError:
        raise SettingsError(_TOO_DEEP, file.path) from None
    except ValueError as error:
        # The engine does not say where: the first policy that does not parse alone.
        ends = [*(start for start, _ in lines[1:]), len(file.text)]
        for (start, line), end in zip(lines, ends, strict=True):
            try:
                engine.PolicySet.from_str(file.text[start:end])
            except ValueError as mistake:
                problem = f"in the policy that starts here: {_cut(mistake)}"
                raise SettingsError(problem, file.path, line) from mistake
        raise SettingsError(_cut(error), file.path) from error
    if syntax["templates"]:
        problem = "a policy with ?principal or ?resource never applies: name them"
        raise SettingsError(problem, file.path)
    policies = []
    for number, (_, line) in enumerate(lines):
        # Cedar numbers the policies of a text from 0 on.
        policy = syntax["staticPolicies"][f"policy{number}"]
        notes = policy.get("annotations") or {}
        name = notes.get("id") or f"policy{number}"
        reason = notes.get("reason") or None
        policies.append(Policy(name, file, line, policy["effect"], reason))
    return policies


def _refuse_deep(file: CedarFile, opening: str, closing: str) -> None:
    level = operators = 0
    for match in re.finditer(_NESTING, file.text, re.DOTALL):
        mark = match[0]
        if mark in opening:
            level += 1
        elif mark in closing:
            level = max(0, level - 1)
        elif mark == ";":
            operators = operators if level else 0
        elif mark[0] not in '/"':
            operators += 1
        if level > _MAX_LEVELS or operators > _MAX_OPERATORS:
            line = file.text.count("\n", 0, match.start()) + 1
            raise SettingsError(_TOO_DEEP, file.path, line)


def _starts(file: CedarFile) -> list[int]:
    """Where each policy of a text starts; a semicolon ends one."""
    starts, ended = [], True
    for token in re.finditer(_TOKENS, file.text, re.DOTALL):
        if token[0].startswith("//"):
            continue
        if ended:
            starts.append(token.start())
        ended = token[0] == ";"
    return starts


def _parse_schema(engine: Any, file: CedarFile | None) -> Any:
    if file is None:
        return None
    parse = engine.Schema.from_json_str
    if not file.path.endswith(".json"):
        parse = engine.Schema.from_str
        _refuse_deep(file, *_SCHEMA_BRACKETS)
    try:
        return parse(file.text)
    except ValueError as error:
        problem = f"not a valid Cedar schema: {_cut(error)}"
        raise SettingsError(problem, file.path) from error


def _parse_entities(engine: Any, file: CedarFile | None, schema: Any) -> Any:
    if file is None:
        return engine.Entities.from_json_str("[]", schema)
    try:
        decode(file.text)
        return engine.Entities.from_json_str(file.text, schema)
    except ValueError as error:
        line, detail = getattr(error, "lineno", None), ""
        if line is None:
            # Only a request says what is wrong, after the whole text.
            anybody = {"type": "Agent", "id": ""}
            request = dict.fromkeys(("principal", "action", "resource"), anybody)
            answer = engine.is_authorized(request, "", file.text, schema)
            problems = " ".join(answer.diagnostics.errors)
            detail = problems.rpartition(f"{file.text}: ")[2]
        problem = f"not valid Cedar entities: {_cut(detail or error)}"
        raise SettingsError(problem, file.path, line) from error


def _schema_errors(
    engine: Any, text: str, schema: Any, policies: list[Policy]
) -> Iterator[SettingsError]:
    for error in engine.validate_policies(text, schema).errors:
        number = error.policy_id.removeprefix("policy")
        if not number.isdecimal():
            yield SettingsError(_cut(error.error))
            continue
        policy = policies[int(number)]
        problem = error.error.removeprefix(f"for policy `{error.policy_id}`, ")
        problem = f"policy {policy.id}: {_cut(problem)}"
        yield SettingsError(problem, policy.file.path, policy.line)


def _cut(problem: object) -> str:
    text = str(problem)
    return text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}[...]"
