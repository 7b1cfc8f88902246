"""Import a trusted module from the very bytes that were trusted.

Python prefers a cached ``.pyc`` beside a module as long as the times in it look right,
and whoever can write there can make them look right. So the source is read, compared
with its pin, compiled and run here, for the module and for the packages around it.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType

from hookline.settings.schema import Seal


def import_sealed(name: str, seal: Seal) -> ModuleType:
    """Import a module and the packages around it; raises ``ImportError``."""
    parent: ModuleType | None = None
    at = ""
    for step in name.split("."):
        at = f"{at}.{step}" if at else step
        parent = sys.modules.get(at) or _load(at, step, parent, seal)
    assert parent is not None  # a name has at least one step
    return parent


def _load(name: str, step: str, parent: ModuleType | None, seal: Seal) -> ModuleType:
    spec = _spec(name, parent)
    module = module_from_spec(spec)
    source = _trusted_source(spec, seal)
    sys.modules[name] = module
    try:
        if source is not None and spec.origin and not spec.origin.endswith(".py"):
            assert spec.loader is not None  # it has a file
            spec.loader.exec_module(module)
        elif source is not None:
            code = compile(source, spec.origin or name, "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102 - what an import does
    except BaseException:
        del sys.modules[name]
        raise
    if parent is not None:
        setattr(parent, step, module)
    return module


def _spec(name: str, parent: ModuleType | None) -> ModuleSpec:
    if parent is None:
        spec = find_spec(name)
    else:
        spec = PathFinder.find_spec(name, getattr(parent, "__path__", None))
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec


def _trusted_source(spec: ModuleSpec, seal: Seal) -> bytes | None:
    if spec.origin is None or not spec.has_location:
        return None  # a package without a file of its own
    with open(spec.origin, "rb") as file:  # noqa: PTH123
        source = file.read()
    if hashlib.sha256(source).hexdigest() != seal.digest_of(spec.origin):
        raise ImportError(
            f"{spec.origin} is not what was trusted: run 'hookline trust'"
        )
    return source
