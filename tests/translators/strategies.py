"""Requests of each SDK, as Hypothesis builds them."""

from __future__ import annotations

from typing import Any

from google.genai import types as genai
from hypothesis import strategies as st

from hookline.translators.genai import GenerateContentRequest

from .samples import IMAGE_URL
from .wires import wire

texts = st.text(max_size=12) | st.sampled_from(["yes", "go on"])
names = st.sampled_from(["read_file", "write_file", "f"])
numbers = st.floats(0, 2, allow_nan=False)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return st.tuples(*parts).map(
        lambda found: {k: v for d in found for k, v in d.items()}
    )


genai_parts = st.one_of(
    st.builds(genai.Part, text=texts),
    st.builds(genai.Part, text=texts, thought=st.just(True)),
    st.builds(genai.Part, text=texts, thought_signature=st.binary(max_size=3)),
    st.builds(
        genai.Part,
        inline_data=st.builds(
            genai.Blob, mime_type=st.just("image/png"), data=st.binary(max_size=3)
        ),
    ),
    st.builds(
        genai.Part,
        function_call=st.builds(
            genai.FunctionCall, name=names, args=st.dictionaries(texts, st.integers())
        ),
    ),
    st.builds(
        genai.Part,
        function_response=st.builds(
            genai.FunctionResponse, name=names, response=st.just({"output": "x"})
        ),
    ),
    st.just(genai.Part(executable_code=genai.ExecutableCode(code="1"))),
)
genai_contents = st.builds(
    genai.Content,
    role=st.sampled_from(["user", "model", "tool"]),
    parts=st.lists(genai_parts, max_size=4),
)
genai_configs = st.builds(
    genai.GenerateContentConfig,
    temperature=st.none() | numbers,
    top_k=st.none() | st.integers(1, 40).map(float),
    max_output_tokens=st.none() | st.integers(1, 99),
    stop_sequences=st.none() | st.lists(texts, max_size=2),
    response_mime_type=st.sampled_from([None, "application/json"]),
    system_instruction=st.none()
    | texts
    | genai_contents
    | st.lists(texts, min_size=1, max_size=2),
    cached_content=st.none() | texts,
    safety_settings=st.sampled_from(
        [None, [genai.SafetySetting(threshold=genai.HarmBlockThreshold.OFF)]]
    ),
    tools=st.sampled_from(
        [
            None,
            [genai.Tool(google_search=genai.GoogleSearch())],
            [
                genai.Tool(
                    function_declarations=[genai.FunctionDeclaration(name="read_file")]
                )
            ],
        ]
    ),
    tool_config=st.sampled_from(
        [
            None,
            genai.ToolConfig(include_server_side_tool_invocations=True),
            genai.ToolConfig(
                function_calling_config=genai.FunctionCallingConfig(
                    mode=genai.FunctionCallingConfigMode.ANY,
                    allowed_function_names=["f"],
                )
            ),
        ]
    ),
)
genai_requests = st.builds(
    GenerateContentRequest,
    model=texts,
    contents=st.one_of(
        texts,
        genai_contents,
        genai_parts,
        st.lists(genai_contents, max_size=6),
        st.lists(texts | genai_contents | genai_parts, max_size=6),
    ),
    config=st.none() | genai_configs,
)
genai_content_requests = st.builds(
    GenerateContentRequest,
    model=texts,
    contents=st.lists(genai_contents, max_size=6),
    config=st.none() | genai_configs,
)
genai_dicts = genai_content_requests.map(
    lambda request: {
        "model": request.model,
        "contents": [wire(content) for content in request.contents],
        "config": {} if request.config is None else wire(request.config),
    }
)

