"""Tasks whose answer is a string: copy, reverse, sort, add."""
