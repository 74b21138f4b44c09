"""One question has one answer by command, from Python and by an agent.

Of every kind of model there is; refusals are refusals on each way. What the answers must be where
it is known, for the shipped models, is tested below.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seqcls.errors import SeqclsError
from seqcls.interpretability.rows import record
from seqcls.results import Confusion
from seqcls.text import with_nulls
from sweeps import api
from sweeps.results import rows_of
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from tests.commands import printed, printed_json, run_main
from tests.commands.agents import answers
from tests.conftest import LONG, SHIPPED
from tests.databases import change, load_parity, rows
from tests.oracles.compared import Matrix, spelled_out
from tests.world import KINDS, UNKNOWN, Kind, spelled

SEED_2 = "all_initializations/2"
RUN = "lower_magnitude_initializations/2"
RIGHT = "increased_dimensionality/0"


@dataclass(frozen=True)
class Subject:
    """A model that questions are about, and a string for it."""

    store: Store
    sweep: str
    run: int
    other: int
    string: str


@dataclass(frozen=True)
class Question:
    """A command line, the same in Python, and the arguments of an agent's tool, if there is one."""

    line: str
    call: Callable[[Subject], Any]
    tool: Mapping[str, Any] | None = None


QUESTIONS = {
    "predict": Question(
        "{run} {string}",
        lambda x: api.predict(x.store, x.run, [x.string]),
        {"run": "{run}", "strings": ["{string}"]},
    ),
    "errors": Question(
        "{run}", lambda x: api.errors_of_run(x.store, x.run), {"run": "{run}", "rows": 200}
    ),
    "states": Question("{run} {string}", lambda x: api.states(x.store, x.run, x.string)),
    "patch": Question(
        "{run} {string} --source {string}",
        lambda x: api.patch(x.store, x.run, x.string, x.string),
    ),
    "ablate": Question(
        "{run} --sample 10",
        lambda x: {
            "strings": (judged := api.ablate(x.store, x.run, sample=10)).strings,
            "parts": [{"misclassified": part.errors} for part in judged.outcomes],
        },
    ),
    "minimal": Question(
        "{run} {string}",
        lambda x: {
            "given": (found := api.minimal(x.store, x.run, x.string)).given.record(),
            "nearest_right": found.nearest.record(),
        },
    ),
    "rules": Question("{run}", lambda x: {"rules": record(api.rules(x.store, x.run).rules)}),
    "explain": Question("{run} {string}", lambda x: api.explain(x.store, x.run, x.string)),
    "remedies": Question(
        "{run}",
        lambda x: {
            "mechanisms": (found := api.remedies(x.store, x.run)).mechanisms,
            "suggestions": [trial.record() for trial in found.trials],
        },
        {"run": "{run}"},
    ),
    "verdict": Question("{run}", lambda x: api.verdict(x.store, x.run), {"run": "{run}"}),
    "compare": Question(
        "{run} {other}",
        lambda x: api.compare(x.store, x.run, x.other),
        {"a": "{run}", "b": "{other}"},
    ),
    "runs": Question(
        "--sweep {sweep}", lambda x: api.runs(x.store, x.sweep), {"sweep": "{sweep}", "rows": 200}
    ),
}
SLOW = {"verdict", "remedies", "explain", "minimal"}
"""Asked of every third kind: they try many strings."""

UNLIKE = {
    "letters", "of_order", "file_of_brackets", "pairs_of_names", "transduction", "pictures",
    "parts_from_outside", "imported", "failed",
}  # fmt: skip
"""Kinds whose answers differ in form; all are tested in `make chaos`."""
TRIED_KINDS = [kind for kind in KINDS if LONG or kind.name in UNLIKE]

BELONGS: dict[str, Callable[[str], bool]] = {
    "counted": lambda text: text.count("1") % 2 == 1,
    "of_order": lambda text: text[:1] == text[-1:],
    "own_file": lambda text: text.count("a") % 2 == 1,
    "parts_from_outside": lambda text: text.endswith("b"),
}
"""Kinds, and which strings belong to their language."""


def plain(found: Any) -> Any:
    """An answer of Python as JSON has it."""
    if isinstance(found, pd.DataFrame):
        # Times are timestamps in a frame, and text elsewhere.
        found = rows_of(found.drop(columns="finished_at", errors="ignore"))
    elif isinstance(found, list) and found and not isinstance(found[0], dict):
        return [plain(item) for item in found]
    elif hasattr(found, "record") or hasattr(found, "_asdict"):
        found = record(found)
    elif hasattr(found, "__dataclass_fields__"):
        found = asdict(found)
    return json.loads(json.dumps(with_nulls(found), default=str))


