"""Proofs of recurrent networks, refutations, and a checker that rejects changed certificates."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from benchmarks.proofs import (
    change_number,
    draw_strings,
    errors_on,
    is_accepted,
    is_proved_anew,
    leads_on,
    move_weight,
    weights_of,
    with_claim,
    with_digest,
)
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.initialization import make_model
from seqcls.models.recurrent import Recurrent
from seqcls.proofs import checker
from seqcls.proofs.cells import BLOCK, Cells, boxes, rows_of
from seqcls.proofs.certificate import FORMAT, check_file, to_text
from seqcls.proofs.prover import Proof, ProofBudget, prove
from seqcls.proofs.search import Steps
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks.regular import minimal_automaton
from tests.science.proved import SMALL_TEST, adder, by_hand
from tests.zoo import scattered_model


@cache
def proved() -> Proof:
    return prove(by_hand(8.0))


def certificate_of(proof: Proof) -> dict[str, Any]:
    """A copy of the certificate of a proof."""
    assert proof.certificate is not None
    return deepcopy(proof.certificate)


def small(architecture: str = "rnn", **fields: Any) -> TrainedModel:
    """A network of six units with any weights, by default for parity."""
    own: dict[str, Any] = {"task": "parity", "hidden_size": 6, "biases": True, "readout": "last"}
    own |= {"architecture": architecture, "precision": "float32", **SMALL_TEST}
    return scattered_model(1, **{**own, **fields})


def test_model_right_by_construction_is_proved() -> None:
    proof = proved()
    assert proof.outcome == "proved"
    assert proof.regions < 30
    (sentence,) = proof.describe(by_hand(8.0))
    assert "automaton, of 2 states" in sentence
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=(20, 2_000)).tolist()
    rows += [[1] + [0] * n for n in range(0, 2_000, 97)]
    rows += [([1, 0, 0] * 700)[:n] for n in range(1_900, 2_000, 7)]
    assert not by_hand(8.0).ask(TokenStrings.of_lists(2, rows)).wrong.any()
    assert "that was learned" in replace(proof, of_language=False).describe(by_hand(8.0))[0]
    gates = by_hand(12.0, "gru")
    proof = prove(gates)
    assert proof.outcome == "proved"
    assert checker.check(certificate_of(proof), gates.weights) == proof.regions


def test_model_with_an_unbounded_cell_is_proved() -> None:
    model = adder()
    proof = prove(model)
    assert proof.outcome == "proved"
    assert max(x["high"][3] for x in certificate_of(proof)["regions"] if "high" in x) > 1_000
    assert checker.check(certificate_of(proof), model.weights) == proof.regions


def test_forgetful_model_is_refuted_by_a_repetition() -> None:
    model = by_hand(2.1)
    proof = prove(model)
    assert proof.outcome == "refuted"
    assert proof.string is not None
    assert model.answer(proof.string).is_wrong
    letters = list(model.letters(proof.string))
    shorter = [letters[:n] + letters[n + 1 :] for n in range(len(letters))]
    assert not model.ask_all([x for x in shorter if x]).wrong.any()
    assert model.text(letters) in proof.describe(model)[0]
    other = prove(by_hand(8.0), minimal_automaton("0*(10*10*)*", "01"))
    assert (other.outcome, other.of_language) == ("refuted", False)


def test_small_budget_leaves_a_proof_undecided() -> None:
    proof = prove(by_hand(8.0), budget=ProofBudget(seconds=1e-6))
    assert (proof.outcome, proof.certificate) == ("not decided", None)
    for seconds in (0, math.inf, math.nan):
        with pytest.raises(ConfigError, match=f"seconds={seconds}: expected more than 0"):
            ProofBudget(seconds=seconds)


def test_unprovable_model_is_refused_with_the_reason() -> None:
    for fields, reason in (
        ({"architecture": "mamba"}, "architecture='mamba'"),
        ({"architecture": "lstm", "readout": "mean"}, "readout='mean'"),
        ({"architecture": "rnn", "task": "majority"}, "no automaton of this language is known"),
    ):
        with pytest.raises(ConfigError, match=reason):
            prove(small(**fields))


def test_one_letter_language_is_refuted() -> None:
    assert prove(small(task="regular", alphabet="a", pattern="(aa)*")).outcome == "refuted"


@pytest.mark.parametrize("architecture", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("num_blocks", [1, 2])
def test_affine_form_contains_float32_states(architecture: str, num_blocks: int) -> None:
    model = small(architecture, num_blocks=num_blocks)
    network = make_model(model.problem.network)
    assert isinstance(network, Recurrent)
    network.load_state_dict({name: torch.from_numpy(x) for name, x in model.weights.items()})
    cells = Cells.from_model(model)
    rng = np.random.default_rng(2)
    middle, half = (
        rng.uniform(-1, 1, cells.network.units),
        rng.choice([0, 1e-5, 0.3], cells.network.units),
    )
    forms = boxes((middle - half)[None], (middle + half)[None])
    values = (middle + half * rng.uniform(-1, 1, (4_000, cells.network.units))).astype(np.float32)
    values = np.clip(values, (middle - half).astype(np.float32), (middle + half).astype(np.float32))
    parts = torch.from_numpy(values).split(6, dim=1)
    every = 2 if architecture == "lstm" else 1
    memory = network.nothing(len(values))._replace(states=list(parts[::every]))
    if architecture == "lstm":
        memory = memory._replace(cells=list(parts[1::2]))
    with torch.no_grad():
        for letter in (1, 0, 0):
            forms = cells.after_letter(forms, letter)
            _, memory = network.step(torch.full((len(values),), letter + FIRST_LETTER), memory)
            low, high = forms.ends
            reached = Steps(network, model.num_letters).values(memory)
            assert (reached >= low).all()
            assert (reached <= high).all()
        logits, _ = network.step(torch.zeros(len(values), dtype=torch.long), memory)
    low, high = cells.logits(forms)
    assert low[0] <= logits.min()
    assert logits.max() <= high[0]


@pytest.mark.parametrize("architecture", ["rnn", "gru", "lstm"])
def test_affine_forms_are_independent(architecture: str) -> None:
    """More forms than are stepped at once, and each of them alone."""
    cells = Cells.from_model(small(architecture))
    middle = np.random.default_rng(4).uniform(-1, 1, (BLOCK + 2, cells.network.units))
    forms = boxes(middle - 0.1, middle + 0.1)
    together = cells.after_letter(forms, 1)
    alone = [cells.after_letter(rows_of(forms, slice(n, n + 1)), 1) for n in range(len(middle))]
    for name in ("center", "generators", "rest"):
        expected = np.concatenate([getattr(x, name) for x in alone])
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-12, atol=1e-12)


def test_tanh_and_sigmoid_are_as_accurate_as_proofs_assume() -> None:
    x = np.concatenate(
        [np.linspace(-20, 20, 400_001), np.geomspace(1e-30, checker.LARGEST, 50_000)]
    )
    x = x.astype(np.float32)
    exact = x.astype(np.float64)
    given = torch.from_numpy(x)
    assert np.abs(given.tanh().numpy() - np.tanh(exact)).max() < checker.FUNCTION / 4
    assert (
        np.abs(given.sigmoid().numpy() - (1 + np.tanh(exact / 2)) / 2).max() < checker.FUNCTION / 4
    )


def test_certificate_with_a_changed_number_proves_nothing_wrong() -> None:
    certificate = certificate_of(proved())
    assert try_changes(certificate, 30) > 30 / 4
    assert is_proved_anew(certificate)
    certificate["automaton"]["accepting"] = [0, 1]
    assert not is_proved_anew(certificate)


def try_changes(certificate: dict[str, Any], changes: int, seed: int = 3) -> int:
    """Changes one number of a certificate, so many times, and returns how many are rejected.

    Accepted ones claim what was proved, and states drawn in their boxes lead where they claim.
    """
    rng, rejected = np.random.default_rng(seed), 0
    for _ in range(changes):
        changed = change_number(certificate, rng)
        if not is_accepted(changed):
            rejected += 1
            continue
        assert changed["automaton"] == certificate["automaton"]
        assert changed["weights"] == certificate["weights"]
        assert_is_right(changed)
    return rejected


def try_moved_weights(certificate: dict[str, Any], changes: int, seed: int = 3) -> int:
    """Moves one weight of a certificate, so many times, and returns how many are rejected.

    Its digest no longer fits; with a new digest it is accepted only where it is right.
    """
    rng, rejected = np.random.default_rng(seed), 0
    for _ in range(changes):
        changed = deepcopy(certificate)
        move_weight(changed, rng)
        assert not is_accepted(changed)
        if is_accepted(forged := with_digest(changed)):
            assert_is_right(forged)
        else:
            rejected += 1
    return rejected


def assert_is_right(certificate: dict[str, Any]) -> None:
    """Asserts that the claim holds for drawn strings and states."""
    assert leads_on(certificate)
    assert errors_on(certificate, draw_strings(60, 60, 2, 0)) == 0


def test_certificate_rejects_moved_weights() -> None:
    certificate = certificate_of(proved())
    weights = by_hand(8.0).weights
    for name, value in weights.items():
        moved = {**weights, name: value + np.float32(0.01)}
        with pytest.raises(checker.RejectedError, match="it is of other weights"):
            checker.check(certificate, moved)
        # Told that they are its own, they are proved or not, and right where they are.
        forged = deepcopy(certificate)
        forged["weights"][name]["values"] = moved[name].ravel().astype(float).tolist()
        forged = with_digest(forged)
        if is_accepted(forged):
            assert leads_on(forged)
            changed = replace(by_hand(8.0), weights=moved)
            assert not changed.ask_all(["10{500}1", "1{99}"]).wrong.any()


def test_certificate_with_a_smaller_box_is_rejected() -> None:
    certificate = certificate_of(proved())
    for region in certificate["regions"]:
        if "low" in region:
            region["high"] = region["low"]
    assert not is_accepted(certificate)
    assert not leads_on(certificate)
    # A box has ends, and a token one letter.
    for end in (np.inf, -np.inf, np.nan):
        certificate = certificate_of(proved())
        [x for x in certificate["regions"] if "low" in x][-1]["high"][0] = end
        with pytest.raises(checker.RejectedError, match="no box"):
            checker.check(certificate)
    for letters in (["0", "0"], ["0", ""], ["0"], ["0", "1", "2"]):
        with pytest.raises(checker.RejectedError, match="letters"):
            checker.check(with_claim({**certificate_of(proved()), "letters": letters}))


def test_certificate_file_is_checked_against_a_weights_file(tmp_path: Path) -> None:
    certificate = certificate_of(proved())
    path, weights = tmp_path / "proof.json", tmp_path / "model.safetensors"
    path.write_text(to_text(certificate))
    assert json.loads(path.read_text()) == certificate
    save_file(by_hand(8.0).weights, weights)
    assert check_file(path, weights)[1] == proved().regions
    save_file(by_hand(7.0).weights, weights)
    with pytest.raises(ConfigError, match="rejected: it is of other weights"):
        check_file(path, weights)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="is not a certificate"):
        check_file(path)
    with pytest.raises(ConfigError, match="does not exist"):
        check_file(tmp_path / "none.json")


def large_certificate(rng: np.random.Generator, hidden: int = 3) -> dict[str, Any]:
    """A certificate of an RNN with large weights that rejects every string.

    Every state it reaches is in the box.
    """
    shapes = {
        "embedding.weight": (4, hidden), "layers.0.input_weight": (hidden, hidden),
        "layers.0.state_weight": (hidden, hidden), "layers.0.input_bias": (hidden,),
        "layers.0.state_bias": (hidden,),
    }  # fmt: skip
    least, most = (17, 17, 36, 36, 36), (20, 20, 38.4, 38.4, 38.4)
    tops = rng.uniform(least, most)
    drawn = [rng.uniform(-1, 1, shape) for shape in shapes.values()]
    made = {name: x * 10**top for name, x, top in zip(shapes, drawn, tops, strict=True)}
    made |= {"classifier.weight": np.zeros((1, hidden)), "classifier.bias": -np.ones(1)}
    box = {"low": [-1.01] * hidden, "high": [1.01] * hidden}
    region = {"state": 0, "suffix": "", "next": [1, 1], **box}
    stored_weights = {
        name: {"type": "float32", "shape": [*x.shape], "values": values.tolist()}
        for name, x in made.items()
        for values in [x.ravel().astype(np.float32).astype(float)]
    }
    certificate = {
        **dict.fromkeys(("weights_sha256", "claim_sha256"), ""),
        "format": FORMAT, "cell": "rnn", "letters": ["0", "1"], "letter_ids": [2, 3],
        "end_id": None, "empty": False, "weights": stored_weights, "regions": [region, region],
        "automaton": {"start": 0, "accepting": [], "transitions": [[0, 0]]},
    }  # fmt: skip
    return with_digest(certificate)


def largest_sum(certificate: dict[str, Any], rng: np.random.Generator) -> tuple[float, bool]:
    """The largest sum of absolute terms of a gate at the corners of the box; and True if float32
    holds all partial sums, with terms of one sign first and in random orders.
    """
    w = weights_of(certificate)
    largest, holds = 0.0, True
    with np.errstate(over="ignore", invalid="ignore"):
        for token, corner in product(range(4), product((-1, 1), repeat=3)):
            state = np.array(corner, np.float32)
            given = w["layers.0.input_weight"] * w["embedding.weight"][token]
            # No state is read with what is no letter, but a table has it.
            own = w["layers.0.state_weight"] * state * (token in certificate["letter_ids"])
            biases = w["layers.0.input_bias"], w["layers.0.state_bias"]
            for terms in np.column_stack([given, own, *biases]):
                exact = abs(terms.astype(np.float64)).sum()
                largest = max(largest, float(exact))
                orders = [np.argsort(terms), np.argsort(-terms)]
                orders += [rng.permutation(len(terms)) for _ in range(3)]
                sums = (np.cumsum(terms[order], dtype=np.float32) for order in orders)
                holds &= all(np.isfinite(x).all() for x in sums)
    return largest, holds


def test_accepted_sums_overflow_in_no_order() -> None:
    rng, accepted = np.random.default_rng(0), 0
    for _ in range(90):
        certificate = large_certificate(rng)
        largest, holds = largest_sum(certificate, rng)
        again = is_accepted(certificate)
        assert again <= (largest < checker.LARGEST)
        assert again >= (largest < checker.LARGEST / 1.01), "the box ends at 1.01"
        assert holds or not again
        accepted += again
    assert 18 < accepted < 72


def test_overflowing_product_is_rejected() -> None:
    """Exact sums stay below 10^37; a product of them does not."""
    rng = np.random.default_rng(0)
    certificate = large_certificate(rng)
    for name, x in certificate["weights"].items():
        x["values"] = [0.0] * len(x["values"])
        if name == "classifier.bias":
            x["values"] = [-1.0]
    assert is_accepted(with_digest(certificate))
    weights = certificate["weights"]
    weights["embedding.weight"]["values"][-3:] = [1e20, 1e20, 0.0]
    weights["layers.0.input_weight"]["values"][:3] = [1e20, -1.0001e20, 0.0]
    with pytest.raises(checker.RejectedError, match="and so overflow in float32"):
        checker.check(with_digest(certificate))
    # Not even of a token that no string has: programs look up what is made of all.
    values = weights["embedding.weight"]["values"]
    values[:3], values[-3:] = values[-3:], [0.0] * 3
    with pytest.raises(checker.RejectedError, match="and so overflow in float32"):
        checker.check(with_digest(certificate))
    with pytest.raises(checker.RejectedError, match="and so overflow"):
        Cells.from_model(
            replace(by_hand(8.0), weights=weights_of(certificate))
        ).network.bound_tokens()


def change(text: str, *path: str | int, to: Any) -> str:
    """A certificate's text with another value somewhere."""
    certificate = json.loads(text)
    *way, last = path
    at = certificate
    for step in way:
        at = at[step]
    at[last] = to
    return json.dumps(certificate)


