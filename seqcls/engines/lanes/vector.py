# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""A vector of one number in each lane, as a Numba type: a register, and its operations.

Numba turns plain loops into vector code only where its compiler can; with this type it always does.
All operations work on each lane by itself, in the same order for every lane, so that the numbers of
a string do not depend on the other strings.

Arrays of vectors are one-dimensional, contiguous arrays of float32; an index counts vectors.
"""

import operator
import platform
from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import extending, njit, types
from numba.core import config
from numba.core.codegen import get_host_cpu_features
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import models, register_model

from seqcls.engines.compiled.compiling import INLINED

# The target machine: lanes of a vector, and registers.
#
# As in Numba, the target is `NUMBA_CPU_FEATURES`, or else this machine.


@lru_cache(maxsize=1)
def lanes() -> int:
    """Returns the floats in a register: 16 with AVX-512, 8 with AVX, 4 with SSE and NEON."""
    features = _features()
    if "+avx512f" in features:
        return 16
    return 8 if "+avx" in features else 4


def block_rows() -> int:
    """Returns the number of rows of a block of 4 columns whose sums stay in registers: 32 registers
    hold 16 sums and their factors, 16 registers hold 8.
    """
    return 4 if lanes() == 16 or platform.machine() in ("aarch64", "arm64") else 2


def _features() -> frozenset[str]:
    given: str | None = vars(config)["CPU_FEATURES"]
    return frozenset((get_host_cpu_features() if given is None else given).split(","))


LANES = lanes()
NUMBER = ir.FloatType()
VECTOR = ir.VectorType(NUMBER, LANES)
WHOLE = ir.VectorType(ir.IntType(32), LANES)

ZERO, HALF, ONE = map(np.float32, (0, 0.5, 1))

MAY = ("contract", "nsz", "arcp")
"""The freedom of the compiler with sums and products. It may not regroup them, or a string's
padding would change its last bit."""


intrinsic: Any = extending.intrinsic
"""Defines a function of compiled code by a function of its argument types, which returns the
signature and a function that writes its instructions."""


class Vector(types.Type):
    """Numba's type of a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector({LANES})")


vector = Vector()
number = types.float32


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Writes the address of a number in an array."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def vector_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Writes the address of a vector in an array."""
    first = builder.mul(index, ir.Constant(index.type, LANES))
    place = pointer(context, builder, array_type, array, first)
    return builder.bitcast(place, VECTOR.as_pointer())


def in_all_lanes(builder: Any, value: Any) -> Any:
    """Writes a vector with a number in every lane."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(WHOLE, [0] * LANES))


def multiply_add(builder: Any, one: Any, other: Any, more: Any) -> Any:
    """Writes `one * other + more`, rounded once where the machine can."""
    return call(builder, "llvm.fmuladd", VECTOR, [one, other, more])


def call(builder: Any, name: str, result: Any, arguments: Sequence[Any], **flags: Any) -> Any:
    """Writes a call of one of LLVM's vector functions; the methods of `builder` refuse vectors."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    name = f"{name}.v{LANES}f32"
    known = builder.module.globals
    function = known[name] if name in known else ir.Function(builder.module, kind, name)
    return builder.call(function, arguments, **flags)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """Reads the vector at an index."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = vector_pointer(context, builder, sig.args[0], *args)
        # Arrays from NumPy may begin at any number, so vectors are not aligned.
        return builder.load(place, align=4)

    return vector(array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Writes a vector at an index."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = vector_pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), code


@intrinsic
def spread_at(typing: Any, array: Any, index: Any) -> Any:
    """The number at an index of an array of numbers, in every lane."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return in_all_lanes(builder, builder.load(pointer(context, builder, sig.args[0], *args)))

    return vector(array, types.int64), code


def _function(
    meaning: str, result: Any, arguments: Sequence[Any], write: Callable[..., Any]
) -> Any:
    """Defines a function of vectors and numbers, whose instructions `write` writes."""

    def function(typing: Any, *given: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return write(builder, *args)

        return result(*arguments), code

    # Numba looks at the parameters, whose number is not that of `function`.
    names = [Parameter(f"x{n}", Parameter.POSITIONAL_OR_KEYWORD) for n in range(len(arguments) + 1)]
    vars(function).update(__doc__=meaning, __signature__=Signature(names))
    return intrinsic(function)


def _sum(builder: Any, value: Any) -> Any:
    arguments = [ir.Constant(NUMBER, 0.0), value]
    return call(builder, "llvm.vector.reduce.fadd", NUMBER, arguments, fastmath=("reassoc",))


def _subtract_product(builder: Any, one: Any, other: Any, more: Any) -> Any:
    return multiply_add(builder, builder.fneg(one), other, more)


def _raise_two(builder: Any, exponent: Any) -> Any:
    raised = builder.add(builder.fptosi(exponent, WHOLE), ir.Constant(WHOLE, [127] * LANES))
    return builder.bitcast(builder.shl(raised, ir.Constant(WHOLE, [23] * LANES)), VECTOR)


def _select(comparison: str) -> Callable[..., Any]:
    def write(builder: Any, one: Any, other: Any, *chosen: Any) -> Any:
        return builder.select(
            builder.fcmp_ordered(comparison, one, other), *(chosen or (one, other))
        )

    return write


def _of_one(name: str, meaning: str) -> Any:
    return _function(meaning, vector, [vector], lambda builder, x: call(builder, name, VECTOR, [x]))


spread = _function("Returns a number in every lane.", vector, [number], in_all_lanes)
fma = _function("Computes `one * other + more`.", vector, [vector] * 3, multiply_add)
fnma = _function("Computes `more - one * other`.", vector, [vector] * 3, _subtract_product)
total = _function("Computes the sum over the lanes.", number, [vector], _sum)
larger = _function(
    "Returns the larger of both in each lane; the second if one is NaN.",
    vector, [vector] * 2, _select(">"),
)  # fmt: skip
if_less = _function(
    "Returns in each lane the third if the first is less than the second, else the fourth.",
    vector, [vector] * 4, _select("<"),
)  # fmt: skip
power_of_two = _function(
    "Computes 2 to integer powers from -127, for which it is 0, to 127.",
    vector, [vector], _raise_two,
)  # fmt: skip
root = _of_one("llvm.sqrt", "Computes the square root.")
rounded = _of_one("llvm.rint", "Computes the nearest integer.")
absolute = _of_one("llvm.fabs", "Computes the absolute value.")


def _define(operation: Callable[..., Any], name: str) -> None:
    """Defines an operator on two vectors, or on a vector and a number."""
    pairs = ((vector, vector), (vector, number), (number, vector))

    class Typing(ConcreteTemplate):
        cases: ClassVar = [signature(vector, *pair) for pair in pairs]

    infer_global(operation)(Typing)
    for pair in pairs:

        @lower_builtin(operation, *pair)
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            both = [
                value if kind is vector else in_all_lanes(builder, value)
                for kind, value in zip(sig.args, args, strict=True)
            ]
            return getattr(builder, name)(*both, flags=MAY)


_define(operator.add, "fadd")
_define(operator.sub, "fsub")
_define(operator.mul, "fmul")
_define(operator.truediv, "fdiv")


# Compilation, as in `seqcls.engines.compiled.compiling`, but without inlining each function: all of
# them in one would compile for minutes. Sums are not regrouped (`MAY`).

_OPTIONS: dict[str, Any] = {**INLINED, "fastmath": {"contract", "nsz", "arcp"}}

kernel = njit(**{**_OPTIONS, "forceinline": False})
inlined = njit(**_OPTIONS)
