"""Types and shapes, checked at every call of a function while tests run.

To compare the shapes of a call's arrays, jaxtyping binds all arguments and checks them twice. Where
no two arrays can have an axis of the same name there is nothing to compare: beartype alone checks
all that the types say, in a fraction of the time.
"""

from collections.abc import Callable
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, isfunction
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray

_comparing = jaxtyping.jaxtyped
_ALONE = _comparing("context")
"""In which axes are none of those that the caller names."""


def _axes_in(hint: Any) -> list[str]:
    """The axes that a type names, or what is said in place of a name.

    Those of a container's arrays come twice: it may hold several.
    """
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return hint.dim_str.split()
    parts = hint if isinstance(hint, list) else get_args(hint)
    axes = [axis for part in parts for axis in _axes_in(part)]
    return axes if get_origin(hint) in (Union, UnionType) else axes * 2


def _axes_of(function: Any) -> list[str]:
    hints = get_type_hints(function, include_extras=True).values()
    axes = [axis for hint in hints for axis in _axes_in(hint)]
    takes_any_number = function.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    return axes * 2 if takes_any_number else axes


def _checked(decorated: Any, **options: Any) -> Any:
    if not isfunction(decorated):
        return _comparing(decorated, **options)
    try:
        axes = _axes_of(decorated)
    except NameError:  # a name that only a type checker imports
        return _comparing(decorated, **options)
    if len(set(axes)) < len(axes) or not all(axis.isidentifier() for axis in axes):
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
