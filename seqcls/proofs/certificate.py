"""Certificates as files: what `seqcls.proofs.checker` reads, which needs nothing else."""

import json
from pathlib import Path
from typing import Any

from seqcls.errors import ConfigError, StoreError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.proofs import checker
from seqcls.proofs.cells import end_token
from seqcls.proofs.regions import BEGINNING, Refined, Regions
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks.automaton import Automaton
from seqcls.text import count
from seqcls.weights import from_bytes

FORMAT = "seqcls certificate 2"


def make_certificate(
    model: TrainedModel, automaton: Automaton, refined: Refined, regions: Regions
) -> dict[str, Any]:
    """A certificate of closed regions, as JSON has it.

    Args:
        automaton: whose answers the model gives.
        refined: the automaton of the regions.
    """
    empty = model.problem.tries_empty
    alphabet = list(model.tokenizer.alphabet)
    made = {
        "format": FORMAT,
        "cell": str(model.config.architecture),
        "letters": alphabet,
        "letter_ids": [FIRST_LETTER + number for number in range(len(alphabet))],
        "end_id": end_token(model.problem.network),
        "empty": empty,
        "weights": {
            name: {
                "type": value.dtype.name,
                "shape": list(value.shape),
                # The shortest decimals that are read as the same numbers.
                "values": [float(str(x)) for x in value.ravel()],
            }
            for name, value in sorted(model.weights.items())
        },
        "weights_sha256": checker.digest(model.weights),
        "automaton": {
            "start": int(automaton.start),
            "accepting": automaton.accepting.nonzero()[0].tolist(),
            "transitions": automaton.table.tolist(),
        },
        "regions": [
            {
                "state": int(refined.states[regions.state[number]]),
                # A string that is known whole begins with ^.
                "suffix": "^" * (BEGINNING in regions.suffixes[number])
                + model.text(refined.letters(regions.suffixes[number])),
                "next": regions.next[number].tolist(),
                **(
                    {"low": regions.low[number].tolist(), "high": regions.high[number].tolist()}
                    if regions.boxed[number]
                    else {}
                ),
            }
            for number in range(len(regions))
        ],
    }
    return {**made, "claim_sha256": checker.claim_digest(made)}


def to_text(certificate: dict[str, Any]) -> str:
    """A certificate as the text of a file, a region a line."""
    regions = ",\n".join(json.dumps(x, separators=(",", ":")) for x in certificate["regions"])
    rest = {name: value for name, value in certificate.items() if name != "regions"}
    # The last brace makes room for the regions.
    return f'{json.dumps(rest, ensure_ascii=False)[:-1]}, "regions": [\n{regions}\n]}}\n'


def check_file(path: Path, weights: Path | None = None) -> tuple[str, int]:
    """Checks the certificate in a file, of the weights in another where one is named.

    Returns:
        What is proved, and by how many regions.

    Raises:
        ConfigError: it proves nothing; why.
    """
    try:
        certificate = checker.read(path)
        given = None if weights is None else from_bytes(weights.read_bytes())
        regions = checker.check(certificate, given)
    except checker.RejectedError as error:
        raise ConfigError(f"{path.name}: rejected: {error}") from None
    except StoreError as error:
        raise ConfigError(f"{weights}: {error}; expected a safetensors file") from None
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise ConfigError(f"{error.filename!r} does not exist") from None
        raise ConfigError(f"{error.filename!r} cannot be read: {error.strerror}") from None
    except checker.MALFORMED as error:
        raise ConfigError(
            f"{path.name!r} is not a certificate ({type(error).__name__}); expected a "
            "file that `seqcls model prove` wrote"
        ) from None
    empty = "" if certificate["empty"] else " but the empty one"
    letters = zip(certificate["letters"], certificate["letter_ids"], strict=True)
    # A file may come from anybody, so signs that steer a terminal are spelled out.
    named = (f"{x if x.isprintable() else repr(x)} (id {number})" for x, number in letters)
    return (
        f"this {certificate['cell'].upper()} answers as the automaton in the file, of "
        f"{count(len(certificate['automaton']['transitions']), 'state')}, on every string{empty}; "
        "letters: " + ", ".join(named),
        regions,
    )
