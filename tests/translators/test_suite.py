"""The suite that we ship for translators, run against every one of ours."""

from __future__ import annotations

from hookline.testing.translators import TranslatorSuite

from . import samples


class TestGenAIObjects(samples.GenAIObjects, TranslatorSuite):
    pass


class TestGenAIDicts(samples.GenAIDicts, TranslatorSuite):
    pass


class TestOpenAIChat(samples.OpenAIChat, TranslatorSuite):
    pass


class TestOpenAIResponses(samples.OpenAIResponses, TranslatorSuite):
    def test_response_is_made_from_nothing(self) -> None:
        """Without a base it is a ChatCompletion."""
        made = self.translator.from_hook_llm_response({"text": "no"})
        assert made.choices[0].message.content == "no"


class TestAnthropic(samples.Anthropic, TranslatorSuite):
    pass
