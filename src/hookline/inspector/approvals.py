"""The Trust view: what waits for approval, with its files and what changed.

Approving stays on the command line: nothing here writes. What is sent is bounded, and
safe to show to whoever sees the page: credentials in settings and files are masked, and
the text of a file that is not really inside its project stays where it is. The command
shows all of it.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline.errors import HooklineError, JournalError
from hookline.journal.recent import newest_folders
from hookline.journal.redact import MASK, Masker
from hookline.protocol.values import encode
from hookline.settings.model import shown_url
from hookline.settings.places import find_workspace, is_within, record_problem
from hookline.trust.gate import trusts_all
from hookline.trust.pins import PinKind
from hookline.trust.records import Manifest, all_approvals
from hookline.trust.review import (
    Change,
    Review,
    ReviewedFile,
    ReviewedHook,
    line_diff,
    review_project,
)

from .answers import reply
from .desk import Desk

MAX_LINES = 400
"""Of one diff or file; the rest is counted."""
MAX_LINE = 1_000
MAX_FILES = 300
MAX_HOOKS = 300
MAX_ITEMS = 60
"""Of one hook: keys, notes, files."""
MAX_CHARACTERS = 400_000
"""Of all texts of one project."""
MAX_OTHERS = 100
MAX_FOLDERS = 50
_COMPARE_S = 0.4
"""For the diffs of one project; further ones are made the quick way."""
_CHECK_S = 0.4
"""For the trusted projects elsewhere: the others are listed without a check."""
_KEY_LINE = re.compile(
    r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])"
    r"[-+ ]?\s*[\"']?[A-Za-z0-9+/=]{32,}(?:\\n)?[\"',]*\s*"
)
"""Of a private key, say: of a diff, not all of it need be there."""
_URL_USER = re.compile(r"(https?://)[^\s/\"'@]+@")
_URL_VALUE = re.compile(r"(?<=[?&])[\w.-]{1,64}=[^\s&\"'#]+")
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
    here, others = _known_projects(desk)
    with _reading:
        return {
            "cwd": desk.cwd,
            "trusts_all": trusts_all(),
            "projects": [describe(project) for project in here],
            "others": list(_others(others)),
        }


def describe_known(desk: Desk, project: str) -> dict[str, Any]:
    """One of the projects that the view lists: no other folder is read."""
    here, others = _known_projects(desk)
    if project not in here and project not in others:
        hint = f"run 'hookline trust' in {_short(project)}"
        raise HTTPException(404, f"unknown project: {hint}")
    with _reading:
        return describe(project)


Others = dict[str, Manifest | None]
"""Projects by their folders, with their approvals."""


def _known_projects(desk: Desk) -> tuple[tuple[str, ...], Others]:
    """The projects of our folder; those that are trusted, or in the journal."""
    workspace = find_workspace(desk.cwd)
    here = workspace.projects or (workspace.folder,)
    recorded: Others = {state.project: state for state in all_approvals()}
    seen = dict.fromkeys(_projects_of_events(desk))
    known = {one: recorded.get(one) for one in (*seen, *recorded) if one not in here}
    return here, dict(islice(known.items(), MAX_OTHERS))


def _projects_of_events(desk: Desk) -> Iterator[str]:
    """The projects in whose folders the newest events happened."""
    try:
        with desk.read() as reader:
            folders = newest_folders(reader)
    except JournalError:
        return  # the other views tell about it
    for folder in folders[:MAX_FOLDERS]:
        if os.path.isabs(folder) and "\0" not in folder:  # noqa: PTH117 - a string
            yield from find_workspace(folder).projects


def describe(project: str) -> dict[str, Any]:
    """One project: its state, and what a person is asked to approve."""
    found: dict[str, Any] = {"project": project, "commands": _commands(project)}
    try:
        compared = review_project(project)
    except HooklineError as error:
        return found | {"state": "broken", "problem": str(error)}
    if compared.is_unchanged:
        state = "trusted" if compared.has_hooks else "empty"
        return found | {"state": state, "approval": _approval(compared.before)}
    return found | {
        "state": "waiting",
        "problem": record_problem(project),
        "approval": _approval(compared.before),
        **_Pages(compared).facts(),
    }


def _others(known: Others) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + _CHECK_S
    for project, record in known.items():
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
        compared = review_project(project)
    except HooklineError:
        return "broken"
    if not compared.is_unchanged:
        return "waiting"
    return "trusted" if compared.has_hooks else "empty"


def _approval(record: Manifest | None) -> dict[str, Any] | None:
    if record is None:
        return None
    placed = record.placed_hooks()
    hooks = [
        {
            "event": event.value,
            "matcher": _short(matcher or ""),
            "name": _short(hook.name),
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
    known = {"\\": "\\\\", "'": "\\'"}
    parts = (
        known.get(c, c)
        if c.isprintable()
        else "".join(f"\\x{byte:02x}" for byte in os.fsencode(c))
        for c in path
    )
    return f"$'{''.join(parts)}'"


class Text(Struct, frozen=True):
    """Some lines of a file or a diff, as far as they are sent."""

    lines: list[str]
    left_off: int
    """How many more lines there are."""


class _Pages:
    """What is sent of one review, with one limit for all its texts."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._project = review.manifest.project
        self._masker = Masker(texts=True)
        self._left = MAX_CHARACTERS
        self._end = time.monotonic() + _COMPARE_S

    def facts(self) -> dict[str, Any]:
        hooks = self._review.hooks()
        # New and changed ones must not be pushed off the page by the others.
        hooks.sort(key=_is_defined_as_approved)
        warnings = [text for layer in self._review.layers for text in layer.warnings]
        files = self._files()
        found = {
            "removed": not self._review.layers,
            "warnings": [_short(text) for text in warnings[:MAX_ITEMS]],
            "warnings_left_off": max(0, len(warnings) - MAX_ITEMS),
            "hooks": [self._hook(one) for one in hooks[:MAX_HOOKS]],
            "hooks_left_off": max(0, len(hooks) - MAX_HOOKS),
            "options": list(self._options()),
            "files": [describe() for describe in files[:MAX_FILES]],
            "files_left_off": max(0, len(files) - MAX_FILES),
        }
        return found | {"masked": self._masker.masked}

    def _hook(self, reviewed: ReviewedHook) -> dict[str, Any]:
        definition, hook = reviewed.definition, reviewed.definition.hook
        diff: list[str] = []
        if reviewed.before is not None:
            old, new = reviewed.before.lines(), definition.lines()
            diff = line_diff(old, new, quick=self._is_late)
        runs = [shown_url(hook.url)] if hook.url else definition.runs.values()
        keys, cautions = list(definition.other_keys()), list(definition.cautions())
        notes, files = reviewed.notes, reviewed.files
        sizes = map(len, (keys, cautions, notes, files))
        return {
            "change": reviewed.change.value,
            "defined_as_approved": _is_defined_as_approved(reviewed),
            "name": _short(hook.name),
            "event": definition.event.value,
            "matcher": _short(definition.matcher or ""),
            "type": hook.type.value,
            "runs": next((self._clean(text) for text in runs), None),
            "keys": [
                {"key": _short(key), "value": self._json(key, value)}
                for key, value in keys[:MAX_ITEMS]
            ],
            "cautions": [
                {"name": _short(name), "text": text}
                for name, text in cautions[:MAX_ITEMS]
            ],
            "notes": [
                {"path": _short(self._inside(path)), "text": _short(text)}
                for path, text in notes[:MAX_ITEMS]
            ],
            "files": [_short(self._inside(path)) for path in files[:MAX_ITEMS]],
            "left_off": sum(max(0, size - MAX_ITEMS) for size in sizes),
            "diff": self._text(diff),
        }

    def _options(self) -> Iterator[dict[str, Any]]:
        for changed in self._review.changed_options():
            yield {"file": changed.file, "diff": self._text(changed.diff())}

    def _files(self) -> list[Callable[[], dict[str, Any]]]:
        """What describes each path: new and changed ones, those that are gone, others.

        Not all of them fit on the page.
        """
        files = self._review.files()
        pinned = [file for file in files if file.is_pinned]
        same = Change.SAME
        return [
            *(partial(self._file, file) for file in pinned if file.change is not same),
            *(
                partial(self._gone, file)
                for file in files
                if file.change is Change.REMOVED and file.is_different
            ),
            *(partial(self._file, file) for file in pinned if file.change is same),
        ]

    def _gone(self, file: ReviewedFile) -> dict[str, Any]:
        """What was approved and is no longer there."""
        return {
            "path": self._inside(file.path),
            "change": Change.REMOVED.value,
            "kind": file.before.kind.value,
            **self._changed(file),
        }

    def _file(self, file: ReviewedFile) -> dict[str, Any]:
        pin = file.pin
        found: dict[str, Any] = {
            "path": self._inside(file.path),
            "change": file.change.value,
            "kind": pin.kind.value,
            "link": pin.link,
            "size": pin.size if pin.kind is PinKind.FILE else None,
            "digest": pin.digest,
            "note": file.note,
        }
        if file.change is Change.CHANGED:
            return found | self._changed(file)
        if file.change is Change.NEW and pin.kind is PinKind.FILE:
            return found | self._content(file)
        return found

    def _changed(self, file: ReviewedFile) -> dict[str, Any]:
        if not self._is_inside(file.path) or file.before.link or file.pin.link:
            return {"withheld": True}
        name = self._inside(file.path)
        diff = self._review.file_diff(name, file, quick=self._is_late)
        return {"diff": self._text(diff)}

    def _content(self, file: ReviewedFile) -> dict[str, Any]:
        if not self._is_inside(file.path) or file.pin.link:
            return {"withheld": True}
        return {"text": self._text(self._review.content_lines(file))}

    def _text(self, lines: list[str]) -> Text:
        """The first lines, without credentials."""
        shown: list[str] = []
        for whole in lines[:MAX_LINES]:
            # Masked before it is cut: half a credential must not look like none.
            cut = self._masked(whole[: 10 * MAX_LINE])[:MAX_LINE]
            if self._left < len(cut):
                break
            self._left -= len(cut)
            more = len(whole) - MAX_LINE
            shown.append(f"{cut}…[{more} more characters]" if more > 0 else cut)
        return Text(shown, len(lines) - len(shown))

    def _masked(self, line: str) -> str:
        """A line of a file or a diff."""
        if _KEY_LINE.fullmatch(line):
            self._masker.masked = True
            return f"{line[:1] if line[:1] in '+- ' else ''}{MASK}"
        return self._mask(line)

    def _mask(self, text: str) -> str:
        """Without credentials, also where they are in an address."""
        hidden = _URL_USER.sub(rf"\1{MASK}@", text)
        self._masker.masked |= hidden != text
        hidden = _URL_VALUE.sub(lambda one: self._masker.mask_text(one[0]), hidden)
        return self._masker.mask_text(hidden)

    def _json(self, key: str, value: Any) -> str:
        # With its key: what a value is for decides whether it is a credential.
        masked = self._masker.mask({key: value})[key]
        return _short(self._mask(encode(masked).decode()), MAX_LINE)

    def _clean(self, text: str) -> str:
        return _short(self._mask(text), MAX_LINE)

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _inside(self, path: str) -> str:
        return path.removeprefix(f"{self._project}/")

    def _is_inside(self, path: str) -> bool:
        return is_within(os.path.realpath(path), self._project)


def _is_defined_as_approved(reviewed: ReviewedHook) -> bool:
    """Whether at most its files changed."""
    known = (Change.SAME, Change.CHANGED)
    return reviewed.change in known and reviewed.before is None


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
