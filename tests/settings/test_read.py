"""Settings files that cannot or must not be read, and texts that take too long.

What a readable file comes to is in ``tests/pins/settings/texts.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import Settings, SettingsError
from hookline.settings import read
from hookline.settings.read import json_tree, parse_text


def write(file: Path, content: str = "{}") -> Path:
    file.write_text(content)
    return file


def refusal_of(file: Path) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        Settings.from_file(file)
    assert caught.value.file == str(file)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return caught.value


def test_name_with_a_null_byte_is_refused() -> None:
    assert "null byte" in str(refusal_of(Path("a\0b.json")))


def test_link_into_a_folder_that_all_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    target = write(tmp_path / "shared" / "real.json")
    target.parent.chmod(0o777)
    (tmp_path / "settings.json").symlink_to(target)
    problem = str(refusal_of(tmp_path / "settings.json"))
    assert "in a world-writable folder" in problem


def test_pipe_is_refused_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.json")
    assert "not a regular file" in str(refusal_of(tmp_path / "settings.json"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("s.json", " " * (read.MAX_SETTINGS_BYTES + 1), "too large"),
        ("s.json", "[" * 100_000, "nested too deeply"),
        ("s.toml", "a=" + "[" * 10_000, "nested too deeply"),
        ("s.toml", f"a = {'9' * 5000}", "not valid TOML"),
    ],
    ids=["large", "deep JSON", "deep TOML", "digits"],
)
def test_text_that_is_too_much_is_refused(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    assert problem in str(refusal_of(write(tmp_path / name, text)))


def test_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}" + " " * (read.MAX_SETTINGS_BYTES - 2))
    assert Settings.from_file(file).warnings == ()


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        refusal_of(tmp_path / "settings.json")
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 20


def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is unreadable for root")
    file = write(tmp_path / "settings.json")
    file.chmod(0)
    assert "Permission denied" in str(refusal_of(file))


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "problem"),
    [
        (0o666, 0o755, "is world-writable"),
        (0o664, 0o755, None),
        (0o644, 0o777, "run chmod o-w on {folder}"),
        (0o644, 0o1777, None),
    ],
)
def test_file_that_others_can_write_is_refused(
    tmp_path: Path, file_mode: int, folder_mode: int, problem: str | None
) -> None:
    """Nobody can exchange it in a sticky folder."""
    file = write(tmp_path / "settings.json")
    file.chmod(file_mode)
    tmp_path.chmod(folder_mode)
    if problem is None:
        assert Settings.from_file(file).warnings == ()
    else:
        assert problem.format(folder=tmp_path) in str(refusal_of(file))


@pytest.mark.parametrize("text", ['"\\"' * 200_000, "/*" * 500_000, "a" * 1_000_000])
def test_hostile_text_is_refused_in_linear_time(text: str, tmp_path: Path) -> None:
    """A quadratic scan of these takes minutes, which the suite's limit ends."""
    refusal_of(write(tmp_path / "settings.json", text))


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="{}[]:,\"\\ue0019.-+tfnul \n=#'a", max_size=30)
    | st.text(max_size=20),
    st.sampled_from(["s.json", "s.toml"]),
)
def test_text_gives_a_mapping_or_a_settings_error(text: str, name: str) -> None:
    """Any text: files would make it slow."""
    parsed: object = None
    with contextlib.suppress(SettingsError):
        parsed = parse_text(text, name)
    assert parsed is None or isinstance(parsed, dict)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def paths_in(
    value: Any, path: tuple[str | int, ...] = ()
) -> set[tuple[str | int, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return {path}.union(*(paths_in(inner, (*path, step)) for step, inner in items))


@settings(max_examples=150, deadline=None)
@given(values, st.sampled_from([None, 1]), st.booleans())
def test_place_is_known_of_every_key_and_item(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    """Findings have few keys; and comments change no value."""
    text = json.dumps({"v": value}, indent=indent, ensure_ascii=ascii_only)
    offsets = [json_tree(text).offset_of(path) for path in paths_in({"v": value})]
    assert len(set(offsets)) == len(offsets)
    assert parse_text(f"/* a */ {text} // b", "x.json") == {"v": value}


def test_place_of_an_absent_key_is_that_of_what_is_around_it() -> None:
    tree = json_tree('{\n "a": [1,\n {"b": 1}]}')
    offsets = [tree.offset_of(path) for path in ((), ("a", 1, "x", 7), ("x",))]
    assert offsets == [0, 13, 0]
