"""Affine forms: sets of vectors that are carried through a network, rounded outward.

A form is the set of all c + sum_k e_k g_k + r with e_k in [-1, 1] and |r_i| <= rest_i: a center,
common generators, and a rest that each unit has for itself. A linear function makes a form of a
form; any other is replaced by a linear one, and the difference goes into the rest (Singh et al.
2018, DeepZ).

Why a form contains what the program computes in float32, by whichever engine:

- A sum of n products, in any order, with or without fused multiply-add, differs from the exact one
  by at most n u / (1 - n u) times the sum of the products' sizes, u = 2^-24, since each product
  goes through at most n roundings (Higham 2002, section 4.2). `linear` adds that, for `SPARE`
  roundings more than there are terms.
- Functions of the library differ from the exact ones by at most `OF_FUNCTIONS`: sixteen units in
  the last place of a number near 1.
- What is flushed to zero is below `LEAST`, and so is what a weight or a number read is taken to be
  off by where it is.
- Nothing overflows: the sizes of all terms of a sum, and a product, stay below `LARGEST` for all of
  a form, or it has no bounds (`MayOverflowError`). What is at most half of what float32 holds stays
  so in any order, however it is rounded.
- The forms' own arithmetic is float64: its errors are 2^-53 of the same numbers for each of at most
  10^5 operations, less than a hundredth of what is added for float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float64

UNIT = 2.0**-24
"""The unit roundoff of float32."""

SPARE = 12
"""Roundings of a sum that are allowed for beside one for each of its terms."""

OF_FUNCTIONS = 1.0625 * 2.0**-20
"""What tanh and the logistic function of the library may differ by from the exact ones."""

WIDE = 1.0
"""How far from its center a factor may be whose product is linear in it."""

LEAST = 2.0**-100
"""More than what numbers that are flushed to zero come to in a sum."""

LARGEST = 2.0**127
"""Half of what float32 holds; models in double precision are held to it too."""


class MayOverflowError(Exception):
    """A sum or a product of some set of numbers may be too large for float32."""

    def __init__(self) -> None:
        super().__init__(
            f"a sum or a product in the network may be larger than {LARGEST:.1e}, and so overflow "
            "in float32"
        )


@dataclass(frozen=True, eq=False)
class Forms:
    """Affine forms of vectors, one a row."""

    center: Float64[np.ndarray, "row unit"]
    generators: Float64[np.ndarray, "row generator unit"]
    rest: Float64[np.ndarray, "row unit"]

    @classmethod
    def boxes(
        cls, low: Float64[np.ndarray, "row unit"], high: Float64[np.ndarray, "row unit"]
    ) -> Self:
        """The forms of boxes."""
        center = (low + high) / 2
        return cls(
            center, np.zeros((len(low), 0, low.shape[1])), np.maximum(high - center, center - low)
        )

    @property
    def radius(self) -> Float64[np.ndarray, "row unit"]:
        """How far a unit may be from its center."""
        return np.asarray(np.abs(self.generators).sum(axis=1) + self.rest)

    @property
    def size(self) -> Float64[np.ndarray, "row unit"]:
        """The greatest absolute value of each unit."""
        return np.asarray(np.abs(self.center) + self.radius)

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The box around each form: least and greatest values."""
        radius = self.radius
        return self.center - radius, self.center + radius

    def rows(self, chosen: np.ndarray | slice) -> Self:
        """Some of the rows."""
        return type(self)(self.center[chosen], self.generators[chosen], self.rest[chosen])

    def units(self, chosen: slice) -> Self:
        """Some of the units."""
        return type(self)(
            self.center[:, chosen], self.generators[:, :, chosen], self.rest[:, chosen]
        )

    def shared(self) -> Self:
        """The same sets; each unit's rest is a generator, so that later units may share it."""
        units = self.rest.shape[1]
        own = np.zeros((len(self.rest), units, units))
        own[:, range(units), range(units)] = self.rest
        generators = np.concatenate([self.generators, own], axis=1)
        return type(self)(self.center, generators, np.zeros_like(self.rest))


def align(*parts: Forms) -> tuple[Forms, ...]:
    """Forms that have the first generators in common, with as many: further ones of 0."""
    most = max(x.generators.shape[1] for x in parts)
    return tuple(
        Forms(
            x.center,
            np.pad(x.generators, ((0, 0), (0, most - x.generators.shape[1]), (0, 0))),
            x.rest,
        )
        for x in parts
    )


