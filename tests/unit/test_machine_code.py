"""Machine code: its functions are those of the libraries, whatever the processor."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numba import njit
from torch.nn.functional import binary_cross_entropy_with_logits

from seqcls.engines.fused.forward import cross_entropy_row, exp_row, normal_rows
from tests.conftest import LONG

FORMATS = [(np.float32, np.int32, 1e-6), (np.float64, np.int64, 1e-13)]


@njit(error_model="numpy")
def exp_of(x: Any, powers: Any, exponents: Any) -> None:
    exp_row(x, powers, exponents)


@njit(error_model="numpy")
def normal_of(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
    normal_rows(x, below, density, powers, exponents)


@njit(error_model="numpy")
def cross_entropy_of(x: Any, small: Any, target: Any, out: Any) -> None:
    cross_entropy_row(x, small, target, out)


@pytest.mark.parametrize(("number", "integer", "tolerance"), FORMATS)
def test_exp_is_that_of_the_library(number: Any, integer: Any, tolerance: float) -> None:
    x = np.linspace(-80, 0, 4097).astype(number)
    found, powers = x.copy(), np.empty_like(x)
    exp_of(found, powers, powers.view(integer))
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=tolerance)
    extremes = np.array([-1e30, -np.inf, 0, np.nan], dtype=number)
    exp_of(extremes, powers, powers.view(integer))
    assert extremes[:3].tolist() == [0, 0, 1]
    assert np.isnan(extremes[3]), "a diverged training must show"


@pytest.mark.parametrize(("number", "integer", "tolerance"), FORMATS)
def test_the_normal_distribution_is_that_of_the_library(
    number: Any, integer: Any, tolerance: float
) -> None:
    x = np.linspace(-6, 6, 4097).astype(number)
    below, density, powers = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    normal_of(x, below, density, powers, powers.view(integer))
    exact = [math.erfc(-value / math.sqrt(2)) / 2 for value in x.astype(float)]
    np.testing.assert_allclose(below, exact, rtol=3 * tolerance, atol=tolerance / 5)
    exact = [math.exp(-(value**2) / 2) / math.sqrt(2 * math.pi) for value in x.astype(float)]
    np.testing.assert_allclose(density, exact, rtol=3 * tolerance)


def test_the_loss_is_that_of_pytorch_rounding_included() -> None:
    for number, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        x = np.linspace(-18, 18, 4096).astype(number)
        small, out = np.exp(-np.abs(x)), np.empty_like(x)
        for target in (0, 1):
            cross_entropy_of(x, small, np.full_like(x, target), out)
            logits = torch.from_numpy(x)
            targets = torch.full_like(logits, target)
            exact = binary_cross_entropy_with_logits(
                logits.double(), targets.double(), reduction="none"
            )
            expected = binary_cross_entropy_with_logits(logits, targets, reduction="none").numpy()
            np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
            sure = logits.numpy() * (2 * target - 1) > 14
            assert out[sure].sum() == pytest.approx(expected[sure].sum(), rel=2e-3)
            if number == np.float32 and target == 0:
                # Negative strings that are told with confidence lose digits, there as here.
                assert out[sure].sum() != pytest.approx(exact.numpy()[sure].sum(), rel=1e-2)


TRAIN_ONE = """
import hashlib
from seqcls.problem import resolve
from seqcls.training import train_group
from seqcls.weights import to_bytes
from tests.conftest import short_config
config = short_config()
member = train_group([(resolve(config), 3)], engine="fused")[0]
print(hashlib.sha256(to_bytes(member.kept_weights)).hexdigest())
"""


@pytest.mark.skipif(not LONG, reason="compiles all anew")
def test_code_compiled_now_and_code_from_the_cache_give_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "SEQCLS_CACHE": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", TRAIN_ONE], env=environment, check=True, capture_output=True
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1] != b""
