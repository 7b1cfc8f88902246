"""Every exception that Hookline raises.

    HooklineError
    ├── SettingsError                   a settings file that cannot be used
    ├── ReloadError                     changed settings that cannot be used
    ├── StateFileError                  a file in the state folder that cannot be used
    ├── UnknownNameError                a name that is not one of those known
    │   ├── UnknownEventError           unknown event name (ValueError too)
    │   ├── UnknownHookError            unknown hook name (LookupError too)
    │   │   └── UnknownFunctionError    a function that is not registered
    │   └── UnknownTranslatorError      unknown translator (also TranslationError)
    ├── InvalidHookError                a hook registered in code (ValueError too)
    ├── HookSystemNotInitializedError   a part was used before initialize()
    │   └── HookRegistryNotInitializedError   the registry was
    ├── HookSystemExistsError           a second HookSystem for one Config
    ├── EncodingError                   an input that cannot be encoded as JSON
    ├── TranslationError                a model payload of unknown shape
    ├── UnhookedCallError               a call that hooks would not see
    ├── UnseenResponseError             an option that hides responses (ValueError too)
    ├── UnknownClientError              a client that hooked() does not know (TypeError)
    ├── ToolBlockedError                a hook refused the call of a tool
    ├── JournalError                    a journal file that cannot be used
    ├── BusConnectionError              no connection to a bus (ConnectionError too)
    ├── MissingExtraError               optional package missing (ImportError too)
    └── UnsupportedPlatformError        a system that hooks cannot run on (ImportError)

Each keeps its arguments as fields and survives pickling. They are raised for mistakes
of the caller only: a hook's failure is returned as data (see ``results``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any


class HooklineError(Exception):
    """The base of all errors."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The message is in ``args``, and need not be what ``__init__`` takes.
        return _without_init, (type(self),), {**vars(self), "args": self.args}


def _without_init(kind: type[HooklineError]) -> HooklineError:
    return kind.__new__(kind)


