"""Reads: what pages, commands and notebooks ask the database, a file a subject."""
