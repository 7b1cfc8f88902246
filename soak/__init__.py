"""Fire hooks that misbehave, for as long as you like, and count what goes wrong."""
