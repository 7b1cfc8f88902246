"""LangChain with hooks, offline: a fake model, a tool, and three hooks.

The file is not called ``langchain.py``: Python would import it in place of the package.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from hookline import Config, HookSystem
from hookline.adapters.langchain import HooklineMiddleware

config = Config()
hooks = HookSystem(config)  # hooks from settings files work the same


@hooks.on("BeforeTool", matcher="write_file")
def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    path = event["tool_input"]["path"]
    if path.endswith(".env"):
        return {"decision": "deny", "reason": "keep secrets out of files"}
    if path.endswith(".sh"):
        return {"decision": "ask", "reason": f"May {path} be written?"}
    return None


@hooks.on("AfterModel")
def redact(event: dict[str, Any]) -> dict[str, Any] | None:
    text = event["llm_response"]["text"] or ""
    changed = text.replace("ops@example.com", "[e-mail]")
    return {"hookSpecificOutput": {"llm_response": {"text": changed}}}


def write_file(path: str, text: str) -> str:
    """Write a file."""
    print(f"  (the tool writes {path})")
    return f"wrote {path}"


class FakeModel(FakeMessagesListChatModel):
    """The framework's own fake model, which takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def calls(path: str) -> AIMessage:
    args = {"path": path, "text": "..."}
    return AIMessage("", tool_calls=[{"name": "write_file", "args": args, "id": path}])


model = FakeModel(
    responses=[
        calls("prod.env"),
        calls("deploy.sh"),
        AIMessage("Done. Ask ops@example.com about it."),
    ]
)
agent = create_agent(
    model,
    [write_file],
    middleware=[HooklineMiddleware(config)],
    checkpointer=InMemorySaver(),
)


def main() -> None:
    thread: Any = {"configurable": {"thread_id": "conversation-17"}}
    given: Any = {"messages": [{"role": "user", "content": "Set it up."}]}
    while True:
        for update in agent.stream(given, thread, stream_mode="updates"):
            for node, change in update.items():
                if node == "__interrupt__":
                    print("question:", change[0].value["description"])
                elif node in {"model", "tools"}:
                    print(f"{node}:", change["messages"][-1].text or "(calls a tool)")
        if not agent.get_state(thread).interrupts:
            break
        given = Command(resume=True)  # a person says yes


if __name__ == "__main__":
    main()
