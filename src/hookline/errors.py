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

from collections.abc import Iterable
from contextlib import suppress
from os import PathLike, fspath


class HooklineError(Exception):
    """The base of all errors."""

    message = ""
    """What it says, with its fields; where it has none that is its only argument."""

    def __str__(self) -> str:
        return self.message.format_map(vars(self)) or super().__str__()


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
        super().__init__(problem, self.file, line, column)

    def __str__(self) -> str:
        if self.file is None:
            return self.problem
        # Other people name folders: a line break must not start a line of ours.
        file = self.file if self.file.isprintable() else repr(self.file)[1:-1]
        position = [file, *(str(n) for n in (self.line, self.column) if n)]
        return f"{':'.join(position)}: {self.problem}"

    def __eq__(self, other: object) -> bool:
        """Equal settings have equal errors."""
        return isinstance(other, SettingsError) and other.args == self.args

    def __hash__(self) -> int:
        return hash(self.args)


class ReloadError(HooklineError):
    """Changed settings that cannot be used; the old ones stay."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(problems)

    def __str__(self) -> str:
        return "; ".join(self.problems)


class StateFileError(HooklineError):
    """A file in the state folder, such as a trust record, that cannot be used."""


class UnknownNameError(HooklineError):
    """An unknown name; the message suggests the nearest one."""

    problem, hint = "unknown name", ""

    def __init__(self, name: object, choices: Iterable[str] = ()) -> None:
        self.name = name
        self.choices = tuple(str(choice) for choice in choices)
        super().__init__(name, self.choices)

    def __str__(self) -> str:
        near = nearest(self.name, self.choices)
        hint = f"did you mean {near!r}?" if near else self.hint
        hint = hint or f"one of {', '.join(self.choices)}"
        return f"{self.problem} {self.name!r}: {hint}"


class UnknownEventError(UnknownNameError, ValueError):
    """An unknown event name."""

    problem = "unknown event"


class UnknownHookError(UnknownNameError, LookupError):
    """A name that no registered hook has."""

    problem, hint = "no hook is named", "see 'hookline list'"

    def __init__(self, name: object, choices: Iterable[str] = ()) -> None:
        super().__init__(name, sorted(choices))


class UnknownFunctionError(UnknownHookError):
    """A function that is not registered, or not on that event."""

    def __str__(self) -> str:
        names = ", ".join(self.choices) or "none"
        return f"hooks.off: {self.name} is not registered (registered: {names})"


class InvalidHookError(HooklineError, ValueError):
    """A hook that ``hooks.on`` cannot register as it is given."""

    message = "{place}: {problem}"

    def __init__(self, place: str, problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(place, problem)


class HookSystemNotInitializedError(HooklineError):
    """A part of the hook system was used before ``initialize()``."""

    message = (
        "HookSystem.{part} is not available yet: "
        "await hooks.initialize() first, or use 'async with hooks'"
    )

    def __init__(self, part: str) -> None:
        self.part = part
        super().__init__(part)


class HookRegistryNotInitializedError(HookSystemNotInitializedError):
    """The registry of hooks was used before ``initialize()``."""


class HookSystemExistsError(HooklineError):
    """A Config was given a second HookSystem."""

    message = "this Config already has a HookSystem: use config.get_hook_system()"


class EncodingError(HooklineError):
    """An event's input cannot be encoded as JSON."""


class TranslationError(HooklineError):
    """A model request or response has a shape that no translator knows."""


class UnknownTranslatorError(UnknownNameError, TranslationError, ValueError):
    """A translator that does not exist."""

    problem = "unknown translator"

    def __str__(self) -> str:
        near = nearest(self.name, self.choices)
        hint = f"did you mean {near!r}? " if near else ""
        return f"{self.problem} {self.name!r}: {hint}one of {', '.join(self.choices)}"


class UnseenResponseError(HooklineError, ValueError):
    """An option of an SDK that keeps the response from hooks."""

    message = (
        "{option} is not allowed on a hooked client: "
        "hooks cannot read or change such a response; remove it"
    )

    def __init__(self, option: str) -> None:
        self.option = option
        super().__init__(option)


class UnknownClientError(HooklineError, TypeError):
    """A client that ``hooked`` does not know."""

    message = (
        "unknown client {kind!r}: expected one of google-genai, openai or anthropic; "
        "for a function use hooked_tool, for a framework its adapter in "
        "hookline.adapters"
    )

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(kind)


class ToolBlockedError(HooklineError):
    """A hook refused the call of a tool."""

    message = "{tool_name}: {reason}"

    def __init__(self, tool_name: str, reason: str) -> None:
        self.tool_name, self.reason = tool_name, reason
        super().__init__(tool_name, reason)


class UnhookedCallError(HooklineError):
    """A call of a hooked client that hooks would have to see, and cannot."""

    def __init__(self, call: str, why: str, events: Iterable[str]) -> None:
        self.call, self.why = call, why
        self.events = tuple(str(event) for event in events)
        super().__init__(call, why, self.events)

    def __str__(self) -> str:
        return (
            f"{self.call} is refused on a hooked client: {self.why}, so that "
            f"{', '.join(self.events)} hooks do not see it; use a client without hooks"
        )


class JournalError(HooklineError):
    """A journal file that cannot be used; it is left unchanged."""

    message = "journal {file}: {problem}"

    def __init__(self, file: str | PathLike[str], problem: str) -> None:
        self.file, self.problem = fspath(file), problem
        super().__init__(self.file, problem)


class BusConnectionError(HooklineError, ConnectionError):
    """A bus cannot be reached, or refuses the connection."""

    message = "no connection to {address}: {problem}"

    def __init__(self, address: str, problem: str) -> None:
        self.address, self.problem = address, problem
        super().__init__(address, problem)


class MissingExtraError(HooklineError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, extra: str, package: str, at_least: str = "") -> None:
        self.extra, self.package, self.at_least = extra, package, at_least
        super().__init__(extra, package, at_least)

    def __str__(self) -> str:
        version = f" {self.at_least} or later" if self.at_least else ""
        missing = f"{self.package}{version} is missing (hookline[{self.extra}])"
        return f"{missing}: run {install_command(*self.args)}"


class UnsupportedPlatformError(HooklineError, ImportError):
    """Hookline was imported on Windows."""

    message = "hookline runs hooks on Linux and macOS only: on Windows, use WSL"


def install_command(extra: str, package: str, at_least: str = "") -> str:
    """The command that adds what an extra needs, or a later version of one package.

    The requirements themselves are named: Hookline is on no index, and a stranger could
    register its name (decision 0148).
    """
    from importlib import metadata

    requirements = [f"{package}>={at_least}"] if at_least else []
    with suppress(metadata.PackageNotFoundError):  # run from its sources
        for line in () if at_least else metadata.requires("hookline") or ():
            requirement, _, condition = line.partition(";")
            if f'extra=="{extra}"' in condition.replace(" ", "").replace("'", '"'):
                requirements.append(requirement.strip())
    # Quoted also where a shell would not need it: it looks the same everywhere.
    names = (f"'{requirement}'" for requirement in requirements or [package])
    return " ".join(["pip install", *names])


def nearest(name: object, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Find the known name that a misspelt one probably means."""
    if not isinstance(name, str):
        return None
    from difflib import get_close_matches

    by_lower = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return str(by_lower[matches[0]]) if matches else None
