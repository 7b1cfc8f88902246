"""What hooks say in the real programs, and how to see that it took effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from hookline.hosts.host import Effect
from hookline.protocol.events import HookEventName

from .programs import Call, Program
from .run import Run

SAID = "said-by-a-hook"
SECRET = "top-secret-7"
FIRST = "first-answer"
_E = HookEventName
_ACT = "touch ran.txt; cat secret.txt"

Turns = Callable[[Program], list[Call | str] | None]
"""What the model does, one turn after the other; None: the program cannot."""


class Case(Struct, frozen=True, kw_only=True):
    """One effect of one event."""

    title: str
    event: HookEventName
    effect: Effect
    says: Mapping[str, Any]
    full: Callable[[Run], bool]
    stricter: Callable[[Run], bool] | None = None
    """What must be seen where the host cannot express it; None: it may be lost."""
    turns: Turns = lambda program: [program.shell(_ACT), "done"]
    group: Mapping[str, Any] = {}
    """Further keys of the group, such as a matcher."""
    hook: Mapping[str, Any] = {}
    """Further keys of the hook."""
    shown: str = ""
    """A text that the hook must have been shown."""


def _deny(**specific: Any) -> dict[str, Any]:
    found = {"hookSpecificOutput": specific} if specific else {}
    return {"decision": "deny", "reason": SAID, **found}


def _specific(**said: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": said}


def _stop() -> dict[str, Any]:
    return {"continue": False, "stopReason": SAID}


def _did_not_run(run: Run) -> bool:
    return not run.has("ran.txt")


def _told(run: Run) -> bool:
    return run.sent(SAID)


def _hidden(run: Run) -> bool:
    return run.has("ran.txt") and not run.sent(SECRET)


def _refused(run: Run) -> bool:
    return _did_not_run(run) and _told(run)


def _text(program: Program) -> list[Call | str]:
    return [FIRST, "done"]


def _one_text(program: Program) -> list[Call | str]:
    return ["done"]


def _note(program: Program) -> list[Call | str] | None:
    if program.mcp_tool is None:
        return None
    return [(program.mcp_tool, {"text": "original"}), "done"]


def _subagent(program: Program) -> list[Call | str] | None:
    return None if program.agent is None else [program.agent, FIRST, "done", "done"]


def _subagent_acts(program: Program) -> list[Call | str] | None:
    if program.agent is None:
        return None
    return [program.agent, program.shell(_ACT), FIRST, "done", "done"]


def _one_file(program: Program) -> list[Call | str] | None:
    """Not in a patch: a part of one cannot be put back.

    hosts/README.md#what-a-hook-sees
    """
    if program.several is not None:
        return None
    return [program.write("one.txt", "text"), "done"]


def _two_files(program: Program) -> list[Call | str] | None:
    if program.several is None:
        return None
    return [program.several({"one.txt": "a", "two.txt": "b"}), "done"]


def _two_files_in_shell(program: Program) -> list[Call | str] | None:
    if program.several is None:
        return None
    _, patch = program.several({"one.txt": "a", "two.txt": "b"})
    return [program.shell(f"apply_patch <<'EOF'\n{patch}\nEOF\n"), "done"]


def _no_files(run: Run) -> bool:
    return not run.has("one.txt") and not run.has("two.txt") and _told(run)


_WRITES = {"matcher": "^write_file$"}
_NOTES = {"matcher": "add_note"}
_SECOND = {"if": "tool_input.path.endsWith('two.txt')"}
_CHANGED = {"command": "touch changed.txt"}

CASES = (
    Case(
        title="block a command",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        full=_refused,
        stricter=_did_not_run,
        group={"matcher": "^run_shell_command$"},
        shown="cat secret.txt",
    ),
    Case(
        title="block a file by its path",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=lambda program: [program.write("prod.env", "KEY=1"), "done"],
        group=_WRITES,
        hook={"if": "tool_input.path.endsWith('.env')"},
        full=lambda run: not run.has("prod.env") and _told(run),
        stricter=lambda run: not run.has("prod.env"),
    ),
    Case(
        title="block and add context",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says={**_deny(additionalContext=SAID), "reason": "no"},
        full=_refused,
        stricter=_did_not_run,
    ),
    Case(
        title="block an MCP tool",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_note,
        group=_NOTES,
        full=lambda run: not run.has("note.txt") and _told(run),
        shown="add_note",
    ),
    Case(
        title="block one of two files",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_two_files,
        group=_WRITES,
        hook=_SECOND,
        full=_no_files,
    ),
    Case(
        title="block one of two files in a command",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_two_files_in_shell,
        group=_WRITES,
        hook=_SECOND,
        full=_no_files,
    ),
    Case(
        title="block when the hook fails",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says={},
        hook={"command": "exit 1", "onError": "block"},
        full=_did_not_run,
    ),
    Case(
        title="block a subagent's tool",
        event=_E.BeforeTool,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_subagent_acts,
        group={"matcher": "^run_shell_command$"},
        full=_refused,
        stricter=_did_not_run,
    ),
    Case(
        title="ask",
        event=_E.BeforeTool,
        effect=Effect.ASK,
        says={"decision": "ask", "reason": SAID},
        full=_did_not_run,
        stricter=_did_not_run,
    ),
    Case(
        title="change a command",
        event=_E.BeforeTool,
        effect=Effect.CHANGE,
        says=_specific(tool_input=_CHANGED),
        full=lambda run: run.has("changed.txt") and _did_not_run(run),
        stricter=_did_not_run,
    ),
    Case(
        title="change the path of a file",
        event=_E.BeforeTool,
        effect=Effect.CHANGE,
        says=_specific(tool_input={"path": "other.txt"}),
        turns=_one_file,
        group=_WRITES,
        full=lambda run: run.has("other.txt") and not run.has("one.txt"),
        stricter=lambda run: not run.has("one.txt"),
    ),
    Case(
        title="change one of two files, which blocks",
        event=_E.BeforeTool,
        effect=Effect.CHANGE,
        says=_specific(tool_input={"path": "other.txt"}),
        turns=_two_files,
        group=_WRITES,
        hook=_SECOND,
        full=lambda run: not run.has("one.txt") and not run.has("other.txt"),
    ),
    Case(
        title="change an MCP tool's input",
        event=_E.BeforeTool,
        effect=Effect.CHANGE,
        says=_specific(tool_input={"text": "changed"}),
        turns=_note,
        group=_NOTES,
        full=lambda run: run.has("note.txt", "changed"),
        stricter=lambda run: not run.has("note.txt"),
    ),
    Case(
        title="add context",
        event=_E.BeforeTool,
        effect=Effect.CONTEXT,
        says=_specific(additionalContext=SAID),
        full=lambda run: run.has("ran.txt") and _told(run),
    ),
    Case(
        title="system message",
        event=_E.BeforeTool,
        effect=Effect.MESSAGE,
        says={"systemMessage": SAID},
        full=lambda run: run.has("ran.txt") and _told(run),
    ),
    Case(
        title="stop",
        event=_E.BeforeTool,
        effect=Effect.STOP,
        says=_stop(),
        full=lambda run: _did_not_run(run) and len(run.requests) == 1,
        stricter=_did_not_run,
    ),
    Case(
        title="object",
        event=_E.AfterTool,
        effect=Effect.BLOCK,
        says=_deny(),
        full=lambda run: _told(run) and run.sent(SECRET),
        stricter=_told,
        shown=SECRET,
    ),
    Case(
        title="add context",
        event=_E.AfterTool,
        effect=Effect.CONTEXT,
        says=_specific(additionalContext=f"<b>{SAID}"),
        full=lambda run: run.sent(f"&lt;b&gt;{SAID}"),
    ),
    Case(
        title="system message",
        event=_E.AfterTool,
        effect=Effect.MESSAGE,
        says={"systemMessage": SAID},
        full=_told,
    ),
    Case(
        title="withhold a result",
        event=_E.AfterTool,
        effect=Effect.WITHHOLD,
        says=_deny(withholdResult=True),
        full=lambda run: _hidden(run) and _told(run),
        stricter=_hidden,
    ),
    Case(
        title="withhold the result of a failed command",
        event=_E.AfterTool,
        effect=Effect.WITHHOLD,
        says=_deny(withholdResult=True),
        turns=lambda program: [program.shell(f"{_ACT}; exit 3"), "done"],
        full=lambda run: _hidden(run) and _told(run),
        stricter=_hidden,
    ),
    Case(
        title="withhold an MCP tool's result",
        event=_E.AfterTool,
        effect=Effect.WITHHOLD,
        says=_deny(withholdResult=True),
        turns=_note,
        group=_NOTES,
        full=lambda run: not run.sent("noted original") and _told(run),
        stricter=lambda run: not run.sent("noted original"),
    ),
    Case(
        title="stop",
        event=_E.AfterTool,
        effect=Effect.STOP,
        says=_stop(),
        full=lambda run: run.has("ran.txt") and len(run.requests) == 1,
        stricter=_hidden,
    ),
    Case(
        title="block a prompt",
        event=_E.BeforeAgent,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_one_text,
        full=lambda run: not run.requests,
        shown="please work",
    ),
    Case(
        title="add context to a prompt",
        event=_E.BeforeAgent,
        effect=Effect.CONTEXT,
        says=_specific(additionalContext=f"<b>{SAID}"),
        turns=_one_text,
        full=lambda run: run.sent(f"&lt;b&gt;{SAID}"),
    ),
    Case(
        title="stop",
        event=_E.BeforeAgent,
        effect=Effect.STOP,
        says=_stop(),
        turns=_one_text,
        full=lambda run: not run.requests,
    ),
    Case(
        title="reject an answer",
        event=_E.AfterAgent,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_text,
        full=lambda run: _told(run) and len(run.requests) == 2,
        shown=FIRST,
    ),
    Case(
        title="clear the context",
        event=_E.AfterAgent,
        effect=Effect.CLEAR,
        says=_deny(clearContext=True),
        turns=_text,
        full=lambda run: _told(run) and not run.sent(FIRST),
    ),
    Case(
        title="add context",
        event=_E.SessionStart,
        effect=Effect.CONTEXT,
        says=_specific(additionalContext=f"<b>{SAID}"),
        turns=_one_text,
        full=lambda run: run.sent(f"&lt;b&gt;{SAID}"),
        shown='"startup"',
    ),
    Case(
        title="add context to a subagent's prompt",
        event=_E.SubagentStart,
        effect=Effect.CONTEXT,
        says=_specific(additionalContext=SAID),
        turns=_subagent,
        full=_told,
    ),
    Case(
        title="reject a subagent's answer",
        event=_E.SubagentStop,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_subagent,
        full=_told,
        shown='"agent_type"',
    ),
    Case(
        title="block a model call",
        event=_E.BeforeModel,
        effect=Effect.BLOCK,
        says=_deny(),
        turns=_one_text,
        full=lambda run: not run.requests,
    ),
    Case(
        title="change a model call",
        event=_E.BeforeModel,
        effect=Effect.CHANGE,
        says=_specific(llm_request={"config": {"temperature": 0.125}}),
        turns=_one_text,
        full=lambda run: run.sent("0.125"),
    ),
    Case(
        title="replace an answer",
        event=_E.AfterModel,
        effect=Effect.CHANGE,
        says=_specific(llm_response={"text": SAID}),
        turns=_one_text,
        full=lambda run: SAID in run.stdout and "done" not in run.stdout,
    ),
    Case(
        title="allow no tools",
        event=_E.BeforeToolSelection,
        effect=Effect.CHANGE,
        says=_specific(toolConfig={"mode": "NONE"}),
        turns=_one_text,
        full=lambda run: run.sent('"NONE"'),
    ),
)
