"""Tests that every translator has to pass.

    class TestMyTranslator(MySamples, TranslatorSuite):
        pass

``MySamples`` provides what ``Samples`` asks for, in the objects of your SDK.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any, Protocol
from unittest import TestCase

from hookline.errors import TranslationError
from hookline.translators import HookTranslator, LLMMessage, to_wire


class Samples(Protocol):
    """One conversation, in the objects of one SDK."""

    translator: HookTranslator

    def make_request(self) -> Any:
        """Make a request to model ``m-1`` at temperature 0.5.

        A user message "look at this" with an image; a model message "calling" with a
        call of ``read_file``; its result; a model message "done". It offers the tools
        ``read_file`` and ``write_file`` and has the system instruction "be kind".
        """

    def make_response(self, text: str) -> Any:
        """Make a complete response with a text, of 1 + 2 = 3 tokens."""

    def make_response_with_call(self, text: str) -> Any:
        """Make a response with a text and a call of ``read_file``."""

    def make_chunks(self) -> list[Any]:
        """Make the stream of "Hel", "lo" and a call of ``read_file``."""

    def text_of(self, response: Any) -> str | None:
        """Read the text by the SDK's own helper."""

    def calls_in(self, response: Any) -> list[tuple[str, dict[str, Any]]]:
        """Read name and arguments of the calls, by the SDK's own fields."""

    def outline(self, request: Any) -> list[str]:
        """List the history as "text", "image", "call" and "result", in order.

        The system instruction is left out, wherever the SDK keeps it.
        """

    def system_of(self, request: Any) -> str:
        """Read the whole system instruction."""


_CASE = TestCase()
_REDACTED = [{"role": "user", "content": "redacted"}]
_INVALID_PARTS: dict[str, dict[str, Any]] = {
    "model": {"model": None},
    "config": {"config": [0.5]},
    "config.temperature": {"config": {"temperature": "0.5"}},
    "config.maxOutputTokens": {"config": {"maxOutputTokens": 4096.5}},
    "config.topK": {"config": {"topK": True}},
    "config.stopSequences": {"config": {"stopSequences": "x"}},
    "toolConfig": {"toolConfig": "NONE"},
    "toolConfig.mode": {"toolConfig": {"mode": 5}},
    "toolConfig.allowedFunctionNames": {"toolConfig": {"allowedFunctionNames": "x"}},
}
_EMPTIED: list[dict[str, Any]] = [
    {"text": None},
    {"text": ""},
    {"candidates": None},
    {"candidates": []},
    {"candidates": [{"content": None}]},
    {"candidates": [{"content": {"role": "model", "parts": None}}]},
    {"candidates": [{"content": {"role": "model", "parts": []}}]},
    {"candidates": [{"content": {"role": "model", "parts": [""]}}]},
    {"candidates": [{"content": {"role": "model", "parts": [5]}}]},
    {"candidates": [{"content": "redacted"}]},
    {"candidates": [{"finishReason": "SAFETY"}]},
    {"candidates": ["redacted"]},
]
_INVALID_RESPONSE_PARTS: dict[str, dict[str, Any]] = {
    "candidates": {"candidates": "x"},
    "usageMetadata": {"usageMetadata": []},
    "usageMetadata.totalTokenCount": {"usageMetadata": {"totalTokenCount": "5"}},
    "candidates[0].index": {
        "candidates": [{"content": {"parts": ["ho"]}, "index": "0"}]
    },
    "candidates[0].finishReason": {
        "candidates": [{"content": {"parts": ["ho"]}, "finishReason": 5}]
    },
}
MESSAGES = [
    LLMMessage("user", "look at this"),
    LLMMessage("model", "calling"),
    LLMMessage("model", "done"),
]


