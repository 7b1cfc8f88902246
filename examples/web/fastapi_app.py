"""A FastAPI service: one config per process, one session per conversation.

uvicorn --app-dir examples/web fastapi_app:app
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Body, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from refunds import make_config, refund, wanted

from hookline import Config
from hookline.agent import HookedTurn, Session, hooked_tool
from hookline.errors import ToolBlockedError


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Config]]:
    async with make_config() as config:  # closed when the server stops
        yield {"config": config}


app = FastAPI(lifespan=lifespan)


def conversation(request: Request, conversation_id: str) -> Session:
    config: Config = request.state.config
    return config.session(conversation_id)


Conversation = Annotated[Session, Depends(conversation)]


@app.exception_handler(ToolBlockedError)
async def refused(_: Request, error: ToolBlockedError) -> JSONResponse:
    return JSONResponse({"detail": error.reason}, status_code=403)


@app.post("/{conversation_id}/refund")
def refund_order(
    order: Annotated[str, Body()],
    amount: Annotated[float, Body()],
    session: Conversation,
) -> dict[str, str]:
    """A plain endpoint: it runs in a thread, and a block raises."""
    tool = hooked_tool(session, blocked="raise")(refund)
    return {"result": tool(order, amount)}


@app.post("/{conversation_id}/chat")
async def chat(
    prompt: Annotated[str, Body(embed=True)], session: Conversation
) -> StreamingResponse:
    """An async endpoint that streams: a refused prompt is a 403, as no byte is sent."""
    turn = await session.begin_turn(prompt)
    if turn.refused:
        raise HTTPException(403, turn.reason)
    return StreamingResponse(answer(turn), media_type="text/plain")


async def answer(turn: HookedTurn) -> AsyncIterator[str]:
    """The loop of the agent: a refused call is part of the answer."""
    told = []
    for order, amount in wanted(turn.prompt):
        call = await turn.begin_tool("refund", {"order": order, "amount": amount})
        if call.refused:
            told.append(call.message)
        else:
            told.append((await call.finish(refund(**call.tool_input))).text)
        yield f"{told[-1]}\n"
    again = await turn.finish("\n".join(told))
    if again is not None:
        yield f"not accepted: {again}\n"
