"""Proofs of recurrent networks as they are stored with their runs."""

import json
import shutil
import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from dashboard.report.command import write
from seqcls.errors import UnknownRunError
from seqcls.proofs import checker, prover
from seqcls.proofs.certificate import to_text
from seqcls.proofs.checker import digest
from seqcls.proofs.forgetting import find_forgetting, repeated_word
from seqcls.proofs.prover import Attempt, Proof, ProofBudget
from seqcls.tasks.automaton import language_automaton
from seqcls.weights import from_bytes, to_bytes
from sweeps import api
from sweeps.api import load_weights
from sweeps.api import reading as pages
from sweeps.api.budgets import more_training
from sweeps.api.exports import export
from sweeps.api.models import trained_model
from sweeps.api.presentation import describe_proofs
from sweeps.api.proving import stored_proof
from sweeps.api.reading import Selection
from sweeps.results import ProofRecord
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import checkpoints, explained
from sweeps.store.verification import verify
from tests.app import open_app, plain, rerun
from tests.commands import printed, refused, run_main
from tests.databases import change, file_of, reseal, rows
from tests.stock import copy_of, stock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A database with one recurrent network that is right on every string."""
    return open_writer(str(copy_of("proofs", "loaded.db", tmp_path)))


@pytest.fixture
def proved(tmp_path: Path) -> Store:
    """The same database, once the model is proved."""
    return open_writer(str(copy_of("proofs", "proved.db", tmp_path)))


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A database of that model, and of one without a test error that a repetition refutes."""
    return copy_of("proofs", "both.db", tmp_path)


def record_of(store: Store, **changes: Any) -> ProofRecord:
    weights = digest(from_bytes(checkpoints.weights(store, 1)))
    undecided = ProofRecord(
        *(1, "not decided", 2, 0, 1.5, None, None, '{"budget": {}, "attempts": []}'),
        *(weights, "0.3.0", None),
    )
    return replace(undecided, **changes)


def stored_record(store: Store) -> ProofRecord | None:
    return explained.proof(store, 1, of_language=True)


def result(store: Store) -> str:
    found = stored_record(store)
    return "" if found is None else found.result


PROVED = {"result": "proved", "regions": 17, "certificate": b"bytes"}
REFUTED = {"result": "refuted", "string": "10", "said": 1}


def test_a_stored_proof_is_read_back_and_replaced_by_the_next(store: Store) -> None:
    for changes in ({}, PROVED, REFUTED):
        writer.record_findings(store, 1, "proof", [record_of(store, **changes)])
        assert stored_record(store) == record_of(store, **changes)
        assert verify(store).damages == []
    learned = record_of(store, of_language=0)
    writer.record_findings(store, 1, "proof", [learned])
    assert explained.proof(store, 1, of_language=False) == learned
    assert stored_record(store) == record_of(store, **REFUTED), (
        "one by a learned automaton is another"
    )
    with pytest.raises(UnknownRunError, match="run 9 is not finished"):
        writer.record_findings(store, 9, "proof", [learned])


def test_an_altered_proof_is_damage_and_is_not_merged(store: Store, tmp_path: Path) -> None:
    def found() -> list[str]:
        return [damage.how for damage in verify(store).damages]

    json = "json = replace(json, '\"regions\":17', '\"regions\":18')"
    for statement in (f"UPDATE finding SET {json}", "UPDATE finding SET certificate = x'00'"):
        writer.record_findings(store, 1, "proof", [record_of(store, **PROVED)])
        assert found() == []
        assert api.runs(store)["outcome"].tolist() == ["at every length"]
        change(store, statement)
        assert found() == ["its proof does not fit its digest"]
    empty = open_writer(str(tmp_path / "new.db"))
    assert writer.merge(empty, store).results == 1
    assert stored_record(empty) is None
    writer.record_findings(store, 1, "proof", [record_of(store, **PROVED)])
    change(store, "UPDATE run SET wrong = 1")
    frame = api.runs(store)
    assert frame["outcome"].tolist() == ["not known"]
    assert "every_length" not in frame or frame["every_length"].isna().all()
    writer.delete(store, 1)
    assert rows(store, "SELECT count(*) FROM proof") == [(0,)]