BIAS = "weights", "classifier.bias"

ODD: dict[str, Callable[[str], str | bytes]] = {
    "nothing": lambda _: "",
    "no JSON": lambda _: "proof",
    "no UTF-8": lambda text: b"\xff" + text.encode(),
    "a number": lambda _: "NaN",
    "a list": lambda text: f"[{text}]",
    "100,000 brackets": lambda _: "[" * 100_000,
    "brackets within": lambda text: change(text, "suffix", to=0).replace("0}", "[" * 100_000),
    "a key twice": lambda text: text.replace('"start"', '"start": 0, "start"', 1),
    "one key more": lambda text: change(text, "comment", to=""),
    "letters exchanged": lambda text: change(text, "letters", to=["1", "0"]),
    "no letters": lambda text: change(text, "letters", to=None),
    "numbers of letters exchanged": lambda text: change(text, "letter_ids", to=[3, 2]),
    "suffix": lambda text: change(text, "regions", 0, "suffix", to="11"),
    "true for a number": lambda text: change(text, "automaton", "transitions", 0, 0, to=False),
    "1.0 for a whole number": lambda text: change(text, "letter_ids", to=[2.0, 3.0]),
    "true for a weight": lambda text: change(text, *BIAS, "values", 0, to=True),
    "infinite": lambda text: change(text, *BIAS, "values", 0, to=math.inf),
    "too large": lambda text: change(text, *BIAS, "values", 0, to=10**400),
    "another shape": lambda text: change(text, *BIAS, "shape", to=[-1]),
    "no weights": lambda text: change(text, "weights", to={}),
    "no regions": lambda text: change(text, "regions", to=[]),
    "a format of before": lambda text: text.replace("certificate 2", "certificate 1"),
}


