"""What happened, kept in SQLite."""
