"""The log of the resident helper is JSON, one object on a line, whatever is written.

The log is written by its own class: a helper does not fail on demand with such texts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from hookline.hosts.client import Place
from hookline.hosts.resident_files import Log


def test_every_entry_is_one_object_on_a_line(tmp_path: Path) -> None:
    """JSON logs of every command that runs for long, one object a line."""
    tmp_path.chmod(0o700)
    place = Place(str(tmp_path))
    log = Log(place)
    entries = ["Traceback\n  two lines", "\udc80\u2028\x00", "x" * 100_000 + "end"]
    for text in entries:
        log.write(text)
    os.close(place.fd)
    lines = (tmp_path / place.log).read_bytes().splitlines()
    objects = [json.loads(line) for line in lines]
    assert [entry["message"][:11] for entry in objects] == [
        *("Traceback\n ", "\\udc80\u2028\x00", "xxxxxxxxxxx"),
    ]
    assert objects[2]["message"].endswith("xend")
    assert all(len(line) < 10_000 for line in lines)
    assert {entry["process"] for entry in objects} == {os.getpid()}
