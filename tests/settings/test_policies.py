"""Cedar files: texts that are nested too deeply.

The parser is called itself: a text that ends the process ends the test with it.
"""

from __future__ import annotations

from pathlib import Path

from hookline.settings.policies import CedarFile, parse_files
from tests.support.python import run_python

HEAD = "permit(principal, action, resource)"


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
    text = policy + f"{HEAD} when {{ context.a.b.c > 1 }};\n" * 2000
    assert parse_files([CedarFile("policies", "p.cedar", "/p.cedar", text)])[1] == []
