"""What a run answered for every string of its test, the wrong ones and the right."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from sweeps.store.databases.engine import Store
from sweeps.store.results.stored import read_runs
from sweeps.store.results.test_sets import stored_test_set
from sweeps.store.schema.tables import Config, Run, TestSet


def answers_of(store: Store, run_id: int) -> Iterator[dict[str, Any]]:
    """A row for each distinct test string: doc_id, input, target, prediction, correct.

    `doc_id` is the string's number in its test set. Strings that a model has no places for were
    not tested; they are left out only where no string of their length was.
    """
    of_config = TestSet.id == Config.test_set_id
    query = select(TestSet.id).join(Config, of_config).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        test = stored_test_set(connection, connection.scalars(query.where(Run.id == run_id)).one())
        (run,) = read_runs(connection, [run_id])
    wrong = {number: place for place, number in enumerate(run.errors().numbers.tolist())}
    outputs = run.outputs()
    tested = set(run.columns["length_score"]["length"].tolist())
    for number, (text, length) in enumerate(zip(test.texts, test.lengths.tolist(), strict=True)):
        if length not in tested:
            continue
        target: Any = test.targets[number] if test.targets is not None else None
        if test.bits is not None:
            target = int(test.bits[number])
        prediction = target
        if number in wrong:
            # Of kinds whose answers are not stored nothing is said.
            prediction = None if test.bits is None else 1 - target
            if outputs:
                prediction = outputs[wrong[number]][0]
        yield {
            "doc_id": number,
            "input": text,
            "target": target,
            "prediction": prediction,
            "correct": number not in wrong,
        }
