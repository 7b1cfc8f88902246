"""Ready-made hooks, and what they share: reading tool inputs and shell lines."""
