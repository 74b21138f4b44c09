"""Types and shapes of arrays, checked at every call while parts are held to their contracts."""

import os
import subprocess
import sys

import pytest

from tests.conftest import LONG, ROOT

CHECKED = ",".join(
    f"seqcls.{name}"
    for name in (
        *("counts", "decode", "engines.member", "engines.pytorch", "evaluation", "models"),
        *("prediction", "training"),
        *("interpretability.attribution", "interpretability.bounds", "interpretability.domains"),
        *("interpretability.certification", "interpretability.deletions", "tasks"),
        *("interpretability.explanations", "interpretability.interventions"),
        *("interpretability.mechanisms", "interpretability.inside", "interpretability.circuits"),
        *("interpretability.families", "interpretability.verdicts"),
    )
)
"""Modules whose functions name the axes of what they take and give, and are not compiled."""

FILES = ("architectures", "questions", "languages")


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not LONG, reason="`make chaos` checks every call")
@pytest.mark.parametrize("name", FILES)
def test_every_call_has_its_annotated_shapes(name: str) -> None:
    hook = f"--jaxtyping-packages={CHECKED},tests.typed.typed"
    tested = f"tests/contracts/test_{name}.py"
    # As many examples as where all tests run: each call takes longer.
    environment = {**os.environ, "SEQCLS_CHAOS": ""}
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.typed", hook, tested],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout[-3000:]
