"""What is said of a remedy follows from what is trained: nothing, a part, all, or in vain."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.views.configurations import story_sentence
from seqcls.config import RunConfig
from seqcls.interpretability.mechanisms import NOT_LEARNED
from seqcls.interpretability.remedies import REMEDIES, change_fields, named_fields, suggestions
from seqcls.problem import configuration, resolve
from seqcls.results import Cause
from sweeps.api import trials as remedy_trials
from sweeps.api.comparisons import why_unpaired
from sweeps.grid.spec import parse_spec
from sweeps.results import Outcome
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads.selection import View
from tests.conftest import LONG

MECHANISMS = sorted({mechanism for remedy in REMEDIES for mechanism in remedy.mechanisms})
EVEN_PAIRS = {"task": "even_pairs", "positions": "sinusoidal", "readout": "last"}
CONFIGS = [configuration(EVEN_PAIRS), RunConfig(), configuration({"task": "even_pairs"})]
if not LONG:
    # The first has most remedies; each is asked about six times.
    CONFIGS = CONFIGS[:1]


def submit(store: Store, config: RunConfig, seeds: str, name: str) -> None:
    spec = {"name": name, "model_seeds": seeds, "fixed": named_fields(config)}
    writer.submit(store, parse_spec(spec))


def set_state(store: Store, state: str, where: str, *, learned: bool = True) -> None:
    """Runs as they are once they are trained, or as nobody could train them.

    Their only error is longer than in training where they have learned, else it is not.
    """
    within, beyond = (0, 1) if learned else (1, 0)
    with store.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE run SET state = '{state}', tn = 5, fp = 1, fn = 0, tp = 4, tested = 10, "
            f"wrong = 1, tested_within = 5, wrong_within = {within}, within_from = 'test', "
            f"tested_beyond = 5, wrong_beyond = {beyond} WHERE {where}"
        )


def all_said(store: Store, mechanisms: Sequence[str] = MECHANISMS) -> dict[tuple[str, Any], str]:
    """What is said of each remedy against these mechanisms, by its field and value."""
    trials = remedy_trials.trials(store.reader(), 1, mechanisms)
    said = {
        (one.suggestion.field, one.suggestion.value): remedy_trials.trial_sentence(one)
        for one in trials
    }
    assert len(said) == len(trials)
    return said


def said(store: Store, field: str, value: object, mechanism: str) -> str:
    """What is said of one remedy where it is asked for against its own mechanism alone."""
    return all_said(store, [mechanism])[field, value]


@pytest.mark.parametrize("config", CONFIGS)
def test_every_remedy_is_untrained_then_in_training_then_compared(
    tmp_path: Path, config: RunConfig
) -> None:
    remedies = suggestions(resolve(config), MECHANISMS)
    assert len(remedies) >= 5
    before = open_writer(str(tmp_path / "before.db"))
    submit(before, config, "0..2", "own")
    set_state(before, "done", "true")
    untried = all_said(before)
    assert set(untried) == {(own.field, own.value) for own in remedies}
    assert set(untried.values()) == {"not tried yet"}
    before.engine.dispose()
    tried = remedies if LONG else remedies[::2]
    assert any(own.mechanism == NOT_LEARNED for own in tried)
    for number, own in enumerate(tried):
        copy = tmp_path / f"{number}.db"
        shutil.copy(tmp_path / "before.db", copy)
        store = open_writer(str(copy))
        field = (own.field, own.value, own.mechanism)
        learned = own.mechanism != NOT_LEARNED
        # What differs in another field too is no trial of this one.
        other = change_fields(config, {**own.fields, "weight_decay": 0.5})
        submit(store, other, "0..2", "another")
        set_state(store, "done", "true", learned=learned)
        assert said(store, *field) == "not tried yet"
        submit(store, change_fields(config, own.fields), "0..2", "trial")
        assert said(store, *field) == "in training: none of 3 seeds is done yet"
        set_state(store, "done", "id = 7", learned=learned)
        lacks = "fail" if learned else "have not learned"
        assert said(store, *field).startswith(f"trained: 1 of 1 seed {lacks}, against 3 of 3")
        assert said(store, *field).endswith("; 2 more in training")
        set_state(store, "done", "true", learned=learned)
        # Where the change gives a seed other weights, there is no pair to be mended.
        paired = why_unpaired(config, change_fields(config, own.fields)) is None
        compared = "of 3 seeds in both it mends 0" if paired else "Fisher's exact test, p = 1"
        assert compared in said(store, *field)
        set_state(store, "failed", "id > 6")
        # Among all remedies it is said likewise, of which one is asked as an example of the others.
        among = MECHANISMS if LONG or number == 0 else [own.mechanism]
        failed = all_said(store, among)[own.field, own.value]
        assert failed == "training failed for every seed that was tried"


def test_a_field_that_the_changed_model_does_not_read_may_differ(tmp_path: Path) -> None:
    config = configuration({"task": "even_pairs"})
    store = open_writer(str(tmp_path / "any.db"))
    submit(store, config, "0..2", "own")
    lstm = change_fields(
        config, {"architecture": "lstm", "readout": "last", "num_attention_heads": 5}
    )
    submit(store, lstm, "0..2", "an LSTM, whatever its number of heads")
    set_state(store, "done", "true")
    lstm_said = all_said(store)["architecture", "lstm"]
    assert lstm_said.startswith("trained: 3 of 3 seeds fail")
    biased = {"architecture": "lstm", "readout": "last", "biases": True}
    another = open_writer(str(tmp_path / "another.db"))
    submit(another, config, "0..2", "own")
    submit(another, change_fields(config, biased), "0..2", "an LSTM with biases")
    set_state(another, "done", "true")
    assert all_said(another)["architecture", "lstm"] == "not tried yet"


BLIND = {"task": "parity", "positions": "sinusoidal", "readout": "last"}


def explain(store: Store, run_ids: Sequence[int], mechanism: str = "simple rule") -> None:
    """As if the causes of these runs' errors had been found."""
    for run_id in run_ids:
        writer.record_causes(store, run_id, [Cause(mechanism, None, "a rule", 1.0, 1, 0.99)])


