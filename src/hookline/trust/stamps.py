"""What the file system says about paths: cheap to take, and different after a change.

A file counts as changed where its inode, size or one of its times differs; nobody can
set the change time (ctime). Around the files are the folders that lead to them, and the
links. Files that come and go in such a folder change its times, so its identity counts,
and a move: exchanging a folder and putting it back sets its ctime and the time of the
folder around it, and that cannot be undone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import compress

from hookline.settings.model import Stamp

_CLOCK_REALTIME_COARSE = 5
"""Linux takes the times of files from this clock, which stands still between ticks."""
_TICK_NS = 20_000_000
_TRIES = 8

_Times = tuple[int, int, int, int, int]


class StampedPaths:
    """Some paths, the folders that lead to them, and folders whose content counts."""

    def __init__(
        self,
        paths: Iterable[str],
        project: str,
        *,
        folders: Iterable[str] = (),
        listed: Iterable[str] = (),
    ) -> None:
        self._paths = tuple(paths)
        self._project = project
        self._named_folders = tuple(folders)
        self._listed = tuple(listed)
        self._links: tuple[str, ...] = ()
        self._folders: tuple[str, ...] = ()
        self.follow()

    def follow(self) -> None:
        """Find the folders and links on the way to the paths as it is now."""
        links, folders = dict[str, None](), dict[str, None]()
        for path in (*self._paths, *self._named_folders):
            for part in _way(path, self._project):
                (links if os.path.islink(part) else folders)[part] = None  # noqa: PTH114
        folders |= dict.fromkeys(self._named_folders)
        # Of a folder that is one of the paths, everything counts anyway.
        kept = folders.keys() - set(self._paths)
        self._links = tuple(links)
        self._folders = tuple(one for one in folders if one in kept)
        self._inner = [os.path.dirname(one) in kept for one in self._folders]  # noqa: PTH120

    def take(self) -> Stamp:
        """The state of all of them now."""
        return (
            tuple(map(_times, self._paths)),
            tuple(map(_link_times, self._links)),
            tuple(map(_times, self._folders)),
            tuple(map(_times, self._listed)),
        )

    def take_settled(self) -> Stamp | None:
        """The same, when every later change will show; None if they do not rest.

        A second change within one tick of the clock would leave no trace.
        """
        for _ in range(_TRIES):
            now = _coarse_ns()
            stamp = self.take()
            if self.is_settled(stamp, now):
                return stamp
            time.sleep(_TICK_NS / 4e9)
        return None

    def is_settled(self, stamp: Stamp, now: int | None = None) -> bool:
        """Whether every change after it would show; ``now`` is when it was taken."""
        now = _coarse_ns() - _TICK_NS if now is None else now
        return not now <= self._newest(stamp) <= now + 2 * _TICK_NS

    def newest_ns(self, stamp: Stamp) -> int:
        """When the last change was made that a stamp knows of."""
        files, links, _, listed = stamp
        known = (one for part in (files, links, listed) for one in part if one)
        return max((max(one[0], one[1]) for one in known), default=0)

    def same(self, before: Stamp, now: Stamp) -> bool:
        """Whether no path was changed or exchanged; lists of folders are apart."""
        if before[:3] == now[:3]:
            return True
        if before[:2] != now[:2] or len(before[2]) != len(self._folders):
            return False
        known = dict(
            zip(self._folders, zip(before[2], now[2], strict=True), strict=True)
        )
        return not any(self._is_moved(folder, known) for folder in self._folders)

    def same_lists(self, before: Stamp, now: Stamp) -> bool:
        """Whether nothing came into or left the folders whose content counts."""
        return bool(before[3] == now[3])

    def _is_moved(
        self, folder: str, known: dict[str, tuple[_Times | None, _Times | None]]
    ) -> bool:
        before, now = known[folder]
        if before is None or now is None:
            return before is not now
        if before[3:] != now[3:]:
            return True
        if before[1] == now[1]:
            return False
        parent = known.get(os.path.dirname(folder))  # noqa: PTH120
        if parent is None:
            return before[0] == now[0]
        outer_before, outer_now = parent
        same_names = outer_before and outer_now and outer_before[0] == outer_now[0]
        return not same_names

    def _newest(self, stamp: Stamp) -> int:
        files, links, folders, _ = stamp
        inner = compress(folders, self._inner)
        return max((one[1] for one in (*files, *links, *inner) if one), default=0)


def file_stamp(path: str) -> tuple[int, ...] | None:
    """Times, size and inode of one file; None where it is missing."""
    return _times(path)


def _way(path: str, project: str) -> Iterator[str]:
    """The folders and links from the project to a path, through links too."""
    waiting, seen = [path], set[str]()
    named = path
    while waiting:
        path = waiting.pop()
        inside = path.startswith(f"{project}/")
        part, outer = path, project if inside else os.path.dirname(path)  # noqa: PTH120
        while part not in seen:
            seen.add(part)
            if os.path.islink(part):  # noqa: PTH114
                yield part
                waiting.append(_target(part))
            elif part != named and (part != path or os.path.isdir(part)):  # noqa: PTH112
                yield part
            if part == outer:
                break
            part = os.path.dirname(part)  # noqa: PTH120


def _target(link: str) -> str:
    try:
        target = os.readlink(link)  # noqa: PTH115
    except OSError:
        return link
    return os.path.normpath(os.path.join(os.path.dirname(link), target))  # noqa: PTH118, PTH120


def _times(path: str) -> _Times | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    # A change of mode or owner shows in st_ctime_ns, which nobody can set.
    return (
        *(found.st_mtime_ns, found.st_ctime_ns, found.st_size),
        *(found.st_ino, found.st_dev),
    )


def _link_times(path: str) -> _Times | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, 0, found.st_ino, found.st_dev)


if sys.platform == "linux":

    def _coarse_ns() -> int:
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)

else:

    def _coarse_ns() -> int:
        return time.time_ns() - _TICK_NS
