"""How numbers and labels are written in sentences."""


def number(x: float) -> str:
    """Three digits, or whole where they are more."""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.3g}"


def sign(positive: bool) -> str:
    """What a label or an answer is called."""
    return "positive" if positive else "negative"
