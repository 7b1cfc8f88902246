"""What happened, in SQLite: record it, look it up, fire it again.

Loaded only where there is a journal: SQLite takes long to import.
"""
