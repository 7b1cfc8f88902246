"""Read the decisions of Open Policy Agent as outputs of a hook.

OPA's Data API answers ``{"result": ...}`` with whatever the rule at the url's path
gives, and without ``result`` where that is undefined. An undefined decision is not a
yes, and neither is one of an unexpected type.
"""

from __future__ import annotations

from typing import Any

from .outputs import Decision, read_decision
from .values import encode

_VERDICTS = frozenset({"allow", "deny"})
_PERMISSION = "permissionDecision"
_MESSAGES = ("msg", "message", "reason")
_UNDEFINED = "gave no decision, it is undefined: check the path of the url"
_EXPECTED = "expected true or false, a list of denials, or an object with a decision"


class OpaDecisionError(ValueError):
    """A decision that is neither a yes nor a no."""


def opa_output(document: dict[str, Any] | None, denial: str) -> dict[str, Any]:
    """What a decision means as an output; raises ``OpaDecisionError``.

    ``denial``: the reason where the policy gives none.
    """
    if document is None or "result" not in document:
        raise OpaDecisionError(_UNDEFINED)
    result = document["result"]
    if isinstance(result, dict):
        return _read_object(result, denial)
    if isinstance(result, bool):
        return {"decision": "allow"} if result else _denied(True, denial)
    if isinstance(result, list):
        return _denied(result, denial) if result else {"decision": "allow"}
    if isinstance(result, str) and (decision := _decision(result)) is not None:
        return {"decision": decision.value}
    raise OpaDecisionError(f"gave a decision of the wrong type: {_EXPECTED}")


def _read_object(result: dict[str, Any], denial: str) -> dict[str, Any]:
    # A rule without a value is left out of the object of its package: what is beside
    # it, such as a reason, is no decision.
    if not _decisions(result) and result.keys().isdisjoint(_VERDICTS | {"continue"}):
        raise OpaDecisionError(_UNDEFINED)
    said = {key: value for key, value in result.items() if key not in _VERDICTS}
    allow, deny = result.get("allow", True), result.get("deny", False)
    if not isinstance(allow, bool):
        raise OpaDecisionError("gave an 'allow' that is neither true nor false")
    if not isinstance(result.get("continue", True), bool):
        raise OpaDecisionError("gave a 'continue' that is neither true nor false")
    if not isinstance(deny, bool | str | list | dict):
        raise OpaDecisionError(
            "gave a 'deny' that is neither a boolean, a text nor a list"
        )
    if not allow or deny:
        return {**said, **_denied(said.get("reason") or deny, denial)}
    return {"decision": "allow", **said}


def _decisions(result: dict[str, Any]) -> list[Decision]:
    specific = result.get("hookSpecificOutput", {})
    if not isinstance(specific, dict):
        raise OpaDecisionError("gave a 'hookSpecificOutput' that is not an object")
    places = ((result, "decision"), (result, _PERMISSION), (specific, _PERMISSION))
    words = (_decision(part.get(name)) for part, name in places)
    return [word for word in words if word is not None]


def _decision(value: Any) -> Decision | None:
    try:
        return read_decision(value)
    except ValueError as error:
        raise OpaDecisionError(f"gave an unknown decision: {error}") from error


def _denied(reasons: Any, denial: str) -> dict[str, Any]:
    given = reasons if isinstance(reasons, list) else [reasons]
    text = "\n".join(filter(None, map(_message, given)))
    return {"decision": "deny", "reason": text or denial}


def _message(reason: Any) -> str:
    if isinstance(reason, str):
        return reason.strip()
    if isinstance(reason, dict):
        found = (reason[key] for key in _MESSAGES if isinstance(reason.get(key), str))
        return next(found, "") or encode(reason).decode()
    return "" if isinstance(reason, bool) else encode(reason).decode()
