"""``make hosts``: hooks in the real coding agents, and whether they held.

Installs the pinned programs from npm into a cache, runs each of them once for each
effect against a model server on this machine, and holds what was seen against what
the host's table says (``Host.limits``). Exits with 1 where they differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hookline.hosts.registry import host_of

from .cases import CASES
from .check import Row, check
from .page import write_page
from .programs import PROGRAMS
from .run import Place


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen programs, print a table, and say what differs."""
    options = _options(arguments)
    programs = install(options.hosts)
    for name in options.hosts:
        print(f"{PROGRAMS[name].package} {PROGRAMS[name].version}")
    folder = Path(tempfile.mkdtemp(prefix="hosts-"))
    rows = list(_rows(options, programs, folder))
    wrong = [row for row in rows if row.wrong]
    if options.write_docs:
        write_page(rows)
    print(f"{len(rows)} effects, {len(wrong)} differ from the tables of the hosts")
    if wrong or options.keep:
        print(f"transcripts: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make hosts", description=__doc__)
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="default: all")
    parser.add_argument("--only", default="", help="effects whose title holds this")
    parser.add_argument("--keep", action="store_true", help="keep all transcripts")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args(arguments)
    if unknown := set(options.hosts) - PROGRAMS.keys():
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(PROGRAMS)}")
    options.hosts = options.hosts or list(PROGRAMS)
    return options


def _rows(options: argparse.Namespace, programs: Path, folder: Path) -> Iterator[Row]:
    for name in options.hosts:
        for number, case in enumerate(CASES):
            if options.only not in f"{case.event} {case.title}":
                continue
            place = Place(folder / f"{name}-{number}", programs)
            row = check(host_of(name), PROGRAMS[name], case, place)
            _print(row)
            if not (row.wrong or options.keep):
                shutil.rmtree(place.folder, ignore_errors=True)
            yield row


def _print(row: Row) -> None:
    event = row.case.event.value
    print(f"{row.host:9}{event:20}{row.case.title:40}{row.outcome:10}{row.seen}")
    if row.wrong:
        print(f"{'':9}DIFFERS: {row.wrong}")
    sys.stdout.flush()


def install(hosts: Sequence[str]) -> Path:
    """Put the pinned programs into the cache; answer where their commands are."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(home) / "hookline-hosts"
    missing = [name for name in hosts if not _is_installed(cache, name)]
    if missing:
        cache.mkdir(parents=True, exist_ok=True)
        wanted = [
            f"{PROGRAMS[name].package}@{PROGRAMS[name].version}" for name in missing
        ]
        options = ["--no-audit", "--no-fund", "--save-exact"]
        subprocess.run(["npm", "install", *options, *wanted], cwd=cache, check=True)
    return cache / "node_modules" / ".bin"


def _is_installed(cache: Path, name: str) -> bool:
    program = PROGRAMS[name]
    about = cache / "node_modules" / program.package / "package.json"
    if not about.exists():
        return False
    return bool(json.loads(about.read_text())["version"] == program.version)


if __name__ == "__main__":
    sys.exit(main())