def test_merging_copies_proofs_and_prefers_decided_ones(made_file: Path, tmp_path: Path) -> None:
    for number, (ours, theirs, merged) in enumerate(
        (
            (None, PROVED, PROVED),
            ({}, REFUTED, REFUTED),
            (PROVED, {}, PROVED),
            (PROVED, REFUTED, PROVED),
            (None, {}, {}),
        )
    ):
        store, source = (
            open_writer(str(shutil.copy(stock("proofs") / "loaded.db", tmp_path / f"{x}{number}")))
            for x in ("ours", "theirs")
        )
        if ours is not None:
            writer.record_findings(store, 1, "proof", [record_of(store, **ours)])
        writer.record_findings(source, 1, "proof", [record_of(source, **theirs)])
        writer.merge(store, source)
        assert stored_record(store) == record_of(store, **merged), number
        empty = open_writer(str(shutil.copy(made_file, tmp_path / f"empty{number}")))
        writer.merge(empty, source)
        assert stored_record(empty) == record_of(source, **theirs), number
        assert verify(empty).damages == verify(store).damages == []


def load_large(path: Path, **large: list[Any]) -> None:
    """Adds, as run `large/0`, an RNN that is right on every string by exact arithmetic: whether a
    string is of zeros alone. Its first three units carry no information, and have large weights.
    """
    weights: dict[str, list[Any]] = {
        "embedding.weight": [[0, -1, 0], [0, 1, 1]],
        "rnn.weight_ih_l0": [[0, 10, 0], [0, 10, 0], [0, 0, 0], [0, 0, 25]],
        "rnn.weight_hh_l0": [[0] * 4, [0] * 4, [0] * 4, [0, 0, 0, 10]],
        "rnn.bias_ih_l0": [0, 0, 0, -5],
        "rnn.bias_hh_l0": [0, 0, 0, 0],
        "head.weight": [[0, 0, 0, -1]],
        "head.bias": [0],
    }
    weights |= {name.replace("__", "."): values for name, values in large.items()}
    file = path.with_suffix(".safetensors")
    save_file({name: np.array(x, np.float32) for name, x in weights.items()}, file)
    lengths = ("train_min_length", "train_max_length", "test_min_length", "test_max_length")
    task = {"task": "regular", "alphabet": "01", "pattern": "0+", "test_size": 100}
    load_weights(open_writer(str(path)), file, task=task | dict.fromkeys(lengths, 1), sweep="large")


PROVED_TEXT = "Proved: the model answers as the language's automaton"


def command_output(path: Path, *arguments: str) -> str:
    return " ".join(printed(*arguments, "--db", str(path)).split())


NOT_A_NUMBER: dict[str, list[Any]] = {
    "embedding__weight": [[0, -1, 0], [1e20, 1, 1]],
    "rnn__weight_ih_l0": [[0, 10, 0], [0, 10, 0], [1e20, 0, 0], [0, 0, 25]],
    "rnn__weight_hh_l0": [[0] * 4, [0] * 4, [-3e38, -3e38, 0, 0], [0, 0, 0, 10]],
}


def test_a_model_that_overflows_is_refuted_by_a_string_without_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    load_large(path, **NOT_A_NUMBER)
    found = api.prove(open_reader(str(path)), "large/0")
    assert (found.outcome, found.string, found.predicted) == ("refuted", "1{2}", None)
    assert not trained_model(open_reader(str(path)), 1).answer("11").is_answered
    text = command_output(path, "prove", "large/0")
    assert "Refuted: on 11 the model has no answer (its logit is NaN), and" in text
    stored = json.loads(command_output(path, "prove", "large/0", "--json"))
    assert (stored["string"], stored["said"]) == ("1{2}", None)
    assert verify(open_reader(str(path))).damages == []
    assert "its logit is NaN" in run_main("automaton", "large/0", "--db", str(path)).stderr


