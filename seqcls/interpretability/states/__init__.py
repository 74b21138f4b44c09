"""The states that strings pass through."""
