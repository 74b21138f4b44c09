"""The database: its tables, how it is opened, every write and every read."""
