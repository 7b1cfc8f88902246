"""The timeline: recorded events, live and back through the journal."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .answers import reply
from .desk import Desk


def routes(desk: Desk) -> list[BaseRoute]:
    """The routes of this view."""

    async def overview(_: Request) -> Response:
        return reply(await desk.in_thread(_overview, desk))

    return [Route("/api/overview", overview)]


def _overview(desk: Desk) -> dict[str, Any]:
    settings = desk.config.settings
    return {
        "version": version("hookline"),
        "cwd": desk.cwd,
        "project": settings.project_dir,
        "settings": {
            "files": [layer.file for layer in settings.layers if layer.file],
            "errors": [*desk.reload_errors, *map(str, settings.errors)],
            "warnings": list(settings.warnings),
        },
    }
