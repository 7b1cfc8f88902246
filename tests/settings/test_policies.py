"""Cedar files: which fields policies use, and texts that are nested too deeply.

The parser is called itself: a hook hands the engine more than a policy looks at without
any difference in verdicts, and a text that ends the process ends the test with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.settings.policies import CedarFile, UsedFields, parse_files
from tests.support.python import run_python

HEAD = "permit(principal, action, resource)"


def policies(text: str) -> CedarFile:
    return CedarFile("policies", "p.cedar", "/p.cedar", text)


def used(condition: str) -> UsedFields:
    return parse_files([policies(f"{HEAD} when {{ {condition} }};")]).used


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("true", {}),
        ("principal.context.x == 1", {}),
        ("context.a == 1", {"a": None}),
        ("context.a.b == 1 && context.a.c == 1", {"a": {"b": None, "c": None}}),
        ("context.a.b == 1 && context.a == {}", {"a": None}),
        ("context.a == {} && context.a.b == 1", {"a": None}),
        ("context has a", {"a": {}}),
        ("context has a && context.a has b", {"a": {"b": {}}}),
        ("context has a.b", {"a": {"b": {}}}),
        ("context.a has b && context.a.b == 1", {"a": {"b": None}}),
        ("context.a.b == 1 && context.a has b", {"a": {"b": None}}),
        ("context == {}", None),
        ("[context] == []", None),
        ("(if true then context else context).a == 1", None),
        ('context["k\\u{fffd}"] == 1', None),
    ],
)
def test_used_fields_are_those_that_any_policy_looks_at(
    condition: str, expected: UsedFields
) -> None:
    """Only these are handed to the engine; an event cannot show that."""
    assert used(condition) == expected


DEEP = [
    ("policies", f"{HEAD} when {{ {'true && ' * 20_000} true }};"),
    ("policies", f"{HEAD} when {{ {'(' * 2_000}true{')' * 2_000} }};"),
    ("policies", f"{HEAD} when {{ {'[' * 2_000}1{']' * 2_000} == 1 }};"),
    ("policies", f"{HEAD} when {{ context{'.a' * 20_000} }};"),
    ("policies", f"{HEAD} when {{ context has a{'.a' * 20_000} }};"),
    ("policies", f"{HEAD} when {{ {'if true then ' * 9_000} true }};"),
    ("policies", f"{HEAD} when {{ 1{'+1' * 20_000} == 1 }};"),
    ("policies", f"{HEAD} when {{ {') ' * 2_000}{'(' * 2_000} }};"),
    ("schema", f"entity A = {{a: {'Set<' * 9_000}Long{'>' * 9_000}}};"),
    ("schema", f"entity A = {'{a: ' * 9_000}Long{'}' * 9_000};"),
]


def test_no_text_uses_up_the_stack_of_the_process(tmp_path: Path) -> None:
    """Cedar's parser would end the process: nothing can catch that."""
    code = "from hookline.settings.policies import CedarFile, find_mistakes\n"
    for number, (key, text) in enumerate(DEEP):
        file = tmp_path / f"{number}.cedar"
        file.write_text(f"// one\n{text}")
        file_code = f"CedarFile({key!r}, {file.name!r}, {str(file)!r})"
        code += f"print(*find_mistakes([{file_code}]))\n"
    done = run_python(code)
    assert done.returncode == 0, done.returncode
    lines = done.stdout.splitlines()
    assert len(lines) == len(DEEP)
    for number, line in enumerate(lines):
        assert line.startswith(f"{tmp_path}/{number}.cedar:2: nested too deeply")


def test_long_lists_and_many_policies_are_not_deep() -> None:
    """Brackets and operators in texts and comments do not count."""
    words = ", ".join(f'"(((a{n}.b && c"' for n in range(5000))
    policy = (
        f"{HEAD} when {{ context.a < 3 && [{words}].contains(context.b) }}; // (((\n"
    )
    parse_files([policies(policy + f"{HEAD} when {{ context.a.b.c > 1 }};\n" * 2000)])
