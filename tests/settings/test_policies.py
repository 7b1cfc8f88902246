"""The files of cedar hooks: mistakes with their line, and the fields that are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.errors import SettingsError
from hookline.settings.policies import CedarFile, UsedFields, find_mistakes, parse_files
from tests.support.python import run_python

HEAD = "permit(principal, action, resource)"


def policies(text: str) -> CedarFile:
    return CedarFile("policies", "p.cedar", "/p.cedar", text)


def used(condition: str) -> UsedFields:
    return parse_files([policies(f"{HEAD} when {{ {condition} }};")]).used


@pytest.mark.parametrize(
    ("condition", "found"),
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
    condition: str, found: UsedFields
) -> None:
    assert used(condition) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{HEAD};\n\n\nfoo(principal, action, resource);", 4),
        (f'// "a;b\n{HEAD} when {{ "a;\\"" == "b" }};\n  permit(;', 3),
        (f"{HEAD};\n// comment;\n\n@id(\n 5) {HEAD};", 4),
        (f"{HEAD}", 1),
        (f"{HEAD};\n/", 2),
        (f'{HEAD};\n{HEAD} when {{ "unended }};', 2),
    ],
)
def test_syntax_error_has_the_line_where_its_policy_starts(
    text: str, line: int
) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_files([policies(text)])
    assert (caught.value.file, caught.value.line) == ("/p.cedar", line)


def test_policies_keep_their_own_ids_and_files() -> None:
    first = policies(f'@id("a") {HEAD};\n{HEAD};')
    second = CedarFile("policies", "q.cedar", "/q", f'@reason("r") {HEAD};')
    store = parse_files([first, second])
    assert [one.name for one in store.known] == [
        *("a (p.cedar)", "policy1 (p.cedar)", "policy0 (q.cedar)"),
    ]
    assert [one.reason for one in store.known] == [None, None, "r"]


def test_all_mistakes_are_found_at_once(tmp_path: Path) -> None:
    texts = {
        "schema": "entity Agent, Project; action a appliesTo "
        "{principal: Agent, resource: Project};",
        "policies": f"{HEAD} when {{ context.x == 1 }};\n\n"
        'permit(principal is User, action == Action::"b", resource);',
    }
    files = []
    for key, text in texts.items():
        path = tmp_path / key
        path.write_text(text)
        files.append(CedarFile(key, key, str(path)))
    found = find_mistakes(files)
    lines = {(error.file, error.line) for error in found}
    assert lines == {(str(tmp_path / "policies"), line) for line in (1, 3)}
    assert any("unrecognized entity type `User`" in str(error) for error in found)
    (tmp_path / "schema").unlink()
    [unread] = find_mistakes(files)
    assert "cannot be read" in str(unread)


@pytest.mark.parametrize(
    ("key", "text"),
    [
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
    ],
)
def test_no_text_uses_up_the_stack_of_the_process(
    tmp_path: Path, key: str, text: str
) -> None:
    """Cedar's parser would end the process: nothing can catch that (issue 13.2)."""
    (tmp_path / "p.cedar").write_text(f"// one\n{text}")
    code = f"""
        from hookline.settings.policies import CedarFile, find_mistakes
        file = CedarFile({key!r}, "p.cedar", {str(tmp_path / "p.cedar")!r})
        print(*find_mistakes([file]))
    """
    done = run_python(code)
    assert done.returncode == 0, done.returncode
    assert "p.cedar:2: nested too deeply" in done.stdout


def test_long_lists_and_many_policies_are_not_deep() -> None:
    """Brackets and operators in texts and comments do not count."""
    words = ", ".join(f'"(((a{n}.b && c"' for n in range(5000))
    one = f"{HEAD} when {{ context.a < 3 && [{words}].contains(context.b) }}; // (((\n"
    parse_files([policies(one + f"{HEAD} when {{ context.a.b.c > 1 }};\n" * 2000)])
