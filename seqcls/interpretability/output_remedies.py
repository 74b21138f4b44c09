"""What may help against wrong outputs of transductions: other positions, more depth."""

from typing import Any, get_args

from seqcls.config import COUPLED, default_fields
from seqcls.interpretability.causes.mechanisms import OUTPUT_BEHAVIOURS
from seqcls.interpretability.remedy import Remedy, Value, always, in_a_transformer, one_more
from seqcls.problem import Problem
from seqcls.results import ErrorKind
from seqcls.tasks.transductions.copying import Copy

_OF_OUTPUTS = frozenset({*get_args(ErrorKind), *OUTPUT_BEHAVIOURS})

_HUANG = "Huang et al. 2025, A Formal Framework for Understanding Length Generalization"
_OLSSON = "Olsson et al. 2022, In-context Learning and Induction Heads"
_CHO = "Cho et al. 2024, Position Coupling"


def _tested_longer(value: Value) -> Value:
    """Only where the test has longer strings than the training."""

    def where_longer(problem: Problem) -> Any:
        tested, trained = problem.test.lengths[-1], problem.train.lengths[-1]
        return value(problem) if tested > trained else None

    return where_longer


def _of_learned(problem: Problem) -> str | None:
    return "shifted" if problem.config.positions == "learned" else None


def _learned(problem: Problem) -> str | None:
    # Of learned places the draw alone is changed; coupled ones are moved already.
    return None if problem.config.positions in ("learned", *COUPLED) else "learned"


def _without_a_draw(problem: Problem) -> dict[str, Any]:
    """Coupled places read no `position_draw`."""
    name = "position_draw"
    return {name: default_fields()[name]} if name in problem.config.changed else {}


def _second_block(*, copies: bool) -> Value:
    def where_one(problem: Problem) -> Any:
        fits = isinstance(problem.task, Copy) == copies and problem.config.num_blocks == 1
        return 2 if fits else None

    return in_a_transformer(where_one)


def _more_layers(problem: Problem) -> int | None:
    # Of Transformers of one stream a second block is what there is a reason for.
    is_one_stream = problem.config.architecture == "transformer"
    return None if is_one_stream else int(one_more("num_blocks")(problem))


OUTPUT_REMEDIES = (
    Remedy(
        _OF_OUTPUTS,
        "positions",
        always("coupled_marks"),
        "Tokens of input and output that belong together share a place, so that what is to be "
        "written next, from the first token on, is found by its place, in longer strings too.",
        _CHO,
        _without_a_draw,
    ),
    Remedy(
        _OF_OUTPUTS,
        "position_draw",
        _tested_longer(_of_learned),
        "Places beyond those of training are trained too where training shifts strings.",
        _HUANG,
    ),
    Remedy(
        _OF_OUTPUTS,
        "positions",
        _tested_longer(_learned),
        "Places beyond those of training are trained too where they are learned and training "
        "shifts strings.",
        _HUANG,
        lambda _: {"position_draw": "shifted"},
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _second_block(copies=True),
        "Two blocks can look up what followed a token in the input; one that copies distinct "
        "tokens was not found.",
        f"{_OLSSON}; {_HUANG}",
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _second_block(copies=False),
        "Two blocks can look up what followed a token in the input; whether this task needs it is "
        "not proven.",
        _OLSSON,
    ),
    Remedy(
        _OF_OUTPUTS,
        "num_blocks",
        _more_layers,
        "More layers compute more from token to token; that these outputs need it is not proven.",
        "an assumption, which the training tests",
    ),
)
