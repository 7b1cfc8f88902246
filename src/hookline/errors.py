"""Every exception that Hookline raises.

    HooklineError
    ├── SettingsError                   a settings file that cannot be used
    ├── StateFileError                  a file of Hookline's own that cannot be used
    ├── UnknownEventError               an unknown event name (ValueError too)
    ├── UnknownHookError                a name that no hook has (LookupError too)
    ├── HookSystemNotInitializedError   a part was asked for before initialize()
    ├── HookSystemExistsError           a second HookSystem for one Config
    ├── EncodingError                   an input that could not be written as JSON
    ├── TranslationError                a model payload in no shape we know
    ├── JournalError                    a journal file that cannot be used
    ├── BusConnectionError              no way to a bus's server (ConnectionError too)
    └── MissingExtraError               an optional package is absent (ImportError too)

Each keeps its arguments as fields and survives pickling. They are raised for the
caller's mistakes only: what a hook does wrong is data (see ``results``).
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath


class HooklineError(Exception):
    """The base of all of them."""


class SettingsError(HooklineError):
    """A settings file that cannot be used, with the place where reading failed."""

    def __init__(
        self,
        problem: str,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.problem = problem
        self.file = None if file is None else fspath(file)
        self.line = line
        self.column = column
        super().__init__(problem, self.file, line, column)

    def __str__(self) -> str:
        if self.file is None:
            return self.problem
        place = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return f"{':'.join(place)}: {self.problem}"


class StateFileError(HooklineError):
    """A file of Hookline's own, such as a record of trust, that cannot be used."""


class UnknownEventError(HooklineError, ValueError):
    """An unknown event name; the message suggests the nearest one."""

    def __init__(self, name: object, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(str(choice) for choice in known)
        super().__init__(name, self.known)

    def __str__(self) -> str:
        near = nearest(self.name, self.known)
        hint = (
            f"did you mean {near!r}?"
            if near
            else f"expected one of {', '.join(self.known)}"
        )
        return f"unknown event {self.name!r}; {hint}"


class UnknownHookError(HooklineError, LookupError):
    """A name that no registered hook has; the message offers the nearest one."""

    def __init__(self, name: object, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(name, self.known)

    def __str__(self) -> str:
        near = nearest(self.name, self.known)
        hint = f"did you mean {near!r}?" if near else "see 'hookline list'"
        return f"no hook is named {self.name!r}: {hint}"


class HookSystemNotInitializedError(HooklineError):
    """A part of the hook system was asked for before ``initialize()``."""

    def __init__(self, part: str) -> None:
        self.part = part
        super().__init__(part)

    def __str__(self) -> str:
        return (
            f"HookSystem.{self.part} is there after initialize(): "
            "await hooks.initialize() first, or use 'async with hooks'"
        )


class HookSystemExistsError(HooklineError):
    """A Config was given a second HookSystem."""

    def __str__(self) -> str:
        return (
            "this Config has a HookSystem already: "
            "use config.get_hook_system(), or make another Config"
        )


class EncodingError(HooklineError):
    """An event's input could not be written as JSON."""


class TranslationError(HooklineError):
    """A model request or response is in no shape that a translator knows."""


class JournalError(HooklineError):
    """A journal file that cannot be used; it is left as it was found."""

    def __init__(self, file: str | PathLike[str], problem: str) -> None:
        self.file = fspath(file)
        self.problem = problem
        super().__init__(self.file, problem)

    def __str__(self) -> str:
        return f"journal {self.file}: {self.problem}"


class BusConnectionError(HooklineError, ConnectionError):
    """The server of a bus cannot be reached, or does not let us in."""

    def __init__(self, address: str, problem: str) -> None:
        self.address = address
        self.problem = problem
        super().__init__(address, problem)

    def __str__(self) -> str:
        return f"no connection to {self.address}: {self.problem}"


class MissingExtraError(HooklineError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        self.extra = extra
        self.package = package
        super().__init__(extra, package)

    def __str__(self) -> str:
        return (
            f"{self.package} is not installed: "
            f"run pip install 'hookline[{self.extra}]' to use this"
        )


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Find the known name that a misspelt one was probably meant to be."""
    if not isinstance(name, str):
        return None
    from difflib import get_close_matches  # only mistakes need it

    by_lower = {choice.lower(): choice for choice in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return str(by_lower[found[0]]) if found else None
