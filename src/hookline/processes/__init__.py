"""One child process: spawn, feed, limit, time out, kill, reap."""

import sys

if sys.platform == "win32":
    from hookline.errors import UnsupportedPlatformError

    raise UnsupportedPlatformError
