"""A bad file or a full disk: reported with the path, never deleted."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hookline.errors import JournalError
from hookline.journal.query import read_journal
from hookline.journal.record import JournalRecorder
from hookline.journal.store import open_for_writing
from tests.support.journals import (
    entries,
    is_intact,
    record_write,
    system_at,
    wait_until,
)
from tests.support.python import run_python


def foreign_text(path: Path) -> None:
    path.write_text("precious notes\n" * 100)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (a)")
        connection.execute("PRAGMA journal_mode=WAL")


def empty_file(path: Path) -> None:
    path.touch()


def damaged_journal(path: Path) -> None:
    open_for_writing(str(path)).close()
    content = bytearray(path.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    path.write_bytes(content)


def cut_journal(path: Path) -> None:
    open_for_writing(str(path)).close()
    path.write_bytes(path.read_bytes()[:3000])


BAD_FILES = [foreign_text, foreign_database, empty_file, damaged_journal, cut_journal]


@pytest.mark.parametrize("make", BAD_FILES)
async def test_a_bad_file_is_rejected_with_its_path_and_left_unchanged(
    make: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(make)
    journal = tmp_path / "j.sqlite"
    make(journal)
    before = journal.read_bytes()
    with caplog.at_level(logging.WARNING, "hookline"):
        async with system_at(tmp_path, journal) as system:
            for _ in range(3):
                result = await system.event_handler.fire_before_agent_event("x")
                assert result.aggregated.success
    (warning,) = caplog.messages
    assert str(journal) in warning
    assert "to start a new one" in warning
    assert journal.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["j.sqlite"]


@pytest.mark.parametrize("kind", ["directory", "pipe", "device", "loop"])
def test_path_that_is_not_a_regular_file_is_rejected(kind: str, journal: Path) -> None:
    if kind == "directory":
        journal.mkdir()
    elif kind == "pipe":
        os.mkfifo(journal)
    elif kind == "device":
        journal = Path("/dev/null")
    else:
        journal.symlink_to(journal)
    for opened in (open_for_writing, lambda p: read_journal(p).__enter__()):
        with pytest.raises(JournalError):
            opened(str(journal))


@pytest.mark.parametrize("version", [3, 99], ids=["older", "newer"])
def test_a_journal_of_another_version_is_rejected(journal: Path, version: int) -> None:
    with closing(open_for_writing(str(journal))) as connection:
        connection.execute(f"PRAGMA user_version={version}")
    with pytest.raises(JournalError, match=f"another version .*format {version}"):
        open_for_writing(str(journal))


def test_damage_found_while_reading_names_the_file(journal: Path) -> None:
    recorder = JournalRecorder(str(journal))
    for number in range(200):
        record_write(recorder, {"content": str(number) * 1000})
    recorder.close()
    content = bytearray(journal.read_bytes())
    content[60_000:] = os.urandom(len(content) - 60_000)
    journal.write_bytes(content)
    with pytest.raises(JournalError, match=r"j\.sqlite: is damaged .*start a new one"):
        entries(journal)


def test_a_journal_removed_while_in_use_stops_with_one_warning(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = JournalRecorder(str(journal))
    record_write(recorder)
    wait_until(lambda: journal.exists() and entries(journal))
    journal.unlink()
    with caplog.at_level(logging.WARNING, "hookline"):
        record_write(recorder)
        wait_until(lambda: caplog.messages)
        record_write(recorder)
        recorder.close()
    (warning,) = caplog.messages
    assert "moved or removed" in warning


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no permission to mount a small disk; the next test covers it")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_full_disk_stops_recording_with_one_warning_and_the_agent_goes_on(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = small_disk / "j.sqlite"
    with caplog.at_level(logging.WARNING, "hookline"):
        async with system_at(small_disk, journal) as system:
            for number in range(2000):
                text = f"{number}" * 200
                result = await system.event_handler.fire_before_agent_event(text)
                assert result.aggregated.success
    (warning,) = caplog.messages
    assert "full" in warning
    assert str(journal) in warning


def test_a_file_size_limit_stops_recording_with_one_warning(
    journal: Path,
) -> None:
    script = """
    import asyncio, logging, resource, sys
    from hookline import Config, HookSystem, Settings

    async def main():
        settings = Settings.from_mapping({"hooksConfig": {"journal": sys.argv[1]}})
        system = HookSystem(Config("s", ".", settings))
        async with system:
            await system.event_handler.fire_before_agent_event("first")
        async with system:
            fire = system.event_handler.fire_before_agent_event
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            for number in range(2000):
                assert (await fire("x" * 2000)).aggregated.success
        print("went on")

    logging.basicConfig()
    asyncio.run(main())
    """
    done = run_python(script, str(journal))
    assert done.stdout == "went on\n", done.stderr
    assert done.stderr.count("Recording stopped") == 1
    assert is_intact(journal)
    assert entries(journal)[0].input["prompt"] == "first"
