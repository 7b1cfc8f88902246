"""The files of a cedar hook: policies, entities and a schema, read and parsed.

``execute.cedar`` asks them; ``hookline check`` reports what is wrong with them. Every
mistake is a ``SettingsError`` that names file, line and policy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
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

_TOKENS = r'//[^\r\n]*|"(?:[^"\\]|\\.)*"|&&|\|\||\w+|\S'
_OPERATORS = frozenset({"&&", "||", "<", ">", "+", "-", "*", ".", "if", "has"})
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
    names = [("policies", name) for name in hook.policies]
    names += [("entities", hook.entities)] if hook.entities else []
    names += [("schema", hook.schema)] if hook.schema else []
    for key, name in names:
        if folder is None and not os.path.isabs(os.path.expanduser(name)):  # noqa: PTH111, PTH117
            problem = "a relative path would be that of any project: name the whole"
            raise SettingsError(f"{key} {describe(name)}: {problem} path")
    return [CedarFile(key, name, resolved(name, folder or "")) for key, name in names]


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
    for number, file in enumerate(files):
        try:
            files[number] = replace(file, text=read_text(file.path))
        except SettingsError as error:
            errors.append(error)
    return errors or parse_files(files)[1]


def parse_files(
    files: list[CedarFile],
) -> tuple[PolicyStore | None, list[SettingsError]]:
    """Parse files that were read; without a store where there are mistakes."""
    engine = load_engine()
    errors: list[SettingsError] = []
    schema = entities = None
    policies: list[Policy] = []
    # Entities are checked against the schema.
    for file in sorted(files, key=lambda file: file.key, reverse=True):
        try:
            if file.key == "schema":
                schema = _parse_schema(engine, file)
            elif file.key == "policies":
                policies += _parse_policies(engine, file)
            else:
                entities = _parse_entities(engine, file, schema)
        except SettingsError as error:
            errors.append(error)
    text = "\n".join(file.text for file in files if file.key == "policies")
    if schema is not None and not errors:
        for mistake in engine.validate_policies(text, schema).errors:
            number = mistake.policy_id.removeprefix("policy")
            if not number.isdecimal():
                errors.append(SettingsError(_cut(mistake.error)))
                continue
            policy = policies[int(number)]
            problem = mistake.error.removeprefix(f"for policy `{mistake.policy_id}`, ")
            problem = f"policy {policy.id}: {_cut(problem)}"
            errors.append(SettingsError(problem, policy.file.path, policy.line))
    if errors:
        return None, errors
    store = PolicyStore(
        policy_set=engine.PolicySet.from_str(text),
        # With a schema there are its actions, also without a file.
        entities=entities or engine.Entities.from_json_str("[]", schema),
        schema=schema,
        policies=tuple(policies),
        words=frozenset(re.findall(r"[\w-]+", text)),
        declared=schema and frozenset(re.findall(r"\w+", str(schema))),
    )
    return store, []


def _parse_policies(engine: Any, file: CedarFile) -> Iterator[Policy]:
    starts = _statements(file, "([{", ")]}")
    lines = [file.text.count("\n", 0, start) + 1 for start in starts]
    try:
        syntax = decode(engine.policies_to_json_str(file.text))
    except TooDeepError:
        raise SettingsError(_TOO_DEEP, file.path) from None
    except ValueError as error:
        # The engine does not say where: the first policy that does not parse alone.
        for start, end, line in zip(starts, [*starts[1:], None], lines, strict=True):
            try:
                engine.PolicySet.from_str(file.text[start:end])
            except ValueError as mistake:
                problem = f"in the policy that starts here: {_cut(mistake)}"
                raise SettingsError(problem, file.path, line) from mistake
        raise SettingsError(_cut(error), file.path) from error
    if syntax["templates"]:
        problem = "a policy with ?principal or ?resource never applies: name them"
        raise SettingsError(problem, file.path)
    for number, line in enumerate(lines):
        # Cedar numbers the policies of a text from 0 on.
        policy = syntax["staticPolicies"][f"policy{number}"]
        notes = policy.get("annotations") or {}
        name = notes.get("id") or f"policy{number}"
        yield Policy(name, file, line, policy["effect"], notes.get("reason") or None)


def _statements(file: CedarFile, opening: str, closing: str) -> list[int]:
    """Where the statements of a text start; refuses one that is nested too deeply."""
    starts, has_ended, level, operators = list[int](), True, 0, 0
    for match in re.finditer(_TOKENS, file.text, re.DOTALL):
        word = match[0]
        if word.startswith("//"):
            continue
        if has_ended:
            starts.append(match.start())
        has_ended = word == ";"
        if word in opening:
            level += 1
        elif word in closing:
            level = max(0, level - 1)
        elif has_ended:
            operators = operators if level else 0
        elif word in _OPERATORS:
            operators += 1
        if level > _MAX_LEVELS or operators > _MAX_OPERATORS:
            line = file.text.count("\n", 0, match.start()) + 1
            raise SettingsError(_TOO_DEEP, file.path, line)
    return starts


def _parse_schema(engine: Any, file: CedarFile) -> Any:
    parse = engine.Schema.from_json_str
    if not file.path.endswith(".json"):
        parse = engine.Schema.from_str
        _statements(file, "([{<", ")]}>")
    try:
        return parse(file.text)
    except ValueError as error:
        problem = f"not a valid Cedar schema: {_cut(error)}"
        raise SettingsError(problem, file.path) from error


def _parse_entities(engine: Any, file: CedarFile, schema: Any) -> Any:
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


def _cut(problem: object) -> str:
    text = str(problem)
    return text if len(text) <= _MAX_ERROR else f"{text[:_MAX_ERROR]}[...]"
