"""The recipes there are, and what their settings look like.

In the order in which their hooks are to run where order counts: a file is formatted
before its tests run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from hookline.errors import HooklineError, nearest
from hookline.protocol.events import HookEventName

_HERE = Path(__file__).parent
_WRITERS = "write|replace|edit|create|patch|insert|append"
_SHELLS = "shell|bash|exec|terminal|command|process"


class UnknownRecipeError(HooklineError):
    """A name that is no recipe; the message offers the nearest one."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(name, known)

    def __str__(self) -> str:
        near = nearest(self.name, self.known)
        hint = f"did you mean {near!r}?" if near else "see 'hookline recipes'"
        return f"there is no recipe {self.name!r}: {hint}"


class Place(Struct, frozen=True):
    """Where a hook is registered."""

    event: HookEventName
    matcher: str | None = None


class Recipe(Struct, frozen=True, kw_only=True):
    """One recipe: its scripts and where they go."""

    name: str
    description: str
    places: tuple[Place, ...]
    scripts: tuple[str, ...]
    sequential: bool = False
    guards: bool = False
    """A guard that breaks must not let pass what it should have judged."""
    folder: Path = _HERE / "hooks"

    @property
    def event(self) -> HookEventName:
        """The event that it is about, where it needs several the deciding one."""
        return self.places[0].event

    @property
    def files(self) -> tuple[Path, ...]:
        """All its files: scripts and hooktest."""
        test = f"{self.scripts[0].removesuffix('.py')}.hooktest.toml"
        return tuple(self.folder / name for name in (*self.scripts, test))

    def group(self, place: Place) -> dict[str, Any]:
        """Its group in the settings, for one place."""
        group: dict[str, Any] = {}
        if place.matcher is not None:
            group["matcher"] = place.matcher
        if self.sequential:
            group["sequential"] = True
        return group | {"hooks": [self._hook(script) for script in self.scripts]}

    def _hook(self, script: str) -> dict[str, Any]:
        alone = len(self.scripts) == 1
        hook = {
            "type": "command",
            "name": self.name
            if alone
            else script.removesuffix(".py").replace("_", "-"),
            "description": self.description,
            "command": f'"$HOOKLINE_PYTHON" .hookline/hooks/{script}',
        }
        return hook | {"onError": "block"} if self.guards else hook


def _recipe(
    name: str, description: str, *places: Place, **more: Any
) -> tuple[str, Recipe]:
    scripts = more.pop("scripts", (f"{name.replace('-', '_')}.py",))
    recipe = Recipe(
        name=name, description=description, places=places, scripts=scripts, **more
    )
    return name, recipe


_E = HookEventName
STARTER = _recipe(
    "no-env-files",
    "keep secrets out of .env files",
    Place(_E.BeforeTool, "write_file|replace|edit"),
    guards=True,
    folder=_HERE / "starter",
)[1]
RECIPES: dict[str, Recipe] = dict(
    (
        _recipe(
            "secret-scan",
            "block keys, tokens and passwords in what tools write or run",
            Place(_E.BeforeTool),
            guards=True,
        ),
        _recipe(
            "dangerous-commands",
            "block shell commands that destroy more than anybody meant",
            Place(_E.BeforeTool, _SHELLS),
            guards=True,
        ),
        _recipe(
            "protected-files",
            "keep .env files and keys untouched, and .git and .hookline unchanged",
            Place(_E.BeforeTool),
            guards=True,
        ),
        _recipe(
            "chained-pair",
            "resolve every path, then keep tools inside the project (two hooks)",
            Place(_E.BeforeTool),
            scripts=("normalize_paths.py", "confine_paths.py"),
            sequential=True,
            guards=True,
        ),
        _recipe(
            "read-only",
            "let the agent look at everything and change nothing",
            Place(_E.BeforeTool),
            guards=True,
        ),
        _recipe(
            "test-first",
            "let no code be written before there is a test for it",
            Place(_E.BeforeTool, f"{_WRITERS}|{_SHELLS}"),
        ),
        _recipe(
            "ci-safety-net",
            "in CI, block publishing, deploying and changing the pipeline",
            Place(_E.BeforeTool),
            guards=True,
        ),
        _recipe(
            "policy-service",
            "ask a policy service before each tool, and wait only so long",
            Place(_E.BeforeTool),
            guards=True,
        ),
        _recipe(
            "git-checkpoint",
            "keep a checkpoint in git before each tool that may change files",
            Place(_E.BeforeTool),
        ),
        _recipe(
            "audit-log",
            "write down every tool call in a log that shows tampering",
            Place(_E.BeforeTool),
            Place(_E.AfterTool),
        ),
        _recipe(
            "format-on-write",
            "format files after a tool has written them",
            Place(_E.AfterTool, _WRITERS),
            sequential=True,
        ),
        _recipe(
            "tests-after-edit",
            "run the tests after an edit and show failures to the model",
            Place(_E.AfterTool, _WRITERS),
            sequential=True,
        ),
        _recipe(
            "inject-context",
            "tell the model the branch, the changed files and your notes",
            Place(_E.BeforeAgent),
        ),
        _recipe(
            "redact-personal-data",
            "take addresses, numbers and accounts out of what the model is sent",
            Place(_E.BeforeModel),
            guards=True,
        ),
        _recipe(
            "cost-budget",
            "stop the agent when the day's budget of tokens is spent",
            Place(_E.BeforeModel),
            Place(_E.AfterModel),
        ),
        _recipe(
            "response-cache",
            "answer the same model request from a cache (calls without tools)",
            Place(_E.BeforeModel),
            Place(_E.AfterModel),
        ),
        _recipe(
            "model-blind-spots",
            "show what model hooks cannot see, and watch the tools as well",
            Place(_E.BeforeModel),
            Place(_E.BeforeTool),
            Place(_E.AfterTool),
        ),
        _recipe(
            "notify-webhook",
            "send notifications to a web address, without credentials in them",
            Place(_E.Notification),
        ),
    )
)


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, or an error that offers the nearest one."""
    try:
        return RECIPES[name]
    except KeyError:
        raise UnknownRecipeError(name, tuple(RECIPES)) from None


def settings_for(recipes: list[Recipe]) -> dict[str, Any]:
    """Settings that register these recipes, each once, in the catalog's order."""
    order = [STARTER, *RECIPES.values()]
    hooks: dict[str, list[dict[str, Any]]] = {}
    for recipe in sorted(dict.fromkeys(recipes), key=order.index):
        for place in recipe.places:
            hooks.setdefault(place.event.value, []).append(recipe.group(place))
    return {"enableHooks": True, "hooks": hooks}
