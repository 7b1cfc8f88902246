"""BeforeTool: nothing that looks like a password goes into a file."""

from hookline.script import block, run


def secrets(event):
    if "password" in event["tool_input"].get("content", "").lower():
        return block("keep passwords out of files: name the vault entry instead")
    return None


run(secrets)
