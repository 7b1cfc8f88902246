"""Files of a project may hold anything: what is sent is bounded and safe (issue 16)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hookline.inspector.answers import reply
from hookline.inspector.approvals import (
    MAX_CHARACTERS,
    MAX_FILES,
    MAX_HOOKS,
    MAX_ITEMS,
    MAX_LINE,
    MAX_LINES,
    list_projects,
)
from hookline.inspector.desk import Desk
from tests.support.project import GUARD, Project

SECRET = "s3cr3t-0f-a-pers0n-77"


def sent(project: Project) -> str:
    """The answer as it is sent."""
    body = reply(list_projects(Desk(str(project.folder)))).body
    return bytes(body).decode()


def files(project: Project) -> dict[str, dict[str, Any]]:
    (found,) = json.loads(sent(project))["projects"]
    return {file["path"]: file for file in found["files"]}


def test_a_binary_file_is_named_with_its_digest(project: Project) -> None:
    project.guarded()
    path = project.folder / ".hookline/hooks/tool"
    path.write_bytes(bytes(range(256)) * 9)
    found = files(project)[".hookline/hooks/tool"]
    (line,) = found["text"]["lines"]
    assert line == f"(not text, or too long to show; SHA-256 {found['digest']})"
    assert found["size"] == 256 * 9


def test_long_files_and_lines_are_cut_and_counted(project: Project) -> None:
    project.guarded()
    project.write(".hookline/hooks/many.txt", "echo\n" * 9_000)
    project.write(".hookline/hooks/wide.txt", "x" * 200_000)
    project.write(".hookline/hooks/huge.txt", "x" * 5_000_000)
    found = files(project)
    many = found[".hookline/hooks/many.txt"]["text"]
    assert (len(many["lines"]), many["left_off"]) == (MAX_LINES, 9_000 - MAX_LINES)
    (wide,) = found[".hookline/hooks/wide.txt"]["text"]["lines"]
    assert wide.endswith(f"…[{200_000 - MAX_LINE} more characters]")
    (huge,) = found[".hookline/hooks/huge.txt"]["text"]["lines"]
    assert huge.startswith("(not text, or too long to show")


def test_many_files_give_a_bounded_answer(project: Project) -> None:
    project.guarded()
    for n in range(MAX_FILES + 20):
        project.write(f".hookline/data/{n}.txt", f"line {n} {'y' * 70}\n" * 90)
    (found,) = json.loads(sent(project))["projects"]
    assert len(found["files"]) == MAX_FILES
    assert found["files_left_off"] >= 20
    assert len(sent(project)) < MAX_CHARACTERS * 3


def test_changes_come_before_what_is_as_approved(project: Project) -> None:
    project.guarded()
    for n in range(MAX_FILES + 20):
        project.write(f".hookline/data/{n:04}.txt", "as approved")
    project.trust()
    project.write(".hookline/zzz.sh", "new")
    assert next(iter(files(project))) == ".hookline/zzz.sh"
    for path in (project.folder / ".hookline/data").iterdir():
        path.unlink()
    assert next(iter(files(project))) == ".hookline/zzz.sh"


def test_a_changed_hook_comes_before_those_that_are_as_approved(
    project: Project,
) -> None:
    many = [{**GUARD, "name": f"as approved {n}"} for n in range(MAX_HOOKS + 5)]
    project.guarded()
    project.settings(*many)
    project.trust()
    project.settings(*many, {**GUARD, "name": "new"})
    (found,) = json.loads(sent(project))["projects"]
    assert found["hooks"][0]["name"] == "new"
    assert found["hooks_left_off"] == 6
    project.trust()
    (found,) = json.loads(sent(project))["projects"]
    assert found["approval"]["hooks_left_off"] == 6


def test_many_files_that_are_slow_to_compare_are_compared_at_once(
    project: Project,
) -> None:
    """The smallest diffs of all of them take minutes."""
    project.guarded()
    lines = [f"{n % 99}\n" if n % 2 else f"old {n}\n" for n in range(499)]
    paths = [f".hookline/hooks/{n}.txt" for n in range(MAX_FILES)]
    for path in paths:
        project.write(path, "".join(f"{n % 99}\n" for n in range(499)))
    project.trust()
    for path in paths:
        project.write(path, "".join(lines))
    found = files(project)
    assert all(found[path]["change"] == "changed" for path in paths)


@pytest.mark.parametrize("kind", ["file", "folder", "above"])
def test_a_link_out_of_the_project_does_not_show_its_target(
    project: Project, tmp_path: Path, kind: str
) -> None:
    outside = tmp_path / "home"
    outside.mkdir()
    (outside / "diary.txt").write_text(f"dear diary, {SECRET}\n")
    project.guarded()
    place = project.folder / ".hookline" / "hooks" / "linked"
    if kind == "file":
        place.symlink_to(outside / "diary.txt")
    elif kind == "folder":
        place.symlink_to(outside)
    else:
        project.settings({**GUARD, "command": f"bash {outside}/diary.txt"})
    text = sent(project)
    assert SECRET not in text
    withheld = [file for file in files(project).values() if file.get("withheld")]
    assert withheld or kind == "folder"


def test_what_a_link_shows_after_a_change_stays_out_too(
    project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "diary.txt"
    outside.write_text(f"dear diary, {SECRET}\n")
    project.guarded()
    place = project.folder / ".hookline" / "hooks" / "linked.txt"
    place.write_text("harmless\n")
    project.trust()
    place.unlink()
    place.symlink_to(outside)
    assert SECRET not in sent(project)
    assert files(project)[".hookline/hooks/linked.txt"]["withheld"]


@pytest.mark.parametrize(
    "text",
    [
        f"API_TOKEN={SECRET}",
        f"export PASSWORD='{SECRET}'",
        f'{{"client_secret": "{SECRET}"}}',
        f"curl https://user:{SECRET}@example.invalid/",
        f"curl 'https://example.invalid/?a=1&token={SECRET}'",
    ],
)
def test_credentials_in_files_are_masked(project: Project, text: str) -> None:
    """In new files, in diffs and in definitions; the page says so."""
    project.guarded(env={"GUARD_TOKEN": SECRET}, headers={"Authorization": SECRET})
    project.write(".hookline/hooks/extra.sh", f"# before\n{text}\n# after\n")
    found = sent(project)
    assert SECRET not in found
    assert "# after" in found
    assert json.loads(found)["projects"][0]["masked"]
    project.trust()
    project.write(".hookline/hooks/extra.sh", f"# before\n{text}\n# later\n")
    assert SECRET not in sent(project)


def test_lines_of_a_private_key_are_masked_wherever_a_diff_starts(
    project: Project,
) -> None:
    lines = [f"{n:02}" + "kEy+/" * 12 for n in range(40)]
    key = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"
    project.guarded()
    path = ".hookline/hooks/id.pem"
    project.write(path, key.format("\n".join(lines)))
    assert "kEy+/" not in sent(project)
    project.trust()
    project.write(path, key.format("\n".join([*lines[:20], "x" * 62, *lines[21:]])))
    found = files(project)[path]["diff"]["lines"]
    assert "-[masked]" in found
    assert "kEy+/" not in sent(project)


def test_a_hook_with_any_number_of_keys_gives_a_bounded_answer(
    project: Project,
) -> None:
    project.guarded(**{f"key {n}": "v" * 500 for n in range(5_000)})
    (found,) = json.loads(sent(project))["projects"]
    (hook,) = found["hooks"]
    assert len(hook["keys"]) == MAX_ITEMS
    assert hook["left_off"] > 4_900


def test_keys_of_a_group_do_not_hide_those_of_a_hook_unsaid(project: Project) -> None:
    group = {f"key {n}": n for n in range(MAX_ITEMS)}
    hook = {**GUARD, "env": {f"PATH_{n}": "x" for n in range(MAX_ITEMS)}}
    settings = {"hooks": {"BeforeTool": [{**group, "hooks": [hook]}]}}
    project.write(".hookline/settings.json", json.dumps(settings))
    (found,) = json.loads(sent(project))["projects"]
    assert found["hooks"][0]["left_off"] == 1


def test_odd_kinds_of_files_are_named(project: Project) -> None:
    project.guarded()
    os.mkfifo(project.folder / ".hookline" / "pipe")
    (project.folder / ".hookline" / "loop").symlink_to("loop")
    found = files(project)
    assert found[".hookline/pipe"]["kind"] == "other"
    assert "not a regular file" in found[".hookline/pipe"]["note"]
    assert ".hookline/loop" in found


def test_names_and_texts_that_are_not_unicode_are_sent_as_json(
    project: Project,
) -> None:
    project.guarded()
    folder = os.fsencode(project.folder / ".hookline")
    with open(folder + b"/\xff\x1b[2Jname", "wb") as file:  # noqa: PTH123
        file.write(b"caf\xe9 \x1b[31m \xe2\x80\xae text\n" + b"plain text\n" * 9)
    (found,) = json.loads(sent(project))["projects"]
    assert any("\x1b[2Jname" in file["path"] for file in found["files"])
