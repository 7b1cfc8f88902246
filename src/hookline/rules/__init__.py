"""Expressions of rules and conditions, in the Common Expression Language (CEL)."""
