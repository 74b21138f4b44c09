"""Finite automata, and regular expressions as such."""
