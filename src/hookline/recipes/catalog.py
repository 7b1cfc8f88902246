"""The recipes, and the settings that register them.

The order counts where hooks run one after the other: a file is formatted before its
tests run.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.errors import UnknownNameError
from hookline.protocol.events import HookEventName

_FOLDER = Path(__file__).parent
_WRITERS = "write|replace|edit|create|patch|insert|append"
_SHELLS = "shell|bash|exec|terminal|command|process"


class UnknownRecipeError(UnknownNameError):
    """An unknown name of a recipe."""

    problem, hint = "unknown recipe", "see 'hookline recipes'"


class Place(Struct, frozen=True):
    """Where a hook is registered."""

    event: HookEventName
    matcher: str | None = None


_EVERY_TOOL = Place(HookEventName.BeforeTool)
_WRITTEN = Place(HookEventName.AfterTool, _WRITERS)
_REQUEST = Place(HookEventName.BeforeModel)
_RESPONSE = Place(HookEventName.AfterModel)


class Recipe(Struct, frozen=True):
    """One recipe: its scripts and where they are registered."""

    name: str
    description: str
    places: tuple[Place, ...] = (_EVERY_TOOL,)
    own_scripts: tuple[str, ...] = ()
    """Where they are not called like the recipe."""
    sequential: bool = False
    guards: bool = False
    """A guard that fails must not let the call pass."""
    folder: Path = _FOLDER / "hooks"

    @property
    def event(self) -> HookEventName:
        """The event that it is about; where it has several, the one that decides."""
        return self.places[0].event

    @property
    def scripts(self) -> tuple[str, ...]:
        """The names of its scripts, in the order in which they run."""
        return self.own_scripts or (f"{self.name.replace('-', '_')}.py",)

    @property
    def files(self) -> tuple[Path, ...]:
        """All its files: scripts and hooktest."""
        test = f"{self.scripts[0].removesuffix('.py')}.hooktest.toml"
        return tuple(self.folder / name for name in (*self.scripts, test))

    def group(self, place: Place) -> dict[str, Any]:
        """Its group in the settings, for one place."""
        matcher = {} if place.matcher is None else {"matcher": place.matcher}
        sequential = {"sequential": True} if self.sequential else {}
        hooks = [self._hook(script) for script in self.scripts]
        return {**matcher, **sequential, "hooks": hooks}

    def _hook(self, script: str) -> dict[str, Any]:
        own_name = script.removesuffix(".py").replace("_", "-")
        hook = {
            "type": "command",
            "name": own_name if self.own_scripts else self.name,
            "description": self.description,
            "command": f'"$HOOKLINE_PYTHON" .hookline/hooks/{script}',
        }
        return hook | {"onError": "block"} if self.guards else hook


_guard = partial(Recipe, guards=True)

STARTER = _guard(
    "no-env-files",
    "keep secrets out of .env files",
    (Place(HookEventName.BeforeTool, "write_file|replace|edit"),),
    folder=_FOLDER / "starter",
)
_RECIPES = (
    _guard(
        "secret-scan", "block keys, tokens and passwords in what tools write or run"
    ),
    _guard(
        "dangerous-commands",
        "block shell commands that delete or overwrite too much",
        (Place(HookEventName.BeforeTool, _SHELLS),),
    ),
    _guard(
        "protected-files",
        "block access to .env files and keys, and changes to .git and .hookline",
    ),
    _guard(
        "chained-pair",
        "resolve every path, then keep tools inside the project (two hooks)",
        own_scripts=("normalize_paths.py", "confine_paths.py"),
        sequential=True,
    ),
    _guard("read-only", "allow the agent to read everything and to change nothing"),
    Recipe(
        "test-first",
        "block writing code that has no test yet",
        (Place(HookEventName.BeforeTool, f"{_WRITERS}|{_SHELLS}"),),
    ),
    _guard(
        "ci-safety-net", "in CI, block publishing, deploying and changing the pipeline"
    ),
    _guard(
        "policy-service",
        "ask a policy service before each tool call, with a time limit",
    ),
    Recipe(
        "git-checkpoint",
        "save a checkpoint in git before each tool that may change files",
    ),
    Recipe(
        "audit-log",
        "log every tool call, in a file that shows tampering",
        (_EVERY_TOOL, Place(HookEventName.AfterTool)),
    ),
    Recipe(
        "format-on-write",
        "format files after a tool has written them",
        (_WRITTEN,),
        sequential=True,
    ),
    Recipe(
        "tests-after-edit",
        "run the tests after an edit and show failures to the model",
        (_WRITTEN,),
        sequential=True,
    ),
    Recipe(
        "inject-context",
        "tell the model the branch, the changed files and your notes",
        (Place(HookEventName.BeforeAgent),),
    ),
    _guard(
        "redact-personal-data",
        "remove email addresses, phone, card and account numbers from model requests",
        (_REQUEST,),
    ),
    Recipe(
        "cost-budget",
        "stop the agent when the day's token budget is spent",
        (_REQUEST, _RESPONSE),
    ),
    Recipe(
        "response-cache",
        "answer repeated model requests from a cache (calls without tools)",
        (_REQUEST, _RESPONSE),
    ),
    Recipe(
        "model-blind-spots",
        "show what model hooks cannot see, and check the tools as well",
        (_REQUEST, _EVERY_TOOL, Place(HookEventName.AfterTool)),
    ),
    Recipe(
        "notify-webhook",
        "send notifications to a web address, with credentials masked",
        (Place(HookEventName.Notification),),
    ),
)
RECIPES = {recipe.name: recipe for recipe in _RECIPES}


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, or an error that suggests the nearest one."""
    if name not in RECIPES:
        raise UnknownRecipeError(name, RECIPES)
    return RECIPES[name]


def settings_for(recipes: list[Recipe]) -> dict[str, Any]:
    """Settings that register these recipes, each once, in the catalog's order."""
    order = [STARTER, *_RECIPES]
    hooks: dict[str, list[dict[str, Any]]] = {}
    for recipe in sorted(dict.fromkeys(recipes), key=order.index):
        for place in recipe.places:
            hooks.setdefault(place.event.value, []).append(recipe.group(place))
    return {"enableHooks": True, "hooks": hooks}
