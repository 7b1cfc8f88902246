"""Write results as JUnit XML, which every CI reads."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from .running import CaseResult

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
