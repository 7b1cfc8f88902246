"""AfterModel: no e-mail address leaves in an answer."""

import re

from hookline.script import modify_response, run


def privacy(event):
    text = event["llm_response"].get("text") or ""
    clean = re.sub(r"[\w.+-]+@[\w-]+\.\w+", "[e-mail]", text)
    if clean != text:
        return modify_response(clean)
    return None


run(privacy)