LARGE: dict[str, tuple[dict[str, list[Any]], str]] = {
    "biases": ({"rnn__bias_ih_l0": [0, 0, 3e38, -5], "rnn__bias_hh_l0": [0, 0, 3e38, 0]}, ""),
    "states": ({"rnn__weight_hh_l0": [[0] * 4, [0] * 4, [3e38, 0, 3e38, 0], [0, 0, 0, 10]]}, ""),
    "tokens": (
        {
            "embedding__weight": [[0, -1, 1e20], [0, 1, 1]],
            "rnn__weight_ih_l0": [[0, 10, 0], [0, 10, 0], [0, 0, 1e20], [0, 0, 25]],
        },
        "",
    ),
    "logit": ({"head__weight": [[-3e38, 0, 3e38, -3e38]]}, ""),
    "none": (
        {"rnn__bias_ih_l0": [0, 0, 3e37, -5], "rnn__bias_hh_l0": [0, 0, 3e37, 0]},
        "Proved: the model answers as",
    ),
}
"""Large weights by where they may overflow, and a part of the output where they do not."""


def test_a_model_that_may_overflow_is_not_proved(tmp_path: Path) -> None:
    """Nothing refutes a model without a NaN among its answers."""
    for where, (large, words) in LARGE.items():
        path = tmp_path / f"{where}.db"
        load_large(path, **large)
        completed = run_main("prove", "large/0", "--seconds", "20", "--db", str(path))
        text = " ".join(completed.stdout.split())
        assert completed.returncode == ("Refuted" not in text and "Proved" not in text)
        may = "may be larger than 1.7e+38, and so overflow in float32" in text or "Refuted" in text
        assert words in text if words else may, (where, text)
        assert (
            "at every length" in api.runs(open_reader(str(path)))["outcome"].tolist()
        ) is not may


def test_invalid_budgets_of_seconds_are_refused(store: Store) -> None:
    for command, seconds in product(("prove", "automaton"), ("inf", "nan", "0")):
        message = refused(command, "hand/0", "--seconds", seconds, "--db", str(store.path))
        assert f"seconds={float(seconds)}: expected " in message
    assert stored_record(store) is None


def undecided(store: Store, regions: int, *attempts: Attempt) -> Proof:
    automaton = language_automaton(trained_model(store, 1).task)
    assert automaton is not None
    budget = ProofBudget(regions=regions)
    return Proof("not decided", automaton, True, budget, attempts=attempts)