class TranslatorSuite:
    """The tests; mix in what ``Samples`` asks for."""

    def test_request_is_shown_as_text_only(self: Samples) -> None:
        """HOOK-071, 072, 075, 076: no image, no call, no empty message."""
        hook_request = self.translator.to_hook_llm_request(self.make_request())
        assert hook_request.model == "m-1"
        assert [m for m in hook_request.messages if m.role != "system"] == MESSAGES
        assert (hook_request.config or {})["temperature"] == 0.5

    def test_request_comes_back_itself_when_nothing_changed(self: Samples) -> None:
        """HOOK-078: as a Struct, on the wire, or in part."""
        request = self.make_request()
        hook_request = self.translator.to_hook_llm_request(request)
        for unchanged in (
            hook_request,
            to_wire(hook_request),
            {},
            {"model": "m-1"},
            {"messages": None},
        ):
            assert self.translator.from_hook_llm_request(unchanged, request) == request

    def test_changed_temperature_changes_nothing_else(self: Samples) -> None:
        """HOOK-078: changing it back gives the same request again."""
        request = self.make_request()
        change = self.translator.from_hook_llm_request
        cold = change({"config": {"temperature": 0}}, request)
        assert _wire(self, cold)["config"]["temperature"] == 0
        assert cold != request
        assert change({"config": {"temperature": 0.5}}, cold) == request

    def test_changed_model_changes_nothing_else(self: Samples) -> None:
        """HOOK-078."""
        request = self.make_request()
        other = self.translator.from_hook_llm_request({"model": "m-2"}, request)
        assert _wire(self, other)["model"] == "m-2"
        back = self.translator.from_hook_llm_request({"model": "m-1"}, other)
        assert back == request

    def test_edited_message_leaves_everything_else_in_place(self: Samples) -> None:
        """HOOK-078: image, call and result stay where they are."""
        request = self.make_request()
        edited = _with_texts(self, request, {"look at this": "look away"})
        assert self.outline(edited) == self.outline(request)
        assert "look away" in _texts(self, edited)
        assert _with_texts(self, edited, {"look away": "look at this"}) == request

    def test_appended_message_is_appended(self: Samples) -> None:
        """HOOK-179: context comes last."""
        request = self.make_request()
        last = len(_texts(self, request))
        longer = _with_new(self, request, last, "user", "and now?")
        assert self.outline(longer) == [*self.outline(request), "text"]
        assert _texts(self, longer)[-1] == "and now?"

    def test_removed_message_orphans_no_call(self: Samples) -> None:
        """HOOK-078: the call of a removed message keeps its result."""
        request = self.make_request()
        shorter = _with_texts(self, request, {"calling": None, "done": None})
        assert self.outline(shorter) == ["text", "image", "call", "result"]

    def test_history_keeps_its_calls_when_all_messages_are_removed(
        self: Samples,
    ) -> None:
        """HOOK-078: function calls and results stay in their places."""
        request = self.make_request()
        changed_request = self.translator.from_hook_llm_request(
            {"messages": []}, request
        )
        assert self.outline(changed_request) == ["call", "result"]
        assert _texts(self, changed_request) == []

    def test_added_message_never_parts_a_call_from_its_result(self: Samples) -> None:
        """HOOK-078: a message added after the call goes after the result."""
        request = self.make_request()
        at = _texts(self, request).index("done")
        outline = self.outline(_with_new(self, request, at, "user", "wait"))
        assert outline.index("result") == outline.index("call") + 1

    def test_added_system_message_joins_the_system_instruction(self: Samples) -> None:
        """A system message goes where the SDK has a place for it."""
        request = self.make_request()
        changed = _with_new(self, request, 0, "system", "be brief")
        assert "be kind" in self.system_of(changed)
        assert "be brief" in self.system_of(changed)
        assert self.outline(changed) == self.outline(request)

    def test_callers_request_is_not_mutated(self: Samples) -> None:
        """HOOK-078: the caller's objects stay as they were."""
        request = self.make_request()
        before = copy.deepcopy(request)
        change = {
            "model": "m-2",
            "messages": [{"role": "user", "content": "all new"}],
            "config": {"temperature": 1, "maxOutputTokens": 5},
            "toolConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]},
        }
        self.translator.from_hook_llm_request(change, request)
        self.translator.limit_tools(request, ["read_file"])
        assert request == before

    def test_tool_modes_go_there_and_back(self: Samples) -> None:
        """HOOK-074: also an unknown one."""
        for mode in ("AUTO", "ANY", "NONE", "MOON_PHASE"):
            sdk_config = self.translator.from_hook_tool_config({"mode": mode})
            assert self.translator.to_hook_tool_config(sdk_config).mode == mode
            change, request = {"toolConfig": {"mode": mode}}, self.make_request()
            request = self.translator.from_hook_llm_request(change, request)
            assert _wire(self, request)["toolConfig"]["mode"] == mode

    def test_names_that_can_be_carried_are_shown_again(self: Samples) -> None:
        """HOOK-074: ``carries_names`` tells the truth."""
        for mode in ("AUTO", "ANY"):
            hook_config = {"mode": mode, "allowedFunctionNames": ["read_file"]}
            sdk_config = self.translator.from_hook_tool_config(hook_config)
            names = self.translator.to_hook_tool_config(
                sdk_config
            ).allowed_function_names
            carried = self.translator.carries_names(hook_config)
            assert names == (["read_file"] if carried else None)

    def test_limited_tools_leave_the_others_out(self: Samples) -> None:
        """protocol.md#callers: a restriction holds where the SDK cannot carry names."""
        request, translator = self.make_request(), self.translator
        assert translator.tool_names(request) == ["read_file", "write_file"]
        limited = translator.limit_tools(request, ["write_file"])
        assert translator.tool_names(limited) == ["write_file"]
        assert translator.tool_names(translator.limit_tools(request, [])) == []

    def test_response_is_shown_as_text_only(self: Samples) -> None:
        """HOOK-073."""
        show = self.translator.to_hook_llm_response
        hook_response = to_wire(show(self.make_response_with_call("hi")))
        assert hook_response["text"] == "hi"
        assert hook_response["candidates"][0]["content"] == {
            "role": "model",
            "parts": ["hi"],
        }
        hook_response = to_wire(show(self.make_response("hi")))
        assert hook_response["candidates"][0]["finishReason"] == "STOP"
        assert list(hook_response["usageMetadata"].values()) == [1, 2, 3]

    def test_response_stays_itself_when_its_text_does(self: Samples) -> None:
        """HOOK-079: and so do its calls, without a warning."""
        response = self.make_response_with_call("hi")
        hook_response = self.translator.to_hook_llm_response(response)
        with _CASE.assertNoLogs("hookline", "WARNING"):
            for unchanged in (hook_response, to_wire(hook_response), {"text": "hi"}):
                result = self.translator.from_hook_llm_response(unchanged, response)
                assert result is response

    def test_response_is_rebuilt_when_its_text_changed(self: Samples) -> None:
        """HOOK-079: whether the hook changed text or candidates."""
        response = self.make_response("hi")
        wire = to_wire(self.translator.to_hook_llm_response(response))
        candidates = [{"content": {"role": "model", "parts": ["h", "o"]}}]
        for change in ({"text": "ho"}, {"candidates": candidates}):
            for parts in (change, {**wire, **change}):
                rebuilt = self.translator.from_hook_llm_response(parts, response)
                assert self.text_of(rebuilt) == "ho"
                assert type(rebuilt) is type(response)
        assert self.text_of(response) == "hi"

    def test_lost_calls_are_warned_of_by_the_hooks_name(self: Samples) -> None:
        """HOOK-079, protocol.md#translation."""
        response = self.make_response_with_call("hi")
        with _CASE.assertLogs("hookline", "WARNING") as warned:
            rebuilt = self.translator.from_hook_llm_response(
                {"text": "ho"}, response, hook_name="censor"
            )
        assert self.calls_in(rebuilt) == []
        (warning,) = warned.output
        assert "censor" in warning
        assert "read_file" in warning

    def test_response_is_made_from_nothing(self: Samples) -> None:
        """HOOK-179: a synthetic response, which the SDK's own helpers accept."""
        response = self.translator.from_hook_llm_response({"text": "no"})
        assert self.text_of(response) == "no"
        hook_response = self.translator.to_hook_llm_response(response)
        assert hook_response.candidates[0].finish_reason == "STOP"

    def test_unknown_finish_reason_passes_as_text(self: Samples) -> None:
        """Tables map what they know, and nothing raises for the rest."""
        content = {"role": "model", "parts": ["ho"]}
        change = {"candidates": [{"content": content, "finishReason": "MOON_PHASE"}]}
        response = self.translator.from_hook_llm_response(
            change, self.make_response("hi")
        )
        hook_response = self.translator.to_hook_llm_response(response)
        assert hook_response.candidates[0].finish_reason == "MOON_PHASE"

    def test_stream_is_assembled_with_its_calls(self: Samples) -> None:
        """The object that the SDK would have given without streaming."""
        whole = self.translator.assemble_response(self.make_chunks())
        assert self.text_of(whole) == "Hello"
        arguments = {"path": "a.txt", "lines": [1, 2]}
        assert self.calls_in(whole) == [("read_file", arguments)]
        assert self.translator.to_hook_llm_response(whole).text == "Hello"

    def test_other_values_are_refused(self: Samples) -> None:
        """DELTA-HPAY-004: always with the same type of error."""
        for value in (7, None, "text", [], object(), {}, {"model": 5}):
            _assert_refused(self.translator.to_hook_llm_request, value)
            _assert_refused(self.translator.to_hook_llm_response, value)

    def test_an_invalid_field_is_ignored_by_itself(self: Samples) -> None:
        """The rest of the rewrite holds; a warning names hook and field.

        protocol.md#process
        """
        request = self.make_request()
        for field, parts in _INVALID_PARTS.items():
            with _CASE.assertLogs("hookline", "WARNING") as warned:
                changed = self.translator.from_hook_llm_request(
                    {"messages": _REDACTED, **parts}, request, hook_name="censor"
                )
            assert _texts(self, changed) == ["redacted"], parts
            assert f"hook 'censor' returned llm_request.{field}" in warned.output[0]

    def test_whole_floats_are_integers(self: Samples) -> None:
        """protocol.md#process: a number with a fraction of zero is a whole number."""
        parts = {"messages": _REDACTED, "config": {"maxOutputTokens": 4096.0}}
        changed = self.translator.from_hook_llm_request(parts, self.make_request())
        limit = _wire(self, changed)["config"]["maxOutputTokens"]
        assert (limit, type(limit)) == (4096, int)
        assert _texts(self, changed) == ["redacted"]

    def test_an_invalid_message_is_removed(self: Samples) -> None:
        """What a hook rewrote is never sent as it was."""
        request = self.make_request()
        for invalid in (5, {}, {"role": "user"}, {"role": "user", "content": ["x"]}):
            messages = [invalid, {"role": "model", "content": "kept"}]
            with _CASE.assertLogs("hookline", "WARNING") as warned:
                changed = self.translator.from_hook_llm_request(
                    {"messages": messages}, request, hook_name="censor"
                )
            assert _texts(self, changed) == ["kept"]
            assert "llm_request.messages[0]" in warned.output[0]

    def test_an_emptied_answer_is_empty(self: Samples) -> None:
        """protocol.md#translation: whatever else the hook left in place."""
        response = self.make_response("secret")
        hook_response = to_wire(self.translator.to_hook_llm_response(response))
        for change in _EMPTIED:
            for parts in (change, {**hook_response, **change}):
                rebuilt = self.translator.from_hook_llm_response(parts, response)
                assert not self.text_of(rebuilt), parts
                assert "secret" not in str(rebuilt), parts
                assert type(rebuilt) is type(response)

    def test_invalid_fields_of_a_response_are_ignored(self: Samples) -> None:
        """protocol.md#process."""
        response = self.make_response("secret")
        for field, parts in _INVALID_RESPONSE_PARTS.items():
            with _CASE.assertLogs("hookline", "WARNING") as warned:
                rebuilt = self.translator.from_hook_llm_response(
                    {"text": "redacted", **parts}, response, hook_name="censor"
                )
            assert "secret" not in str(rebuilt), parts
            assert f"hook 'censor' returned llm_response.{field}" in warned.output[0]
        assert self.translator.from_hook_llm_response({}, response) is response

    def test_a_replaced_response_has_nothing_of_the_original(self: Samples) -> None:
        """The closed form, also of a response that cannot be read.

        protocol.md#results
        """
        parts: dict[str, Any] = {"text": "closed"}
        for base in (self.make_response("secret"), self.make_response_with_call("x")):
            closed = self.translator.replaced_response(parts, base)
            assert self.text_of(closed) == "closed"
            assert type(closed) is type(base)
            assert "secret" not in str(closed)
            assert "read_file" not in str(closed)


def _wire(samples: Samples, request: Any) -> dict[str, Any]:
    return to_wire(samples.translator.to_hook_llm_request(request))


def _texts(samples: Samples, request: Any) -> list[str]:
    return [message["content"] for message in _wire(samples, request)["messages"]]


def _with_texts(samples: Samples, request: Any, changes: dict[str, str | None]) -> Any:
    messages = [
        {**message, "content": text}
        for message in _wire(samples, request)["messages"]
        if (text := changes.get(message["content"], message["content"])) is not None
    ]
    return samples.translator.from_hook_llm_request({"messages": messages}, request)


def _with_new(samples: Samples, request: Any, at: int, role: str, text: str) -> Any:
    wire = _wire(samples, request)
    wire["messages"].insert(at, {"role": role, "content": text})
    return samples.translator.from_hook_llm_request(wire, request)


def _assert_refused(function: Any, *arguments: Any) -> None:
    with suppress(TranslationError):
        function(*arguments)
        raise AssertionError(f"{function.__name__} took {arguments[0]!r}")
