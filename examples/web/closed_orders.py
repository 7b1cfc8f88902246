"""A hook in a process of its own, which is kept running."""

from hookline.script import block, run


def closed_orders(event):
    order = event["tool_input"]["order"]
    if order.startswith("X-"):
        return block(f"{order} is closed")
    return None


run(closed_orders)
