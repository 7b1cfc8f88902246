"""Refuses to write .env files, for every agent of the fleet."""

from hookline.script import block, run


def no_env_files(event):
    if str(event["tool_input"].get("path", "")).endswith(".env"):
        return block("keep secrets out of .env files")
    return None


run(no_env_files)
