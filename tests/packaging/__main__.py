"""``make package``: build the wheel and the sources, check them, put them into dist.

The wheel is built from the source distribution, compared with the tree, and installed
into an empty environment: the core alone, then with what the README's example needs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .contents import ROOT, build, problems_of_sources, problems_of_wheel
from .installed import (
    Place,
    problems_of_core,
    problems_of_quick_start,
    problems_of_readme,
)


def main() -> int:
    """Print what is wrong, or where the packages are."""
    with tempfile.TemporaryDirectory(prefix="hookline-package-") as name:
        folder = Path(name).resolve()
        try:
            wheel, sources = build(folder / "dist")
        except subprocess.CalledProcessError as error:
            print((error.output or b"").decode() + (error.stderr or b"").decode())
            return 1
        problems = list(_problems(folder, wheel, sources))
        for problem in problems:
            print(f"{problem}\n", file=sys.stderr)
        if not problems:
            shutil.rmtree(ROOT / "dist", ignore_errors=True)
            shutil.copytree(folder / "dist", ROOT / "dist")
            print(f"dist/{wheel.name}\ndist/{sources.name}")
    return 1 if problems else 0


def _problems(folder: Path, wheel: Path, sources: Path) -> Iterator[str]:
    yield from problems_of_wheel(wheel)
    yield from problems_of_sources(sources)
    place = Place(folder, wheel)
    place.install()
    yield from problems_of_core(place)
    place.install("[cli,rules]")
    place.run("rm -rf .hookline .claude")
    yield from problems_of_readme(place)
    yield from problems_of_quick_start(place)


if __name__ == "__main__":
    sys.exit(main())
