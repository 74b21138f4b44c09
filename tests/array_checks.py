"""Types and shapes, checked at every call of a function while tests run.

To tell well what is wrong, jaxtyping binds a call's arguments by name and checks them twice: before
the call, and again with what it returned. beartype within a scope of jaxtyping's compares the same
axes, of each array once. What that would see less of is left to jaxtyping: containers, of which
each check looks at one element, and axes that are computed from arguments.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import CO_VARARGS, CO_VARKEYWORDS, isfunction
from random import Random
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype._check.code import codemain
from jaxtyping import AbstractArray

# One element of a container is checked, chosen by a generator that no test knows of: Hypothesis
# asks that nothing which it draws takes numbers from the one that all share.
codemain.getrandbits = Random(0).getrandbits  # type: ignore[attr-defined] # private

_typed = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""A whole number may stand for a fraction, as for every type checker."""

_thoroughly = jaxtyping.jaxtyped
_SCOPE = _thoroughly("context")
"""In which an axis has one length, and none of those that the caller names."""


def _arrays_in(hint: Any) -> Iterator[tuple[str, bool]]:
    """The axes of each array that a type names, and whether it is one of a container's."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        yield hint.dim_str, False
        return
    alternatives = get_origin(hint) in (Union, UnionType)
    for part in hint if isinstance(hint, list) else get_args(hint):
        for axes, within in _arrays_in(part):
            yield axes, within or not alternatives


def _checked(decorated: Any, **options: Any) -> Any:
    if not isfunction(decorated):
        return _thoroughly(decorated, **options)
    try:
        hints = list(get_type_hints(decorated, include_extras=True).values())
    except NameError:  # a name that only a type checker imports
        return _thoroughly(decorated, **options)
    if all(hint in (Any, NoneType) for hint in hints):
        # Nothing is to be checked: so are those that Numba compiles, which takes no others.
        return decorated
    arrays = [array for hint in hints for array in _arrays_in(hint)]
    if not arrays:
        # With no choice at each call: recursive functions would take twice as much of the stack.
        return _typed(decorated)
    any_number = decorated.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    if any_number or any(within or "{" in axes for axes, within in arrays):
        return _thoroughly(decorated, **options)
    checked = _typed(decorated)

    @wraps(checked)
    def in_one_scope(*args: Any, **kwargs: Any) -> Any:
        with _SCOPE:
            return checked(*args, **kwargs)

    return _unless_disabled(decorated, in_one_scope)


def _unless_disabled(plain: Any, checked: Any) -> Any:
    @wraps(checked)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        called = plain if jaxtyping.config.jaxtyping_disable else checked
        return called(*args, **kwargs)

    return chosen


def _jaxtyped(**options: Any) -> Callable[[Any], Any]:
    """In the place of the decorator that jaxtyping gives to what pyproject.toml names."""
    return lambda decorated: _checked(decorated, **{**options, "typechecker": _typed})


jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment] # which takes a function too
