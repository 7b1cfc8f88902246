from .tester import HookTester as HookTester
from .tester import assert_allowed as assert_allowed
from .tester import assert_blocked as assert_blocked
from .tester import assert_modified as assert_modified

__all__ = [
    "HookTester",
    "assert_allowed",
    "assert_blocked",
    "assert_modified",
]
