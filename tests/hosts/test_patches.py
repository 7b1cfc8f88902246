"""Patches: every file that Codex touches is shown, with the lines it gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.hosts.patches import command_parts, patch_parts
from hookline.hosts.tools import read_call

BEGIN, END = "*** Begin Patch", "*** End Patch"
END_OF_FILE = "*** End of File"


def patch(*lines: str) -> str:
    return "\n".join([BEGIN, *lines, END])


def paths(text: str) -> list[str]:
    return [given["path"] for _, given in patch_parts(text)]


def heredoc(*lines: str) -> str:
    return f"apply_patch <<'EOF'\n{patch(*lines)}\nEOF\n"


def test_each_file_is_one_call_in_our_spelling() -> None:
    """hosts/README.md#what-a-hook-sees."""
    text = patch(
        *("*** Add File: a.txt", "+one", "+two"),
        *("*** Update File: b.txt", "@@ def f():", " kept", "", "-old", "+new"),
        *("*** Delete File: c.txt",),
        *("*** Update File: d.txt", "*** Move to: e.txt", "@@", "-x", "+y"),
    )
    sides = {"old_string": "kept\n\nold", "new_string": "kept\n\nnew"}
    assert patch_parts(text) == [
        ("write_file", {"path": "a.txt", "content": "one\ntwo"}),
        ("replace", {"path": "b.txt", **sides}),
        ("delete_file", {"path": "c.txt"}),
        ("replace", {"path": "d.txt", "old_string": "x", "new_string": "y"}),
        ("delete_file", {"path": "d.txt"}),
        ("write_file", {"path": "e.txt", "content": "y"}),
    ]


@pytest.mark.parametrize(
    ("marker", "written"),
    [
        ("*** Add File: my notes.txt", "my notes.txt"),
        ("*** Add File: /etc/passwd", "/etc/passwd"),
        ("\u00a0 *** Add File: .env \u2003", ".env"),
        ("*** Add File: .env\r", ".env"),
        ("*** Add File:  .env", " .env"),
        ("*** Add File:  .env", ".env"),
        ("*** Add File: a\x0b.env", "a\x0b.env"),
        ("*** Add File: a\u2028.env", "a\u2028.env"),
        ("*** Add File: .e\tnv", ".env"),
        ("*** Add File: .e\rnv", ".env"),
        ("*** Add File:.env", ".env"),
        ("\ufeff*** Add File: .env", ".env"),
    ],
)
def test_the_path_is_the_one_that_is_written(marker: str, written: str) -> None:
    """As Codex was seen to write them: it drops tabs and returns within a name."""
    assert written in paths(patch(marker, "+x"))


@pytest.mark.parametrize(
    "text",
    [
        f"<<'EOF'\n{patch('*** Delete File: .env')}\nEOF",
        f"\n\n  {patch('*** Delete File: .env')}  \n",
        patch("*** Environment ID: local", "*** Delete File: .env"),
        patch("*** Delete File: .env").replace("\n", "\r\n"),
        "*** Delete File: .env",
        patch("*** Update File: x", "@@", " a", END_OF_FILE, "*** Delete File: .env"),
    ],
)
def test_what_surrounds_a_patch_hides_no_file(text: str) -> None:
    assert ("delete_file", {"path": ".env"}) in patch_parts(text)


@pytest.mark.parametrize(
    "lookalike",
    [" *** Add File: other.txt", " *** End Patch", " *** Delete File: other.txt"],
)
def test_a_line_that_looks_like_a_marker_takes_no_lines_from_a_file(
    lookalike: str,
) -> None:
    """In an update, Codex takes a marker with space before it for a line."""
    text = patch("*** Update File: .env", "@@", lookalike, "+KEY=1")
    (_, first), *_ = patch_parts(text)
    assert first["path"] == ".env"
    assert first["new_string"].endswith("KEY=1")


