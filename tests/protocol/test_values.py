"""Values of any type, shown to hooks by what they mean.

protocol.md#process, issue 12.1
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import ipaddress
import os
import sqlite3
import types
from collections.abc import Iterator
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
import pytest

from hookline.errors import EncodingError
from hookline.protocol.jsontext import as_plain, decode, encode, encode_whole, text_of
from hookline.protocol.values import restored


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
    path: Path
    mode: str = "w"


class Url(Record):
    def __str__(self) -> str:
        return "https://ok"


class InFolder:
    """A path that is not the text it is made of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return f"/etc/{self.name}"


class Kind(enum.Enum):
    ENV = Path(".env")


class Word(enum.StrEnum):
    ENV = ".env"


class Level(enum.IntEnum):
    HIGH = 3


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class LyingText(str):
    def __str__(self) -> str:
        return "ok"

    def __repr__(self) -> str:
        return "ok"

    def __iter__(self) -> Iterator[str]:
        return iter("ok")

    def __len__(self) -> int:
        return 2

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("ok")

    @property  # type: ignore[misc] # what the test is about
    def __class__(self) -> Any:
        return int


class LyingNumber(int):
    def __int__(self) -> int:
        return 1

    def __index__(self) -> int:
        return 1


class LyingList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0


class LyingDict(dict[str, Any]):
    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def keys(self) -> Any:
        return ()

    def items(self) -> Any:
        return ()


class LyingBytes(bytes):
    def __bytes__(self) -> bytes:
        return b"ok"

    def decode(self, *_: Any, **__: Any) -> str:
        return "ok"


class Located:
    def __fspath__(self) -> str:
        return ".env"


class LocatedInBytes:
    def __fspath__(self) -> bytes:
        return b".env"


