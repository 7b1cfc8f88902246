"""Other people's coding agents: migration of their hooks."""
