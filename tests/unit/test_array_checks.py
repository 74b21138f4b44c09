"""What is said about arrays is checked at every call, whichever of the ways checks it."""

import importlib
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from tests.conftest import ROOT

check: Callable[[Any], Any] = jaxtyping.jaxtyped(typechecker=beartype)
"""As what pyproject.toml names is decorated."""

REFUSED = (BeartypeCallHintViolation, jaxtyping.TypeCheckError)

Vector = Float[np.ndarray, "letter"]
Rows = Float[np.ndarray, "*row letter"]
Pair = tuple[Float[np.ndarray, "letter"], Float[np.ndarray, "letter"]]


@check
def no_array(number: int) -> str:
    return "three" if number == 3 else number  # type: ignore[return-value]


@check
def one_array(vector: Vector) -> int:
    return len(vector)


@check
def two_arrays(first: Vector, second: Vector) -> int:
    return len(first) + len(second)


@check
def arrays_within(pairs: list[Pair]) -> int:
    return len(pairs)


@check
def several_in_a_list(vectors: list[Vector]) -> int:
    return len(vectors)


@check
def several_arguments(*vectors: Vector) -> int:
    return len(vectors)


@check
def longer(vector: Vector) -> Vector:
    return np.append(vector, 0.0)


@check
def rows_or_none(first: Rows, second: Rows | None) -> Rows:
    return first if second is None else first + second


@check
def so_many(number: int, vector: Float[np.ndarray, "{number}"]) -> int:
    return number + len(vector)


@check
def other_lengths_within(vector: Vector) -> Vector:
    one_array(np.zeros(len(vector) + 1))
    return vector


def test_what_is_as_said_passes() -> None:
    assert no_array(3) == "three"
    assert one_array(np.zeros(4)) == 4
    assert two_arrays(np.zeros(4), np.zeros(4)) == 8
    assert arrays_within([(np.zeros(4), np.zeros(4))]) == 1
    assert rows_or_none(np.zeros((2, 3, 4)), np.zeros((2, 3, 4))).shape == (2, 3, 4)
    assert rows_or_none(np.zeros(4), None).shape == (4,)
    assert so_many(4, np.zeros(4)) == 8


def test_each_call_names_its_own_axes() -> None:
    assert len(other_lengths_within(np.zeros(4))) == 4


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (no_array, ["three"]),
        (no_array, [4]),
        (one_array, [np.zeros((4, 4))]),
        (one_array, [np.zeros(4, dtype=int)]),
        (two_arrays, [np.zeros(4), np.zeros(5)]),
        (arrays_within, [[(np.zeros(4), np.zeros(5))]]),
        (longer, [np.zeros(4)]),
        (rows_or_none, [np.zeros((3, 4)), np.zeros((2, 4))]),
        (rows_or_none, [np.zeros((3, 4)), np.zeros((3, 5))]),
        (so_many, [4, np.zeros(5)]),
    ],
)
def test_what_is_not_is_refused(function: Callable[..., object], arguments: list[object]) -> None:
    with pytest.raises(REFUSED):
        function(*arguments)


def test_what_may_hold_several_arrays_is_left_to_jaxtyping() -> None:
    whole = np.zeros(3, dtype=int)
    with pytest.raises(jaxtyping.TypeCheckError):
        several_in_a_list([whole])
    with pytest.raises(jaxtyping.TypeCheckError):
        several_arguments(whole)
    with pytest.raises(jaxtyping.TypeCheckError):
        so_many(3, whole)
    with pytest.raises(BeartypeCallHintViolation):
        two_arrays(whole, whole)


def test_functions_of_the_program_are_checked() -> None:
    from seqcls.interpretability.network import gelu

    with pytest.raises(BeartypeCallHintViolation):
        gelu(np.zeros(3, dtype=int))


COMPILED = [
    ".".join(source.relative_to(ROOT).with_suffix("").parts)
    for source in sorted((ROOT / "seqcls" / "engines").rglob("*.py"))
    if "# mypy: allow-untyped-defs" in source.read_text()
]


@pytest.mark.parametrize("name", COMPILED)
def test_what_has_no_types_is_compiled_and_not_checked(name: str) -> None:
    module = importlib.import_module(name)
    own = [x for x in vars(module).values() if getattr(x, "__module__", None) == name]
    assert any(isinstance(x, Dispatcher | _Intrinsic) for x in own)
    assert all(x.__annotations__ for x in own if isfunction(x))