def beside(*parts: Forms) -> Forms:
    """The units of forms of the same first generators beside one another."""
    parts = align(*parts)
    return Forms(
        np.concatenate([x.center for x in parts], axis=1),
        np.concatenate([x.generators for x in parts], axis=2),
        np.concatenate([x.rest for x in parts], axis=1),
    )


def concatenate(parts: Sequence[Forms]) -> Forms:
    """The rows of forms with as many generators, below one another."""
    return Forms(
        np.concatenate([x.center for x in parts]),
        np.concatenate([x.generators for x in parts]),
        np.concatenate([x.rest for x in parts]),
    )


def linear(
    forms: Forms,
    weight: Float64[np.ndarray, "output unit"],
    *biases: Float64[np.ndarray, " output"],
) -> Forms:
    """W x and all biases, each a term of the sum, and the rounding of such a sum in float32."""
    terms = weight.shape[1] + len(biases) + SPARE
    rounding = terms * UNIT / (1 - terms * UNIT)
    size = np.abs(weight)
    summed = limit(forms.size @ size.T + sum(map(np.abs, biases)))
    flushed = LEAST * (1 + forms.size.sum(axis=1, keepdims=True) + size.sum(axis=1))
    rest = forms.rest @ size.T + rounding * summed + flushed
    rows, count, units = forms.generators.shape
    # One product of matrices, not one for each row.
    generators = forms.generators.reshape(rows * count, units) @ weight.T
    return Forms(
        forms.center @ weight.T + sum(biases), generators.reshape(rows, count, len(weight)), rest
    )


def limit(size: np.ndarray) -> np.ndarray:
    """Sizes of sums of absolute values, or of products, none of which overflows.

    Raises:
        MayOverflowError: one of them may, or is not known.
    """
    if not (size < LARGEST).all():
        raise MayOverflowError
    return size


def plus(x: Forms, y: Forms) -> Forms:
    """The sum of two forms of the same first generators."""
    x, y = align(x, y)
    rest = x.rest + y.rest + _rounding(x.size + y.size)
    return Forms(x.center + y.center, x.generators + y.generators, rest)


def minus(x: Forms, y: Forms) -> Forms:
    """The difference of two forms of the same first generators."""
    return plus(x, Forms(-y.center, -y.generators, y.rest))


def times(x: Forms, y: Forms) -> Forms:
    """The product, unit by unit, of two forms of the same first generators.

    Where y is wide (a cell that has added up over a long time) the linear part loses more than it
    keeps, and the box of the product takes its place.
    """
    x, y = align(x, y)
    rest = np.abs(x.center) * y.rest + np.abs(y.center) * x.rest + x.radius * y.radius
    generators = x.center[:, None] * y.generators + y.center[:, None] * x.generators
    corners = [end * other for end in x.ends for other in y.ends]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    wide = y.radius > WIDE
    return Forms(
        np.where(wide, (low + high) / 2, x.center * y.center),
        np.where(wide[:, None], 0, generators),
        np.where(wide, (high - low) / 2, rest) + _rounding(x.size * y.size),
    )


def tanh(forms: Forms) -> Forms:
    """The hyperbolic tangent of every unit."""
    low, high = forms.ends
    ends = np.tanh(low), np.tanh(high)
    return _relax(forms, ends, np.minimum(1 - ends[0] ** 2, 1 - ends[1] ** 2))


def sigmoid(forms: Forms) -> Forms:
    """The logistic function of every unit."""
    low, high = forms.ends
    ends = logistic(low), logistic(high)
    return _relax(forms, ends, np.minimum(ends[0] * (1 - ends[0]), ends[1] * (1 - ends[1])))


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def _relax(forms: Forms, ends: tuple[np.ndarray, np.ndarray], slope: np.ndarray) -> Forms:
    """A function as slope x + what is unknown.

    The slope is the least between the two ends, where the function has the values `ends`: so
    the difference of both never falls, and is between its values at these ends.
    """
    low, high = forms.ends
    least, most = ends[0] - slope * low, ends[1] - slope * high
    center = slope * forms.center + (least + most) / 2
    rest = slope * forms.rest + (most - least) / 2 + OF_FUNCTIONS
    return Forms(center, slope[:, None] * forms.generators, rest)


def _rounding(size: np.ndarray) -> np.ndarray:
    """What a few operations on numbers of some size may be rounded by."""
    return np.asarray(SPARE * UNIT * limit(size) + LEAST)
