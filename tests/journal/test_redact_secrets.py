from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.journal.redact import MASK, Masker
from hookline.protocol.jsontext import encode

CREDENTIALS = [
    *("password", "Password", "db_passwd", "PASSPHRASE", "userPassword", "pwd"),
    *("secret", "client_secret", "AWS_SECRET_ACCESS_KEY", "clientSecret"),
    *("token", "accessToken", "GITHUB_TOKEN", "refresh-token", "x-auth-token"),
    *("api_key", "apiKey", "X-API-Key", "apikey", "privateKey", "ssh_key"),
    *("Authorization", "proxy-authorization", "auth", "cookie", "Set-Cookie"),
    *("credentials", "aws_credentials", "bearer", "jwt", "connectionString"),
]
HARMLESS = [
    *("path", "content", "session_id", "author", "authority", "key", "keyboard"),
    *("monkey", "tokenize", "token_count", "max_tokens", "tokenType", "passage"),
    *("compass", "primary_keys", "sort_key", "description", "command"),
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("key", CREDENTIALS)
def test_a_value_under_a_credential_key_is_masked(key: str) -> None:
    masker = Masker()
    assert masker.mask({"a": [{key: "hunter2"}]}) == {"a": [{key: MASK}]}
    assert masker.masked


@pytest.mark.parametrize("key", HARMLESS)
def test_a_value_under_a_harmless_key_is_kept(key: str) -> None:
    masker = Masker()
    assert masker.mask({key: "a value"}) == {key: "a value"}
    assert not masker.masked


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"maxOutputTokens": 5}, False),
        ({"usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 9}}, False),
        ({"tokens": 12}, False),
        ({"tokens": ["abc"]}, True),
        ({"password": 1234}, True),
        ({"password": None}, False),
        ({"password": ""}, False),
        ({"has_password": True}, False),
        ({"key": "Enter"}, False),
        ({"key": "sk-live-0123456789abcdef"}, True),
        ({"credentials": {"user": "a", "word": "b"}}, True),
    ],
    ids=str,
)
def test_a_doubtful_key_is_decided_by_its_value(value: Any, masked: bool) -> None:
    masker = Masker()
    masker.mask(value)
    assert masker.masked is masked


@pytest.mark.parametrize(
    "text",
    [
        "password=hunter2",
        "PASSWORD = hunter2",
        'password: "hunter2 with spaces hunter2"',
        "Authorization: Bearer hunter2",
        '{"password": "hunter2"',
        '{\\"password\\": \\"hunter2\\"',
        "export API_KEY='hunter2'",
        '"credentials": {"a": "hunter2"}, "b": 1',
    ],
)
def test_an_assignment_in_what_a_hook_prints_is_masked(text: str) -> None:
    masker = Masker(texts=True)
    assert "hunter2" not in masker.mask_text(f"before {text}\nafter")
    assert masker.masked


@pytest.mark.parametrize(
    "text", ["no token was found", "author: me", "tokens used: 17 of 20", "a = b"]
)
def test_plain_text_that_a_hook_prints_is_kept(text: str) -> None:
    assert Masker(texts=True).mask_text(text).split(":")[0] == text.split(":")[0]


def test_json_within_a_text_is_masked() -> None:
    masker = Masker()
    masked = masker.mask({"arguments": '{"user": "a", "password": "hunter2"}'})
    assert masked == {"arguments": '{"user":"a","password":"[masked]"}'}


def test_a_long_text_without_an_end_is_masked_in_reasonable_time() -> None:
    """The search must not be quadratic."""
    assert Masker(texts=True).mask_text("password" * 50_000)


@given(values)
def test_masking_changes_nothing_without_a_credential(value: Any) -> None:
    masker = Masker(texts=True)
    masked = masker.mask(value)
    if not masker.masked:
        assert encode(masked) == encode(value)


@given(st.sampled_from(CREDENTIALS), values.filter(lambda v: bool(v) and v is not True))
def test_no_part_of_a_credential_survives_masking(key: str, value: Any) -> None:
    masked = Masker().mask({"in": [{key: value}]})
    numeric = isinstance(value, int)
    assert numeric or masked == {"in": [{key: MASK}]}
