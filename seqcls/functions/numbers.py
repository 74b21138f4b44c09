"""Numbers as digits, and texts of numbers with marks between: `01+1=11`."""


def between(text: str, marks: str, digits: str) -> list[str] | None:
    """The numbers before, between and after the marks; None where the text is not of that form.

    Args:
        text: any.
        marks: one character each, in the order in which they have to stand.
        digits: what a number may hold; it holds one at least.
    """
    parts = []
    for mark in marks:
        part, at_mark, text = text.partition(mark)
        if not at_mark:
            return None
        parts.append(part)
    parts.append(text)
    if not all(parts) or any(part.strip(digits) for part in parts):
        return None
    return parts


def value(number: str, base: int, *, least_first: bool) -> int:
    """What a number in that base is worth."""
    return int(number[::-1] if least_first else number, base)


def written(number: int, base: int, *, least_first: bool) -> str:
    """A number in base 2 or 10, without zeros that change nothing."""
    digits = f"{number:b}" if base == 2 else str(number)
    return digits[::-1] if least_first else digits


def num_carries(x: int, y: int, base: int) -> int:
    """How often a sum carries: each carry takes `base` from the digits' sum and adds 1 to it."""
    x_digits, y_digits, sum_digits = (
        sum(map(int, written(number, base, least_first=False))) for number in (x, y, x + y)
    )
    return (x_digits + y_digits - sum_digits) // (base - 1)
