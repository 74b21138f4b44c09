"""Counted modulo 5: places on a cycle, and expressions worked out from left to right."""

import re

MOVES = "+-="
OPERATORS = "+-*"
MODULUS = 5

_EXPRESSION = re.compile(r"[0-4](?:[-+*][0-4])*")


def place_after(moves: str) -> int:
    """Where moves lead from place 0 on a cycle: `+` one on, `-` one back, `=` nowhere."""
    return (moves.count("+") - moves.count("-")) % MODULUS


def expression_value(text: str) -> int | None:
    """What `2+3*2` is worth, worked out strictly from left to right; None of what is none."""
    if _EXPRESSION.fullmatch(text) is None:
        return None
    value = int(text[0])
    for operator, digit in zip(text[1::2], text[2::2], strict=True):
        if operator == "+":
            value += int(digit)
        elif operator == "-":
            value -= int(digit)
        else:
            # The only way to grow: kept small.
            value = value * int(digit) % MODULUS
    return value % MODULUS
