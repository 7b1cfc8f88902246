"""Measure what translating costs, and that the cost is linear in the size.

Run with ``python -m benches.translators``. Each case is measured at a size and at
four times that size, in turns in one run, so that a busy machine slows both: linear
cost is a ratio near 4, quadratic cost one near 16. The bar lies between them.
"""

from __future__ import annotations

import gc
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from google.genai import types as genai
from openai.types.chat import ChatCompletionChunk

from hookline.translators import HookTranslator, to_wire
from hookline.translators.anthropic import AnthropicTranslator
from hookline.translators.genai import GenAITranslator, GenerateContentRequest
from hookline.translators.openai import OpenAITranslator

GROWTH = 4
BAR = 8.0
MESSAGES = 2_000
TEXT_BYTES = 5_000_000
ROUNDS = 9

Make = Callable[[list[str]], Any]
Work = Callable[[], object]


def main() -> int:
    sdks = ", ".join(
        f"{n} {version(n)}" for n in ("google-genai", "openai", "anthropic")
    )
    print(f"Python {platform.python_version()}, {sdks}; best of {ROUNDS}, milliseconds")
    print(f"{'case':44} {'1/4 size':>9} {'full size':>9} {'ratio':>6}")
    ratios = [measure(name, *works) for name, works in cases()]
    worst = max(ratios)
    verdict = "within" if worst <= BAR else "OVER"
    print(
        f"worst ratio: {worst:.1f}, {verdict} the bar of {BAR:g} for {GROWTH}x the size"
    )
    return 0 if worst <= BAR else 1


def measure(name: str, small: Work, large: Work) -> float:
    times: dict[Work, list[float]] = {small: [], large: []}
    gc.disable()  # as timeit does: a collection would be charged to whoever is next
    for _ in range(ROUNDS):
        for work, found in times.items():
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    gc.enable()
    least, most = min(times[small]), min(times[large])
    print(f"{name:44} {least * 1e3:9.3f} {most * 1e3:9.3f} {most / least:6.1f}")
    return most / least


def cases() -> list[tuple[str, tuple[Work, Work]]]:
    found: list[tuple[str, tuple[Work, Work]]] = []
    for sdk, (translator, make) in SDKS.items():
        for name, sized in (("2,000 messages", many), ("5 MB text", long)):
            requests = [make(sized(part)) for part in (1 / GROWTH, 1)]
            for way, prepare in WAYS.items():
                works = [prepare(translator, request) for request in requests]
                found.append((f"{sdk}, {name}, {way}", (works[0], works[1])))
    chunks = [stream(MESSAGES // GROWTH), stream(MESSAGES)]
    joins = [joining(one) for one in chunks]
    return [*found, ("openai chat, 2,000 chunks, assemble", (joins[0], joins[1]))]


def many(part: float) -> list[str]:
    return [
        f"message {number}: " + "word " * 20 for number in range(int(MESSAGES * part))
    ]


def long(part: float) -> list[str]:
    return ["x" * int(TEXT_BYTES * part)]


def shown(translator: HookTranslator, request: Any) -> Work:
    return lambda: translator.to_hook_llm_request(request)


def unchanged(translator: HookTranslator, request: Any) -> Work:
    wire = to_wire(translator.to_hook_llm_request(request))
    return lambda: translator.from_hook_llm_request(wire, request)


def rewritten(translator: HookTranslator, request: Any) -> Work:
    """Change every message, the hardest case for aligning them."""
    wire = to_wire(translator.to_hook_llm_request(request))
    for message in wire["messages"]:
        message["content"] = "! " + message["content"]
    return lambda: translator.from_hook_llm_request(wire, request)


def appended(translator: HookTranslator, request: Any) -> Work:
    wire = to_wire(translator.to_hook_llm_request(request))
    wire["messages"].append({"role": "user", "content": "more"})
    return lambda: translator.from_hook_llm_request(wire, request)


WAYS = {
    "show": shown,
    "unchanged": unchanged,
    "append": appended,
    "rewrite": rewritten,
}


def genai_objects(texts: list[str]) -> Any:
    contents = [
        genai.Content(role=role, parts=[genai.Part(text=text)])
        for role, text in zip(roles("model"), texts, strict=False)
    ]
    return GenerateContentRequest("m", contents)


def genai_dicts(texts: list[str]) -> Any:
    contents = [
        {"role": role, "parts": [{"text": text}]}
        for role, text in zip(roles("model"), texts, strict=False)
    ]
    return {"model": "m", "contents": contents}


def dicts(texts: list[str]) -> Any:
    messages = [
        {"role": role, "content": text}
        for role, text in zip(roles("assistant"), texts, strict=False)
    ]
    return {"model": "m", "messages": messages}


def items(texts: list[str]) -> Any:
    return {"model": "m", "input": dicts(texts)["messages"]}


def roles(other: str) -> list[str]:
    return ["user", other] * MESSAGES


SDKS: dict[str, tuple[HookTranslator, Make]] = {
    "genai objects": (GenAITranslator(), genai_objects),
    "genai dicts": (GenAITranslator(), genai_dicts),
    "openai chat": (OpenAITranslator(), dicts),
    "openai responses": (OpenAITranslator(), items),
    "anthropic": (AnthropicTranslator(), dicts),
}


def stream(size: int) -> list[Any]:
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "word "}}],
    }
    return [ChatCompletionChunk.model_validate(chunk) for _ in range(size)]


def joining(chunks: list[Any]) -> Work:
    return lambda: OpenAITranslator().assemble_response(chunks)


if __name__ == "__main__":
    sys.exit(main())
