"""Benchmarks; each runs on its own, all of them with ``python -m benches``."""
