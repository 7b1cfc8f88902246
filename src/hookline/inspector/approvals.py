"""The Trust view: what waits for approval, as ``hookline trust`` prints it.

Approving stays on the command line: nothing here writes.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from itertools import islice
from threading import Lock
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.errors import HooklineError, JournalError
from hookline.settings.places import find_workspace, record_problem
from hookline.trust.gate import trusts_all
from hookline.trust.records import Manifest, all_approvals
from hookline.trust.review import review_project
from hookline.trust.review_text import ReviewText, escaped

from .answers import reply
from .desk import Desk

MAX_LINES = 2_000
"""Of one project; the command shows all."""
MAX_LINE = 1_000
MAX_HOOKS = 300
MAX_OTHERS = 100
MAX_FOLDERS = 50
_CHECK_S = 0.4
"""For the trusted projects elsewhere: the others are listed without a check."""
_reading = Lock()
"""A hundred requests at once must not read a hundred times."""


def routes(desk: Desk) -> list[BaseRoute]:
    """What this view is asked; there is no request that approves."""

    async def trust(request: Request) -> Response:
        project = request.query_params.get("project")
        if project:
            return reply(await desk.in_thread(describe_known, desk, project))
        return reply(await desk.in_thread(list_projects, desk))

    return [Route("/api/trust", trust, methods=["GET"])]


def list_projects(desk: Desk) -> dict[str, Any]:
    """The projects that apply in our folder, and the others that we know."""
    nearby, elsewhere = _known_projects(desk)
    with _reading:
        return {
            "cwd": desk.cwd,
            "trusts_all": trusts_all(),
            "projects": [describe(project) for project in nearby],
            "others": list(_others(elsewhere)),
        }


def describe_known(desk: Desk, project: str) -> dict[str, Any]:
    """One of the projects that the view lists: no other folder is read."""
    nearby, elsewhere = _known_projects(desk)
    if project not in nearby and project not in elsewhere:
        hint = f"run 'hookline trust' in {escaped(project)[:300]}"
        raise HTTPException(404, f"unknown project: {hint}")
    with _reading:
        return describe(project)


Others = dict[str, Manifest | None]
"""Projects by their folders, with their approvals."""


def _known_projects(desk: Desk) -> tuple[tuple[str, ...], Others]:
    """The projects of our folder; those that are trusted, or in the journal."""
    workspace = find_workspace(desk.cwd)
    nearby = workspace.projects or (workspace.folder,)
    recorded: Others = {state.project: state for state in all_approvals()}
    active = dict.fromkeys(_projects_of_events(desk))
    projects = {
        project: recorded.get(project)
        for project in (*active, *recorded)
        if project not in nearby
    }
    return nearby, dict(islice(projects.items(), MAX_OTHERS))


def _projects_of_events(desk: Desk) -> Iterator[str]:
    """The projects in whose folders the newest events happened."""
    try:
        with desk.read() as reader:
            folders = reader.folders()
    except JournalError:
        return  # the other views tell about it
    for folder in folders[:MAX_FOLDERS]:
        if os.path.isabs(folder) and "\0" not in folder:  # noqa: PTH117 - a string
            yield from find_workspace(folder).projects


def describe(project: str) -> dict[str, Any]:
    """One project: its state, and what a person is asked to approve."""
    facts: dict[str, Any] = {"project": project, "commands": _commands(project)}
    try:
        review = review_project(project)
    except HooklineError as error:
        return facts | {"state": "broken", "problem": str(error)}
    if review.is_unchanged:
        state = "trusted" if review.has_hooks else "empty"
        return facts | {"state": state, "approval": _approval(review.before)}
    lines = list(islice(ReviewText(review).lines(show=False), MAX_LINES + 1))
    return facts | {
        "state": "waiting",
        "problem": record_problem(project),
        "approval": _approval(review.before),
        "removed": not review.layers,
        "lines": [line[:MAX_LINE] for line in lines[:MAX_LINES]],
        "is_cut": len(lines) > MAX_LINES,
    }


def _others(projects: Others) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + _CHECK_S
    for project, record in projects.items():
        state = _state(project) if time.monotonic() < end else "not checked"
        if state != "empty" or record is not None:
            yield {
                "project": project,
                "state": state,
                "approval": _approval(record),
                "commands": _commands(project),
            }


def _state(project: str) -> str:
    if not os.path.isdir(project):  # noqa: PTH112 - a string
        return "missing"
    try:
        review = review_project(project)
    except HooklineError:
        return "broken"
    if not review.is_unchanged:
        return "waiting"
    return "trusted" if review.has_hooks else "empty"


def _approval(record: Manifest | None) -> dict[str, Any] | None:
    if record is None:
        return None
    placed = record.placed_hooks()
    hooks = [
        {
            "event": event.value,
            "matcher": escaped(matcher or "")[:300],
            "name": escaped(hook.name)[:300],
        }
        for event, matcher, hook in placed[:MAX_HOOKS]
    ]
    return {
        "since": record.trusted_at,
        "hooks": hooks,
        "hooks_left_off": len(placed) - len(hooks),
        "files": len(record.pins()),
    }


def _commands(project: str) -> list[dict[str, str]]:
    """What to type, and what it does."""
    folder = quoted(project)
    return [
        {
            "command": f"hookline trust {folder}",
            "does": "shows everything again, with the text of each file, and asks",
        },
        {
            "command": f"hookline trust --revoke {folder}",
            "does": "withdraws the approval",
        },
    ]


def quoted(path: str) -> str:
    """A path for a shell; one with control characters is safe to paste too."""
    if path.isprintable():
        return shlex.quote(path)
    escapes = {"\\": "\\\\", "'": "\\'"}
    parts = (
        escapes.get(c, c)
        if c.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in os.fsencode(c))
        for c in path
    )
    return f"$'{''.join(parts)}'"
