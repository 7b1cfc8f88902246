"""The Data API of Open Policy Agent, as its REST documentation describes it.

No package registry of ours has the OPA server. The policies are real: they are
evaluated by rego-cpp (``regopy``), another implementation of the language. It runs in
a process of its own: it replaces the allocator, which the engine of rules crashes on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

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
        query = f"found = data.{path.strip('/').replace('/', '.')}"
        done = subprocess.run(
            [sys.executable, "-c", _EVALUATE],
            input=json.dumps({"policy": self._policy, "query": query, "given": given}),
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found


_EVALUATE = """
import json, sys
from regopy import Interpreter
asked = json.load(sys.stdin)
interpreter = Interpreter()
interpreter.add_module("policy", asked["policy"])
if "input" in asked["given"]:
    interpreter.set_input(asked["given"]["input"])
bindings = interpreter.query(asked["query"]).results[0].bindings
print(json.dumps({"result": bindings["found"]} if "found" in bindings else {}))
"""