class CountedDown(collections.abc.Sequence[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: Any) -> Any:
        return [2, 1][at]


class Claims:
    """Claims to be a string and is none."""

    __class__ = str  # type: ignore[assignment] # what the test is about

    def __repr__(self) -> str:
        return "<claims>"


def row() -> sqlite3.Row:
    with sqlite3.connect(":memory:") as database:
        database.row_factory = sqlite3.Row
        found: sqlite3.Row = database.execute("select '.env' as path").fetchone()
    database.close()
    return found


def entry(folder: Path) -> os.DirEntry[str]:
    (folder / ".env").touch()
    with os.scandir(folder) as entries:
        return next(iter(entries))


ENV = {"path": ".env"}
SHOWN: dict[str, tuple[Any, Any]] = {
    "path": (Path(".env"), ".env"),
    "pure path": (PurePosixPath(".env"), ".env"),
    "windows path": (PureWindowsPath("C:\\.env"), "C:\\.env"),
    "path-like": (Located(), ".env"),
    "path-like in bytes": (LocatedInBytes(), ".env"),
    "dataclass": (Record(Path(".env"), [Record(Path("a"))]),
                  ENV | {"inner": [{"path": "a", "inner": None}]}),
    "dataclass with slots": (SlottedRecord(Path(".env")), ENV),
    "subclass with more": (Subclassed(),
                           {"path": "ok", "inner": None, "target": ".env"}),
    "attrs": (Attrs(Path(".env")), ENV),
    "open attrs": (OpenAttrs(".env"), {"_path": ".env"}),
    "struct": (Struct(), {"file_path": ".env"}),
    "array struct": (ArrayStruct(".env"), ENV),
    "pydantic": (Model.model_validate(ENV | {"more": Path("b"), "secret_name": "s"}),
                 ENV | {"hidden": "s", "more": "b"}),
    "pydantic root": (Paths([Path(".env")]), [".env"]),
    "pydantic v1": (OldModel(path=Path(".env")), ENV),
    "named tuple": (Named(Path(".env")), ENV | {"mode": "w"}),
    "enum": (Kind.ENV, ".env"),
    "str enum": (Word.ENV, ".env"),
    "int enum": (Level.HIGH, 3),
    "flag": (Rights.READ | Rights.WRITE, 3),
    "uuid": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "decimal": (Decimal("1.50"), "1.50"),
    "fraction": (Fraction(1, 3), "1/3"),
    "datetime": (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
    "date": (date(2026, 1, 2), "2026-01-02"),
    "time": (time(3, 4), "03:04:00"),
    "timedelta": (timedelta(days=1, seconds=5), "P1DT5S"),
    "ip address": (ipaddress.ip_interface("10.0.0.1/8"), "10.0.0.1/8"),
    "url": (pydantic.TypeAdapter(pydantic.HttpUrl).validate_python("https://a.b/c"),
            "https://a.b/c"),
    "mapping proxy": (types.MappingProxyType(ENV), ENV),
    "user dict": (collections.UserDict(ENV), ENV),
    "user string": (collections.UserString(".env"), ".env"),
    "record named like an address": (Url(Path(".env")), {**ENV, "inner": None}),
    "chain map": (collections.ChainMap({}, ENV), ENV),
    "ordered dict": (collections.OrderedDict(ENV), ENV),
    "database row": (row(), ENV),
    "namespace": (types.SimpleNamespace(path=Path(".env")), ENV),
    "deque": (collections.deque([Path("a")]), ["a"]),
    "user list": (collections.UserList([Path("a")]), ["a"]),
    "own sequence": (CountedDown(), [2, 1]),
    "keys of a dict": ({Path("a"): 1}.keys(), ["a"]),
    "values of a dict": ({1: Path("a")}.values(), ["a"]),
    "bytearray": (bytearray(b"x"), "x"),
    "memoryview": (memoryview(b"x"), "x"),
    "lying text": (LyingText(".env"), ".env"),
    "lying number": (LyingNumber(5), 5),
    "lying list": (LyingList([".env"]), [".env"]),
    "lying dict": (LyingDict(ENV), ENV),
    "lying bytes": (LyingBytes(b".env"), ".env"),
    "claims to be text": (Claims(), "<claims>"),
    "range": (range(3), "range(0, 3)"),
    "keys by meaning": (
        {Path("a"): 1, Word.ENV: 2, Kind.ENV.value / "x": 3, date(2026, 1, 2): 4},
        {"a": 1, ".env": 2, ".env/x": 3, "2026-01-02": 4},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("value", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_value_is_shown_as_what_it_means(value: Any, shown: Any) -> None:
    for wrapped, seen in ((value, shown), ({"k": [value]}, {"k": [shown]})):
        assert decode(encode_whole(wrapped)) == seen
        assert decode(encode(wrapped)) == seen
        assert as_plain(wrapped) == seen


def test_an_entry_of_a_folder_is_shown_as_its_path(tmp_path: Path) -> None:
    assert decode(encode_whole(entry(tmp_path))) == str(tmp_path / ".env")


def test_a_generator_is_not_consumed() -> None:
    numbers = (n for n in range(3))
    assert "generator" in decode(encode_whole({"n": numbers}))["n"]
    assert list(numbers) == [0, 1, 2]


def test_a_field_that_was_never_set_is_left_out() -> None:
    record = Record(Path("a"))
    del record.path
    assert decode(encode_whole(record)) == {"inner": None}


def nested(levels: int, innermost: Any) -> Any:
    for _ in range(levels):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize("inner", ["x", Path("x")], ids=["plain", "path"])
def test_500_levels_are_shown_and_one_more_is_not(inner: Any) -> None:
    assert as_plain(nested(500, inner)) == nested(500, "x")
    assert encode_whole(nested(500, inner)) == b"[" * 500 + b'"x"' + b"]" * 500
    for refuse in (encode_whole, as_plain):
        with pytest.raises(EncodingError, match="deeper than 500 levels"):
            refuse(nested(501, inner))
    assert b"nested too deeply" in encode(nested(501, inner))


class Raising:
    """A record whose field raises."""

    __dataclass_fields__ = Record.__dataclass_fields__

    @property
    def path(self) -> str:
        raise OSError("no")


class RaisingKey(enum.Enum):
    A = "a"

    @property
    def value(self) -> str:
        raise OSError("no")


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", "1": "b"},
        {Path("a"): 1, "a": 2},
        {Word.ENV: 1, Path(".env"): 2},
        {None: 1, "null": 2},
        dict(zip(("\ud800", "\udfff"), "ab", strict=True)),
        {b"a": 1, "a": 2},
        Raising(),
        {RaisingKey.A: 1},
    ],
    ids=[
        *("1", "path", "enum and path", "null", "surrogates", "bytes"),
        *("field that raises", "key that raises"),
    ],
)
def test_what_cannot_be_shown_as_a_whole_is_an_error(value: Any) -> None:
    with pytest.raises(EncodingError):
        encode_whole({"tool_input": [value]})


def test_a_cycle_through_any_container_is_a_marker() -> None:
    record = Record(Path("a"))
    record.inner = types.MappingProxyType({"again": [record]})
    assert decode(encode_whole(record)) == {
        "path": "a",
        "inner": {"again": ["<cycle>"]},
    }


def test_an_object_that_occurs_twice_is_no_cycle() -> None:
    shared = Record(Path("a"))
    assert decode(encode_whole([shared, [shared]])) == [
        {"path": "a", "inner": None},
        [{"path": "a", "inner": None}],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("s-1", "s-1"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a"), "a"),
        (5, "5"),
        (None, "null"),
        (["a"], '["a"]'),
        ("\ud800", "\ufffd"),
    ],
    ids=repr,
)
def test_any_value_has_a_text(value: Any, text: str) -> None:
    assert text_of(value) == text


RESTORED: list[tuple[Any, Any, Any]] = [
    (Path("a"), "b", Path("b")),
    (UUID(int=1), str(UUID(int=2)), UUID(int=2)),
    (Decimal(1), "2.5", Decimal("2.5")),
    (date(2026, 1, 2), "2026-01-03", date(2026, 1, 3)),
    (timedelta(1), "P2D", timedelta(2)),
    (Word.ENV, ".env", Word.ENV),
    (Level.HIGH, 3, Level.HIGH),
    (b"a", "b", b"b"),
    ({"a"}, ["b"], {"b"}),
    (1.5, 2, 2.0),
    (SlottedRecord(Path("a")), {"path": "b"}, SlottedRecord(Path("b"))),
    (Attrs(Path("a")), {"path": "b"}, Attrs(Path("b"))),
    (Named(Path("a")), {"path": "b"}, Named("b")),  # type: ignore[arg-type] # as it is
    (Paths([Path("a")]), ["b"], Paths([Path("b")])),
    (OldModel(path=Path("a")), {"path": "b"}, OldModel(path=Path("b"))),
    ("a", 5, 5),
    (Path("a"), ["b"], ["b"]),
    (Path("a"), None, None),
    (UUID(int=1), "no id", "no id"),
    (Claims(), "b", "b"),
    (Named(Path("a"), "r"), {"path": "b"}, {"path": "b"}),
    (Record(Path("a"), 1), {"path": "b"}, {"path": "b"}),
    (OldModel(path=Path("a")), {"path": "b", "x": 1}, {"path": "b", "x": 1}),
    (InFolder("a"), "b", "b"),
    (Path("a"), "./b//c", Path("b/c")),
]
"""A value, what hooks made of it, and what a tool gets: nothing that was not shown."""


@pytest.mark.parametrize(
    ("original", "value", "result"),
    RESTORED,
    ids=[str(n) for n in range(len(RESTORED))],
)
def test_a_changed_value_keeps_the_type_that_it_replaces(
    original: Any, value: Any, result: Any
) -> None:
    found = restored(original, value)
    assert found == result
    assert type(found) is type(result)
