"""The inspector as a web application: its shell, its static files, its API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hookline._internal.log import logger
from hookline.errors import HooklineError, JournalError

from . import approvals, event, hooks, replays, timeline, trial
from .answers import refuse
from .desk import Desk
from .guard import Guard

_VIEWS = (timeline, event, hooks, approvals, trial, replays)
_PAGES = ("/", "/events/{id:number}", "/hooks", "/try", "/replay", "/trust")
_STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_REFRESH_S = 1.0
_THREADS = 16


def build_app(desk: Desk, token: str, port: int) -> Guard:
    """The whole application; every request needs the token."""
    app = Starlette(
        routes=[
            *_static_routes(),
            *(route for v in _VIEWS for route in v.routes(desk)),
        ],
        exception_handlers={
            HTTPException: _refused,
            HooklineError: _failed,
            OSError: _failed,
            Exception: _crashed,
        },
        lifespan=lambda _: _watch_settings(desk),
    )
    return Guard(app, token, port)


def _static_routes() -> list[BaseRoute]:
    pages = [Route(path, _page, methods=["GET"]) for path in _PAGES]
    return [*pages, Route("/static/{name}", _static, methods=["GET"])]


def _page(_: Request) -> Response:
    return _file("index.html")


def _static(request: Request) -> Response:
    return _file(request.path_params["name"])


def _file(name: str, status: int = 200) -> Response:
    files = {file.name: file for file in _STATIC.glob("*") if file.suffix in _TYPES}
    if name not in files:
        raise HTTPException(404, "no such file")
    kind = _TYPES[files[name].suffix]
    return Response(files[name].read_bytes(), status, media_type=kind)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = error.detail
    if error.status_code == 404 and message == "Not Found":
        if "text/html" in request.headers.get("accept", ""):
            return _file("index.html", 404)  # it says that there is no such page
        message = "there is no such page: choose one of the views"
    response = refuse(error.status_code, message)
    response.headers.update(error.headers or {})
    return response


async def _failed(_: Request, error: Exception) -> Response:
    """What is wrong with a file or with the request, not with us."""
    status = 503 if isinstance(error, JournalError | OSError) else 400
    return refuse(status, str(error))


async def _crashed(request: Request, error: Exception) -> Response:
    logger.error("inspector: %s failed", request.url.path, exc_info=error)
    return refuse(500, "this is a bug in Hookline: its terminal shows the details")


@asynccontextmanager
async def _watch_settings(desk: Desk) -> AsyncIterator[None]:
    # A search takes up to 0.3 s, and people type faster than that.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    task = asyncio.create_task(_keep_fresh(desk))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep_fresh(desk: Desk) -> None:
    while True:
        await asyncio.sleep(_REFRESH_S)
        await desk.refresh()
