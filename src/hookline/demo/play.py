"""Play the demo: a project with hooks, tools that work on it, a scripted model."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.agent import ScriptedModel, ScriptedReply
from hookline.agent.conversation import ToolAnswer
from hookline.agent.loop import Agent, Ending
from hookline.agent.session import Session
from hookline.agent.tool_calls import Confirmation
from hookline.config import Config
from hookline.engine.system import HookSystem
from hookline.settings.load import Settings

from .reports import HookRun, ReportingHooks
from .timeline import Timeline

_HERE = Path(__file__).parent


class Project:
    """A directory, and the tools of the agent that works there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings_file = folder / ".hookline" / "settings.json"

    def create(self) -> None:
        """Copy files, settings and hooks into the directory."""
        # Installing the package compiles these files too.
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_HERE / "files", self.folder, ignore=ignore, dirs_exist_ok=True)
        hooks = self.settings_file.parent / "hooks"
        shutil.copytree(_HERE / "hooks", hooks, ignore=ignore)
        shutil.copy(_HERE / "settings.json", self.settings_file)

    def tools(self) -> list[Callable[..., Any]]:
        """The tools that the model may call."""
        changing = (self.write_file, self.delete_file, self.publish)
        return [self.list_files, self.read_file, *changing, self.run_tests]

    def list_files(self) -> str:
        """List the project's files."""
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*.*"))
        return "\n".join(sorted(str(p) for p in found if p.parts[0] != ".hookline"))

    def read_file(self, path: str) -> str:
        """Read a file."""
        return (self.folder / path).read_text()

    def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        (self.folder / path).write_text(content)
        return f"wrote {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        (self.folder / path).unlink()
        return f"deleted {path}"

    def publish(self, version: str) -> str:
        """Publish the project."""
        return f"published {version}"

    def run_tests(self) -> str:
        """Run the tests."""
        return "1 failed: test_midnight"


def make_review_tool(session: Session) -> Callable[..., Any]:
    """A tool whose work a subagent does."""

    async def review(path: str) -> str:
        """Have a file reviewed."""
        turn = await session.begin_subagent("reviewer", f"Review {path}.")
        answer = "It looks fine."
        while not turn.refused and await turn.finish(answer) is not None:
            answer = f"{path}:1 says what it does."
        return turn.reason or answer if turn.refused else answer

    return review


# In parts, so that secret scanners do not report this file.
_KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
_BAD = f'ACCESS_KEY = "{_KEY}"\n'
_GOOD = 'import os\n\nACCESS_KEY = os.environ["ACCESS_KEY"]\n'


class Scene(Struct, frozen=True):
    """One prompt, its title, and what the model answers."""

    title: str
    prompt: str
    steps: tuple[str | ScriptedReply, ...]
    temperature: float = 0.2
    compress: bool = False
    """Whether the user compresses the history first."""


def _write(text: str, content: str) -> ScriptedReply:
    return ScriptedReply(
        text, (("write_file", {"path": "config.py", "content": content}),)
    )


SCENES = (
    Scene(
        "A secret is blocked, a path corrected",
        "Save the deploy settings.",
        (
            _write("I put the key into the settings.", _BAD),
            _write("Then I read it from the environment.", _GOOD),
            "Saved: the key comes from the environment.",
        ),
        temperature=0.9,
    ),
    Scene(
        "Personal data is removed",
        "Who reported ticket 17?",
        (
            ScriptedReply("", (("read_file", {"path": "tickets/17.md"}),)),
            "Ada Byron, ada.byron@example.org, +44 20 7946 0018.",
        ),
    ),
    Scene(
        "A review may only read",
        "Review the project and tidy it up.",
        (
            ScriptedReply("", (("delete_file", {"path": "src/app.py"}),)),
            ScriptedReply("I may not delete. I only look.", (("list_files", {}),)),
            "Three files. I would keep them all.",
            "src/app.py, src/config.py, tickets/17.md: I would keep them all.",
        ),
    ),
    Scene(
        "A subagent reviews, a person is asked",
        "Have it reviewed, then publish 1.0.",
        (
            ScriptedReply("", (("review", {"path": "src/app.py"}),)),
            ScriptedReply("It is good.", (("publish", {"version": "1.0"}),)),
            "Published.",
        ),
        compress=True,
    ),
    Scene(
        "An endless loop is stopped",
        "Make the tests pass.",
        tuple(ScriptedReply("Again.", (("run_tests", {}),)) for _ in range(9)),
    ),
)


