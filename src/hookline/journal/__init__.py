"""What happened, in SQLite: record it, look it up, fire it again."""
