"""A thousand certificates, each with one number changed, prove nothing wrong; and what proofs
assume of compiled code holds.
"""

import numpy as np
from numba import njit

from seqcls.engines.compiled.compiling import OPTIONS
from seqcls.engines.lanes.elementary import sigmoid, tanh
from seqcls.engines.lanes.vector import LANES, load, store
from seqcls.proofs import checker
from tests.chaos.conftest import long_alone
from tests.science.test_proofs import try_changes


@long_alone
def test_a_thousand_changed_certificates_prove_nothing_wrong() -> None:
    try_changes(1_000)


@njit(**OPTIONS)
def apply(given, of_tanh, of_sigmoid):  # type: ignore[no-untyped-def]
    """Both functions of numbers, a vector of them at a time."""
    for row in range(len(given) // LANES):
        x = load(given, row)
        store(of_tanh, row, tanh(x))
        store(of_sigmoid, row, sigmoid(x))


def test_functions_of_compiled_code_are_as_near_as_proofs_assume() -> None:
    near = np.geomspace(1e-30, checker.LARGEST, 50_000)
    x = np.concatenate([np.linspace(-20, 20, 400_000), near, -near]).astype(np.float32)
    x, exact = x[: len(x) // LANES * LANES], x[: len(x) // LANES * LANES].astype(np.float64)
    given = np.zeros_like(x), np.zeros_like(x)
    apply(x, *given)
    assert np.abs(given[0] - np.tanh(exact)).max() < checker.FUNCTION / 4
    assert np.abs(given[1] - (1 + np.tanh(exact / 2)) / 2).max() < checker.FUNCTION / 4
