"""One file for each coding agent: its events, tools and limits, and how it answers."""
