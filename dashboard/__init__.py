"""The screen: pages that read the database and never write to it."""
