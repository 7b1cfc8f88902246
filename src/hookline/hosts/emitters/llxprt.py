"""llxprt-code, which has the events of Gemini CLI.

Written by its documentation alone: it was not run (docs/how-to/hosts/llxprt.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from hookline.hosts.host import HostFiles

from .gemini import GeminiHost


class LlxprtHost(GeminiHost):
    """llxprt-code."""

    name = "llxprt"
    title = "llxprt-code"
    tested = None
    files = HostFiles(
        project=".llxprt/settings.json",
        user="$LLXPRT_CONFIG_HOME/settings.json",
        # A version that knows the first two copies the last if that is all it has.
        homes={
            "LLXPRT_CONFIG_HOME": "~/.config/llxprt-code"
            ":$XDG_CONFIG_HOME/llxprt-code:~/.llxprt",
            "XDG_CONFIG_HOME": "~/.config",
        },
        extra={"name": "hookline", "type": "command"},
        unit_ms=1,
        off=(("hooksConfig", "enabled"), False),
        next_step="start llxprt and switch hooks on if they are off; /hooks shows them",
    )
    places = r"\.llxprt/[^/]+|llxprt-code/[^/]+"
    project_variables = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR")


HOST = LlxprtHost()
