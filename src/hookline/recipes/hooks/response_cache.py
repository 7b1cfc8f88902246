"""Answer a model request from a cache if the same request was answered before.

For calls without tools: a model hook sees text only, so an answer that also called a
function would come back without the call. The key is everything that the hook can
see: model, messages with their roles, settings. Entries expire after
``CACHE_SECONDS``.
"""

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from hookline.recipes.state import state_folder
from hookline.script import Output, respond, run

SECONDS = 3600


def check(event: dict[str, Any]) -> Output | None:
    """Store the answer after a call, return it before the next one."""
    file = _file(event)
    if event["hook_event_name"] == "AfterModel":
        _keep(file, event["llm_response"])
        return None
    text = _kept(file)
    return respond(text) if text else None


def _file(event: dict[str, Any]) -> Path:
    request = json.dumps(event["llm_request"], sort_keys=True)
    name = hashlib.sha256(request.encode()).hexdigest()
    return state_folder(event["cwd"], "cache") / name


def _keep(file: Path, response: dict[str, Any]) -> None:
    candidates = response.get("candidates") or [{}]
    finished = candidates[0].get("finishReason") in ("STOP", None)
    if not response.get("text") or not finished or len(candidates) > 1:
        return
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as new:
        json.dump({"at": time.time(), "text": response["text"]}, new)
    Path(new.name).replace(file)


def _kept(file: Path) -> str | None:
    if file.is_symlink():
        return None
    try:
        entry = json.loads(file.read_text("utf-8"))
        age, text = time.time() - entry["at"], entry["text"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    fresh = 0 <= age < float(os.environ.get("CACHE_SECONDS") or SECONDS)
    return text if fresh and isinstance(text, str) else None


if __name__ == "__main__":
    run(check)
