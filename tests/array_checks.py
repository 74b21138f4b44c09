"""Shapes and types of arrays, checked as functions are called while tests run.

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

FIRST, EVERY = 10, 97
"""So many calls of each function are checked at first in each test, and one of so many later:
small ones are called a million times, and to check takes longer than what they do."""

_tests = 0
"""How many tests have begun."""


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
        # Its types are mypy's: no shape is to be checked, and such calls take half of a unit test.
        return decorated
    any_number = decorated.__code__.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    if any_number or any(within or "{" in axes for axes, within in arrays):
        return _in_part(decorated, _thoroughly(decorated, **options))
    checked = _typed(decorated)

    @wraps(checked)
    def in_one_scope(*args: Any, **kwargs: Any) -> Any:
        with _SCOPE:
            return checked(*args, **kwargs)

    return _in_part(decorated, in_one_scope)


def _in_part(plain: Any, checked: Any) -> Any:
    """A function that is checked at its first calls of each test, and seldom at later ones."""
    test = calls = 0

    @wraps(checked)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        nonlocal test, calls
        if test != _tests:
            test, calls = _tests, 0
        calls += 1
        seldom = calls > FIRST and calls % EVERY
        called = plain if seldom or jaxtyping.config.jaxtyping_disable else checked
        return called(*args, **kwargs)

    return chosen


def begin_test(*, checked: bool) -> None:
    """Check calls from here on, or none."""
    global _tests
    _tests += 1
    jaxtyping.config.update("jaxtyping_disable", not checked)


def _jaxtyped(**options: Any) -> Callable[[Any], Any]:
    """In the place of the decorator that jaxtyping gives to what pyproject.toml names."""
    return lambda decorated: _checked(decorated, **{**options, "typechecker": _typed})


jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment] # which takes a function too
