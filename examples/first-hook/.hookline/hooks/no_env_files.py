from hookline.script import block, run


def no_env_files(event):
    if event["tool_input"].get("path", "").endswith(".env"):
        return block("keep secrets out of .env files")


run(no_env_files)
