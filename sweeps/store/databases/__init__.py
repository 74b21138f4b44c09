"""SQLite and PostgreSQL: open databases, transactions, many rows at once."""
