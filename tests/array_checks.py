"""Types and shapes, checked at every call of a function while tests run.

To compare the shapes of a call's arrays, jaxtyping binds all arguments and checks them twice. A
function whose types name no axis twice has nothing to compare: beartype alone checks all that they
say, in a fraction of the time.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isfunction
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray

_comparing = jaxtyping.jaxtyped
_ALONE = _comparing("context")
"""In which axes are none of those that the caller names."""


def _arrays_in(hint: Any) -> Iterator[type[AbstractArray]]:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        yield hint
    for part in hint if isinstance(hint, list) else get_args(hint):
        yield from _arrays_in(part)


def _axes(function: Any) -> Counter[str]:
    """How often a function's types name each axis, or what is said in place of a name."""
    hints = get_type_hints(function, include_extras=True).values()
    arrays = (array for hint in hints for array in _arrays_in(hint))
    return Counter(axis for array in arrays for axis in array.dim_str.split())


def _checked(decorated: Any, **options: Any) -> Any:
    if not isfunction(decorated):
        return _comparing(decorated, **options)
    try:
        axes = _axes(decorated)
    except NameError:  # a name that only a type checker imports
        return _comparing(decorated, **options)
    if any(number > 1 or not axis.isidentifier() for axis, number in axes.items()):
        return _comparing(decorated, **options)
    checked = beartype(decorated)
    if not axes:
        return checked

    @wraps(checked)
    def alone(*args: Any, **kwargs: Any) -> Any:
        with _ALONE:
            return checked(*args, **kwargs)

    return alone


def _jaxtyped(**options: Any) -> Callable[[Any], Any]:
    """In the place of the decorator that jaxtyping gives to what pyproject.toml names."""
    return lambda decorated: _checked(decorated, **options)


jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment] # which takes a function too
