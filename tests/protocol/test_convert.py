"""Conversion key by key: what fits is kept, and mistakes are reported with paths."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, field

from hookline.protocol.convert import Expected, Mistake, convert


class Verdict(StrEnum):
    ALLOW = "allow"
    BLOCK = "block"


class Policy(Struct, frozen=True):
    crash: Verdict | None = None
    timeout: Verdict | None = None


Text = Annotated[str, Expected("some text", lambda text: bool(str(text).strip()))]
Name = Annotated[str, Meta(pattern="^[^=]+$"), Expected("a valid name")]
Secret = Annotated[str, Meta(min_length=2), Expected("a password", is_private=True)]


class Hook(Struct, frozen=True, kw_only=True):
    command: Text
    timeout_ms: Annotated[float, Meta(gt=0, le=2**53)] = field(
        default=60_000, name="timeout"
    )
    pool: Annotated[int, Meta(ge=0)] = 1
    policy: Annotated[Verdict | Policy, Expected("a verdict or an object")] = Policy()
    files: Text | Annotated[tuple[Text, ...], Meta(min_length=1)] = ()
    env: dict[Name, str | float] = {}
    shell: Text | None = None
    secret: Secret | None = None


class Input(TypedDict):
    name: str
    response: Any
    details: NotRequired[dict[str, Any]]


def problems(value: object, to: type = Hook) -> tuple[Any, list[str]]:
    mistakes: list[Mistake] = []
    converted = convert(value, to, mistakes)
    return converted, [
        f"{'.'.join(map(str, mistake.path))}: {mistake.message}" for mistake in mistakes
    ]


@pytest.mark.parametrize(
    ("more", "attributes", "mistakes"),
    [
        ({"timeout": 5}, {"timeout_ms": 5}, []),
        ({"timeout": True}, {}, ["timeout: expected a number, got true"]),
        ({"timeout": float("nan")}, {}, ["timeout: expected a number, got nan"]),
        ({"timeout": 10**400}, {}, ["timeout: expected a number, got a huge number"]),
        ({"pool": 0.0}, {"pool": 0}, []),
        ({"pool": 1.5}, {}, ["pool: expected an integer, got 1.5"]),
        ({"shell": None}, {}, ["shell: expected some text, got null"]),
        ({"secret": "x"}, {}, ["secret: expected a password, got str"]),
        ({"policy": "block"}, {"policy": Verdict.BLOCK}, []),
        ({"policy": 1}, {}, ["policy: expected a verdict or an object, got 1"]),
        (
            {"policy": {"crash": "block", "timeout": "never"}},
            {"policy": Policy(crash=Verdict.BLOCK)},
            ["policy.timeout: expected 'allow' or 'block', got 'never'"],
        ),
        ({"files": "a"}, {"files": "a"}, []),
        (
            {"files": ["a", " "]},
            {"files": ("a",)},
            ["files.1: expected some text, got ' '"],
        ),
        ({"files": []}, {}, ["files: expected some text or a list, got a list"]),
        (
            {"env": {"A": 1, "B": 1.0, "C=": "x", "D": []}},
            {"env": {"A": 1, "B": 1.0}},
            [
                "env.C=: not a valid name",
                "env.D: expected a string or a number, got a list",
            ],
        ),
        ({"unknown": 1}, {}, []),
    ],
    ids=str,
)
def test_what_fits_is_converted_and_the_rest_is_reported(
    more: dict[str, Any], attributes: dict[str, Any], mistakes: list[str]
) -> None:
    assert problems({"command": "x", **more}) == (
        Hook(command="x", **attributes),
        mistakes,
    )


@pytest.mark.parametrize(
    ("value", "to", "mistakes"),
    [
        (7, Hook, [": expected an object, got 7"]),
        ({}, Hook, ["command: expected some text, got nothing"]),
        ({"command": " "}, Hook, ["command: expected some text, got ' '"]),
        (
            {"name": 1},
            Input,
            [
                "name: expected a string, got 1",
                "response: expected any value, got nothing",
            ],
        ),
        ({"name": "", "response": None, "x": 1}, Input, []),
        (
            {"name": "", "response": 1, "details": []},
            Input,
            ["details: expected an object, got a list"],
        ),
    ],
    ids=str,
)
def test_object_without_what_it_requires_is_not_converted(
    value: object, to: type, mistakes: list[str]
) -> None:
    assert problems(value, to)[1] == mistakes


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


OPTIONAL_KEYS = dict.fromkeys(Hook.__struct_encode_fields__, values)


@given(st.fixed_dictionaries({}, optional=OPTIONAL_KEYS))
def test_every_wrong_key_is_reported_and_no_other_key_changes(
    raw: dict[str, Any],
) -> None:
    converted, told = problems({"command": "x", **raw})
    wrong = {message.partition(":")[0].partition(".")[0] for message in told}
    assert (converted is None) is ("command" in wrong)
    alone = {key: value for key, value in raw.items() if key not in wrong}
    again, none = problems({"command": "x", **alone})
    assert none == []
    for attribute, key in zip(
        Hook.__struct_fields__, Hook.__struct_encode_fields__, strict=True
    ):
        if converted is not None and key not in wrong:
            assert getattr(converted, attribute) == getattr(again, attribute)
