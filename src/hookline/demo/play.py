"""Play the demonstration: the real loop, real hooks, a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from hookline.agent.backends.scripted import ScriptedModel
from hookline.agent.conversation import ToolAnswer
from hookline.agent.loop import Agent
from hookline.agent.outcome import AgentResult, Ending
from hookline.config import Config
from hookline.settings.load import Settings
from hookline.system import HookSystem

from .project import Project
from .scenes import SCENES, Scene
from .timeline import Tally, Timeline
from .watching import Sighting, WatchedHooks

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
