"""Read ``*.hooktest.toml``: cases as data, with file-wide values as their defaults.

Raises ``HookTestError`` naming file and line; a misspelt key is met with the nearest
known one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from hookline.errors import HooklineError, nearest
from hookline.protocol.events import HookEventName

SUFFIX = ".hooktest.toml"
_SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})
_MERGED = ("env", "files", "links")
_CASE_HEADER = re.compile(r"\s*\[\[\s*case\s*\]\]")


class HookTestError(HooklineError):
    """A hooktest file that cannot be used, with the place where it went wrong."""

    def __init__(self, problem: str, file: str, line: int | None = None) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        super().__init__(problem, file, line)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.problem}"


class ServerAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What a loopback server answers to the hook."""

    status: int = 200
    body: str = ""
    headers: dict[str, str] = {}
    delay_ms: float = 0
    drip_ms: float = 0
    """Send one byte at a time, this far apart."""


class EventFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event: what a case fires, and what is fired before it."""

    event: str = ""
    tool: str | None = None
    tool_input: dict[str, Any] | None = None
    tool_response: dict[str, Any] | None = None
    prompt: str | None = None
    llm_request: dict[str, Any] | None = None
    llm_response: dict[str, Any] | None = None
    session_id: str | None = None
    input: dict[str, Any] = {}
    """Any further fields."""


class HookTestCase(EventFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One event with what is to come of it."""

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
    """The hook is expected to fail, as by a crash or a timeout."""


class _FileFields(Struct, frozen=True, forbid_unknown_fields=True):
    hook: str | list[str] | UnsetType = UNSET
    settings: str | None = None
    sequential: bool = False
    type: str = "command"
    timeout: float = 60_000


class HookTestFile(Struct, frozen=True, kw_only=True):
    """All cases of one file, and what they are fired at."""

    path: Path
    hooks: tuple[Path, ...] = ()
    settings: str | None = None
    sequential: bool = False
    type: str = "command"
    timeout: float = 60_000
    cases: tuple[HookTestCase, ...] = ()


_TYPES = ("command", "worker")
VERDICTS = ("allow", "block", "ask", "stop")
_CASE_KEYS = tuple(HookTestCase.__struct_fields__)
_FILE_KEYS = ("case", *_FileFields.__struct_fields__)
_EVENT_KEYS = tuple(EventFields.__struct_fields__)


def find_files(places: list[Path]) -> list[Path]:
    """All hooktest files in the given files and folders, in order."""
    found: dict[Path, None] = {}
    for place in places:
        if not place.exists():
            raise HookTestError("there is no such file or folder", str(place))
        for file in _walk(place) if place.is_dir() else [place]:
            found[file] = None
    return list(found)


