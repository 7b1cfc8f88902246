"""Make a response fit the carrier's limit without losing its verdict.

What hooks printed goes first. A response that is too long even so is a failed one,
but a block or a stop in it still arrives: an answer is never longer than allowed, and
never more lenient than what the hooks said.
"""

from __future__ import annotations

from typing import Any

from hookline.jsontext import encode

from .contracts import HookExecutionResponse, ResponseCode, failed_response

_LONGEST_REASON = 4096
_MARK = " ... (cut)"


def fit(response: HookExecutionResponse, limit: int) -> bytes:
    """Encode a response into at most ``limit`` bytes."""
    data = encode(response)
    if len(data) <= limit:
        return data
    slim = encode(_without_streams(response))
    return slim if len(slim) <= limit else encode(_verdict_only(response, len(data)))


def _without_streams(response: HookExecutionResponse) -> HookExecutionResponse:
    output = response.get("output")
    if output is None:
        return response
    cut = {"stdout": "", "stderr": "", "truncated": True}
    results = [result | cut for result in output["hookResults"]]
    return {**response, "output": {**output, "hookResults": results}}


def _verdict_only(
    response: HookExecutionResponse, length: int
) -> HookExecutionResponse:
    error = response.get("error")
    failed = failed_response(
        response["correlationId"],
        ResponseCode.PAYLOAD_TOO_LARGE,
        f"the response has {length} bytes, more than the server takes",
        stage="internal",
        cause=error["code"] if error else None,
    )
    processed = response.get("processed")
    if processed and (processed.get("blocked") or processed.get("shouldStop")):
        failed["processed"] = {key: _cut(value) for key, value in processed.items()}
    return failed


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_REASON:
        return value[:_LONGEST_REASON] + _MARK
    return value
