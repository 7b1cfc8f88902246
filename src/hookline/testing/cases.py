"""Read ``*.hooktest.toml``: cases as data, with defaults for the whole file.

Raises ``HookTestError`` with file and line, and suggests the nearest known key.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from hookline.errors import SettingsError, nearest
from hookline.protocol.events import HookEventName

SUFFIX = ".hooktest.toml"
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})
_MERGED = ("env", "files", "links")
_CASE_HEADER = re.compile(r"\s*\[\[\s*case\s*\]\]")


class HookTestError(SettingsError):
    """An invalid hooktest file, with the line of the mistake."""


class ServerAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What the server of a case answers."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = {}
    delay_ms: float = 0
    drip_ms: float = 0
    """Send one byte at a time, this far apart."""


class EventFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of an event."""

    event: str = ""
    tool: str | None = None
    tool_input: dict[str, Any] | None = None
    tool_response: dict[str, Any] | None = None
    prompt: str | None = None
    llm_request: dict[str, Any] | None = None
    llm_response: dict[str, Any] | None = None
    session_id: str | None = None
    input: dict[str, Any] = {}
    """Any other fields."""


class HookTestCase(EventFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event with its expected outcome."""

    name: str = ""
    kind: str = ""
    before: list[dict[str, Any]] = []
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    setup: str | None = None
    after: str | None = None
    server: ServerAnswer | None = None
    expect: str = "allow"
    message: str | None = None
    context: str | None = None
    changed: dict[str, Any] | None = None
    unchanged: bool = False
    output: dict[str, Any] | None = None
    wrote: dict[str, str] = {}
    absent: list[str] = []
    received: str | None = None
    fails: bool = False
    """The hook is expected to crash or time out."""


class FileFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a file that are not those of a case."""

    hook: str | list[str] | None = None
    rule: str | None = None
    """The name of a rule in the project's settings."""
    settings: str | None = None
    sequential: bool = False
    type: str = "command"
    timeout: float = 60_000


class HookTestFile(FileFields, frozen=True, kw_only=True):
    """All cases of one file, and the hooks they test."""

    path: Path
    hooks: tuple[Path, ...] = ()
    cases: tuple[HookTestCase, ...] = ()


Names = tuple[str, ...]
_TYPES = ("command", "worker")
_EVENTS = tuple(HookEventName)
_DECISIONS = ("allow", "block", "ask", "stop")
_CASE_KEYS = HookTestCase.__struct_fields__
_FILE_KEYS = FileFields.__struct_fields__
_EVENT_KEYS = EventFields.__struct_fields__


def find_files(places: list[Path]) -> list[Path]:
    """All hooktest files in the given files and folders, in order."""
    files: dict[Path, None] = {}
    for place in places:
        if not place.exists():
            raise HookTestError("no such file or folder", place)
        files |= dict.fromkeys(_walk(place) if place.is_dir() else [place])
    return list(files)


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            # Another repository is not run by a test of the one around it.
            foreign = os.path.lexists(f"{entry.path}/.git")
            if entry.name not in _SKIPPED_FOLDERS and not foreign:
                yield from _walk(folder / entry.name)
        elif entry.name.endswith(SUFFIX):
            yield folder / entry.name


def read_file(path: Path) -> HookTestFile:
    """Read one file; raises ``HookTestError``."""
    if path.exists() and not path.is_file():
        raise HookTestError("is not a regular file", path)
    try:
        text = path.read_text("utf-8")
        raw = tomllib.loads(text)
    except OSError as error:
        raise HookTestError(str(error.strerror), path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = int(line[1]) if line else None
        raise HookTestError(f"invalid TOML: {error}", path, where) from error
    return _FileReader(path, text).read(raw)


class _FileReader:
    """Checks and converts one file; keeps its text to find the lines of mistakes."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        headers = [n for n, line in enumerate(self._lines) if _CASE_HEADER.match(line)]
        self._headers = [*headers, len(self._lines)]

    def read(self, raw: dict[str, Any]) -> HookTestFile:
        head = self._part(None)
        self._check_keys(raw, ("case", *_FILE_KEYS, *_CASE_KEYS), head)
        file_keys = {key: raw[key] for key in _FILE_KEYS if key in raw}
        defaults = {key: raw[key] for key in _CASE_KEYS if key in raw}
        fields = self._converted(file_keys, FileFields, head)
        cases = raw.get("case")
        if not isinstance(cases, list) or not cases:
            raise self._error("no cases: start each with [[case]]", None)
        self._check_choice("type", fields.type, _TYPES, head)
        self._check_settings_mode(fields, raw)
        # The cases first: a typo in one is a likelier mistake than a missing script.
        read = tuple(
            self._case(raw_case, defaults, n) for n, raw_case in enumerate(cases)
        )
        hooks = self._hooks(fields)
        return HookTestFile(
            **structs.asdict(fields), path=self._path, hooks=hooks, cases=read
        )

    def _case(self, raw: Any, defaults: dict[str, Any], index: int) -> HookTestCase:
        part = self._part(index)
        if not isinstance(raw, dict):
            raise self._error("expected a table: [[case]]", None)
        self._check_keys(raw, _CASE_KEYS, part)
        merged = {"name": f"case {index + 1}"} | defaults | raw
        for key in _MERGED:
            if isinstance(defaults.get(key), dict) and isinstance(raw.get(key), dict):
                merged[key] = defaults[key] | raw[key]
        case: HookTestCase = self._converted(merged, HookTestCase, part)
        self._check_case(case, part)
        return case

    def _check_case(self, case: HookTestCase, part: range) -> None:
        if not case.event:
            raise self._error("the event is missing: add event = ...", None, part)
        self._check_choice("event", case.event, _EVENTS, part)
        for earlier in case.before:
            self._check_keys(earlier, _EVENT_KEYS, part)
            event = earlier.get("event", case.event)
            self._check_choice("event", event, _EVENTS, part)
        self._check_choice("expect", case.expect, _DECISIONS, part)
        patterns = {"message": case.message, "context": case.context}
        patterns |= {"received": case.received, **case.wrote}
        for key, pattern in patterns.items():
            try:
                re.compile(pattern or "")
            except re.error as error:
                problem = f"{key} = {pattern!r} is not a regular expression: {error}"
                raise self._error(problem, key, part) from error

    def _check_choice(self, key: str, value: Any, names: Names, part: range) -> None:
        if value not in names:
            raise self._error(f"{key} = {value!r}: {_hint(value, names)}", key, part)

    def _check_settings_mode(self, fields: FileFields, raw: dict[str, Any]) -> None:
        if fields.rule is not None and (fields.settings or fields.hook) is not None:
            raise self._error("a file tests a rule, a hook or settings", "rule")
        if fields.settings is None:
            return
        for key in ("hook", "env", "files", "links", "setup", "server"):
            if key in raw or any(key in case for case in raw["case"]):
                problem = f"{key} works only with a hook, not with settings"
                raise self._error(problem, key)

    def _hooks(self, fields: FileFields) -> tuple[Path, ...]:
        if fields.settings is not None or fields.rule is not None:
            return ()
        folder = self._path.resolve().parent
        if fields.hook is None:
            return (self._default_script(folder),)
        names = [fields.hook] if isinstance(fields.hook, str) else fields.hook
        paths = tuple(folder / name for name in names)
        for hook in paths:
            if not hook.is_file():
                raise self._error(f"no hook {hook.name!r} in this folder", "hook")
        return paths

    def _default_script(self, folder: Path) -> Path:
        stem = self._path.name.removesuffix(SUFFIX)
        for name in (f"{stem}.py", f"{stem}.sh", stem):
            if (folder / name).is_file():
                return folder / name
        problem = f"no {stem}.py in this folder: name the script with hook = ..."
        raise self._error(problem, None)

    def _converted(self, raw: dict[str, Any], kind: type[Any], part: range) -> Any:
        try:
            return msgspec.convert(raw, kind, strict=True)
        except msgspec.ValidationError as error:
            key = re.search(r"at `\$\.(\w+)", str(error))
            raise self._error(str(error), key[1] if key else None, part) from error

    def _check_keys(self, raw: Mapping[str, Any], names: Names, part: range) -> None:
        for key in raw:
            if key not in names:
                problem = f"unknown key {key!r}: {_hint(key, names)}"
                raise self._error(problem, key, part)

    def _part(self, case: int | None) -> range:
        """The lines of one case, or those before the first one."""
        if case is None or case + 1 >= len(self._headers):
            return range(self._headers[0])
        return range(self._headers[case], self._headers[case + 1])

    def _error(
        self, problem: str, key: str | None, part: range | None = None
    ) -> HookTestError:
        part = range(len(self._lines)) if part is None else part
        line = part.start + 1 if part else 1
        if key is not None:
            pattern = re.compile(
                rf"""(^|[\s{{,\[])["']?{re.escape(key)}["']?\s*[=\]]"""
            )
            places = (n for n in part if pattern.search(self._lines[n]))
            line = next(places, line - 1) + 1
        return HookTestError(problem, self._path, line)


def _hint(name: Any, names: Names) -> str:
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"one of {', '.join(names)}"
