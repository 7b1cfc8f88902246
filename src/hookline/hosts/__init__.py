"""Other people's coding agents: migration of their hooks."""

import sys

if sys.platform == "win32":
    from hookline.errors import UnsupportedPlatformError

    raise UnsupportedPlatformError