def common(one: Any, other: Any) -> tuple[Any, Any]:
    """Reduces objects to their common keys: a command adds the run, an agent gets fewer."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = one.keys() & other.keys()
        assert names or not (one or other)
        pairs = {name: common(one[name], other[name]) for name in names}
        return {x: y[0] for x, y in pairs.items()}, {x: y[1] for x, y in pairs.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [common(*pair) for pair in zip(one, other, strict=True)]
        return [x for x, _ in parts], [y for _, y in parts]
    return one, other


def filled(arguments: Any, values: Mapping[str, str]) -> Any:
    """The arguments of a tool, about one model."""
    if isinstance(arguments, dict):
        return {name: filled(value, values) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [filled(value, values) for value in arguments]
    return arguments.format(**values) if isinstance(arguments, str) else arguments


@pytest.fixture(scope="module")
def every(kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """A copy of the database of every kind, in which findings are stored, with its SQL facts."""
    folder = tmp_path_factory.mktemp("questions")
    shutil.copy(kinds / "kinds.db", folder)
    return Matrix(folder)


@pytest.mark.parametrize("kind", TRIED_KINDS, ids=str)
def test_a_command_python_and_an_agent_give_one_answer(every: Matrix, kind: Kind) -> None:
    facts, db = every.facts, str(every.db)
    store = open_writer(db)
    run, *_, last = [int(run["run_id"]) for run in facts.sweeps[kind.name]]
    known = [*facts.wrong_strings(run), *facts.test_strings(run)]
    string = next(filter(None, known), spelled(UNKNOWN, kind.letters or {"a": "a", "b": "b"}))
    subject = Subject(store, kind.name, run, last, string)
    values = {name: str(value) for name, value in vars(subject).items()}
    tools, expected = [], []
    for name, question in QUESTIONS.items():
        if name in SLOW and TRIED_KINDS.index(kind) % 3:
            continue
        if name == "predict" and kind.overflows:
            # Python gives NaN, as arrays do; a command has to give the reason.
            continue
        typed = [part.format(**values) for part in question.line.split()]
        completed = run_main(name, *typed, "--db", db, "--json")
        assert completed.returncode in (0, 2), completed
        answer = json.loads(completed.stdout) if completed.returncode == 0 else None
        try:
            found = plain(question.call(subject))
        except SeqclsError:
            found = None
        assert (found is None) == (answer is None), (name, completed.stderr)
        if kind.imported and found is None:
            assert "weights are not in this database" in completed.stderr
        if name == "verdict" and isinstance(answer, list):
            # A command prints it as the only row of a table where it is one of counts.
            (answer,) = answer
        one, other = common(answer, found)
        assert one == other, name
        if question.tool is not None:
            tools.append((name, filled(question.tool, values)))
            expected.append(found)
        if name == "predict" and found is not None and string in facts.wrong_strings(run):
            right, given = ("label", "predicted") if "label" in found[0] else ("target", "output")
            assert found[0][right] != found[0][given], string
        if name == "errors" and kind.name in BELONGS:
            for error in found:
                assert error["label"] == BELONGS[kind.name](spelled_out(error["string"]))
                assert error["label"] == (error["logit"] <= 0)
            logit = plain(api.predict(store, run, [found[0]["string"]]))[0]["logit"]
            assert logit == pytest.approx(found[0]["logit"], abs=1e-4)
        if name == "patch" and answer is not None:
            assert not any(any(row) for row in answer.get("flips", []))
    for (name, _), reply, found in zip(tools, answers(store, tools), expected, strict=True):
        assert reply.is_error == (found is None), name
        if found is not None:
            shown = json.loads(reply.content[0].text)
            rows = shown.get("rows", [shown] if isinstance(found, list) else shown)
            one, other = common(rows, found[: len(rows)] if isinstance(found, list) else found)
            assert one == other, name


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A copy of the shipped database, in which findings are stored."""
    path = shutil.copy(SHIPPED, tmp_path_factory.mktemp("shipped"))
    # As if it had been trained again with other rounding, which takes minutes.
    writer.record_findings(
        open_writer(str(path)), 38, "perturbation", [Confusion(2886, 1443, 0, 5655)] * 9
    )
    return api.open_store(path)


def command_output(store: Store, *arguments: str) -> str:
    """The standard output of a command on that database."""
    return printed(*arguments, "--db", str(store.path))


def data(store: Store, *arguments: str) -> Any:
    return printed_json(*arguments, "--db", str(store.path))


def test_a_cause_is_given_in_sentences_and_as_data(shipped: Store) -> None:
    lines = command_output(shipped, "explain", SEED_2, "ab{100}c{55}").splitlines()
    assert lines[0].startswith("ab{100}c{55} is positive, but the model predicts negative")
    assert lines[1].startswith("Dilution: in head 0, the 100 b's drown the a")
    found = data(shipped, "explain", SEED_2, "ab{100}c{55}")
    assert found["sentences"] == lines
    first, last = (data(shipped, "explain", SEED_2, "aac", *x) for x in (["--epoch", "1"], []))
    assert first != last


