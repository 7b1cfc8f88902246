"""Errors keep their fields, survive pickling and say what to do next."""

from __future__ import annotations

import pickle

from hookline import errors

ERRORS: dict[errors.HooklineError, str] = {
    errors.SettingsError("no object", "a.json", 3, 4): "a.json:3:4: no object",
    errors.SettingsError("no place"): "no place",
    errors.UnknownEventError("BeforTool", ("BeforeTool",)): "mean 'BeforeTool'?",
    errors.UnknownEventError("zzz", ("A", "B")): "one of A, B",
    errors.UnknownHookError("secret", ("secrets",)): "did you mean 'secrets'?",
    errors.UnknownHookError(5): "see 'hookline list'",
    errors.HookSystemNotInitializedError("registry"): "await hooks.initialize() first",
    errors.HookRegistryNotInitializedError(
        "registry"
    ): "await hooks.initialize() first",
    errors.HookSystemExistsError(): "config.get_hook_system()",
    errors.EncodingError("no"): "no",
    errors.TranslationError("no"): "no",
    errors.MissingExtraError("nats", "nats-py"): "install 'nats-py[nkeys]>=2.9'",
    errors.MissingExtraError("genai", "google-genai", "3.1"): (
        "google-genai 3.1 or later is missing"
    ),
    errors.UnknownTranslatorError("opnai", ("auto", "openai")): (
        "did you mean 'openai'? one of auto, openai"
    ),
    errors.UnseenResponseError("should_return_http_response"): "remove it",
    errors.UnhookedCallError("POST /x", "nobody sees it", ["BeforeModel"]): "POST /x",
}


def test_errors_say_what_to_do_next_and_survive_pickling_with_their_fields() -> None:
    for error, words in ERRORS.items():
        assert words in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_every_error_is_in_the_tree_of_the_module_docstring() -> None:
    tree = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, errors.HooklineError):
            assert name in tree
