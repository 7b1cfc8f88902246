"""Your own agent, any SDK or none: one decorator, and the tool obeys its hooks.

A plain function stays a plain function, also inside a running event loop.
"""

from shared import is_offline, load_config, report
from shared import write_file as plain_write_file

from hookline.agent import hooked_tool

write_file = hooked_tool(load_config())(plain_write_file)  # this is all


def main():
    is_offline()  # there is nothing to call: it is the same with and without
    print(write_file("db.txt", "password: hunter2"))
    print(write_file("db.txt", content="vault: db/main"))
    report("done")


main()
