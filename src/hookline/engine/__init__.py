"""The way of one event, from the registry of hooks to the merged answer."""
