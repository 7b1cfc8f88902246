"""A Django application in one file: plain views under WSGI, async ones under ASGI.

gunicorn --chdir examples/web --preload --workers 4 --threads 8 django_app:application
uvicorn --app-dir examples/web django_app:asgi
"""

from __future__ import annotations

import json
import secrets

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path
from refunds import make_config, refund, wanted

from hookline.agent import hooked_tool
from hookline.errors import ToolBlockedError

settings.configure(
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=secrets.token_hex(),
)

# In a project this is a line of your AppConfig.ready(). A server may fork after it.
config = make_config()


def refund_order(request: HttpRequest, conversation: str) -> JsonResponse:
    """A plain view: each runs in a thread of the server."""
    given = json.loads(request.body)
    tool = hooked_tool(config.session(conversation), blocked="raise")(refund)
    try:
        return JsonResponse({"result": tool(given["order"], given["amount"])})
    except ToolBlockedError as error:
        return JsonResponse({"detail": error.reason}, status=403)


async def chat(request: HttpRequest, conversation: str) -> JsonResponse:
    """An async view, for ASGI."""
    turn = await config.session(conversation).begin_turn(
        json.loads(request.body)["prompt"]
    )
    if turn.refused:
        return JsonResponse({"detail": turn.reason}, status=403)
    told = []
    for order, amount in wanted(turn.prompt):
        call = await turn.begin_tool("refund", {"order": order, "amount": amount})
        if call.refused:
            told.append(call.message)
        else:
            told.append((await call.finish(refund(**call.tool_input))).text)
    again = await turn.finish("\n".join(told))
    return JsonResponse({"result": told, "not_accepted": again})


urlpatterns = [
    path("<conversation>/refund", refund_order),
    path("<conversation>/chat", chat),
]
application = get_wsgi_application()
asgi = get_asgi_application()
