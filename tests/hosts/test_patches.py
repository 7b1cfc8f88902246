"""Patches: every file that an agent touches is shown, with the lines it gets.

Patches as people and models write them are rows of ``tests/pins/hosts/tools.json``.
"""

from __future__ import annotations

import posixpath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bridged import BridgedProject, inputs_of, tool_call

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADDED = f"apply_patch <<'EOF'\n{BEGIN}\n*** Add File: .env\n+x\n{END}\nEOF\n"


def parts(
    bridged: BridgedProject, tool: str, command: str
) -> list[tuple[str, dict[str, Any]]]:
    """What hooks see of a call of Codex."""
    call = tool_call("codex", tool, {"command": command})
    inputs = inputs_of(bridged, "codex", call)
    assert isinstance(inputs, list)
    return [(event["tool_name"], event["tool_input"]) for event in inputs]


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
def test_command_that_nobody_can_read_through_still_shows_its_files(
    bridged: BridgedProject, before: str
) -> None:
    """Hosts run the tool if the bridge takes too long."""
    shown = parts(bridged, "Bash", before + ADDED)
    assert len(shown) < 50
    assert ("write_file", {"path": ".env", "content": "x"}) in shown


SPACE = st.sampled_from(["", "", " ", "\t", "\u00a0", "\u3000"])
NAMES = st.text(
    st.characters(exclude_characters="\n\r\t\0", exclude_categories=["Cs"]), min_size=1
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
MANY = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@MANY
@given(FILES, SPACE, SPACE, st.sampled_from(["\n", "\r\n"]))
def test_every_file_of_any_patch_is_shown_with_its_lines(
    bridged: BridgedProject,
    files: list[tuple[str, str, list[str]]],
    before: str,
    after: str,
    eol: str,
) -> None:
    lines: list[str] = []
    is_update = False
    for action, name, body in files:
        # In an update, space before a marker makes it a line of the file.
        lines.append(f"{'' if is_update else before}*** {action} File: {name}{after}")
        is_update = action == "Update"
        added = ["+" + line[1:] for line in body]
        lines += {"Add": added, "Update": ["@@", *body], "Delete": []}[action]
    shown = parts(bridged, "apply_patch", eol.join([BEGIN, *lines, END]))
    for action, written, body in files:
        # A path that ends like a folder's is shown as the file that it means.
        is_folder = posixpath.basename(written) in ("", ".", "..")
        name = posixpath.normpath(written) if is_folder else written
        of_this_file = [part for _, part in shown if part["path"] == name]
        new = "\n".join(line[1:] for line in body if line[0] in "+ ")
        if action == "Add":
            content = "\n".join(line[1:] for line in body)
            assert content in [part.get("content") for part in of_this_file]
        elif action == "Update":
            assert new in [part.get("new_string") for part in of_this_file]
        else:
            assert ("delete_file", {"path": name}) in shown


@MANY
@given(
    text=st.text() | st.lists(st.sampled_from([BEGIN, END, "@@", "+x", " y"])),
    tool=st.sampled_from(["apply_patch", "Bash"]),
)
def test_any_text_is_read_without_an_error(
    bridged: BridgedProject, text: str | list[str], tool: str
) -> None:
    command = "\n".join(text) if isinstance(text, list) else text
    names = {"write_file", "replace", "delete_file", "run_shell_command", "apply_patch"}
    shown = parts(bridged, tool, f"cd x && {command}")
    assert {name for name, _ in shown} <= names
