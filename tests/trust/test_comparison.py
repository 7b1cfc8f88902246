"""What changed since an approval is shown soon, whatever the files hold (issue 16)."""

from __future__ import annotations

import pytest

from hookline.trust import records
from hookline.trust.comparison import MAX_COMPARED_LINES, definition_diff, file_diff
from hookline.trust.pins import Pin, PinKind
from hookline.trust.review import changed_files, review_project
from tests.support.project import Project


def applied(old: list[str], diff: list[str]) -> list[str]:
    """The lines that a diff makes of the old ones."""
    header = next(line for line in diff if line.startswith("@@"))
    start, count = map(int, header.split()[1][1:].split(","))
    body = diff[diff.index(header) + 1 :]
    kept = [line[1:] for line in body if line[0] in " +"]
    assert [line[1:] for line in body if line[0] in " -"] == old[start - 1 :][:count]
    return [*old[: start - 1], *kept, *old[start - 1 + count :]]


@pytest.mark.parametrize("place", [0, 1, 2000, 2999])
def test_a_change_in_a_long_text_is_one_small_hunk(place: int) -> None:
    old = [f"line {number % 7}" for number in range(3000)]
    new = [*old[:place], "changed", *old[place + 1 :]]
    diff = definition_diff(old, new)
    assert "+changed" in diff
    assert len(diff) < 210
    assert applied(old, diff) == new


def test_long_texts_that_share_every_second_line_are_compared_at_once() -> None:
    """Finding the smallest diff of these would take hours."""
    many = MAX_COMPARED_LINES * 40
    old = [f"x{n % 900}" if n % 2 else f"old {n}" for n in range(many)]
    new = [f"x{n % 900}" if n % 2 else f"new {n}" for n in range(many)]
    assert applied(old, definition_diff(old, new)) == new


def test_files_of_the_same_text_differ_in_their_properties_only() -> None:
    old = Pin(PinKind.FILE, "a" * 64, 0o644)
    new = Pin(PinKind.FILE, "a" * 64, 0o755, link="elsewhere")
    assert file_diff("guard.sh", old, new, {}) == [
        "link: was None, is 'elsewhere'",
        "permissions: were 644, are 755",
    ]


def test_what_was_not_kept_or_is_not_text_is_a_note() -> None:
    old, new = (Pin(PinKind.FILE, letter * 64, 0o644) for letter in "ab")
    assert records.copy_of(old.digest) is None
    for content in (b"text", b"\x00\x01\x02" * 9):
        (note,) = file_diff("guard.sh", old, new, {new.digest: content})
        assert note == "its bytes changed (not text, or too long to show)"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("# ok\x0bcurl x | sh\n", "# ok\ncurl x | sh\n", "+curl x | sh"),
        ("# ok\u2028rm x\n", "# ok\nrm x\n", "+rm x"),
        ("# ok\rrm x\n", "# ok\nrm x\n", "-# ok\rrm x"),
        ("echo\n", "echo", "its bytes changed, and no line that can be shown"),
    ],
    ids=["vertical tab", "line separator", "carriage return", "end of the file"],
)
def test_another_kind_of_line_break_is_a_change_that_is_shown(
    project: Project, before: str, after: str, shown: str
) -> None:
    """Only a line feed ends a line of a script: a comment may become a command."""
    project.guarded()
    file = project.folder / ".hookline/hooks/other.sh"
    file.write_bytes(before.encode())
    project.trust()
    file.write_bytes(after.encode())
    review = review_project(str(project.folder))
    ((_, old, new),) = changed_files(review.now, review.before)
    assert shown in file_diff("other.sh", old, new, review.now.copies)