def _walk(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if entry.name not in _SKIPPED_FOLDERS:
                yield from _walk(entry)
        elif entry.name.endswith(SUFFIX):
            yield entry


def read_file(path: Path) -> HookTestFile:
    """Read one file, or say what is wrong with it and where."""
    try:
        text = path.read_text("utf-8")
        raw = tomllib.loads(text)
    except OSError as error:
        raise HookTestError(str(error.strerror), str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = int(line[1]) if line else None
        raise HookTestError(f"no TOML: {error}", str(path), where) from error
    return _FileReader(path, text).read(raw)


class _FileReader:
    """Turns the raw mapping into values; knows the text, to name lines."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        headers = [n for n, line in enumerate(self._lines) if _CASE_HEADER.match(line)]
        self._headers = [*headers, len(self._lines)]

    def read(self, raw: dict[str, Any]) -> HookTestFile:
        known = (*_FILE_KEYS, *_CASE_KEYS)
        self._check_keys(raw, known, self._part(None))
        of_file = {key: raw[key] for key in _FILE_KEYS if key in raw and key != "case"}
        defaults = {key: raw[key] for key in _CASE_KEYS if key in raw}
        fields = self._converted(of_file, _FileFields, self._part(None))
        cases = raw.get("case")
        if not isinstance(cases, list) or not cases:
            raise self._error("there are no cases: begin each with [[case]]", None)
        if fields.type not in _TYPES:
            problem = f"type = {fields.type!r}: {_hint(fields.type, _TYPES)}"
            raise self._error(problem, "type")
        self._check_settings_mode(fields, raw)
        # The cases first: a typo is nearer to hand than a script that is not there.
        read = tuple(self._case(one, defaults, n) for n, one in enumerate(cases))
        return HookTestFile(
            path=self._path,
            hooks=self._hooks(fields),
            settings=fields.settings,
            sequential=fields.sequential,
            type=fields.type,
            timeout=fields.timeout,
            cases=read,
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
        self._check_event(case.event, part)
        for earlier in case.before:
            self._check_keys(earlier, _EVENT_KEYS, part)
            self._check_event(earlier.get("event", case.event), part)
        if case.expect not in VERDICTS:
            hint = _hint(case.expect, VERDICTS)
            raise self._error(f"expect = {case.expect!r}: {hint}", "expect", part)
        patterns = {"message": case.message, "context": case.context}
        patterns |= {"received": case.received, **case.wrote}
        for key, pattern in patterns.items():
            self._check_pattern(key, pattern, part)

    def _check_event(self, event: Any, part: range) -> None:
        if not event:
            raise self._error("says no event", None, part)
        if event not in tuple(HookEventName):
            hint = _hint(event, tuple(HookEventName))
            raise self._error(f"event = {event!r}: {hint}", "event", part)

    def _check_pattern(self, key: str, pattern: str | None, part: range) -> None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            problem = f"{key} = {pattern!r} is no regular expression: {error}"
            raise self._error(problem, key, part) from error

    def _check_settings_mode(self, fields: _FileFields, raw: dict[str, Any]) -> None:
        if fields.settings is None:
            return
        for key in ("hook", "env", "files", "links", "setup", "server"):
            if key in raw or any(key in case for case in raw["case"]):
                problem = (
                    f"{key} goes with a hook in a scratch folder, not with settings"
                )
                raise self._error(problem, key, range(len(self._lines)))

    def _hooks(self, fields: _FileFields) -> tuple[Path, ...]:
        if fields.settings is not None:
            return ()
        folder = self._path.resolve().parent
        if fields.hook is UNSET:
            return (self._script_beside(folder),)
        named = [fields.hook] if isinstance(fields.hook, str) else fields.hook
        found = tuple(folder / name for name in named)
        for hook in found:
            if not hook.is_file():
                raise self._error(f"there is no hook {hook.name!r} beside it", "hook")
        return found

    def _script_beside(self, folder: Path) -> Path:
        stem = self._path.name.removesuffix(SUFFIX)
        beside = [folder / f"{stem}{ending}" for ending in (".py", ".sh", "")]
        for file in beside:
            if file.is_file():
                return file
        raise self._error(
            f"there is no {stem}.py beside it: name the script with hook = ...", None
        )

    def _converted(self, raw: dict[str, Any], kind: type[Any], part: range) -> Any:
        try:
            return msgspec.convert(raw, kind, strict=True)
        except msgspec.ValidationError as error:
            key = re.search(r"at `\$\.(\w+)", str(error))
            raise self._error(str(error), key[1] if key else None, part) from error

    def _check_keys(
        self, raw: Mapping[str, Any], known: tuple[str, ...], part: range
    ) -> None:
        for key in raw:
            if key not in known:
                raise self._error(
                    f"unknown key {key!r}: {_hint(key, known)}", key, part
                )

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
            wanted = re.compile(rf"""(^|[\s{{,\[])["']?{re.escape(key)}["']?\s*[=\]]""")
            found = (n for n in part if wanted.search(self._lines[n]))
            line = next(found, line - 1) + 1
        return HookTestError(problem, str(self._path), line)


def _hint(name: Any, known: tuple[str, ...]) -> str:
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"one of {', '.join(known)}"
