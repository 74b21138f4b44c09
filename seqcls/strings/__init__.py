"""Tokens: alphabets, notation, many strings as arrays."""