def test_a_carriage_return_may_end_a_line() -> None:
    """As Copilot was seen to read it; for Codex it is a part of the name."""
    text = patch("*** Add File: a.txt\r+one\r*** Add File: .env\r+KEY=1")
    parts = patch_parts(text)
    assert ("write_file", {"path": "a.txt", "content": "one"}) in parts
    assert ("write_file", {"path": ".env", "content": "KEY=1"}) in parts
    assert "a.txt+one*** Add File: .env+KEY=1" in [part["path"] for _, part in parts]


def test_every_update_of_one_file_is_shown() -> None:
    update = ("*** Update File: a", "@@", "-x")
    parts = patch_parts(patch(*update, "+one", *update, "+two"))
    assert [given["new_string"] for _, given in parts] == ["one", "two"]


ADD = ("*** Add File: a.txt", "+x")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (heredoc(*ADD), ["a.txt"]),
        ("cd sub && " + heredoc(*ADD), ["sub/a.txt"]),
        ("cd sub &&\n" + heredoc(*ADD), ["sub/a.txt"]),
        ("cd 'my dir' && " + heredoc(*ADD), ["my dir/a.txt"]),
        ('cd "my dir" && ' + heredoc(*ADD), ["my dir/a.txt"]),
        ("cd /abs && " + heredoc(*ADD), ["/abs/a.txt"]),
        ("cd sub && " + heredoc("*** Add File: /abs/a.txt", "+x"), ["/abs/a.txt"]),
        ("cd sub && cd deep && " + heredoc(*ADD), ["sub/deep/a.txt", "a.txt"]),
        ("cd sub; " + heredoc(*ADD), ["sub/a.txt", "a.txt"]),
        ("(cd -- sub && " + heredoc(*ADD) + ")", ["sub/a.txt", "a.txt"]),
        ("cd my\\ dir && " + heredoc(*ADD), ["my\\ dir/a.txt", "my dir/a.txt"]),
        ('cd "$ROOT/sub" && ' + heredoc(*ADD), ["/sub/a.txt", "a.txt"]),
        ('cd "sub/`x`y" && ' + heredoc(*ADD), ["sub/a.txt"]),
        ("cd ~ && " + heredoc(*ADD), ["~/a.txt"]),
        ("echo hi", []),
    ],
)
def test_a_patch_in_a_command_is_relative_to_where_the_shell_goes(
    command: str, expected: list[str]
) -> None:
    """As Codex was seen to write them; in doubt also as the path is written."""
    found = [given["path"] for _, given in command_parts(command)]
    assert set(expected) <= set(found)
    if len(expected) < 2 and not {"$", "`", "~"} & set(command):
        assert found == expected


def test_two_patches_of_one_command_are_both_shown() -> None:
    second = heredoc("*** Add File: b.txt", "+*** Begin Patch", "+KEY=1")
    parts = command_parts("cd x && " + heredoc(*ADD) + "cd y && " + second)
    assert {"x/a.txt", "x/y/b.txt", "b.txt"} <= {given["path"] for _, given in parts}
    contents = {given["content"] for _, given in parts if "b.txt" in given["path"]}
    assert contents == {"*** Begin Patch\nKEY=1"}


@pytest.mark.parametrize(
    "given",
    [
        {"command": "cd d && " + heredoc(*ADD)},
        {"command": ["bash", "-lc", "cd d && " + heredoc(*ADD)]},
        {"commands": ["ls", "cd d && " + heredoc(*ADD)]},
    ],
)
def test_a_command_is_shown_beside_the_files_of_its_patch(given: Any) -> None:
    call = read_call("Bash", given, {"Bash": "run_shell_command"})
    *commands, last = call.parts
    assert {name for name, _ in commands} == {"run_shell_command"}
    assert all(isinstance(part["command"], str) for _, part in commands)
    assert last == ("write_file", {"path": "d/a.txt", "content": "x"})
    with pytest.raises(ValueError, match="cannot be put back"):
        call.changed([{"command": "ls"}])


