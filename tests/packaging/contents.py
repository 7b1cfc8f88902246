"""What is in the packages, and what must not be."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_SOURCES = ("tests", "docs", "examples", "Makefile", "SECURITY.md", "LICENSE")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel, built from the source distribution, and that one; both checked."""
    command = [sys.executable, "-m", "build", "--quiet", "--outdir", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel], [sources] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    twine = [sys.executable, "-m", "twine", "check", "--strict"]
    subprocess.run([*twine, str(wheel), str(sources)], check=True)
    return wheel, sources


def problems_of_wheel(wheel: Path) -> Iterator[str]:
    """Compare the wheel with the tree that it was built from."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    ours = {name for name in files if name.startswith("hookline/")}
    information = f"{wheel.name.rsplit('-', 3)[0]}.dist-info/"
    tree = ROOT / "src"
    here = {
        file.relative_to(tree).as_posix()
        for file in (tree / "hookline").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    yield from (f"only in the wheel: {name}" for name in sorted(ours - here))
    yield from (f"missing in the wheel: {name}" for name in sorted(here - ours))
    if f"{information}licenses/LICENSE" not in files:
        yield "missing in the wheel: the license"
    others = (name for name in files if name.split("/")[0] not in _tops(information))
    yield from (f"does not belong in the wheel: {name}" for name in others)
    yield from _problems_of_files(files)


def problems_of_sources(sources: Path) -> Iterator[str]:
    """What is missing in the source distribution, or does not belong there."""
    with tarfile.open(sources) as archive:
        members = [member for member in archive if member.isfile()]
        files = {
            member.name.partition("/")[2]: _read(archive, member) for member in members
        }
    found = {name.split("/")[0] for name in files}
    yield from (f"missing in the sources: {name}" for name in {*IN_SOURCES} - found)
    yield from _problems_of_files(files)


def _tops(information: str) -> tuple[str, ...]:
    name = information.rstrip("/")
    return "hookline", name, name.replace(".dist-info", ".data")


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def _problems_of_files(files: Mapping[str, bytes]) -> Iterator[str]:
    places = [str(ROOT).encode(), str(Path(sys.prefix).parent).encode()]
    for name, content in files.items():
        if "__pycache__" in name or name.endswith((".pyc", ".log", ".sqlite")):
            yield f"does not belong in a package: {name}"
        if any(place in content for place in places):
            yield f"names a path of this machine: {name}"
