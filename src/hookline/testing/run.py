"""Run hook tests: start what a case needs, fire its event, compare, report."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import TracebackType
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct

from hookline.protocol.results import ProcessedHookResult
from hookline.settings.load import Settings

from .cases import EventFields, HookTestCase, HookTestFile, ServerAnswer
from .tester import Firing, differences, event_input, script_settings, unlike_received


class LoopbackServer:
    """Serves one answer to every request, as long as the ``with`` block lasts."""

    def __init__(self, answer: ServerAnswer) -> None:
        self.requests: list[str] = []
        """What came in: method, path and body of each request."""
        self._closing = Event()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), _handler(self, answer, self._closing)
        )
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LoopbackServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(
    server: LoopbackServer, answer: ServerAnswer, closing: Event
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            server.requests.append(f"{self.command} {self.path} {body}")
            closing.wait(answer.delay_ms / 1000)
            try:
                self._send()
            except ConnectionError:  # the hook did not wait for it
                self.close_connection = True

        do_GET = do_PUT = do_POST  # noqa: N815 - names that the base class calls

        def _send(self) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value.replace("{server}", server.url))
            body = answer.body.encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            pieces = [body] if not answer.drip_ms else [bytes([byte]) for byte in body]
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                if answer.drip_ms and closing.wait(answer.drip_ms / 1000):
                    return

        def log_message(self, *_: object) -> None:
            """Say nothing: the case's own report is what people read."""

    return Handler


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


# Characters that XML 1.0 cannot hold, escaped or not.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(results: list[CaseResult], target: Path) -> None:
    """Write one test suite per hooktest file."""
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
        time=_seconds(sum(result.duration_ms for result in results)),
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_text(result.file.name),
            name=_text(result.name),
            time=_seconds(result.duration_ms),
        )
        if not result.passed:
            first = _text(result.problems[0].splitlines()[0])
            failure = ET.SubElement(case, "failure", message=first)
            failure.text = _text("\n".join(result.problems))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _text(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