class SettingsError(HooklineError):
    """A settings file that cannot be used, with the position of the problem."""

    def __init__(
        self,
        problem: str,
        file: str | PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.problem = problem
        self.file = None if file is None else fspath(file)
        self.line, self.column = line, column
        # Other people name folders: a line break must not start a line of ours.
        name = self.file or ""
        name = name if name.isprintable() else repr(name)[1:-1]
        position = ":".join([name, *(str(n) for n in (line, column) if n)])
        super().__init__(problem if file is None else f"{position}: {problem}")

    def __eq__(self, other: object) -> bool:
        """Equal settings have equal errors."""
        return isinstance(other, SettingsError) and other.args == self.args

    def __hash__(self) -> int:
        return hash(self.args)


class ReloadError(HooklineError):
    """Changed settings that cannot be used; the old ones stay."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class StateFileError(HooklineError):
    """A file in the state folder, such as a trust record, that cannot be used."""


class UnknownNameError(HooklineError):
    """An unknown name; the message suggests the nearest one."""

    problem, hint = "unknown name", ""
    lists_all = False
    """Whether all names are listed also where one is suggested."""

    def __init__(self, name: object, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = tuple(str(choice) for choice in known)
        super().__init__(name, self.known)

    def __str__(self) -> str:  # only here: a bus cannot wait for the nearest name
        near = nearest(self.name, self.known)
        hints = [] if near is None else [f"did you mean {near!r}?"]
        if near is None or self.lists_all:
            hints.append(self.hint or f"one of {', '.join(self.known)}")
        return f"{self.problem} {self.name!r}: {' '.join(hints)}"


class UnknownEventError(UnknownNameError, ValueError):
    """An unknown event name."""

    problem = "unknown event"


class UnknownHookError(UnknownNameError, LookupError):
    """A name that no registered hook has."""

    problem, hint = "no hook is named", "see 'hookline list'"


class UnknownFunctionError(UnknownHookError):
    """A function that is not registered, or not on that event."""

    def __str__(self) -> str:
        names = ", ".join(sorted(self.known)) or "none"
        return f"hooks.off: {self.name} is not registered (registered: {names})"


class InvalidHookError(HooklineError, ValueError):
    """A hook that ``hooks.on`` cannot register as it is given."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place, self.problem = place, problem


class HookSystemNotInitializedError(HooklineError):
    """A part of the hook system was used before ``initialize()``."""

    def __init__(self, part: str) -> None:
        use = "await hooks.initialize() first, or use 'async with hooks'"
        super().__init__(f"HookSystem.{part} is not available yet: {use}")
        self.part = part


class HookRegistryNotInitializedError(HookSystemNotInitializedError):
    """The registry of hooks was used before ``initialize()``."""


class HookSystemExistsError(HooklineError):
    """A Config was given a second HookSystem."""

    def __init__(self) -> None:
        super().__init__(
            "this Config already has a HookSystem: use config.get_hook_system()"
        )


class EncodingError(HooklineError):
    """An event's input cannot be encoded as JSON."""


class TranslationError(HooklineError):
    """A model request or response has a shape that no translator knows."""


class UnknownTranslatorError(UnknownNameError, TranslationError, ValueError):
    """A translator that does not exist."""

    problem, lists_all = "unknown translator", True


class UnseenResponseError(HooklineError, ValueError):
    """An option of an SDK that keeps the response from hooks."""

    def __init__(self, option: str) -> None:
        why = "hooks cannot read or change such a response"
        super().__init__(
            f"{option} is not allowed on a hooked client: {why}; remove it"
        )
        self.option = option


class UnknownClientError(HooklineError, TypeError):
    """A client that ``hooked`` does not know."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"unknown client {kind!r}: expected one of google-genai, openai or "
            "anthropic; for a function use hooked_tool, for a framework its adapter in "
            "hookline.adapters"
        )
        self.kind = kind


class ToolBlockedError(HooklineError):
    """A hook refused the call of a tool."""

    def __init__(self, tool_name: str, reason: str) -> None:
        super().__init__(f"{tool_name}: {reason}")
        self.tool_name, self.reason = tool_name, reason


class UnhookedCallError(HooklineError):
    """A call of a hooked client that hooks would have to see, and cannot."""

    def __init__(self, call: str, why: str, events: Iterable[str]) -> None:
        self.call, self.why = call, why
        self.events = tuple(str(event) for event in events)
        super().__init__(
            f"{call} is refused on a hooked client: {why}, so that "
            f"{', '.join(self.events)} hooks do not see it; use a client without hooks"
        )


class JournalError(HooklineError):
    """A journal file that cannot be used; it is left unchanged."""

    def __init__(self, file: str | PathLike[str], problem: str) -> None:
        self.file, self.problem = fspath(file), problem
        super().__init__(f"journal {self.file}: {problem}")


class BusConnectionError(HooklineError, ConnectionError):
    """A bus cannot be reached, or refuses the connection."""

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(f"no connection to {address}: {problem}")
        self.address, self.problem = address, problem


class MissingExtraError(HooklineError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, extra: str, package: str, at_least: str = "") -> None:
        version = f" {at_least} or later" if at_least else ""
        command = install_command(extra, package, at_least)
        super().__init__(
            f"{package}{version} is missing (hookline[{extra}]): run {command}"
        )
        self.extra, self.package, self.at_least = extra, package, at_least


class UnsupportedPlatformError(HooklineError, ImportError):
    """Hookline was imported on Windows."""

    def __init__(self) -> None:
        super().__init__(
            "hookline runs hooks on Linux and macOS only: on Windows, use WSL"
        )


def install_command(extra: str, package: str, at_least: str = "") -> str:
    """The command that adds what an extra needs, or a later version of one package.

    The requirements themselves are named: Hookline is on no index, and a stranger could
    register its name (decision 0148).
    """
    from importlib import metadata

    try:
        declared = metadata.requires("hookline") or []
    except metadata.PackageNotFoundError:
        declared = []  # run from its sources, without an installation
    names = [
        requirement.strip()
        for requirement, _, condition in (line.partition(";") for line in declared)
        if re.search(rf"""extra *== *['"]{extra}['"]""", condition)
    ]
    names = [f"{package}>={at_least}"] if at_least else names or [package]
    # Quoted also where a shell would not need it: it looks the same everywhere.
    return " ".join(["pip install", *(f"'{name}'" for name in names)])


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Find the known name that a misspelt one probably means."""
    if not isinstance(name, str):
        return None
    from difflib import get_close_matches

    by_lower = {choice.lower(): choice for choice in known}
    matches = get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return str(by_lower[matches[0]]) if matches else None
