"""Reasons for which questions about a kind of models may be refused."""

import re
from functools import cached_property

from seqcls.config import RunConfig
from tests.oracles.facts import Facts
from tests.world import Kind

REASONS = (
    ("untrained", "is failed( and (has no weights|was not tested|has no model)|, not finished)"),
    ("untrained", "none of its runs is finished|no finished run|no trained and tested model"),
    ("untrained", "No model that matches the filters is trained|This run has no model to show"),
    ("untrained", "training failed for all of these runs"),
    ("imported", "it was trained elsewhere and imported, so its weights are not in this database"),
    ("imported", "'imported' cannot be trained here|holds imported results"),
    ("imported", "has no seeds to train: its results are imported"),
    ("no language", "task='[a-z_]+' is not a language: its answers are not yes or no"),
    ("outside", "results are imported of languages, whose answers are labels"),
    ("language", "is not a transduction: its models write no outputs"),
    ("outside", "is not a transduction: its models write no outputs"),
    ("reads order", "(positions|architecture|readout)='[a-z]+' (may tell|makes equal) "),
    ("reads order", "task='[a-z_]+' depends on the order of tokens"),
    ("language", "the analysis is of required letters, and task='[a-z_]+' requires none"),
    ("own strings", "of strings that are not in the file nobody knows what is right"),
    ("own strings", "dataset='': expected strings; name a file as path='data.csv'"),
    ("no numbers", "has (no|an) answer: (its logit|what the model computes for (it|them)) is NaN"),
    ("pictures", "a model of its own file: the task says what this network reads .picture."),
    ("no states", "names no (states that could be carried over|parts that it could do without)"),
    ("any", "within two substitutions"),
    ("any", "--toml: expected the name of one sweep"),
    ("any", "none of the report's models"),
    ("imported", "has no finished run that is chosen"),
    ("language", "No finite machine was found within the budget"),
    ("language", "but the model predicts"),
    ("no memory", "cannot be proved, only rnn, gru, lstm"),
    ("counts", "no automaton of this language is known"),
    ("any", "no automaton of the model was found: "),
    ("structured", "none of the \\d+ strings tried is an input of task="),
)  # fmt: skip
"""Properties of a kind, and reasons that a refusal may then give."""


class Models:
    """The models of one kind; questions are about the first."""

    def __init__(self, kind: Kind, facts: Facts) -> None:
        self.kind = kind
        self.facts = facts
        self.runs = facts.sweeps[kind.name]
        self.run_id = int(self.runs[0]["run_id"])

    @cached_property
    def string(self) -> str:
        """A nonempty test string, one that the run gets wrong if there is any."""
        known = [*self.facts.wrong_strings(self.run_id), *self.facts.test_strings(self.run_id)]
        return next(filter(None, known), "ab")

    @property
    def family(self) -> str:
        """A family that begins like `string`, with a free count."""
        first = re.split(r"[ {]", self.string.lstrip("<"))[0]
        return (
            "<" + first.split(">")[0] + ">"
            if self.string[0] == "<"
            else first
            if " " in self.string
            else first[0]
        ) + "{n}"


def check_refusal(models: Models, message: str) -> None:
    """Asserts that the reason of a refusal follows from the kind."""
    nature = natures(models)
    allowed = [pattern for word, pattern in REASONS if word in nature]
    assert any(re.search(pattern, message) for pattern in allowed), (
        f"of {sorted(nature)}: {message}"
    )


def natures(models: Models) -> set[str]:
    """Properties of the models, from the database."""
    run = models.runs[0]
    fields = {**RunConfig().model_dump(), **models.facts.configs[run["config_id"]]}
    lengths = models.facts.lengths.get(models.run_id, {}).values()
    writes = any(row["edits"] is not None for row in lengths)
    reads_order = (fields["architecture"], fields["positions"]) != ("transformer", "none")
    is_language = run["tn"] is not None or run["state"] != "done"
    known = {
        "any": True,
        "untrained": run["state"] != "done",
        "imported": fields["architecture"] == "imported",
        "own strings": bool(fields["dataset"]),
        "reads order": reads_order,
        "language": is_language,
        "no language": not is_language,
        "outside": not is_language and not writes,
        "pictures": fields["task"] == "paragraph",
        "no states": fields["task"] == "paragraph" or fields["architecture"] == "bag",
        "counts": fields["task"] in ("majority", "safe_pops"),
        "no memory": fields["architecture"] not in ("rnn", "gru", "lstm"),
        "no numbers": models.kind.overflows,
        "structured": "=" in models.string or "/" in models.string,
    }
    return {name for name, holds in known.items() if holds}
