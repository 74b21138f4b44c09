"""How numbers and labels are written in sentences."""

EMPTY = "ε"
"""The empty string, where one is shown."""


def number(x: float) -> str:
    """Three digits, or whole where they are more."""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.3g}"


def sign(positive: bool) -> str:
    """What a label or an answer is called."""
    return "positive" if positive else "negative"
