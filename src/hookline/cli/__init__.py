"""The command line: one file per command."""

import sys

if sys.platform == "win32":
    from hookline.errors import UnsupportedPlatformError

    raise UnsupportedPlatformError
