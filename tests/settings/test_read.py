from __future__ import annotations

import contextlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.errors import SettingsError
from hookline.settings import read
from hookline.settings.read import parse_text, read_settings


def write(file: Path, content: str | bytes) -> Path:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def refusal_of(file: Path) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read_settings(file)
    assert caught.value.file == str(file)
    return caught.value


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("settings.json", '{"a": [1, "ä"]}', {"a": [1, "ä"]}),
        ("settings.json", b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ("settings.json", f'{{"a": {10**30}}}', {"a": 10**30}),
        ("settings.toml", "[a]\nb = 1", {"a": {"b": 1}}),
        ("settings.toml", "", {}),
        ("other.conf", "{}", {}),
    ],
    ids=["json", "byte order mark", "big number", "toml", "empty toml", "other name"],
)
def test_file_is_read(
    tmp_path: Path, name: str, content: str | bytes, found: Any
) -> None:
    assert read_settings(write(tmp_path / name, content)) == found


@pytest.mark.parametrize(
    ("name", "content", "problem", "place"),
    [
        pytest.param("s.json", "", "not valid JSON", (1, 1), id="empty"),
        pytest.param("s.json", '{\n  "a": ,\n}', "not valid JSON", (2, 8), id="json"),
        pytest.param("s.json", '{"a": NaN}', "NaN is not JSON", (None, None), id="nan"),
        pytest.param(
            "s.json", "[1]", "expected an object, got a list", (1, 1), id="list"
        ),
        pytest.param("s.json", '"x"', "expected an object, got 'x'", (1, 1), id="text"),
        pytest.param("s.json", b'{\n"\xff"}', "not UTF-8", (2, 2), id="not utf-8"),
        pytest.param("s.toml", "a = 1\nb = = 2", "not valid TOML", (2, 5), id="toml"),
        pytest.param("s.toml", "a = 1\nb = [1,", "not valid TOML", (2, 8), id="cut"),
        pytest.param(
            "s.json", "[" * 100_000, "nested too deeply", (None, None), id="deep json"
        ),
        pytest.param(
            "s.toml", "a=" + "[" * 10_000, "nested too", (None, None), id="deep toml"
        ),
        pytest.param(
            "s.toml", f"a = {'9' * 5000}", "not valid TOML", (None, None), id="digits"
        ),
    ],
)
def test_broken_file_is_refused_with_line_and_column(
    tmp_path: Path,
    name: str,
    content: str | bytes,
    problem: str,
    place: tuple[int | None, int | None],
) -> None:
    """protocol.md#settings: a clear error naming file, line and column."""
    error = refusal_of(write(tmp_path / name, content))
    assert problem in str(error)
    assert (error.line, error.column) == place
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_number_with_too_many_digits_becomes_infinite() -> None:
    found = parse_text(f'{{"a": {"9" * 5000}}}', "s.json")
    assert found == {"a": float("inf")}


def test_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    assert "is a directory" in str(refusal_of(tmp_path / "settings.json"))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        refusal_of(tmp_path / "settings.json")
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 20


def test_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.json")
    assert "not a regular file" in str(refusal_of(tmp_path / "settings.json"))


def test_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").symlink_to(tmp_path / "gone")
    assert "No such file" in str(refusal_of(tmp_path / "settings.json"))


def test_name_with_nul_is_refused() -> None:
    assert "null byte" in str(refusal_of(Path("a\0b.json")))


def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is unreadable for root")
    file = write(tmp_path / "settings.json", "{}")
    file.chmod(0)
    assert "Permission denied" in str(refusal_of(file))


def test_huge_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}")
    os.truncate(file, read.MAX_SETTINGS_BYTES + 1)
    assert "too large" in str(refusal_of(file))


def test_world_writable_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}")
    file.chmod(0o666)
    assert "is world-writable" in str(refusal_of(file))
    file.chmod(0o664)
    assert read_settings(file) == {}


def test_file_in_a_world_writable_folder_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}")
    tmp_path.chmod(0o777)
    assert f"run chmod o-w on {tmp_path}" in str(refusal_of(file))


def test_file_in_a_sticky_folder_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "settings.json", "{}")
    tmp_path.chmod(0o1777)
    assert read_settings(file) == {}


def test_link_into_a_world_writable_folder_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    write(shared / "real.json", "{}")
    shared.chmod(0o777)
    link = tmp_path / "settings.json"
    link.symlink_to(shared / "real.json")
    assert "in a world-writable folder" in str(refusal_of(link))


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="{}[]:,\"\\ue0019.-+tfnul \n=#'a", max_size=30)
    | st.text(max_size=20),
    st.sampled_from(["s.json", "s.toml"]),
)
def test_parse_text_gives_a_mapping_or_a_settings_error(text: str, name: str) -> None:
    found: object = None
    with contextlib.suppress(SettingsError):
        found = parse_text(text, name)
    assert found is None or isinstance(found, dict)
