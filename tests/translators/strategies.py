"""Requests of each SDK, as Hypothesis builds them from ``requests.json``.

There ``"<text>"`` is any text, a name in brackets another entry, a key with ``?`` one
that may be missing; ``{"<one of>": [...]}`` and ``{"<up to>": 4, "of": ...}`` choose.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from google.genai import types as genai
from hypothesis import strategies as st

from hookline.translators.genai import GenerateContentRequest
from tests.support.translated import dumped

_ENTRIES = json.loads(Path(__file__).with_name("requests.json").read_text())
_TEXTS = st.text(max_size=12) | st.sampled_from(["yes", "go on"])
_COUNTS = st.integers(1, 99)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "<text>": _TEXTS,
    "<name>": st.sampled_from(["read_file", "write_file", "f"]),
    "<number>": st.floats(0, 2, allow_nan=False),
    "<count>": _COUNTS,
    "<bytes>": st.binary(max_size=3),
    "<arguments>": st.dictionaries(_TEXTS, _COUNTS),
}


def built(entry: Any) -> st.SearchStrategy[Any]:
    """The values that an entry describes."""
    if isinstance(entry, str) and entry.startswith("<"):
        leaf = _LEAVES.get(entry)
        return requests(entry.strip("<>")) if leaf is None else leaf
    if isinstance(entry, list):
        return st.tuples(*map(built, entry)).map(list)
    if not isinstance(entry, dict):
        return st.just(entry)
    if "<one of>" in entry:
        return st.one_of(*map(built, entry["<one of>"]))
    if "<up to>" in entry:
        return st.lists(built(entry["of"]), max_size=entry["<up to>"])
    fields = {name: built(value) for name, value in entry.items()}
    return st.fixed_dictionaries(
        {name: field for name, field in fields.items() if name[-1] != "?"},
        optional={n[:-1]: field for n, field in fields.items() if n[-1] == "?"},
    )


def requests(name: str) -> st.SearchStrategy[Any]:
    """The requests of an SDK, or another entry of the file."""
    return built(_ENTRIES[name])


def _genai_requests(contents: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    configs = requests("genai config").map(genai.GenerateContentConfig.model_validate)
    return st.builds(GenerateContentRequest, _TEXTS, contents, st.none() | configs)


_parts = requests("genai part").map(genai.Part.model_validate)
_contents = requests("genai content").map(genai.Content.model_validate)
genai_requests = _genai_requests(
    st.one_of(
        *(_TEXTS, _contents, _parts, st.lists(_contents, max_size=6)),
        st.lists(_TEXTS | _contents | _parts, max_size=6),
    )
)
genai_dicts = _genai_requests(st.lists(_contents, max_size=6)).map(
    lambda request: {"config": {}, **dumped(request)}
)
