"""A stack of bits."""

import re

PUSH, POP = 2, 3
"""The letters `+` and `-`, after those of the two bits."""

_SHAPE = re.compile(r"([01]*)((?:-|\+[01])*)")


def stack_after(text: str) -> str | None:
    """The stack that is left, from its top; None where the text is no such stack.

    Args:
        text: a stack of bits, bottom first; then pushes (`+0`, `+1`) and pops (`-`), of which none
            may find it empty.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return None
    stack = list(shape[1])
    # A pushed bit stands for its push: only pops are written otherwise.
    for operation in shape[2].replace("+", ""):
        if operation != "-":
            stack.append(operation)
        elif stack:
            stack.pop()
        else:
            return None
    return "".join(reversed(stack))
