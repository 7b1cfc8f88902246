"""Check one effect in one program: a project with a hook, a run, and what was seen."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.hosts.effects import Effect
from hookline.hosts.host import Host
from hookline.protocol.events import HookEventName

from .cases import SAID, SECRET, Case
from .programs import Program
from .run import Place, Run, run_program

_ONCE = (HookEventName.AfterAgent, HookEventName.SubagentStop)
_SAY = """\
cat >> ../shown.jsonl; echo >> ../shown.jsonl
if [ -n "$ONCE" ] && [ -e ../said ]; then exit 0; fi
touch ../said
cat .hookline/hooks/says.json
"""
_SERVER = Path(__file__).with_name("notes_server.py")


class Outcome(StrEnum):
    """What became of an effect."""

    HOLDS = "holds"
    STRICTER = "stricter"
    """The host cannot do it, and did something stricter instead."""
    LOST = "lost"
    ABSENT = "-"
    """The host has no such event."""
    UNTRIED = "not tried"
    """The program is not set up for it here: this says nothing about the host."""


class Row(Struct, frozen=True):
    """One effect in one program."""

    host: str
    case: Case
    outcome: Outcome
    seen: str = ""
    wrong: str = ""
    """What differs from the host's table; empty: nothing."""


def check(host: Host, program: Program, case: Case, place: Place) -> Row:
    """Run a program once, with a project whose hook says what the case wants."""
    turns = case.turns_of(program)
    if case.event not in host.events.values():
        return Row(host.name, case, Outcome.ABSENT)
    if turns is None:
        return Row(host.name, case, Outcome.UNTRIED)
    try:
        _prepare(host, case, place)
    except subprocess.CalledProcessError as error:
        wrong = f"{' '.join(error.cmd)}: {error.stderr.strip()}"
        return Row(host.name, case, Outcome.LOST, wrong=wrong)
    run = run_program(program, place, turns)
    _keep(run)
    return _judged(host, case, run)


def _prepare(host: Host, case: Case, place: Place) -> None:
    """A project with one hook, approved by its user, and the bridge in the host."""
    hook = {
        "type": "command",
        "name": "say",
        "command": "sh .hookline/hooks/say.sh",
        "env": {"ONCE": "1" if case.event in _ONCE else ""},
        **case.hook,
    }
    group = {**case.group, "hooks": [hook]}
    files: Mapping[str, Any] = {
        ".hookline/settings.json": json.dumps({"hooks": {case.event.value: [group]}}),
        ".hookline/hooks/say.sh": _SAY,
        ".hookline/hooks/says.json": json.dumps(case.says),
        "secret.txt": SECRET,
        _SERVER.name: _SERVER.read_text(),
    }
    for name, text in files.items():
        path = place.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    place.home.mkdir()
    (place.folder / "runtime").mkdir(mode=0o700)
    for arguments in (
        ["git", "init", "-q"],
        ["trust", "--yes"],
        ["install", host.name],
    ):
        command = arguments if arguments[0] == "git" else ["hookline", *arguments]
        subprocess.run(
            command,
            cwd=place.project,
            env=place.environ,
            check=True,
            capture_output=True,
            text=True,
        )


def _judged(host: Host, case: Case, run: Run) -> Row:
    outcome = _outcome(case, run)
    limit = host.limits.get(case.event, {}).get(case.effect)
    wrong = ""
    # Gemini CLI waits for a person, also where there is none.
    if run.status is None and case.effect is not Effect.ASK:
        wrong = "it did not end"
    elif limit is None and outcome is not Outcome.HOLDS:
        wrong = "the host's table has no limit for it"
    elif case.stricter is not None and outcome is Outcome.LOST:
        wrong = f"not the stricter form that the table promises: {limit}"
    elif outcome is not Outcome.LOST and case.shown not in _shown(run.place):
        wrong = f"the hook was not shown {case.shown!r}"
    return Row(host.name, case, outcome, _seen(run), wrong)


def _outcome(case: Case, run: Run) -> Outcome:
    if case.full.is_seen_in(run):
        return Outcome.HOLDS
    is_stricter = case.stricter is not None and case.stricter.is_seen_in(run)
    return Outcome.STRICTER if is_stricter else Outcome.LOST


def _shown(place: Place) -> str:
    return place.shown.read_text() if place.shown.exists() else ""


def _seen(run: Run) -> str:
    """What the tool did on disk, and what the model got."""
    mine = {"secret.txt", _SERVER.name, "opencode.json"}
    written = sorted(
        path.name
        for path in run.place.project.iterdir()
        if path.is_file() and path.name not in mine
    )
    count = len(run.requests)
    words = "the hook's words" if run.sent(SAID) else "nothing of the hook"
    result = ", the tool's result" if run.sent(SECRET) else ""
    files = ", ".join(written) or "no file"
    return f"{files} written; {count} model calls, with {words}{result}"


def _keep(run: Run) -> None:
    """What to read when something differs."""
    texts = {
        "stdout.txt": run.stdout,
        "stderr.txt": run.stderr,
        "requests.json": json.dumps(run.requests, indent=1),
    }
    for name, text in texts.items():
        (run.place.folder / name).write_text(text)
