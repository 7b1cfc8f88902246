"""The findings of ``hookline check`` as annotations of GitHub Actions.

Paths are relative to the root of the repository where a file is in it: that is how
annotations find their lines. Text from settings never becomes syntax of the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from hookline.settings.check import Finding
from hookline.settings.places import absolute, is_within

from .terminal import printable

_GITHUB_LEVELS = {"error": "error", "warning": "warning", "hint": "notice"}


def github_lines(findings: Iterable[Finding], root: str) -> Iterator[str]:
    """Workflow commands: GitHub Actions shows them at the lines of a change."""
    for finding in findings:
        inside = _inside(finding.file, root)
        properties = {
            "file": absolute(finding.file) if inside is None else inside,
            "line": finding.line,
            "col": None if finding.line is None else finding.column,
            "title": f"hookline check: {finding.rule}",
        }
        listed = ",".join(
            f"{name}={_property(str(value))}"
            for name, value in properties.items()
            if value is not None
        )
        level = _GITHUB_LEVELS[finding.severity.value]
        yield f"::{level} {listed}::{_data(finding.text)}"


def _data(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _inside(file: str, root: str) -> str | None:
    """The path of a file in a resolved folder; None if it is elsewhere."""
    folder, name = os.path.split(absolute(file))
    path = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - a string
    if path == root or not is_within(path, root):
        return None
    return path.removeprefix(root).strip(os.sep).replace(os.sep, "/")
