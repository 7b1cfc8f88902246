"""The recipes of ``catalog.toml``, and the settings that register them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import UnknownNameError
from hookline.protocol.events import HookEventName

_FOLDER = Path(__file__).parent


class UnknownRecipeError(UnknownNameError):
    """An unknown name of a recipe."""

    problem, hint = "unknown recipe", "see 'hookline recipes'"


class Place(Struct, frozen=True):
    """Where a hook is registered."""

    event: HookEventName
    matcher: str | None = None


class Recipe(Struct, frozen=True, eq=False):
    """One recipe: its scripts and where they are registered."""

    name: str
    description: str
    places: tuple[Place, ...] = (Place(HookEventName.BeforeTool),)
    sequential: bool = False
    guards: bool = False
    """A guard that fails, or answers with anything but JSON, must not let it pass."""
    records: bool = False
    """It only records or counts: asked twice about one event, it would do so twice."""
    when: str | None = None
    """Of a rule, which has no script: its expression."""
    then: dict[str, Any] | None = None
    folder: str = "hooks"
    test: str = ""
    """The name of its hooktest, where that is not its script's."""

    @property
    def event(self) -> HookEventName:
        """The event that it is about; where it has several, the one that decides."""
        return self.places[0].event

    @property
    def scripts(self) -> tuple[str, ...]:
        """The name of its script; a rule has none."""
        return () if self.when is not None else (f"{self._stem}.py",)

    @property
    def files(self) -> tuple[Path, ...]:
        """All its files: script and hooktest."""
        test = self.test or f"{self._stem}.hooktest.toml"
        return tuple(_FOLDER / self.folder / name for name in (*self.scripts, test))

    @property
    def _stem(self) -> str:
        return self.name.replace("-", "_")

    @property
    def hook_names(self) -> tuple[str, ...]:
        """The names of its hooks in the settings."""
        return tuple(hook["name"] for hook in self.group(self.places[0])["hooks"])

    def group(self, place: Place) -> dict[str, Any]:
        """Its group in the settings, for one place."""
        matcher = {} if place.matcher is None else {"matcher": place.matcher}
        sequential = {"sequential": True} if self.sequential else {}
        hooks = [self._hook(script) for script in self.scripts] or [self._rule()]
        return {**matcher, **sequential, "hooks": hooks}

    def _rule(self) -> dict[str, Any]:
        then = {} if self.then is None else {"then": self.then}
        rule = {"type": "rule", "name": self.name, "description": self.description}
        strict = {"onError": "block"} if self.guards else {}
        return {**rule, "when": self.when, **then, **strict}

    def _hook(self, script: str) -> dict[str, Any]:
        hook = {
            # Guards are asked at every step: they are kept running.
            "type": "worker" if self.guards else "command",
            "name": self.name,
            "description": self.description,
            "command": f'"$HOOKLINE_PYTHON" .hookline/hooks/{script}',
        }
        strict = {"expect": "json", "onError": "block"} if self.guards else {}
        once = {"recheck": False} if self.records else {}
        return {**hook, **strict, **once}


STARTER = Recipe(
    "no-env-files",
    "keep secrets out of .env files",
    (Place(HookEventName.BeforeTool, "(?i)write|replace|edit"),),
    guards=True,
    folder="starter",
)


STARTER_RULE = Recipe(
    "no-env-files",
    "keep secrets out of .env files",
    (Place(HookEventName.BeforeTool, "(?i)write|replace|edit"),),
    guards=True,
    when=("tool_input.file_path.glob('**/.env') || tool_input.path.glob('**/.env')"),
    then={
        "decision": "deny",
        "reason": "keep secrets out of ${has(tool_input.file_path) ? "
        "tool_input.file_path : tool_input.path}",
    },
    folder="starter",
    test="no_env_rule.hooktest.toml",
)


def _read_catalog() -> list[Recipe]:
    catalog = (_FOLDER / "catalog.toml").read_bytes()
    return msgspec.toml.decode(catalog, type=dict[str, list[Recipe]])["recipes"]


_RECIPES = _read_catalog()
RECIPES = {recipe.name: recipe for recipe in _RECIPES}


def find_recipe(name: str) -> Recipe:
    """The recipe of a name, or an error that suggests the nearest one."""
    if name not in RECIPES:
        raise UnknownRecipeError(name, RECIPES)
    return RECIPES[name]


def settings_for(recipes: list[Recipe]) -> dict[str, Any]:
    """Settings that register these recipes, each once, in the catalog's order."""
    order = [STARTER, STARTER_RULE, *_RECIPES]
    hooks: dict[str, list[dict[str, Any]]] = {}
    for recipe in sorted(dict.fromkeys(recipes), key=order.index):
        for place in recipe.places:
            hooks.setdefault(place.event.value, []).append(recipe.group(place))
    return {"enableHooks": True, "hooks": hooks}
