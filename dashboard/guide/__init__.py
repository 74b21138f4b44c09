"""The guide: how a small Transformer fails, by the report's argument and a database's models."""
