"""Run hook tests: prepare a case, fire its event, compare, report."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct

from hookline.errors import SettingsError
from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings

from .cases import EventFields, HookTestCase, HookTestFile
from .loopback import AnsweringServer
from .tester import (
    Fire,
    differences,
    event_input,
    firing,
    project_of,
    rule_settings,
    script_settings,
)
from .update import Update, placed, present_answer

_NAMED_FIELDS = set(EventFields.__struct_fields__) - {"event", "tool", "input"}


class CaseResult(Struct, frozen=True, kw_only=True):
    """The result of one case; it passed if there are no problems."""

    file: Path
    name: str
    kind: str = ""
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """About outputs that were not read as they were meant, of passing cases too."""
    duration_ms: float = 0.0
    update: Update = {}
    """What the case would have to say to expect this result."""
    obstacles: tuple[str, ...] = ()
    """Why that would not do: problems that are no answer of a hook."""

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.problems


async def run_cases(
    files: Iterable[HookTestFile], jobs: int | None = None
) -> AsyncIterator[CaseResult]:
    """Run all cases of all files in parallel and yield each result."""
    slots = asyncio.Semaphore(jobs or (os.cpu_count() or 2) * 2)

    async def run_one(file: HookTestFile, case: HookTestCase) -> CaseResult:
        async with slots:
            return await run_case(file, case)

    tasks = [
        asyncio.create_task(run_one(file, case))
        for file in files
        for case in file.cases
    ]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_case(file: HookTestFile, case: HookTestCase) -> CaseResult:
    """Run one case in a new folder, or in the project itself with ``settings``."""
    started = time.perf_counter()
    with ExitStack() as stack:
        cwd = _project(file, stack)
        requests: list[str] = []
        warnings: list[str] = []
        url = ""
        if case.server is not None:
            server = stack.enter_context(AnsweringServer(case.server))
            requests, url = server.requests, server.url
        values = {"{cwd}": str(cwd), "{server}": url}
        case = _filled(case, values)
        update: Update = {}
        try:
            result = await _run(file, case, cwd)
        except (_SetupError, SettingsError) as error:
            problems = obstacles = [str(error)]
        else:
            problems = _problems(file, case, result, cwd, requests)
            update = present_answer(case, result)
            resolved = msgspec.structs.replace(case, **update)
            obstacles = _problems(file, resolved, result, cwd, requests)
            warnings = [
                f"hook {hook.hook_name!r}: {warning}"
                for hook in result.aggregated.hook_results
                for warning in hook.warnings
            ]
    return CaseResult(
        file=file.path,
        name=case.name,
        kind=case.kind,
        problems=tuple(problems),
        warnings=tuple(warnings),
        duration_ms=(time.perf_counter() - started) * 1000,
        update=placed(update, values),
        obstacles=tuple(obstacles),
    )


def _problems(
    file: HookTestFile,
    case: HookTestCase,
    result: ProcessedHookResult,
    cwd: Path,
    requests: list[str],
) -> list[str]:
    problems = list(differences(case, result, cwd, requests))
    ran = result.aggregated.hook_results or result.aggregated.errors
    if (file.hooks or file.rule) and case.expect == "allow" and not ran:
        problems.insert(0, "the hook did not run")
    return problems


def _project(file: HookTestFile, stack: ExitStack) -> Path:
    if file.settings is not None:
        return project_of(file.path)
    # A process that a hook left behind may still write while this is removed.
    folder = TemporaryDirectory(prefix="hooktest-", ignore_cleanup_errors=True)
    cwd = Path(stack.enter_context(folder)).resolve() / "project"
    cwd.mkdir()
    return cwd


class _SetupError(Exception):
    """The preparation of a case failed."""


async def _run(
    file: HookTestFile, case: HookTestCase, cwd: Path
) -> ProcessedHookResult:
    await _prepare(case, cwd, file)
    async with firing(_settings(file, case, cwd), cwd, case.session_id) as fire:
        fields = {name: getattr(case, name) for name in EventFields.__struct_fields__}
        for changes in case.before:
            await _fire(fire, msgspec.convert(fields | changes, EventFields))
        result = await _fire(fire, case)
    if case.after:
        await _shell(case.after, "after", cwd, file)
    return result


async def _fire(fire: Fire, event: EventFields) -> ProcessedHookResult:
    named_fields = {name: getattr(event, name) for name in _NAMED_FIELDS}
    fields = event_input(event.event, event.tool, named_fields | event.input)
    return await fire(event.event, fields)


def _settings(file: HookTestFile, case: HookTestCase, cwd: Path) -> Settings:
    if file.settings == "project":
        return Settings.load(cwd)
    if file.settings is not None:
        return Settings.from_file(file.path.parent / file.settings)
    if file.rule is not None:
        return rule_settings(file.rule, file.path)
    return script_settings(file.hooks, case.env, file)


async def _prepare(case: HookTestCase, cwd: Path, file: HookTestFile) -> None:
    for name, text in case.files.items():
        _new_file(cwd, name).write_text(text, "utf-8")
    for name, target in case.links.items():
        _new_file(cwd, name).symlink_to(target)
    if case.setup:
        await _shell(case.setup, "setup", cwd, file)


def _new_file(cwd: Path, name: str) -> Path:
    path = Path(os.path.normpath(cwd / name))
    if not path.is_relative_to(cwd.parent):
        raise _SetupError(f"{name!r} is outside the scratch folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def _shell(line: str, purpose: str, cwd: Path, file: HookTestFile) -> None:
    hook = str(file.hooks[0]) if file.hooks else ""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        line,
        cwd=cwd,
        env={**os.environ, "HOOKLINE_PYTHON": sys.executable, "HOOKTEST_HOOK": hook},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode != 0:
        text = output.decode(errors="replace").strip()
        raise _SetupError(f"{purpose} exited with {process.returncode}: {text}")


def _filled(case: HookTestCase, values: dict[str, str]) -> HookTestCase:
    """The case with ``{cwd}`` and ``{server}`` replaced in its texts."""
    fields = msgspec.structs.asdict(case)
    unfilled = {
        "server": case.server,
        "name": case.name,
    }  # the server knows its address
    return HookTestCase(**(_replaced(fields, values) | unfilled))


def _replaced(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, str):
        for placeholder, text in values.items():
            value = value.replace(placeholder, text)
        return value
    if isinstance(value, dict):
        return {key: _replaced(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, values) for item in value]
    return value


# Characters that XML 1.0 does not allow, not even escaped.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: list[CaseResult], target: Path) -> None:
    """Write JUnit XML with one test suite per hooktest file."""
    root = ET.Element("testsuites", name="hookline")
    for file in dict.fromkeys(result.file for result in results):
        _add_suite(root, [result for result in results if result.file == file])
    tree = ET.ElementTree(root)
    ET.indent(tree)
    tree.write(target, encoding="utf-8", xml_declaration=True)


def _add_suite(root: ET.Element, results: list[CaseResult]) -> None:
    failed = [result for result in results if not result.passed]
    suite = ET.SubElement(
        root,
        "testsuite",
        name=_text(str(results[0].file)),
        tests=str(len(results)),
        failures=str(len(failed)),
        time=f"{sum(result.duration_ms for result in results) / 1000:.3f}",
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_text(result.file.name),
            name=_text(result.name),
            time=f"{result.duration_ms / 1000:.3f}",
        )
        if not result.passed:
            first = _text(result.problems[0].splitlines()[0])
            failure = ET.SubElement(case, "failure", message=first)
            failure.text = _text("\n".join(result.problems))


def _text(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
