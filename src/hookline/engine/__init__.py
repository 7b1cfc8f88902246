"""The way of one event, from the registry of hooks to the merged answer."""

import sys

if sys.platform == "win32":
    from hookline.errors import UnsupportedPlatformError

    raise UnsupportedPlatformError
