"""One child process: spawn, feed, limit, time out, kill, reap."""