@pytest.fixture
def looked_at(tmp_path: Path) -> Store:
    """Six Transformers, all of which fail on parity; the causes of two of them are known."""
    store = open_writer(str(tmp_path / "parity.db"))
    submit(store, configuration(BLIND), "0..5", "parity")
    set_state(store, "done", "true")
    explain(store, [1, 2])
    return store


def told(store: Store, view: View | None = None) -> list[str]:
    """What the cards say."""
    found = remedy_trials.loops(store.reader(), view)
    return [story_sentence(loop).replace("\\", "") for loop in found]


def test_a_card_does_not_count_seeds_that_nobody_looked_at(looked_at: Store) -> None:
    known = "*simple rule* in 2 of 2 failing seeds whose causes are known, of 6 that fail"
    lstm = "try architecture=lstm (now transformer), and with it positions=none: not tried yet"
    assert told(looked_at) == [f"{known} → {lstm}"]
    explain(looked_at, [3, 4, 5, 6])
    assert told(looked_at) == [f"*simple rule* in 6 of 6 seeds → {lstm}"]


def test_a_card_knows_every_trial_that_the_page_knows(looked_at: Store) -> None:
    # It says another number of heads, which an LSTM does not read.
    lstm = {"task": "parity", "architecture": "lstm", "readout": "last", "num_attention_heads": 5}
    submit(looked_at, configuration(lstm), "0..4", "LSTMs")
    (sentence,) = told(looked_at)
    assert sentence.endswith("positions=none: in training: none of 5 seeds is done yet")
    set_state(looked_at, "done", "id > 6")
    with looked_at.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET fp = 0, tn = 6, wrong = 0 WHERE id > 6")
        connection.exec_driver_sql("UPDATE run SET wrong_beyond = 0 WHERE id > 6")
    (sentence,) = told(looked_at)
    assert sentence.endswith("→ architecture=lstm, positions=none → **0 of 5 seeds fail with it**")
    (trial,) = remedy_trials.trials(looked_at.reader(), 1, ["simple rule"])
    assert remedy_trials.trial_sentence(trial).startswith("trained: 0 of 5 seeds fail, against 6")
    (loop,) = remedy_trials.loops(looked_at.reader())
    assert loop.best is not None
    assert loop.best.record() == trial.record()
    # Of another configuration of the same failure it is said that this was elsewhere.
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_state(looked_at, "done", "id > 11")
    other = remedy_trials.trials(looked_at.reader(), 12, ["simple rule"])
    said_of_it = {x.suggestion.field: remedy_trials.sentences(x) for x in other}
    assert said_of_it["architecture"] == [
        "not tried on this configuration",
        "elsewhere in this database it mended simple rule in 5 of 5 seeds",
    ]


def test_cards_obey_filters_and_thresholds(looked_at: Store) -> None:
    submit(looked_at, configuration({**BLIND, "hidden_size": 4}), "0..1", "wider")
    set_state(looked_at, "done", "id > 6")
    explain(looked_at, [7, 8], "errors by a feature")
    assert len(told(looked_at)) == 2
    of = {"parity": "*simple rule*", "wider": "*errors by a feature*"}
    for sweep, cause in of.items():
        (card,) = told(looked_at, View(sweeps=(sweep,)))
        assert card.startswith(cause)
    (card,) = told(looked_at, View(("parity",), model_seeds=(0, 3)))
    assert "in 1 of 1 failing seeds whose causes are known, of 2 that fail" in card
    assert told(looked_at, View(("parity",), outcomes=(Outcome.GENERALIZES,))) == []
    # Each is right on nine of ten strings.
    assert told(looked_at, View(below=0.9)) == []
    assert len(told(looked_at, View(below=0.91))) == 2
    # By another accuracy on trained lengths, they have not learned.
    with looked_at.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET tested_within = 1000, wrong_within = 5")
    (card,) = told(looked_at, View(("parity",), learned_at=0.999))
    assert card.startswith("*not learned* in 2 of 2")
    assert card.endswith("→ hidden_size=4 → **2 of 2 seeds have not learned with it**")
    (card,) = told(looked_at, View(("parity",), learned_at=0.995))
    assert card.startswith("*simple rule*")