def test_families_report_where_the_answer_flips(shipped: Store) -> None:
    lines = command_output(shipped, "family", SEED_2, "ab{n}").splitlines()
    assert lines[0].startswith("Tried: ")
    assert lines[0].endswith("between neighbors that agree a change is not excluded.")
    assert any(line.startswith("From n = 66 on it predicts negative (wrong)") for line in lines)
    found = data(shipped, "family", SEED_2, "ab{n}")
    assert [change["n"] for change in found["changes"]] == [found["first_wrong"]] == [66]
    lines = command_output(shipped, "family", SEED_2, "a{m}b{n}").splitlines()
    row = next(line for line in lines if line.startswith("With m = 1:"))
    assert row.startswith("With m = 1: positive (correct) for n = 1; negative from n = 66 on; ")
    found = data(shipped, "family", SEED_2, "a{m}b{n}")
    assert found["m"] == found["n"]
    assert found["changes"][0][0]["n"] == 66
    curve, groups = (api.family(shipped, SEED_2, x) for x in ("ab{n}", "a<b>{n}"))
    assert groups.wrong[0].values == curve.wrong[0].values == (66,)


def test_proofs_cover_every_set_of_letters(shipped: Store) -> None:
    lines = command_output(shipped, "verdict", SEED_2, "--beyond").splitlines()
    assert lines[0].startswith("Proved for strings of every length")
    assert len(lines) == 8
    assert lines[5].startswith("strings of a and c (negative): certified right")
    assert "wrong where the share of b is 2.59e-05 to 0.0142" in lines[6]
    found = data(shipped, "verdict", SEED_2, "--beyond")["supports"]
    claims = {proof["letters"]: proof["claim"] for proof in found}
    assert (claims["ac"], claims["bc"]) == ("certified right", "depends on the proportions")
    proved = api.proofs(shipped, SEED_2).supports
    assert [proof["claim"] for proof in found] == [proof.claim for proof in proved]


def test_a_proof_of_a_recurrent_network_is_checked_again(tmp_path: Path) -> None:
    load_parity(tmp_path / "hand.db")
    proof = tmp_path / "proof.json"
    environment = {"SEQCLS_DB": str(tmp_path / "hand.db")}
    proved = printed_json("prove", "hand/0", "--certificate", str(proof), **environment)
    assert proved["outcome"] == "proved"
    printed("check", str(proof))
    proof.write_text(proof.read_text().replace('"accepting": [1]', '"accepting": [0]'))
    check = run_main("check", str(proof))
    assert check.returncode != 0
    assert check.stderr.startswith("seqcls: ")
    assert check.stderr.count("\n") == 1


def test_a_right_model_has_the_automaton_of_its_language(shipped: Store) -> None:
    command = ("automaton", RIGHT, "--strings", "200")
    flat = " ".join(command_output(shipped, *command).split())
    assert "An automaton of 4 states agrees with the model on every string of up to 4" in flat
    assert "the same as the minimal automaton of the language (4 states)" in flat
    found = api.automaton(shipped, RIGHT, strings=200)
    inside = data(shipped, *command, "--inside")
    assert common(inside, plain(found.record()))[0] == plain(found.record())
    assert command_output(shipped, *command, "--dot").strip() == found.dot()
    assert found.dfa().accepts_input("ccab")
    assert not found.dfa().accepts_input("cca")


def test_an_exhaustive_check_is_shown_and_stored(shipped: Store) -> None:
    shown = command_output(shipped, "verdict", SEED_2)
    assert "of 1,373,700 multisets up to length 200" in shown
    assert "(190 false positives" in shown
    assert "the shortest is ab{66}" in shown
    change(shipped, "DELETE FROM finding WHERE run_id = 3")
    # Answers about a database opened for reading may still be stored.
    verdict = api.verdict(shipped, 3)
    assert rows(shipped, "SELECT inputs FROM verdict WHERE run_id = 3") == [(verdict.inputs,)]
    one, other = common(data(shipped, "verdict", "3")[0], plain(verdict))
    assert one == other


def test_ablation_by_command_equals_ablation_from_python(shipped: Store) -> None:
    command = ("ablate", SEED_2, "--part", "head", "--how", "mean", "--sample", "50", "--prune")
    judged = api.ablate(shipped, SEED_2, ["head"], "mean", sample=50, prune=True)
    steps = data(shipped, *command)["steps"]
    assert [step["misclassified"] for step in steps] == [x.errors for x in judged.outcomes]
    assert not judged.exact
    found = data(shipped, "ablate", SEED_2, "--prune")
    assert (found["exact"], found["strings"]) == (True, 9984)
    wrong = api.runs(shipped).set_index("id")["wrong"]
    assert found["steps"][0]["misclassified"] == wrong[found["run"]] > 0


def test_strings_of_any_length_are_answered_where_letter_counts_suffice(shipped: Store) -> None:
    (answer,) = api.predict(shipped, SEED_2, ["a{3000000}b"]).to_dict("records")
    (printed_row,) = data(shipped, "predict", SEED_2, "a{3000000}b")
    assert all(printed_row[name] == answer[name] for name in ("logit", "probability"))
    assert data(shipped, "minimal", SEED_2)["count"] == api.shortest(shipped, SEED_2).count
    patches = api.patch(shipped, SEED_2, "ab{100}c{55}")
    found = data(shipped, "patch", SEED_2, "ab{100}c{55}")
    assert found["source"]["string"] == patches.source.string
