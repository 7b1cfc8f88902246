"""Tables of what users see, recorded as data in ``tests/pins``.

A table is a JSON file of rows by name. A row has the keys that a person writes, which
say what happens, and ``then``: what came of it. A test hands each row to a function
that makes it happen through public names, and every row that came out otherwise is
reported as a subtest of its own.

``make pins`` shows what would change, ``make pins UPDATE=1`` writes it down.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "pins"
OUTPUT = "PINS_FOLDER"
"""The variable that names the folder to which present tables are written."""

Row = dict[str, Any]
Observe = Callable[[str, Row], Awaitable[object] | object]


class PinTable:
    """The rows of one file, and the check that they still hold."""

    def __init__(self, name: str, subtests: pytest.Subtests) -> None:
        self.name = name
        self._subtests = subtests
        file = FOLDER / f"{name}.json"
        self.rows: dict[str, Row] = (
            json.loads(file.read_text()) if file.exists() else {}
        )

    async def check(
        self,
        observe: Observe,
        *,
        names: Iterable[str] | None = None,
        at_once: int = 4,
    ) -> None:
        """Make each row happen and compare it; ``names`` where code makes the rows."""
        names = list(self.rows) if names is None else list(names)
        limit = asyncio.Semaphore(at_once)

        async def present(name: str) -> object:
            async with limit:
                result = observe(name, self.rows.get(name, {}))
                return plain(await result if inspect.isawaitable(result) else result)

        results = dict(
            zip(names, await asyncio.gather(*map(present, names)), strict=True)
        )
        if folder := os.environ.get(OUTPUT):
            table = {
                name: {**self.rows.get(name, {}), "then": then}
                for name, then in results.items()
            }
            file = Path(folder) / f"{self.name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            # A lone surrogate is written as the escape that JSON has for it.
            file.write_text(dump(table) + "\n", errors="backslashreplace")
            return
        for name in sorted(self.rows.keys() | results.keys()):
            if problem := self._problem(name, results):
                with self._subtests.test(name):
                    pytest.fail(problem)

    def _problem(self, name: str, results: dict[str, object]) -> str:
        if name not in results:
            return "recorded, but nothing makes this row happen"
        if "then" not in self.rows.get(name, {}):
            return "not recorded: make pins UPDATE=1"
        difference = _difference(self.rows[name]["then"], results[name])
        return difference and f"recorded (-) and present (+):\n{difference}"


def _difference(recorded: object, present: object) -> str:
    before, after = (dump(value).splitlines() for value in (recorded, present))
    return "\n".join(difflib.ndiff(before, after)) if recorded != present else ""


def plain(value: object) -> Any:
    """The value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def dump(value: object, indent: str = "") -> str:
    """JSON that people can read: what fits into a line stays in one."""
    line = json.dumps(value, ensure_ascii=False)
    if (
        len(indent) + len(line) <= 100
        or not value
        or not isinstance(value, dict | list)
    ):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        entries = [
            f"{json.dumps(key, ensure_ascii=False)}: {dump(entry, deeper)}"
            for key, entry in value.items()
        ]
        start, end = "{", "}"
    else:
        entries = [dump(entry, deeper) for entry in value]
        start, end = "[", "]"
    body = ",\n".join(deeper + entry for entry in entries)
    return f"{start}\n{body}\n{indent}{end}"


def masked(text: str, places: Mapping[str, object]) -> str:
    """Text without what differs from run to run: folders, durations and times."""
    for name, place in sorted(places.items(), key=lambda item: -len(str(item[1]))):
        text = text.replace(str(place), f"<{name}>")
    text = re.sub(
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "<time>", text
    )
    text = re.sub(r'("\w*(duration|_ms|elapsed)\w*": ?)[\d.e+-]+', r'\1"<ms>"', text)
    return re.sub(r"\b\d+(\.\d+)? (ms|s)\b(?= ago| in all)", "<time>", text)


def main() -> int:
    """Run the tables and show, or record, what is different now."""
    update = "--update" in sys.argv
    paths = [word for word in sys.argv[1:] if word != "--update"] or [str(FOLDER)]
    with TemporaryDirectory() as folder:
        os.environ[OUTPUT] = folder
        status = pytest.main(["-q", "-p", "no:randomly", "-n", "2", *paths])
        if status:
            return int(status)
        changed = [
            (file, FOLDER / file.relative_to(folder))
            for file in sorted(Path(folder).rglob("*.json"))
        ]
        for present, recorded in changed:
            before = recorded.read_text() if recorded.exists() else ""
            after = present.read_text()
            # Keys of objects may come in another order, as in the check.
            if json.loads(before or "null") == json.loads(after):
                continue
            name = str(recorded.relative_to(FOLDER.parent.parent))
            lines = difflib.unified_diff(
                *(before.splitlines(), after.splitlines()),
                *(name, f"{name} now"),
                lineterm="",
            )
            print("\n".join(lines))
            if update:
                recorded.parent.mkdir(parents=True, exist_ok=True)
                recorded.write_text(after)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
