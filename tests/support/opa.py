"""The Data API of Open Policy Agent, as its REST documentation describes it.

No package registry of ours has the OPA server. The policies are real: they are
evaluated by rego-cpp (``regopy``), another implementation of the language.
"""

from __future__ import annotations

import json
from typing import Any

from regopy import Interpreter  # type: ignore[import-untyped] # it has no types

from .web import Exchange, WebServer, reply


class OpaServer(WebServer):
    """Answers ``POST /v1/data/<path>`` with the document at that path."""

    def __init__(self, policy: str) -> None:
        super().__init__(self._decide)
        self._policy = policy

    def _decide(self, exchange: Exchange) -> bytes:
        place = exchange.target.partition("?")[0]
        if not place.startswith("/v1/data/"):
            return reply("404 page not found\n", 404)
        try:
            given = json.loads(exchange.body)
        except ValueError as error:
            problem = {"code": "invalid_parameter", "message": str(error)}
            return reply(problem, 400)
        found = self._evaluate(place.removeprefix("/v1/data/"), given)
        # The result is left out where the document is undefined, with status 200.
        return reply(found, Content_Type="application/json")

    def _evaluate(self, path: str, given: dict[str, Any]) -> dict[str, Any]:
        interpreter = Interpreter()
        interpreter.add_module("policy", self._policy)
        if "input" in given:
            interpreter.set_input(given["input"])
        query = f"found = data.{path.strip('/').replace('/', '.')}"
        result = interpreter.query(query).results[0]
        if "found" not in result.bindings:
            return {}
        return {"result": result.bindings["found"]}
