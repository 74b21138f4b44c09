"""Results of transductions as only a test could get them, drawn at random but consistent.

No model is trained for them: a test set of any task serves, and its targets, where it has some.
"""

from typing import Any

import numpy as np

from seqcls.evaluation import drawn_test_set
from seqcls.problem import configuration, resolve
from seqcls.results import ErrorKind, Evaluation, OutputResults, StringErrors
from sweeps.grid.grouping import PlannedRun
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from tests.results import record_all

ERRORS = 6
GIVEN: list[tuple[str, int, ErrorKind]] = [
    ("", 0, "stopped early"),
    ("0{12}1", 11, "went on"),
    ("<01>{9}", 2, "repeats"),
    ("push{3} pop", 4, "wrong token"),
    ("0é\"'", 1, "wrong token"),
    ("remainder 3", 10, "wrong token"),
]
"""Wrong outputs of models: the output, the first wrong position, the kind of error."""


def outcome(run: PlannedRun, errors: int) -> RunResult:
    """Results of a run, with so many errors, other ones for every seed."""
    problem = resolve(configuration(run.config.changed))
    test_set = drawn_test_set(problem)
    generator = np.random.default_rng(run.model_seed)
    numbers = np.sort(generator.choice(len(test_set.texts), size=errors, replace=False))
    lengths, positions = np.unique(test_set.lengths, return_inverse=True)
    wrong = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(wrong, positions[numbers], test_set.occurrences[numbers])
    tested = np.bincount(positions, test_set.occurrences).astype(np.int64)
    given = [GIVEN[number % len(GIVEN)] for number in range(errors)]
    texts, first_wrong, error_kinds = zip(*given, strict=True) if given else ((), (), ())
    evaluation = Evaluation(
        lengths=lengths,
        tested_by_length=tested,
        wrong_by_length=wrong,
        cells=None,
        errors=StringErrors(numbers, -1.5 - np.arange(errors)),
        solved_length=int(test_set.lengths[numbers].min() if errors else lengths.max() + 1) - 1,
        test_set=test_set.digest,
        outputs=OutputResults(
            right_length_given=tested - wrong // 2,
            edits=wrong * 3,
            target_tokens=tested * 2,
            texts=texts,
            first_wrong=np.array(first_wrong, dtype=np.int64),
            error_kinds=error_kinds,
        ),
    )
    made = RunResult(
        train_losses=[3.0, 2.0],
        validation_losses=[2.0, 1.0 + run.model_seed],
        train_seconds=0.25,
        engine="strings",
        best_epoch=2,
        evaluation=evaluation,
        checkpoints={2: b"weights"},
    )
    return made.seal(run.config.key, run.model_seed)


def filled(store: Store, errors: int = ERRORS, **spec: Any) -> Store:
    """Stores a sweep whose runs are done: the first without errors, all others with so many."""
    parsed = parse_spec({"name": "outputs", "model_seeds": [0, 1, 2], **spec})
    first = min(parsed.model_seeds)
    record_all(
        store,
        writer.submit(store, parsed),
        lambda claim: [outcome(run, errors * (run.model_seed > first)) for run in claim.runs],
    )
    return store
