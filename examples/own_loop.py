"""Your own agent, with any SDK or none: one decorator adds hooks to a tool.

A plain function stays a plain function, also inside a running event loop.
"""

from shared import is_offline, load_config, report
from shared import write_file as plain_write_file

from hookline.agent import hooked_tool

write_file = hooked_tool(load_config())(plain_write_file)  # the only change


def main():
    is_offline()  # accepts --offline like the others; there is no model to call
    print(write_file("db.txt", "password: hunter2"))
    print(write_file("db.txt", content="vault: db/main"))
    report("done")


main()
