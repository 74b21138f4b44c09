"""The finite automaton that a model's answers are those of, as far as it was asked."""
