"""The engine of lanes as it is compiled for processors with other vectors, tested as here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONG, ROOT

TESTED = "tests/contracts/test_engines.py"
NAMES = re.findall(r"^def (test_\w+)", (ROOT / TESTED).read_text(), re.MULTILINE)


@pytest.mark.skipif(not LONG, reason="`make chaos` compiles everything for other processors")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("features", ["+avx2,+avx,+fma", "+sse4.2"])
@pytest.mark.parametrize("name", [name for name in NAMES if "vectors" not in name])
def test_engine_contracts_hold_with_other_vector_instructions(name: str, features: str) -> None:
    target = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features}
    # What one case has compiled, the next ones need not.
    cache = Path(sys.prefix) / "vectors" / features
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"{TESTED}::{name}"],
        env={**os.environ, **target, "SEQCLS_CACHE": str(cache), "SEQCLS_CHAOS": ""},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-2000:]
