"""The demonstration's project: a directory with hooks, and tools that work on it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.agent.backends import ScriptedModel, ScriptedReply, Step
from hookline.agent.conversation import ToolAnswer
from hookline.agent.loop import Agent, AgentResult, Ending
from hookline.config import Config
from hookline.engine.system import HookSystem
from hookline.settings.load import Settings

from .timeline import Sighting, Tally, Timeline, WatchedHooks

_HERE = Path(__file__).parent


class Project:
    """A directory of its own, and the tools of the agent that works there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings_file = folder / ".hookline" / "settings.json"

    def lay_out(self) -> None:
        """Put files, settings and hooks into the directory."""
        _copy(_HERE / "files", self.folder)
        _copy(_HERE / "hooks", self.settings_file.parent / "hooks")
        shutil.copy(_HERE / "settings.json", self.settings_file)

    def tools(self) -> list[Callable[..., Any]]:
        """What the model may call."""
        return [
            self.list_files,
            self.read_file,
            self.write_file,
            self.delete_file,
            self.run_tests,
        ]

    def list_files(self) -> str:
        """List the project's files."""
        found = (p.relative_to(self.folder) for p in self.folder.rglob("*.*"))
        return "\n".join(sorted(str(p) for p in found if p.parts[0] != ".hookline"))

    def read_file(self, path: str) -> str:
        """Read a file."""
        return (self.folder / path).read_text()

    def write_file(self, path: str, content: str) -> str:
        """Write a file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        return f"wrote {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        (self.folder / path).unlink()
        return f"deleted {path}"

    def run_tests(self) -> str:
        """Run the tests."""
        return "1 failed: test_midnight"


def _copy(source: Path, target: Path) -> None:
    # Installing the package compiles its files, these among them.
    compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=compiled)


# Put together here, so that no scanner takes this file for a leak.
_KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
_BAD = f'ACCESS_KEY = "{_KEY}"\n'
_GOOD = 'import os\n\nACCESS_KEY = os.environ["ACCESS_KEY"]\n'


class Scene(Struct, frozen=True):
    """One prompt, what it is to show, and the model's part."""

    title: str
    prompt: str
    steps: tuple[Step, ...]
    temperature: float = 0.2


def _write(text: str, content: str) -> ScriptedReply:
    return ScriptedReply(
        text, (("write_file", {"path": "config.py", "content": content}),)
    )


SCENES = (
    Scene(
        "A secret is kept out, a path put right",
        "Save the deploy settings.",
        (
            _write("I put the key into the settings.", _BAD),
            _write("Then I read it from the environment.", _GOOD),
            "Saved: the key comes from the environment.",
        ),
        temperature=0.9,
    ),
    Scene(
        "Personal data stays inside",
        "Who reported ticket 17?",
        (
            ScriptedReply("", (("read_file", {"path": "tickets/17.md"}),)),
            "Ada Byron, ada.byron@example.org, +44 20 7946 0018.",
        ),
    ),
    Scene(
        "A review only reads",
        "Review the project and tidy it up.",
        (
            ScriptedReply("", (("delete_file", {"path": "src/app.py"}),)),
            ScriptedReply("I may not delete. I look instead.", (("list_files", {}),)),
            "Three files. I would remove nothing.",
        ),
    ),
    Scene(
        "A runaway is stopped",
        "Make the tests pass.",
        tuple(ScriptedReply("Once more.", (("run_tests", {}),)) for _ in range(9)),
    ),
)


SESSION = "demo"


async def play(project: Project, timeline: Timeline) -> None:
    """Play all scenes and sum up."""
    stage = Stage(project, timeline)
    config = Config(SESSION, project.folder, Settings.from_file(project.settings_file))
    async with HookSystem(config) as hooks:
        config.use_hooks(WatchedHooks(hooks.event_handler, stage.sighted))
        for scene in SCENES:
            await stage.play(config, scene)
    timeline.summary(stage.tallies.values(), facts(project))


def facts(project: Project) -> list[str]:
    """How the project looks after the play; checked, not claimed."""
    config = project.folder / "src" / "config.py"
    written = config.read_text() if config.exists() else ""
    found = {
        "src/config.py was written, where the model wanted config.py": bool(written),
        "no access key is in it": bool(written) and "AKIA" not in written,
        "src/app.py is still there": (project.folder / "src" / "app.py").exists(),
    }
    return [fact for fact, holds in found.items() if holds]


class Stage:
    """Shows one scene after the other, and counts what the hooks do."""

    def __init__(self, project: Project, timeline: Timeline) -> None:
        self._project = project
        self._timeline = timeline
        self.tallies: dict[str, Tally] = {}

    def sighted(self, seen: Sighting) -> None:
        """Show and count one hook's run."""
        self._timeline.sighted(seen)
        fresh = Tally(seen.event.value, seen.hook, seen.kind)
        self.tallies.setdefault(seen.hook, fresh).add(seen)

    async def play(self, config: Config, scene: Scene) -> None:
        """Play one scene."""
        self._timeline.title(scene.title)
        self._timeline.said("you", scene.prompt)
        model = ToldModel(scene, self._timeline)
        agent = Agent(
            config,
            model,
            self._project.tools(),
            publish=self._answered,
            max_parallel=1,
        )
        self._ended(await agent.run(scene.prompt))

    def _answered(self, answer: ToolAnswer) -> None:
        self._timeline.said("tool", answer.result.text.split("\n")[0])

    def _ended(self, result: AgentResult) -> None:
        if result.ending is Ending.ANSWERED:
            self._timeline.said("shown", result.text)
        else:
            self._timeline.said("agent", f"{result.ending.value}: {result.reason}")


class ToldModel(ScriptedModel):
    """The scripted model, with a temperature, whose words are shown as they come."""

    def __init__(self, scene: Scene, timeline: Timeline) -> None:
        super().__init__(scene.steps)
        self._timeline = timeline
        self._temperature = scene.temperature

    def build(self, turns: Any, tools: Any, system: str | None) -> dict[str, Any]:
        """Ask for as much warmth as the scene wants."""
        request = super().build(turns, tools, system)
        return {**request, "config": {"temperature": self._temperature}}

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Show what the model says."""
        chunks = [chunk async for chunk in super().stream(request)]
        self._show(chunks)
        for chunk in chunks:
            yield chunk

    def _show(self, chunks: Sequence[dict[str, Any]]) -> None:
        whole = self.assemble(chunks)
        if whole["text"]:
            self._timeline.said("model", whole["text"])
        for call in whole["calls"]:
            shown = ", ".join(
                str(value).split("\n")[0] for value in call.input.values()
            )
            self._timeline.said("model", f"calls {call.name}({shown})")
