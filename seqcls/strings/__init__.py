"""Strings of tokens: their alphabets, their notation, many at once as arrays, and sets of them."""
