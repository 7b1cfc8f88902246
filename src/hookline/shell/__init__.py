"""The one reader of command lines: words, expansions, the files that they name."""
