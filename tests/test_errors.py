"""Errors keep their fields, survive pickling and say what to do next."""

from __future__ import annotations

import pickle

import pytest

from hookline import errors

EVERY = [
    errors.SettingsError("no object", "a.json", 3, 4),
    errors.UnknownEventError("BeforTool", ("BeforeTool",)),
    errors.UnknownHookError("secret", ("secrets",)),
    errors.HookSystemNotInitializedError("registry"),
    errors.HookSystemExistsError(),
    errors.EncodingError("no"),
    errors.TranslationError("no"),
    errors.MissingExtraError("nats", "nats-py"),
    errors.UnknownTranslatorError("opnai", ("auto", "openai")),
    errors.UnseenResponseError("should_return_http_response"),
    errors.UnhookedCallError("POST /x", "nobody sees it", ["BeforeModel"]),
    errors.HookRegistryNotInitializedError("registry"),
]


@pytest.mark.parametrize("error", EVERY, ids=lambda e: type(e).__name__)
def test_errors_survive_pickling_with_their_fields(error: errors.HooklineError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (EVERY[0], "a.json:3:4: no object"),
        (EVERY[1], "did you mean 'BeforeTool'?"),
        (EVERY[2], "did you mean 'secrets'?"),
        (EVERY[3], "await hooks.initialize() first"),
        (EVERY[4], "config.get_hook_system()"),
        (EVERY[7], "install 'nats-py[nkeys]>=2.9'"),
        (
            errors.MissingExtraError("genai", "google-genai", "3.1"),
            "google-genai 3.1 or later is missing",
        ),
        (EVERY[8], "did you mean 'openai'? one of auto, openai"),
        (EVERY[9], "remove it"),
        (errors.SettingsError("no place"), "no place"),
        (errors.UnknownEventError("zzz", ("A", "B")), "one of A, B"),
        (errors.UnknownHookError(5), "see 'hookline list'"),
    ],
)
def test_errors_say_what_to_do_next(error: Exception, words: str) -> None:
    assert words in str(error)


def test_every_error_is_in_the_tree_of_the_module_docstring() -> None:
    tree = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, errors.HooklineError):
            assert name in tree
