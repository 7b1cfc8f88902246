"""Run hooktest cases, many at once, each in a scratch project of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from msgspec import Struct

from hookline.results import ProcessedHookResult
from hookline.settings.load import Settings

from .cases import EventFields, HookTestCase, HookTestFile
from .firing import Firing, event_input, script_settings
from .server import LoopbackServer
from .verdicts import differences, unlike_received


class CaseResult(Struct, frozen=True, kw_only=True):
    """How one case went; no problems is a pass."""

    file: Path
    name: str
    kind: str = ""
    problems: tuple[str, ...] = ()
    duration_ms: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.problems


async def run_cases(
    files: Iterable[HookTestFile], jobs: int | None = None
) -> AsyncIterator[CaseResult]:
    """Run all cases of all files and yield each as it ends."""
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
        for ended in asyncio.as_completed(tasks):
            yield await ended
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_case(file: HookTestFile, case: HookTestCase) -> CaseResult:
    """Run one case in a fresh folder, or in the project itself with ``settings``."""
    started = time.perf_counter()
    with ExitStack() as stack:
        if file.settings is None:
            folder = stack.enter_context(
                # What a hook left running may still write while this is removed.
                TemporaryDirectory(prefix="hooktest-", ignore_cleanup_errors=True)
            )
            cwd = _project_in(folder)
        else:
            cwd = project_of(file.path)
        server = (
            stack.enter_context(LoopbackServer(case.server)) if case.server else None
        )
        case = _filled(case, cwd, server.url if server else "")
        try:
            problems = [problem async for problem in _problems(file, case, cwd)]
        except _SetupFailed as failed:
            problems = [str(failed)]
        problems += unlike_received(case, server.requests if server else [])
    return CaseResult(
        file=file.path,
        name=case.name,
        kind=case.kind,
        problems=tuple(problems),
        duration_ms=(time.perf_counter() - started) * 1000,
    )


def _project_in(folder: str) -> Path:
    cwd = Path(folder).resolve() / "project"
    cwd.mkdir()
    return cwd


def project_of(file: Path) -> Path:
    """The project that a file belongs to: the nearest folder with ``.hookline``."""
    folder = file.resolve().parent
    for place in (folder, *folder.parents):
        if (place / ".hookline").is_dir():
            return place
    return folder


class _SetupFailed(Exception):  # noqa: N818 - never leaves this module
    """A case's own preparation did not work."""


async def _problems(
    file: HookTestFile, case: HookTestCase, cwd: Path
) -> AsyncIterator[str]:
    await _prepare(case, cwd, file)
    async with Firing(_settings(file, case, cwd), cwd, case.session_id) as firing:
        for earlier in case.before:
            await _fire(firing, _earlier(case, earlier))
        result = await _fire(firing, case)
    if case.after:
        await _shell(case.after, "after", cwd, file)
    if file.hooks and case.expect == "allow" and not _ran(result):
        yield "the hook did not run"
    for problem in differences(case, result, cwd):
        yield problem


def _ran(result: ProcessedHookResult) -> bool:
    return bool(result.aggregated.hook_results or result.aggregated.errors)


async def _fire(firing: Firing, event: EventFields) -> ProcessedHookResult:
    fields = event_input(
        event.event,
        tool=event.tool,
        fields=event.input,
        tool_input=event.tool_input,
        tool_response=event.tool_response,
        prompt=event.prompt,
        llm_request=event.llm_request,
        llm_response=event.llm_response,
        session_id=event.session_id,
    )
    return await firing.fire(event.event, fields)


def _earlier(case: HookTestCase, changes: dict[str, Any]) -> EventFields:
    same = {name: getattr(case, name) for name in EventFields.__struct_fields__}
    return msgspec.convert(same | changes, EventFields)


def _settings(file: HookTestFile, case: HookTestCase, cwd: Path) -> Settings:
    if file.settings == "project":
        return Settings.load(cwd)
    if file.settings is not None:
        return Settings.from_file(file.path.parent / file.settings)
    return script_settings(
        file.hooks,
        env=case.env,
        sequential=file.sequential,
        hook_type=file.type,
        timeout_ms=file.timeout,
    )


async def _prepare(case: HookTestCase, cwd: Path, file: HookTestFile) -> None:
    for name, text in case.files.items():
        place = _inside(cwd, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    for name, target in case.links.items():
        place = _inside(cwd, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    if case.setup:
        await _shell(case.setup, "setup", cwd, file)


def _inside(cwd: Path, name: str) -> Path:
    place = Path(os.path.normpath(cwd / name))
    if not place.is_relative_to(cwd.parent):
        raise _SetupFailed(f"{name!r} is outside the scratch folder")
    return place


async def _shell(line: str, what: str, cwd: Path, file: HookTestFile) -> None:
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
    said, _ = await process.communicate()
    if process.returncode != 0:
        shown = said.decode(errors="replace").strip()
        raise _SetupFailed(f"{what} ended with {process.returncode}: {shown}")


def _filled(case: HookTestCase, cwd: Path, server: str) -> HookTestCase:
    """The case with ``{cwd}`` and ``{server}`` in its texts replaced."""
    fill = {"{cwd}": str(cwd), "{server}": server}
    kept = ("server", "name")  # the server knows its own address
    fields = {
        name: getattr(case, name)
        if name in kept
        else _replaced(getattr(case, name), fill)
        for name in HookTestCase.__struct_fields__
    }
    return HookTestCase(**fields)


def _replaced(value: Any, fill: dict[str, str]) -> Any:
    if isinstance(value, str):
        for mark, text in fill.items():
            value = value.replace(mark, text)
        return value
    if isinstance(value, dict):
        return {key: _replaced(item, fill) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, fill) for item in value]
    return value
