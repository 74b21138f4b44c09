"""Subregular classes: which of them hold a regular language, decided from its minimal automaton.

Each class has what it looks at: factors (strings of neighboring letters) up to some width k, or
subsequences, their order, and how often they occur. Two strings that look the same to it are both
in a language of the class, or neither is. Whether there is such a width at all is decided by the
syntactic semigroup or by pairs of states; the least one, by the graph of all factors of that
width. A factor may begin or end with the string: `⋊` and `⋉` count as letters of it.
"""
