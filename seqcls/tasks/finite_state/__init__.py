"""Languages that a finite automaton recognizes, and in which the order of tokens decides."""
