"""One conformance case: an event, its hooks and settings, and what must come of it.

A case is a JSON file in the format of the protocol's conformance set. It is fired by
the command line in this process, or in one of its own where its memory is limited, in
a directory and with a home of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.support.commandline import run_command

ABSENT = "<absent>"
PATIENCE_S = 60
"""A guard against hanging; what a case itself promises is in ``max_seconds``."""


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """What a case file holds."""

    name: str
    ids: list[str]
    event: str
    input: dict[str, Any]
    files: dict[str, str]
    settings: dict[str, Any]
    expect: dict[str, Any]
    expect_json: dict[str, dict[str, Any]] = {}
    expect_text: dict[str, str] = {}
    expect_missing: list[str] = []
    expect_min_int: dict[str, int] = {}
    max_seconds: float = 15
    max_rss_mb: float | None = None
    cwd_name: str = "project"
    big_input: int = 0
    check_missing_after: float = 0


class Outcome(Struct, frozen=True):
    """What the command did."""

    answer: dict[str, Any]
    status: int
    seconds: float
    rss_mb: float


def read_case(file: Path) -> Case:
    # Not by msgspec: cases hold lone surrogates, NaN and huge numbers on purpose.
    return Case(**json.loads(file.read_text(encoding="utf-8")))


def fire(case: Case, top: Path) -> Outcome:
    """Set a case up under a directory and fire its event."""
    cwd = top / case.cwd_name
    cwd.mkdir()
    for name, text in case.files.items():
        file = cwd / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    settings = top / "settings.json"
    settings.write_text(json.dumps(case.settings))
    words = (
        *("fire", case.event, "--settings", str(settings), "--cwd", str(cwd)),
        *("--session-id", "s-1", "--input", "-", "--json"),
    )
    places = {
        "HOME": str(top),
        "XDG_CONFIG_HOME": str(top / "config"),
        "XDG_STATE_HOME": str(top / "state"),
    }
    if case.max_rss_mb is not None:
        return _run_process(words, _payload(case), top, places)
    started = time.monotonic()
    command = run_command(*words, cwd=top, env=places, stdin=_payload(case))
    seconds = time.monotonic() - started
    return Outcome(_answer(command.stdout, command), command.returncode, seconds, 0)


def shortfalls(case: Case, outcome: Outcome, top: Path) -> list[str]:
    """Where the outcome is not what the case expects; empty if all is well."""
    cwd = top / case.cwd_name
    # That something does not happen late takes waiting for it.
    time.sleep(case.check_missing_after)
    return [
        *_differences("answer", outcome.answer, case.expect),
        *_bad_run(case, outcome),
        *(f"{n} exists" for n in case.expect_missing if _exists(n, cwd, top)),
        *_bad_files(case, cwd),
    ]


def _payload(case: Case) -> bytes:
    event_input = case.input
    if case.big_input:
        content = {"content": "x" * case.big_input}
        tool_input = {**event_input["tool_input"], **content}
        event_input = {**event_input, "tool_input": tool_input}
    return json.dumps(event_input).encode()


def _answer(output: str | bytes, ended: object) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        raise AssertionError(f"no JSON on stdout: {ended}") from None
    return answer


MEASURED = """
import re, sys
from pathlib import Path
from hookline.cli.main import main
status = main(sys.argv[1:])
# What wait4 reports counts the process that forked it, which may be a big one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(peak[1], file=sys.stderr)
sys.exit(status)
"""


def _run_process(
    words: tuple[str, ...], payload: bytes, top: Path, places: dict[str, str]
) -> Outcome:
    """Fire in a process that says how much memory it took, in kilobytes."""
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        input=payload,
        capture_output=True,
        env={**os.environ, **places},
        cwd=top,
        timeout=PATIENCE_S,
        check=False,
    )
    seconds = time.monotonic() - started
    rss_mb = int(ended.stderr.split()[-1]) / 1024
    return Outcome(_answer(ended.stdout, ended), ended.returncode, seconds, rss_mb)


def _dig(value: Any, path: str) -> Any:
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def _differences(where: str, actual: Any, wanted: dict[str, Any]) -> Iterator[str]:
    for path, want in wanted.items():
        got = _dig(actual, path)
        # 1 and true are equal in Python, but not in JSON.
        if got != want or isinstance(got, bool) != isinstance(want, bool):
            yield f"{where}: {path}: want {want!r}, got {got!r:.300}"


def _bad_run(case: Case, outcome: Outcome) -> Iterator[str]:
    verdict = outcome.answer["blocked"] or outcome.answer["should_stop"]
    if outcome.status != (2 if verdict else 0):
        yield f"exit status {outcome.status} with the verdict {verdict}"
    if outcome.seconds > case.max_seconds:
        yield f"took {outcome.seconds:.1f} s, at most {case.max_seconds}"
    if case.max_rss_mb is not None and outcome.rss_mb > case.max_rss_mb:
        yield f"peak memory {outcome.rss_mb:.0f} MB, at most {case.max_rss_mb}"


def _exists(name: str, cwd: Path, top: Path) -> bool:
    return (cwd / name).exists() or (top / name).exists()


def _bad_files(case: Case, cwd: Path) -> Iterator[str]:
    for name, wanted in case.expect_json.items():
        yield from _differences(name, json.loads((cwd / name).read_bytes()), wanted)
    for name, text in case.expect_text.items():
        got = (cwd / name).read_text() if (cwd / name).exists() else ABSENT
        if got != text.replace("{cwd}", str(cwd)):
            yield f"{name}: want {text!r}, got {got!r}"
    for name, least in case.expect_min_int.items():
        if int((cwd / name).read_text()) < least:
            yield f"{name}: want at least {least}"
