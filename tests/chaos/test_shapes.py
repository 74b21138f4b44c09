"""Types and shapes of arrays, checked at every call while parts are held to their contracts."""

import subprocess
import sys

import pytest

from tests.conftest import LONG, ROOT

CHECKED = ",".join(
    f"seqcls.{name}"
    for name in (
        *("counts.forward", "decode", "engines", "evaluation", "models", "prediction", "training"),
        *("interpretability.attribution", "interpretability.bounds", "interpretability.domains"),
        *("interpretability.certification", "interpretability.deletions", "tasks"),
        *("interpretability.explanations", "interpretability.interventions"),
        *("interpretability.mechanisms", "interpretability.network", "interpretability.sentences"),
        *("interpretability.states_by_counts", "interpretability.verdicts"),
    )
)
"""The modules whose functions name the axes of what they take and give."""

FILES = ("architectures", "questions", "languages")


@pytest.mark.skipif(not LONG, reason="`make chaos` checks every call")
@pytest.mark.parametrize("name", FILES)
def test_every_call_has_the_shapes_that_it_names(name: str) -> None:
    hook = f"--jaxtyping-packages={CHECKED},tests.typed.typed"
    tested = f"tests/contracts/test_{name}.py"
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.typed", hook, tested],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout[-3000:]
