"""The engine of lanes as it is compiled for processors with other vectors, tested as here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONG


@pytest.mark.skipif(not LONG, reason="`make chaos` compiles everything for other processors")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("features", ["+avx2,+avx,+fma", "+sse4.2"])
def test_everything_holds_with_other_vectors(features: str, tmp_path: Path) -> None:
    target = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features}
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/contracts/test_engines.py"],
        env={**os.environ, **target, "SEQCLS_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout[-2000:]
