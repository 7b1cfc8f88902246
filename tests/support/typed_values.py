"""Values of any type that tools may have in their input, for rows in tables.

``tests/pins/protocol/values.json`` and ``restored.json`` name them in expressions.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import ipaddress
import os
import sqlite3
import types
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pydantic
import pydantic.v1

__all__ = ["UTC", "Decimal", "Fraction", "PurePosixPath", "PureWindowsPath", "UUID"]
__all__ += ["collections", "date", "datetime", "ipaddress", "time", "timedelta"]


@dataclasses.dataclass
class Record:
    path: Path
    inner: Any = None


@dataclasses.dataclass(slots=True)
class SlottedRecord:
    path: Path


class Subclassed(Record):
    def __init__(self) -> None:
        super().__init__(Path("ok"))
        self.target = Path(".env")


class Url(Record):
    def __str__(self) -> str:
        return "https://ok"


@attrs.define
class Attrs:
    path: Path


@attrs.define(slots=False)
class OpenAttrs:
    _path: str


class Struct(msgspec.Struct, rename="camel", omit_defaults=True):
    file_path: Path = Path(".env")


class ArrayStruct(msgspec.Struct, array_like=True, tag=True):
    path: str


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    path: Path
    hidden: str = pydantic.Field("h", exclude=True, alias="secret_name")

    @pydantic.field_serializer("path")
    def shorten(self, _: Path) -> str:
        return "ok.txt"


class Paths(pydantic.RootModel[list[Path]]):
    pass


class OldModel(pydantic.v1.BaseModel):
    path: Path


class Named(NamedTuple):
    path: Any
    mode: str = "w"


class Kind(enum.Enum):
    ENV = Path(".env")


class Word(enum.StrEnum):
    ENV = ".env"


class Level(enum.IntEnum):
    HIGH = 3


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class RaisingKey(enum.Enum):
    A = "a"

    @property
    def value(self) -> str:
        raise OSError("no")


class CountedDown(collections.abc.Sequence[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: Any) -> Any:
        return [2, 1][at]


def kind_of(base: type, **answers: Any) -> Any:
    """A class with special methods and others that answer with these values."""

    def answering(answer: Any) -> Callable[..., Any]:
        return lambda *_, **__: answer() if callable(answer) else answer

    special = ("str", "repr", "iter", "len", "eq", "hash", "int", "index", "bytes")
    members = {
        f"__{name}__" if name in {*special, "fspath"} else name: answering(answer)
        for name, answer in answers.items()
    }
    return type("Odd", (base,), members)


class LyingText(kind_of(str, str="ok", repr="ok", len=2, eq=True, hash=2)):  # type: ignore[misc] # made above
    __iter__ = kind_of(object, iter=lambda: iter("ok")).__iter__
    __class__ = property(lambda _: int)  # what it is about


LyingNumber = kind_of(int, int=1, index=1)
LyingList = kind_of(list, iter=lambda: iter(()), len=0)
LyingDict = kind_of(dict, iter=lambda: iter(()), len=0, keys=(), items=())
LyingBytes = kind_of(bytes, bytes=b"ok", decode="ok")
Located = kind_of(object, fspath=".env")
LocatedInBytes = kind_of(object, fspath=b".env")


class InFolder:
    """A path that is not the text it is made of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return f"/etc/{self.name}"


class Claims:
    """Claims to be a string and is none."""

    __class__ = str  # type: ignore[assignment] # what it is about

    def __repr__(self) -> str:
        return "<claims>"


class Raising:
    """A record whose field raises."""

    __dataclass_fields__ = Record.__dataclass_fields__

    @property
    def path(self) -> str:
        raise OSError("no")


def database_row() -> sqlite3.Row:
    with sqlite3.connect(":memory:") as database:
        database.row_factory = sqlite3.Row
        found: sqlite3.Row = database.execute("select '.env' as path").fetchone()
    database.close()
    return found


def entry_of(folder: Path) -> os.DirEntry[str]:
    (folder / ".env").touch()
    with os.scandir(folder) as entries:
        return next(iter(entries))


def url(text: str) -> Any:
    return pydantic.TypeAdapter(pydantic.HttpUrl).validate_python(text)


ENV = {"path": ".env"}
INCOMPLETE, CIRCULAR, SHARED = (Record(Path("a")) for _ in range(3))
del INCOMPLETE.path
CIRCULAR.inner = types.MappingProxyType({"again": [CIRCULAR]})
