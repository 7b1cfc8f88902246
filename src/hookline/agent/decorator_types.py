"""What a type checker knows of ``hooked_tool``: the types of decorated functions.

Where a refused call returns the reason, the result is the function's own or a text.
Hooks are asked before a generator's first item, so its items are its own or a text.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from typing import Any, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
C = TypeVar("C")
T = TypeVar("T")
F = TypeVar(
    "F",
    bound=Callable[..., Any] | classmethod[Any, ..., Any] | staticmethod[..., Any],
)


class KeepsType(Protocol):
    """Of ``blocked="raise"``: a decorated function has the type that it had."""

    def __call__(self, function: F, /) -> F:
        """Decorate a function."""
        ...


class AddsReason(Protocol):
    """Of ``blocked="return"``: what a function gives, or the reason as text."""

    @overload
    def __call__(
        self, function: classmethod[C, P, AsyncIterator[T]], /
    ) -> classmethod[C, P, AsyncGenerator[T | str, None]]: ...
    @overload
    def __call__(
        self, function: classmethod[C, P, Coroutine[Any, Any, T]], /
    ) -> classmethod[C, P, Coroutine[Any, Any, T | str]]: ...
    @overload
    def __call__(
        self, function: classmethod[C, P, Iterator[T]], /
    ) -> classmethod[C, P, Generator[T | str, None, None]]: ...
    @overload
    def __call__(
        self, function: classmethod[C, P, T], /
    ) -> classmethod[C, P, T | str]: ...
    @overload
    def __call__(
        self, function: staticmethod[P, AsyncIterator[T]], /
    ) -> staticmethod[P, AsyncGenerator[T | str, None]]: ...
    @overload
    def __call__(
        self, function: staticmethod[P, Coroutine[Any, Any, T]], /
    ) -> staticmethod[P, Coroutine[Any, Any, T | str]]: ...
    @overload
    def __call__(
        self, function: staticmethod[P, Iterator[T]], /
    ) -> staticmethod[P, Generator[T | str, None, None]]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap] # a static method is callable too
        self, function: staticmethod[P, T], /
    ) -> staticmethod[P, T | str]: ...
    @overload
    def __call__(
        self, function: Callable[P, AsyncIterator[T]], /
    ) -> Callable[P, AsyncGenerator[T | str, None]]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | str]]: ...
    @overload
    def __call__(
        self, function: Callable[P, Iterator[T]], /
    ) -> Callable[P, Generator[T | str, None, None]]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Callable[P, T | str]: ...


class KeepsTypeInThread(Protocol):
    """As ``KeepsType``; a plain function becomes an async one."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __call__(
        self, function: Callable[P, T], /
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...


class AddsReasonInThread(Protocol):
    """As ``AddsReason``; a plain function becomes an async one."""

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | str]]: ...
    @overload
    def __call__(
        self, function: Callable[P, T], /
    ) -> Callable[P, Coroutine[Any, Any, T | str]]: ...
