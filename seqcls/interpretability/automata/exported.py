"""Automata as graphs, as data, and as those of automata-lib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seqcls.tasks.automata.automaton import Automaton

if TYPE_CHECKING:
    from automata.fa.dfa import DFA


def dot(automaton: Automaton, alphabet: Sequence[str], color: str = "black") -> str:
    """A graph in the language DOT: accepting states have two rings, an arrow leads to the start.

    Edges between the same two states are one, with all their tokens.

    Args:
        automaton: its states are named by their numbers.
        alphabet: the tokens.
        color: of lines and text.
    """
    lines = [
        "digraph {",
        f'  graph [rankdir=LR, bgcolor="transparent"]; node [color="{color}", '
        f'fontcolor="{color}", shape=circle]; edge [color="{color}", fontcolor="{color}"];',
        '  start [shape=none, label=""];',
        f"  start -> {automaton.start};",
    ]
    lines += [f"  {state} [shape=doublecircle];" for state in automaton.accepting.nonzero()[0]]
    edges: dict[tuple[int, int], list[str]] = {}
    for state, row in enumerate(automaton.table.tolist()):
        for token, after in zip(alphabet, row, strict=True):
            edges.setdefault((state, after), []).append(token)
    for (state, after), tokens in edges.items():
        lines.append(f'  {state} -> {after} [label="{_quoted(", ".join(tokens))}"];')
    return "\n".join([*lines, "}"])


def record(automaton: Automaton, alphabet: Sequence[str]) -> dict[str, Any]:
    """An automaton as JSON has it."""
    return {
        "alphabet": list(alphabet),
        "start": automaton.start,
        "accepting": automaton.accepting.nonzero()[0].tolist(),
        "transitions": [dict(zip(alphabet, row, strict=True)) for row in automaton.table.tolist()],
    }


def dfa(automaton: Automaton, alphabet: Sequence[str]) -> "DFA":
    """The same as a `DFA` of automata-lib."""
    # Takes a third of a second to load.
    from automata.fa.dfa import DFA

    recorded = record(automaton, alphabet)
    return DFA(
        states=set(range(len(automaton.table))),
        input_symbols=set(alphabet),
        transitions=dict(enumerate(recorded["transitions"])),
        initial_state=automaton.start,
        final_states=set(recorded["accepting"]),
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
