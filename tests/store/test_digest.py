"""The digest of a run's results: one that is stored stays, and every value is covered."""

from typing import Any

from sweeps.results import RECORDS, SUMMARY, run_digest

VALUES: dict[str, Any] = {
    **{name: index for index, name in enumerate(SUMMARY)},
    "best_validation_loss": 0.5,
    "within_from": "validation",
    "lengths": "[[1,6,0,3,0,0,3],[2,10,1,4,1,0,5]]",
    "losses": "[[1,1.5,0.5],[2,0.7,0.6]]",
    "errors": "[[7,-0.25]]",
}
STORED = "ee03a8b6fb0598de89930ab6b14c82ee7e5edd41fc3dc11792192e35f98f5408"


def digest(key: str = "key", seed: int = 3, test_set: str = "set", **changed: Any) -> str:
    weights = changed.pop("weights", {1: b"weights"})
    return run_digest(key, seed, {**VALUES, **changed}, weights, test_set)


def test_a_digest_that_is_stored_stays_as_it_is_and_covers_every_value() -> None:
    assert digest() == STORED
    changes: list[dict[str, Any]] = [
        {},
        *({name: 99} for name in SUMMARY),
        *({name: "[]"} for name in RECORDS),
        *({"key": "other"}, {"seed": 4}, {"test_set": "other"}),
        *({"weights": weights} for weights in ({}, {2: b"weights"}, {1: b"others"})),
    ]
    assert len({digest(**change) for change in changes}) == len(changes)