cache_marks = st.sampled_from([{"mode": "explicit"}])
chat_blocks = st.one_of(
    merged(
        st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
        optional(prompt_cache_breakpoint=cache_marks),
    ),
    st.just({"type": "image_url", "image_url": {"url": IMAGE_URL}}),
    st.just({"type": "input_audio", "input_audio": {"data": "A", "format": "wav"}}),
)
chat_calls = st.fixed_dictionaries(
    {
        "id": st.just("c1"),
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": names, "arguments": st.just("{}")}),
    }
)
chat_messages = st.one_of(
    merged(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "system", "developer"]),
                "content": texts | st.lists(chat_blocks, max_size=4),
            }
        ),
        optional(name=texts),
    ),
    merged(
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.none() | texts}
        ),
        optional(tool_calls=st.lists(chat_calls, max_size=2), refusal=texts),
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "tool_call_id": st.just("c1"), "content": texts}
    ),
)
chat_requests = merged(
    st.fixed_dictionaries(
        {"model": texts, "messages": st.lists(chat_messages, max_size=6)}
    ),
    optional(
        temperature=numbers,
        top_p=numbers,
        max_tokens=st.integers(1, 99),
        stop=texts | st.lists(texts, max_size=2),
        n=st.integers(1, 3),
        tools=st.just([{"type": "function", "function": {"name": "read_file"}}]),
        tool_choice=st.sampled_from(
            [
                "none",
                "auto",
                "required",
                {"type": "function", "function": {"name": "read_file"}},
                {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "auto",
                        "tools": [{"type": "function", "function": {"name": "f"}}],
                    },
                },
            ]
        ),
        prompt_cache_key=texts,
        response_format=st.just({"type": "json_object"}),
        metadata=st.dictionaries(texts, texts, max_size=1),
    ),
)

item_blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("input_text"), "text": texts}),
    st.just({"type": "input_image", "image_url": IMAGE_URL}),
)
items = st.one_of(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "developer"]),
            "content": texts | st.lists(item_blocks, max_size=3),
        }
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("message"),
            "id": st.just("m1"),
            "role": st.just("assistant"),
            "status": st.just("completed"),
            "content": st.lists(
                st.fixed_dictionaries(
                    {
                        "type": st.just("output_text"),
                        "text": texts,
                        "annotations": st.just([]),
                    }
                ),
                max_size=2,
            ),
        }
    ),
    st.just({"type": "reasoning", "id": "r1", "summary": []}),
    st.just({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
    st.just({"type": "function_call_output", "call_id": "c", "output": "x"}),
    st.just({"type": "item_reference", "id": "i1"}),
)
item_requests = merged(
    st.fixed_dictionaries({"input": texts | st.lists(items, max_size=6)}),
    optional(
        model=texts,
        instructions=texts,
        temperature=numbers,
        max_output_tokens=st.integers(1, 99),
        tools=st.just([{"type": "web_search"}, {"type": "function", "name": "f"}]),
        tool_choice=st.sampled_from(
            ["auto", "none", {"type": "function", "name": "f"}, {"type": "web_search"}]
        ),
        previous_response_id=texts,
        reasoning=st.just({"effort": "low"}),
    ),
)

claude_blocks = st.one_of(
    merged(
        st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
        optional(cache_control=st.just({"type": "ephemeral"})),
    ),
    st.just(
        {"type": "image", "source": {"type": "url", "url": "https://example.org/i"}}
    ),
    st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
    st.just({"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
    st.just({"type": "tool_result", "tool_use_id": "t1", "content": "x"}),
    st.just({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
)
claude_messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": texts | st.lists(claude_blocks, max_size=4),
    }
)
claude_requests = merged(
    st.fixed_dictionaries(
        {
            "model": texts,
            "max_tokens": st.integers(1, 99),
            "messages": st.lists(claude_messages, max_size=6),
        }
    ),
    optional(
        system=texts
        | st.lists(
            st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=2
        ),
        stop_sequences=st.lists(texts, max_size=2),
        temperature=numbers,
        extra_body=optional(top_k=st.integers(1, 9), other=texts),
        thinking=st.just({"type": "adaptive"}),
        tools=st.just([{"name": "f", "input_schema": {"type": "object"}}]),
        tool_choice=st.sampled_from(
            [
                {"type": "auto"},
                {"type": "any", "disable_parallel_tool_use": True},
                {"type": "tool", "name": "f"},
                {"type": "none"},
            ]
        ),
        cache_control=st.just({"type": "ephemeral"}),
        metadata=st.just({"user_id": "u"}),
    ),
)
