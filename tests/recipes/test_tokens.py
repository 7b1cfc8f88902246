"""Every format of a token: one true and one false example, made at run time."""

from __future__ import annotations

import random
import string
from importlib import import_module
from typing import Any

import pytest

from hookline.recipes.tokens import TOKENS, Token, secrets_in

_parser: Any = import_module("re._parser")
LETTERS = string.ascii_letters + string.digits


def sample(token: Token, chosen: random.Random) -> str:
    """A text that the pattern of a token matches, otherwise random."""
    return _walk(_parser.parse(token.pattern.pattern), chosen)


def _walk(tree: Any, chosen: random.Random) -> str:
    return "".join(_part(str(kind), value, chosen) for kind, value in tree)


def _part(kind: str, value: Any, chosen: random.Random) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "IN":
        return chosen.choice(_letters_of(value))
    if kind == "MAX_REPEAT":
        least, _, item = value
        return "".join(_walk(item, chosen) for _ in range(least))
    if kind == "SUBPATTERN":
        return _walk(value[3], chosen)
    if kind == "BRANCH":
        return _walk(value[1][0], chosen)
    assert kind in ("ASSERT", "ASSERT_NOT"), kind
    return ""


def _letters_of(members: Any) -> str:
    found = ""
    for kind, value in members:
        if str(kind) == "RANGE":
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        elif str(kind) == "LITERAL":
            found += chr(value)
        elif "SPACE" in str(value):
            found += " "
        else:
            found += string.digits if "DIGIT" in str(value) else LETTERS
    return "".join(char for char in LETTERS if char in found) or found


def test_tokens_are_found_wherever_they_stand(subtests: pytest.Subtests) -> None:
    for token in TOKENS:
        with subtests.test(f"{token.kind} {token.needle}"):
            secret = sample(token, random.Random(1))
            for text in (
                *(secret, f'key = "{secret}"\n'),
                *(f"curl -H 'X: {secret}'", f"a={secret};b"),
            ):
                assert token.kind in [kind for kind, _ in secrets_in(text)]


def test_the_beginning_of_a_token_and_a_placeholder_are_none(
    subtests: pytest.Subtests,
) -> None:
    for token in TOKENS:
        with subtests.test(f"{token.kind} {token.needle}"):
            whole = sample(token, random.Random(2))
            example = whole[: len(token.needle) + 4] + "x" * max(len(whole) - 8, 12)
            placeholder = f"{token.needle}${{TOKEN}}"
            for text in (token.needle, f"{token.needle}...", placeholder, example):
                assert not list(token.found_in(text))


HOSTILE = [
    *("a", "0", "A", "M.", "sk-", "eyJ", "xoxb-", "password=", "token", "a://b:"),
    *("authorization: bearer ", "SG.", "-----BEGIN ", "secret_key = ", "pat", "1:AA"),
    *("eyJaaaaaaaaaaaaaa.", "Maaaaaaaaaaaaaaaaaaaaaaaa.", "aaa1Q~", "ghp_", "\\", "'"),
]


def test_a_megabyte_of_anything_is_searched_in_bounded_time() -> None:
    """Patterns that backtrack would take hours here: the test would time out."""
    for unit in HOSTILE:
        list(secrets_in(unit * (1_000_000 // len(unit))))


def test_harmless_text_holds_no_secret() -> None:
    chosen = random.Random(3)
    digest = "".join(chosen.choices("0123456789abcdef", k=64))
    for text in (
        f"sha256:{digest}",
        f"commit {digest[:40]}",
        f'"integrity": "{digest}"',
    ):
        assert not list(secrets_in(text))
