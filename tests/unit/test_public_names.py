"""Public names of the packages, and what importing and training load."""

import subprocess
import sys
from importlib import import_module

from tests.conftest import ROOT

PUBLIC = {
    "seqcls": "MODELS Problem RunConfig TASKS TrainedModel evaluate load_run open "
    "resolve sweep train",
    "sweeps.api": """
        ablate automaton automaton_inside by_drawn causes compare compare_all config
        configurations convert data
        delete draw
        engines errors errors_of_run estimate explain export family figures fit_shortcuts give
        import_predictions import_strings in_both_precisions lengths load_weights log_results merge
        minimal model more open_store pack patch populations predict proofs protocol prove remedies
        report resume retry rules runs seeds sensitive shortcuts shortest states status stop submit
        theory try_task verdict verify work
    """,
}
"""Names that users import; all others may change."""


def test_public_names_are_exactly_these() -> None:
    for name, words in PUBLIC.items():
        module, names = import_module(name), words.split()
        assert [own for own in dir(module) if own[0] != "_"] == names
        assert all(hasattr(module, own) for own in names)


def test_import_seqcls_loads_only_the_standard_library() -> None:
    program = (
        "import sys; known = set(sys.modules); import seqcls; print(*set(sys.modules) - known);"
        "print(seqcls.resolve(seqcls.RunConfig()).task.alphabet)"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    loaded, alphabet = printed.splitlines()
    assert {x.partition(".")[0] for x in loaded.split()} <= {"seqcls", *sys.stdlib_module_names}
    assert alphabet == "abc"


def test_training_with_pytorch_loads_no_compiler() -> None:
    """It would take as long again as all of PyTorch, in every process that trains."""
    program = (
        "import sys\n"
        "from seqcls.problem import configuration, resolve\n"
        "from seqcls.training import train_group\n"
        "sizes = dict(train_size=8, validation_size=4, max_num_epochs=1, min_num_epochs=1)\n"
        "problem = resolve(configuration({'task': 'parity', **sizes}))\n"
        "for engine in ('strings', 'counts'):\n"
        "    assert train_group([(problem, 0)], engine=engine)[0].failure is None\n"
        "assert 'torch' in sys.modules\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