@pytest.mark.parametrize("odd", ODD)
def test_malformed_certificate_is_refused_in_one_line(odd: str, tmp_path: Path) -> None:
    given, path = ODD[odd](to_text(certificate_of(proved()))), tmp_path / "odd.json"
    path.write_bytes(given if isinstance(given, bytes) else given.encode())
    with pytest.raises(ConfigError) as refused:
        check_file(path)
    ways = ("odd.json: rejected: ", "'odd.json' is not a certificate (")
    assert str(refused.value).startswith(ways)
    assert "\n" not in str(refused.value)
    with pytest.raises(Exception):  # noqa: B017, PT011 - alone it says whatever is raised
        checker.check(checker.read(path))


def test_standalone_checker_accepts_and_refuses_in_one_line(tmp_path: Path) -> None:
    path, weights, odd = (tmp_path / x for x in ("proof.json", "weights.npz", "odd.json"))
    path.write_text(to_text(certificate_of(proved())))
    odd.write_text(str(ODD["100,000 brackets"]("")))
    given: dict[str, Any] = dict(by_hand(8.0).weights)
    np.savez(weights, **given)
    for paths, status in (((path, weights), 0), ((path, path), 1), ((odd,), 1)):
        command: list[str | Path] = [sys.executable, checker.__file__, *paths]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stderr
        assert (ended.stdout + ended.stderr).count("\n") == 1
        assert len(ended.stderr) < 300
        assert ended.stderr.startswith("rejected: ") == bool(status)
    assert "import seqcls" not in Path(checker.__file__).read_text(), "it stands alone"
    assert f"letters: 0 (id {FIRST_LETTER}), 1 (id {FIRST_LETTER + 1})" in check_file(path)[0]