def test_an_undecided_proof_is_stored_without_infinities(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region that grows without end."""
    endless = Attempt(0.5, 24, 3, "they grow without end", "any token in state 0", None)
    monkeypatch.setattr(prover, "prove", lambda *_: undecided(store, 3000, endless))
    assert api.prove(store, 1).attempts == (endless,)
    again = proof_of(store)
    assert again.attempts == (endless,)
    assert "the widest region (without end) is the one after" in " ".join(
        again.describe(trained_model(store, 1))
    )
    path, db = tmp_path / "none.json", ("--db", str(file_of(store)))
    completed = run_main("prove", "hand/0", "--certificate", str(path), *db)
    assert completed.returncode == 1
    assert "Not decided within 60 seconds of processor time" in completed.stdout
    assert f"Nothing is proved, so {path} is not written." in completed.stdout
    assert "try `seqcls model prove 1" in refused("verdict", "hand/0", "--beyond", *db)


def test_a_certificate_of_a_former_format_is_proved_again(
    proved: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = stored_record(proved)
    assert record is not None
    assert record.certificate is not None
    former = zlib.decompress(record.certificate).replace(b"certificate 2", b"certificate 1")
    decided = proof_of(proved)
    writer.record_findings(proved, 1, "proof", [replace(record, certificate=zlib.compress(former))])
    assert stored_proof(proved, trained_model(proved, 1)) is None
    monkeypatch.setattr(prover, "prove", lambda *_: decided)
    assert api.prove(proved, 1).outcome == "proved"
    now = proof_of(proved)
    assert checker.check(now.certificate or {}) == now.regions


def proof_of(store: Store) -> Proof:
    found = stored_proof(store, trained_model(store, 1))
    assert found is not None
    return found


def never(*_: object, **__: object) -> None:
    raise AssertionError("it is proved anew")


def test_a_proof_is_stored_with_its_certificate(
    proved: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prover, "prove", never)
    for found in (api.prove(proved, "hand/0"), api.prove(proved, 1, seconds=999.0)):
        assert (found.outcome, found.of_language, len(found.automaton.table)) == ("proved", True, 2)
        assert checker.check(found.certificate or {}) == found.regions > 0
    assert verify(proved).damages == []
    path = tmp_path / "proof.json"
    command_output(file_of(proved), "prove", "hand/0", "--certificate", str(path))
    assert path.read_text() == to_text(found.certificate or {})
    verdict = json.loads(
        command_output(file_of(proved), "verdict", "hand/0", "--every-length", "--json")
    )
    assert verdict["seconds"] == found.seconds
    with pytest.raises(AssertionError, match="proved anew"):
        api.prove(proved, 1, again=True)
    with pytest.raises(AssertionError, match="proved anew"):
        api.prove(proved, 1, learned=True)


def test_an_undecided_proof_is_tried_again_with_a_larger_budget(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vain = undecided(store, 1)
    decided = proof_of(open_reader(str(copy_of("proofs", "proved.db", tmp_path))))
    with monkeypatch.context() as patched:
        patched.setattr(prover, "prove", lambda *_: vain)
        with patched.context() as reading:
            reading.setenv("SEQCLS_READ_ONLY", "1")
            assert api.prove(store, 1, regions=1) == vain
            assert stored_record(store) is None, "nothing is stored where nothing may be written"
        assert api.prove(store, 1, regions=1) == vain
        assert result(store) == "not decided"
        patched.setattr(prover, "prove", never)
        assert api.prove(store, 1, regions=1).record() == vain.record()
    monkeypatch.setattr(prover, "prove", lambda *_: decided)
    assert api.prove(store, 1, regions=100).outcome == "proved"
    monkeypatch.setattr(prover, "prove", lambda *_: vain)
    assert api.prove(store, 1, regions=1, again=True) == vain
    assert result(store) == "proved", "what was decided stays so"


def test_a_proof_of_other_weights_is_ignored(
    proved: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = from_bytes(checkpoints.weights(proved, 1))
    weights["classifier.bias"] = weights["classifier.bias"] + np.float32(0.01)
    with proved.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE checkpoint SET weights = ?", (to_bytes(weights),))
    reseal(proved)
    opened = trained_model(proved, 1)
    assert stored_proof(proved, opened) is None
    monkeypatch.setattr(prover, "prove", lambda *_: undecided(proved, 5))
    assert api.prove(proved, 1).outcome == "not decided"
    now = stored_record(proved)
    assert now is not None
    assert now.weights == digest(weights)


def test_a_proof_by_a_learned_automaton_is_stored_separately(store: Store) -> None:
    learned = api.prove(store, 1, learned=True)
    assert stored_record(store) is None
    opened = trained_model(store, 1)
    again = stored_proof(store, opened, learned=True)
    assert again is not None
    assert again.record() == learned.record()
    assert (again.automaton.table == learned.automaton.table).all()


def test_the_view_all_strings_shows_and_stores_proofs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page proves on request, stores the proof, and proves nothing stored again."""
    assert "every_length" not in api.runs(store)
    page = open_app(monkeypatch, file_of(store), "model", run="1", view="All strings")
    assert "Proved" not in plain(page)
    page.toggle(key="every_string").set_value(True)
    assert PROVED_TEXT in plain(rerun(page))
    assert result(store) == "proved"
    monkeypatch.setattr(prover, "prove", never)
    page = open_app(monkeypatch, file_of(store), "model", run="1", view="All strings")
    assert PROVED_TEXT in plain(page)
    assert "Certificate" in [getattr(x, "label", "") for x in page.get("download_button")]
    assert "every_string" not in [x.key for x in page.toggle]


def test_proved_and_refuted_models_are_shown_as_such(both: Path) -> None:
    store = open_reader(str(both))
    frame = api.runs(store).set_index("id")
    assert frame["errors"].tolist() == [0, 0]
    assert frame["outcome"].tolist() == ["at every length", "generalizes"]
    assert frame["every_length"].tolist() == ["proved", "refuted"]
    assert frame["refuted_by"].fillna("").tolist() == ["", "10{12}"]
    assert api.runs(store, outcome="at every length")["id"].tolist() == [1]
    assert api.runs(store, outcome="generalizes")["id"].tolist() == [1, 2]
    assert api.runs(store, outcome="not known").empty, "its trained lengths are not known"
    suggested = more_training(store, frame["sweeps"][1][0], "4x")
    (sentence,) = suggested.sentences
    assert sentence.startswith("hand: 1 of 1 have learned; none is left"), "none is counted twice"
    counted = pages.configurations(store, Selection()).set_index("config_id")
    names = ["seeds", "judged", "learned", "judged_beyond", "generalize", "proved", "refuted"]
    assert counted[names].to_numpy().tolist() == [[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0, 1]]
    listed = command_output(both, "runs", "--wide")
    assert "refuted by 10{12}" in listed
    assert "at every length" in listed
    config = api.config(store, 2)
    assert describe_proofs(frame, {int(frame["config_id"][2]): config}) == [
        "proved",
        "refuted by 10{12}",
    ]


def test_the_page_of_a_refuted_model_explains_how_it_forgets(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = plain(open_app(monkeypatch, both, "model", run="2", view="All strings"))
    for part in (
        *("Learned and generalizes", "It is refuted by 10{12}.", "as 0 repeats after 1"),
        *("Refuted: on 10{12} the model says", "from 12 repetitions on it is wrong"),
    ):
        assert part in text


@pytest.mark.usefixtures("undrawn")
def test_causes_and_reports_name_a_repetition_that_refutes_a_model(
    both: Path, tmp_path: Path
) -> None:
    (found,) = json.loads(command_output(both, "causes", "soft", "--json"))["forgetting"]
    assert (found["run_id"], found["word"], found["repetitions"]) == (2, "0", 12)
    assert "run 2: It forgets while one token repeats" in command_output(both, "causes", "soft")
    export(open_reader(str(both)), tmp_path / "out", "csv")
    assert "10{12}" in (tmp_path / "out" / "runs.csv").read_text()
    report = write(open_reader(str(both)), "hand", "soft")
    for part in ("<th>Every length</th>", "1 proved", "1 refuted"):
        assert part in report


def test_a_forgotten_state_drifts_until_the_answer_flips(both: Path) -> None:
    model = trained_model(open_reader(str(both)), 2)
    automaton = language_automaton(model.task)
    assert automaton is not None
    found = find_forgetting(model, automaton, "1" + "0" * 40)
    assert found is not None
    assert model.answer(found.string).is_wrong
    assert not model.answer("1" + "0" * (found.repetitions - 1)).is_wrong
    assert found.distances[0] == 0
    assert found.distances[found.repetitions] > 0.1
    assert (found.margins[: found.repetitions] > 0).all()
    assert (found.margins[found.repetitions :] < 0).all()
    assert {(unit.layer, unit.name[:5]) for unit in found.units} == {(1, "unit ")}
    assert find_forgetting(model, automaton, "1001") is None
    for letters, place in {
        "1" + "0" * 12: (1, 1, 12),
        "1000" + "10" * 12 + "1": (3, 2, 13),
        "0" * 4: None,
        "0110" + "1" * 9 + "0": (4, 1, 9),
    }.items():
        assert repeated_word(tuple(map(int, letters))) == place
