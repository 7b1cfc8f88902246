"""The findings of ``hookline check`` for other programs: GitHub Actions and SARIF.

Paths are relative to the root of the repository where a file is in it: that is how
annotations find their lines. Text from settings never becomes syntax of the format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hookline.settings.lint import Finding, rules
from hookline.settings.locations import absolute, is_within

from .terminal import printable

_GITHUB_LEVELS = {"error": "error", "warning": "warning", "hint": "notice"}
_SARIF_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
_BASE = "%SRCROOT%"


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


def sarif_log(findings: Sequence[Finding], root: str) -> dict[str, Any]:
    """A log in the Static Analysis Results Interchange Format, version 2.1.0."""
    known = rules()
    used = sorted({finding.rule for finding in findings})
    driver = {
        "name": "hookline",
        "version": version("hookline"),
        "rules": [
            {"id": one, "shortDescription": {"text": _message(known[one])}}
            for one in used
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        # With a slash at the end, also at the root of the file system.
        "originalUriBaseIds": {_BASE: {"uri": Path(root, "x").as_uri()[:-1]}},
        "results": [_result(one, used.index(one.rule), root) for one in findings],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule_index: int, root: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.file, root),
            "region": _region(finding),
        }
    }
    if finding.where:
        place = {"fullyQualifiedName": printable(finding.where)}
        location["logicalLocations"] = [place]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": _SARIF_LEVELS[finding.severity.value],
        "message": {"text": _message(finding.text)},
        "locations": [location],
    }


def _region(finding: Finding) -> dict[str, int]:
    # Code scanning rejects a location without a line.
    region = {"startLine": finding.line or 1}
    if finding.line and finding.column:
        region["startColumn"] = finding.column
    return region


def _artifact(file: str, root: str) -> dict[str, str]:
    inside = _inside(file, root)
    if inside is None:
        return {"uri": Path(absolute(file)).as_uri()}
    return {"uri": quote(os.fsencode(inside)), "uriBaseId": _BASE}


def _message(text: str) -> str:
    """Escape what would be a placeholder or a link in a message."""
    braces = printable(text).replace("{", "{{").replace("}", "}}")
    return braces.replace("](", r"\](")


def _inside(file: str, root: str) -> str | None:
    """The path of a file in a resolved folder; None if it is elsewhere."""
    folder, name = os.path.split(absolute(file))
    path = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - a string
    if path == root or not is_within(path, root):
        return None
    return path.removeprefix(root).strip(os.sep).replace(os.sep, "/")
