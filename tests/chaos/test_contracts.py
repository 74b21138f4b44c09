"""Contracts once more: with types and shapes checked at every call, and with other vectors."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.conftest import long_alone
from tests.conftest import ROOT

pytestmark = [pytest.mark.timeout(1800), long_alone]

CHECKED = ",".join(
    f"seqcls.{name}"
    for name in (
        *("counts", "decode", "engines.member", "engines.pytorch", "evaluation", "models"),
        *("prediction", "training"),
        *("interpretability.bounds", "interpretability.domains"),
        *("interpretability.certification", "interpretability.deletions", "tasks"),
        *("interpretability.explanations", "interpretability.interventions"),
        *(
            "interpretability.mechanisms",
            "interpretability.readable_model",
            "interpretability.circuits",
        ),
        *("interpretability.families", "interpretability.verdicts"),
    )
)
"""Modules whose functions annotate the axes of arguments and results, and are not compiled."""


def run_contracts(*arguments: str, **environment: str) -> None:
    # As many examples as in `make test`: each call takes longer.
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=ROOT, env={**os.environ, "SEQCLS_CHAOS": "", **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout[-3000:]


@pytest.mark.parametrize("name", ["architectures", "questions", "languages"])
def test_every_call_has_its_annotated_shapes(name: str) -> None:
    hook = f"--jaxtyping-packages={CHECKED},tests.typed.typed"
    run_contracts("-p", "tests.typed", hook, f"tests/contracts/test_{name}.py")


ENGINES = "tests/contracts/test_engines.py"
NAMES = re.findall(r"^def (test_\w+)", (ROOT / ENGINES).read_text(), re.MULTILINE)


@pytest.mark.parametrize("features", ["+avx2,+avx,+fma", "+sse4.2"])
@pytest.mark.parametrize("name", [name for name in NAMES if "vectors" not in name])
def test_contracts_hold_with_other_vectors(name: str, features: str) -> None:
    target = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features}
    # Later cases use the machine code of earlier ones.
    cache = Path(sys.prefix) / "vectors" / features
    run_contracts(f"{ENGINES}::{name}", SEQCLS_CACHE=str(cache), **target)
