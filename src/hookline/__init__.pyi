from . import adapters as adapters
from . import agent as agent
from . import bus as bus
from . import errors as errors
from . import script as script
from . import testing as testing
from . import translators as translators
from . import types as types
from ._internal.log import DebugLogger as DebugLogger
from .bus.client import HookBusClient as HookBusClient
from .bus.memory import InMemoryMessageBus as InMemoryMessageBus
from .bus.remote import RemoteHooks as RemoteHooks
from .config import Config as Config
from .engine.system import HookSystem as HookSystem
from .errors import HooklineError as HooklineError
from .errors import (
    HookRegistryNotInitializedError as HookRegistryNotInitializedError,
)
from .errors import (
    HookSystemNotInitializedError as HookSystemNotInitializedError,
)
from .errors import SettingsError as SettingsError
from .protocol.events import HookEventName as HookEventName
from .protocol.events import NotificationType as NotificationType
from .protocol.events import PreCompressTrigger as PreCompressTrigger
from .protocol.events import SessionEndReason as SessionEndReason
from .protocol.events import SessionStartSource as SessionStartSource
from .protocol.results import ProcessedHookResult as ProcessedHookResult
from .settings.load import Settings as Settings

__version__: str

__all__ = [
    "Config",
    "DebugLogger",
    "HookBusClient",
    "HookEventName",
    "HookRegistryNotInitializedError",
    "HookSystem",
    "HookSystemNotInitializedError",
    "HooklineError",
    "InMemoryMessageBus",
    "NotificationType",
    "PreCompressTrigger",
    "ProcessedHookResult",
    "RemoteHooks",
    "SessionEndReason",
    "SessionStartSource",
    "Settings",
    "SettingsError",
]