async def play(project: Project, timeline: Timeline) -> None:
    """Play all scenes and print the summary."""
    runs: list[HookRun] = []

    def report(run: HookRun) -> None:
        timeline.hook_run(run)
        runs.append(run)

    config = Config("demo", project.folder, Settings.from_file(project.settings_file))
    hooks = HookSystem(config)
    hooks.record_to()
    async with hooks, Config("demo", project.folder) as agent:
        agent.use_hooks(ReportingHooks(hooks.event_handler, report))
        await _play_session(agent, project, timeline)
    timeline.summary(runs, facts(project))


def facts(project: Project) -> list[str]:
    """What is true of the project's files after the play."""
    config = project.folder / "src" / "config.py"
    written = config.read_text() if config.exists() else ""
    found = {
        "src/config.py was written, where the model wanted config.py": bool(written),
        "no access key is in it": bool(written) and "AKIA" not in written,
        "src/app.py is still there": (project.folder / "src" / "app.py").exists(),
    }
    return [fact for fact, is_true in found.items() if is_true]


async def _play_session(config: Config, project: Project, timeline: Timeline) -> None:
    """Play all scenes with one agent."""
    model = _ShownModel(timeline)

    def confirm(question: Confirmation) -> bool:
        timeline.message("agent", f"asks: {question.reason}")
        timeline.message("you", "Yes.")
        return True

    agent = Agent(
        config,
        model,
        [*project.tools(), make_review_tool(config.session())],
        publish=lambda answer: timeline.message("tool", _first_line(answer)),
        confirm=confirm,
        max_parallel=1,
    )
    timeline.begin()
    timeline.title(SCENES[0].title)
    async with agent:
        for scene in SCENES:
            if scene is not SCENES[0]:
                timeline.title(scene.title)
            model.begin(scene)
            await _play_scene(scene, agent, timeline)


async def _play_scene(scene: Scene, agent: Agent, timeline: Timeline) -> None:
    if scene.compress:
        timeline.message("you", "/compress")
        await agent.compress()
    timeline.message("you", scene.prompt)
    result = await agent.run(scene.prompt)
    if result.ending is Ending.ANSWERED:
        timeline.message("shown", result.text)
    else:
        timeline.message("agent", f"{result.ending.value}: {result.reason}")


def _first_line(answer: ToolAnswer) -> str:
    return answer.result.text.split("\n")[0]


class _ShownModel(ScriptedModel):
    """The scripted model, with a temperature; its answers are shown as they come."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(())
        self._timeline = timeline
        self._temperature = 0.0

    def begin(self, scene: Scene) -> None:
        """Go on with the answers of another scene."""
        self._steps = iter(scene.steps)
        self._temperature = scene.temperature

    def build(self, turns: Any, tools: Any, system: str | None) -> dict[str, Any]:
        request = super().build(turns, tools, system)
        return {**request, "config": {"temperature": self._temperature}}

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        chunks = [chunk async for chunk in super().stream(request)]
        answer = self.assemble(chunks)
        if answer["text"]:
            self._timeline.message("model", answer["text"])
        for call in answer["calls"]:
            values = (str(value).split("\n")[0] for value in call.input.values())
            self._timeline.message("model", f"calls {call.name}({', '.join(values)})")
        for chunk in chunks:
            yield chunk