@pytest.mark.parametrize("key", ["command", "input", "patch", "patchText", "diff"])
def test_a_patch_is_found_under_any_key(key: str) -> None:
    call = read_call("apply_patch", {key: patch(*ADD)}, {})
    assert call.parts == (("write_file", {"path": "a.txt", "content": "x"}),)


def test_two_paths_of_several_edits_are_both_shown() -> None:
    """Nobody hides a file from a guard by giving it two names."""
    edits = [{"old_string": "a", "new_string": "b"}, {"path": "c", "filePath": ".env"}]
    given = {"file_path": "d", "path": ".npmrc", "edits": edits}
    call = read_call("MultiEdit", given, {"MultiEdit": "replace"})
    found = {part["path"] for _, part in call.parts}
    assert found == {"c", "d", ".env", ".npmrc"}


@pytest.mark.parametrize(
    "before",
    [
        "cd d\n" * 20_000,
        f"cd d; {BEGIN}\n" * 5_000,
        "cd " + "${" * 100_000 + "\n",
        "cd '" * 50_000,
        "cd " + "d/" * 100_000 + "\n",
    ],
    ids=["many cd", "many patches", "many variables", "many quotes", "a long path"],
)
def test_a_command_that_nobody_can_read_through_still_shows_its_files(
    before: str,
) -> None:
    """Issue 15.3: hosts run the tool if the bridge takes too long."""
    parts = command_parts(before + heredoc("*** Add File: .env", "+x"))
    assert len(parts) < 50
    assert ("write_file", {"path": ".env", "content": "x"}) in parts


SPACE = st.sampled_from(["", "", " ", "\t", "\u00a0", "\u3000"])
NAMES = st.text(
    st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs"]), min_size=1
).filter(lambda one: one == one.strip() and one.strip("\ufeff") == one)
BODY = st.lists(
    st.tuples(st.sampled_from("+- "), st.text(st.characters(codec="ascii"))).map(
        lambda pair: pair[0] + pair[1].replace("\n", "").replace("\r", "")
    ),
    min_size=1,
    max_size=4,
)
FILES = st.lists(
    st.tuples(st.sampled_from(["Add", "Update", "Delete"]), NAMES, BODY), min_size=1
)


@given(FILES, SPACE, SPACE, st.sampled_from(["\n", "\r\n"]))
def test_every_file_of_any_patch_is_shown_with_its_lines(
    files: list[tuple[str, str, list[str]]], before: str, after: str, eol: str
) -> None:
    lines: list[str] = []
    is_update = False
    for action, name, body in files:
        # In an update, space before a marker makes it a line of the file.
        lines.append(f"{'' if is_update else before}*** {action} File: {name}{after}")
        is_update = action == "Update"
        added = ["+" + line[1:] for line in body]
        lines += {"Add": added, "Update": ["@@", *body], "Delete": []}[action]
    parts = patch_parts(eol.join([BEGIN, *lines, END]))
    for action, name, body in files:
        given = [part for _, part in parts if part["path"] == name]
        new = "\n".join(line[1:] for line in body if line[0] in "+ ")
        if action == "Add":
            new = "\n".join(line[1:] for line in body)
            assert new in [part.get("content") for part in given]
        elif action == "Update":
            assert new in [part.get("new_string") for part in given]
        else:
            assert ("delete_file", {"path": name}) in parts


@given(st.text() | st.lists(st.sampled_from([BEGIN, END, "@@", "+x", " y", *ADD])))
def test_any_text_is_read_without_an_error(text: str | list[str]) -> None:
    """Issue 15.3."""
    found = "\n".join(text) if isinstance(text, list) else text
    for name, part in [*patch_parts(found), *command_parts("cd x && " + found)]:
        assert name in ("write_file", "replace", "delete_file")
        assert isinstance(part["path"], str)
