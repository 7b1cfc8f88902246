"""What the file system says about paths: cheap to take, and different after a change.

A file counts as changed where its inode, size or one of its times differs; nobody can
set the change time (ctime). Around the files are the links and folders that lead to
them. Files that come and go in such a folder change its times, so only a move of it
counts: that sets its ctime and the time of the folder around it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from msgspec import Struct

_TICK_NS = 12_000_000
"""The clock that the times of files are taken from may stand still as long as that."""
_TRIES = 8

Times = tuple[int, int, int, int, int]
_TimesOf = dict[str, Times | None]


def file_stamp(
    path: str, look: Callable[[str], os.stat_result] = os.stat
) -> Times | None:
    """Times, size, inode and device of one file; None where it is missing."""
    try:
        status = look(path)
    except (OSError, ValueError):
        return None
    # A change of mode or owner shows in st_ctime_ns.
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (*times, status.st_size, status.st_ino, status.st_dev)


class PathsStamp(Struct, frozen=True):
    """The state of some paths, and of what leads to them."""

    files: _TimesOf
    links: _TimesOf
    folders: _TimesOf
    listed: _TimesOf
    """Folders whose list of files decides which files count."""

    def same_files(self, other: PathsStamp) -> bool:
        """Whether no file was changed, nor exchanged for another one."""
        return self.files == other.files and self.links == other.links

    def same_places(self, later: PathsStamp) -> bool:
        """Whether no folder on the way was moved, nor moved away and put back."""
        if self.folders == later.folders:
            return True
        if self.folders.keys() != later.folders.keys():
            return False
        return not any(self._is_moved(folder, later) for folder in self.folders)

    def _is_moved(self, folder: str, later: PathsStamp) -> bool:
        before, after = self.folders[folder], later.folders[folder]
        if before is None or after is None:
            return before is not after
        if before[3:] != after[3:]:
            return True
        if before[1] == after[1]:
            return False
        # Files came or went in it, or it was moved: then the names around it changed.
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent not in self.folders:
            return before[0] == after[0]
        before, after = self.folders[parent], later.folders[parent]
        return before is None or after is None or before[0] != after[0]

    def newest_ns(self) -> int:
        """When the last change was made to the files and lists."""
        parts = (self.files, self.links, self.listed)
        return max((t[1] for part in parts for t in part.values() if t), default=0)

    def is_settled(self, now_ns: int) -> bool:
        """Whether each change after ``now_ns``, when it was taken, would show.

        A second change in one tick of the clock leaves no trace. The outermost folder
        is left out: something is always written there.
        """
        recent = range(now_ns - _TICK_NS, now_ns + _TICK_NS)
        strict = (*self.files.values(), *self.links.values())
        return not any(times and times[1] in recent for times in strict) and not any(
            times and times[1] in recent and os.path.dirname(folder) in self.folders  # noqa: PTH120
            for folder, times in self.folders.items()
        )


class StampedPaths:
    """Some paths, with the links and folders that lead to them."""

    def __init__(
        self,
        files: Iterable[str],
        project: str,
        *,
        folders: Iterable[str] = (),
        listed: Iterable[str] = (),
    ) -> None:
        """``folders`` are paths too, but their content does not count."""
        self._files, self._listed = tuple(files), tuple(listed)
        self._named_folders = tuple(folders)
        self._project = project
        self.trace()

    def trace(self) -> None:
        """Find the links and folders that lead to the paths now."""
        self._links, self._folders, known = list[str](), list[str](), set[str]()
        pending, strict = [*self._files, *self._named_folders], set(self._files)
        while pending:
            part = pending.pop()
            is_inside = part.startswith(f"{self._project}/")
            outermost = self._project if is_inside else os.path.dirname(part)  # noqa: PTH120
            while part not in known:
                known.add(part)
                folder = os.path.dirname(part)  # noqa: PTH120
                if os.path.islink(part):  # noqa: PTH114
                    self._links.append(part)
                    pending.append(_target(part, folder))
                elif os.path.isdir(part) and part not in strict:  # noqa: PTH112
                    self._folders.append(part)
                if part == outermost:
                    break
                part = folder

    def take(self) -> PathsStamp:
        """The state of all of them now."""
        return PathsStamp(
            {path: file_stamp(path) for path in self._files},
            {path: file_stamp(path, os.lstat) for path in self._links},
            {path: file_stamp(path) for path in self._folders},
            {path: file_stamp(path) for path in self._listed},
        )

    def take_settled(self) -> PathsStamp | None:
        """The same once every later change will show; None if they do not rest."""
        for _ in range(_TRIES):
            now_ns = time.time_ns()
            stamp = self.take()
            if stamp.is_settled(now_ns):
                return stamp
            time.sleep(_TICK_NS / 4e9)
        return None


def _target(link: str, folder: str) -> str:
    try:
        target = os.readlink(link)  # noqa: PTH115
    except OSError:
        return link
    return os.path.normpath(os.path.join(os.path.realpath(folder), target))  # noqa: PTH118
