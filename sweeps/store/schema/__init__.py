"""The tables, their columns, and what values these may hold."""
