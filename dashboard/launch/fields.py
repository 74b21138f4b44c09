"""Which settings the launch panel offers, what each means, and which cannot be left out."""

import ast
import inspect
import re
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from itertools import pairwise, product
from typing import Any, Literal, get_args, get_origin

from seqcls import config
from seqcls.config import ABOUT, ANY_SAMPLER, PARTS, REPORT_TASK, RunConfig, default_fields
from seqcls.errors import ConfigError, SpecError
from seqcls.fields import (
    READ_TO_STOP,
    READERS,
    read_by_kind,
    read_by_network,
    read_by_some_networks,
    read_by_task,
)
from seqcls.kinds import KINDS, kind_name
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.problem import language_or_reason, obstacle_of, usual_sampler
from seqcls.sampling import SAMPLERS
from seqcls.tasks import TASKS, LanguageTask
from seqcls.tasks.places import samplers_of
from sweeps.api.selecting import value_of
from sweeps.grid.written_spec import listed_values

GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(
        sorted((x for x in ABOUT if ABOUT[x].group == group), key=lambda x: ABOUT[x].place)
    )
    for group in config.GROUPS
}
"""Every field that can be set, those first that are asked for most."""

USUAL = {
    "Task": tuple(x for x in GROUPS["Task"] if x not in ("decoding", "beam_width")),
    "Strings": ("train_max_length", "test_max_length", "negatives"),
    "Network": (
        "architecture", "hidden_size", "num_attention_heads", "num_blocks", "feed_forward_size",
        "layer_norm", "layer_norm_eps",
    ),
    "Training": (),
}  # fmt: skip
"""The settings that are offered at once; the others of a group can be added."""

USUAL_TO_WRITE = ("positions",)
"""And those that are, where models write outputs: without positions a Transformer copies little."""

TYPED = frozenset(
    {
        *("alphabet", "dataset", "pattern", "replacement", "formula", "required_letters"),
        *("layers", "train_lengths", "freeze"),
    }
)
"""Settings that are typed, one value at a time."""

SEVERAL = ("pattern", "formula")
"""Those settings of which several may be typed, with `; ` between."""

ALSO_CALLED = {
    "num_blocks": "layers, depth", "hidden_size": "width, dimension, d_model",
    "num_attention_heads": "number of heads", "feed_forward_size": "MLP",
    "layer_norm_eps": "without normalization", "architecture": "model, network",
    "positions": "position encoding", "attention_mask": "causal", "readout": "pooling",
    "dropout_rate": "regularization", "max_num_epochs": "epochs, training time",
    "patience": "early stopping", "learning_rate": "lr, step size", "warm_up_steps": "warmup",
    "gradient_clip": "clipping", "train_size": "number of training strings",
    "test_size": "number of test strings", "task": "language",
    "pattern": "regular expression, regex",
}  # fmt: skip
"""Words by which people look for a setting, beside its name."""

REGISTERED: dict[str, Mapping[str, Any]] = {
    "task": TASKS,
    "architecture": MODELS,
    "positions": POSITIONS,
}

SIZES = [1, 2, 4, 8, 16, 32]
NUMBERS = [1_000, 2_000, 5_000, 10_000, 100_000]
BATCHES = [32, 64, 128, 256]
LENGTHS = [10, 20, 40, 50, 100, 200, 500]
OF_CLASSES = {
    "width": [2, 3, 4, 6],
    "threshold": [2, 3, 5],
    "alphabet_size": [2, 4, 16, 64],
    "tier_size": [2, 3, 5, 7],
    "language_seed": [0, 1, 2, 3, 4],
}
"""The values that are proposed for random languages of a class, about those of MLRegTest."""

Values = Callable[[str], list[Any]]
"""The values that are chosen for a field; its own one where none is."""


def default_value(field: str, task: Any, answers: Any = "string") -> Any:
    """What a field is where nothing is chosen for it."""
    names = KINDS.usable([kind_name(TASKS[name], answers) for name in TASKS.usable([task])])
    kind = next((KINDS[name] for name in names), None)
    own = task != REPORT_TASK or answers != "string"
    if field in {f"{part}_sampler" for part in PARTS} and own:
        return usual_sampler(TASKS[task], answers) if kind else ANY_SAMPLER
    fixed = kind.defaults if kind else {}
    return fixed.get(field, default_fields()[field])


def writes(task: Any) -> bool:
    """Whether models of a task write outputs."""
    return any(kind_name(TASKS[name]) == "transduction" for name in TASKS.usable([task]))


def usual(group: str, task: Any) -> tuple[str, ...]:
    """The settings of a group that are offered at once."""
    more = USUAL_TO_WRITE if group == "Network" and writes(task) else ()
    optional = optional_fields(task)
    return (*(x for x in USUAL[group] if x not in optional), *more)


def optional_fields(task: Any) -> frozenset[str]:
    """The fields of a task that may be empty, and then mean what it has by itself."""
    found: frozenset[str] = (
        getattr(TASKS[task], "optional", frozenset()) if task in TASKS else frozenset()
    )
    return found


def offered_fields(values: Values) -> dict[str, list[str]]:
    """The fields of each group that everything chosen reads, in the order of `GROUPS`."""
    read = _read_by_task(values) | _read_by_samplers(values) | _read_by_network(values)
    read |= set(GROUPS["Training"]) - set(READERS)
    if all(values("stop_when_right")):
        read |= READ_TO_STOP
    return {group: [name for name in names if name in read] for group, names in GROUPS.items()}


def _read_by_task(values: Values) -> set[str]:
    tasks = TASKS.usable(values("task"))
    every = (read_by_task(TASKS[name], "test") | read_by_kind(name) for name in tasks)
    return {"task"} | _by_all(every)


def _read_by_samplers(values: Values) -> set[str]:
    known = default_fields()
    read = {f"{part}_sampler" for part in PARTS}
    for part in PARTS:
        chosen = [SAMPLERS[name] for name in values(f"{part}_sampler") if name in SAMPLERS]
        every = _by_all(
            sampler.reads | sampler.reads_of_part.get(part, frozenset()) for sampler in chosen
        )
        read |= {f"{part}_{name}" if f"{part}_{name}" in known else name for name in every}
    return read


def _read_by_network(values: Values) -> set[str]:
    read = set(GROUPS["Network"]) - read_by_some_networks() - set(READERS)
    kinds = product(MODELS.usable(values("architecture")), POSITIONS.usable(values("positions")))
    return read | _by_all(read_by_network(*kind) for kind in kinds)


def _by_all(reads: Iterable[frozenset[str]]) -> set[str]:
    every = list(reads)
    return set(frozenset.intersection(*every)) if every else set()


def options(field: str, values: Values) -> list[Any]:
    """The values of a field that are offered to choose from."""
    if field in {f"{part}_sampler" for part in PARTS}:
        return [x for x in sorted(SAMPLERS) if not _obstacle(x, values)]
    if field in REGISTERED:
        return list(REGISTERED[field])
    if literals := _literals(field):
        return literals
    default = default_fields()[field]
    if isinstance(default, bool):
        return [False, True]
    if field in OF_CLASSES:
        return OF_CLASSES[field]
    if field.endswith("_max_length"):
        return LENGTHS
    if field in {f"{part}_size" for part in PARTS}:
        return NUMBERS
    if field.endswith("_batch_size"):
        return BATCHES
    return SIZES if field.endswith(("_size", "_heads", "_blocks", "_types")) else [default]


def _obstacle(sampler: str, values: Values) -> bool:
    for name in TASKS.usable(values("task")):
        task = language_or_reason(name, {field: values(field)[0] for field in TASKS[name].reads})
        # Of settings that are no language yet, something else is said.
        if isinstance(task, str):
            continue
        for answers in values("answers"):
            if isinstance(task, LanguageTask) and answers != "string":
                if sampler not in samplers_of(answers):
                    return True
            elif SAMPLERS[sampler].obstacle(task) is not None:
                return True
    return False


def is_open_ended(field: str) -> bool:
    """Whether a value can be typed, beside those that are offered."""
    closed = field in REGISTERED or field.endswith("_sampler") or bool(_literals(field))
    return not closed and not isinstance(default_fields()[field], bool)


def _literals(field: str) -> list[Any]:
    annotation = RunConfig.model_fields[field].annotation
    return list(get_args(annotation)) if get_origin(annotation) is Literal else []


def parse_typed(field: str, value: Any) -> tuple[list[Any], str | None]:
    """A value that was typed, as what the field holds; several may be separated by commas, whole
    numbers may be a range such as 0..7.

    Returns:
        The values, and why one is invalid; None if all are valid.
    """
    if isinstance(value, str) and field in SEVERAL:
        return list(filter(None, map(str.strip, re.split(r";\s", value)))), None
    if not isinstance(value, str) or field in TYPED:
        return [value], None
    values: list[Any] = []
    for text in filter(None, map(str.strip, value.split(","))):
        try:
            listed = listed_values(field, text)
            each = [text] if isinstance(listed, str) else map(str, listed)
            values += [value_of(field, x, f"{field}={x!r}") for x in each]
        except (ConfigError, SpecError) as error:
            return values, str(error)
    return values, None


def held_values(field: str, value: Any) -> tuple[list[Any], list[str]]:
    """What a box holds, of one value or several: the field's values, and why others are invalid."""
    given = value if isinstance(value, list) else [value]
    read = [parse_typed(field, each) for each in given if each not in (None, "")]
    reasons = [reason for _, reason in read if reason is not None]
    return [value for values, _ in read for value in values], reasons


# A line for each setting: the first sentence of its docstring in `RunConfig`.

OF_PARTS = {
    "sampler": "How {} strings are drawn.",
    "max_length": "Tokens of the longest {} string.",
    "min_length": "Tokens of the shortest {} string.",
    "alpha": "How evenly letters are mixed in {} strings; if small, one letter dominates.",
    "size": "Number of {} strings.",
    "batch_size": "Strings in a {} batch.",
    "seed": "Seed of the generator that draws {} strings.",
}
"""Meanings of the fields that training, validation and test each have."""

PART_NAMES = {"train": "training", "validation": "validation", "test": "test"}


@cache
def meanings() -> dict[str, str]:
    """What each field of a configuration is, by name."""
    texts = {
        f"{part}_{name}": _capital(text.format(strings))
        for part, strings in PART_NAMES.items()
        for name, text in OF_PARTS.items()
    }
    for made in ast.parse(inspect.getsource(config)).body:
        if not isinstance(made, ast.ClassDef) or made.name not in ("_NetworkFields", "RunConfig"):
            continue
        for before, after in pairwise(made.body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = _first_sentence(text)
    return texts


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


def settings_needed(fields: Mapping[str, Any], chosen: Container[str]) -> dict[str, Any]:
    """Values of other settings with which a configuration can be trained.

    Args:
        fields: names and values, as for `configuration`.
        chosen: names whose values stay as they are.

    Returns:
        The values that remove what is in the way; none where nothing is, or they do not help.
    """
    known = default_fields()
    tried = dict(fields)
    needed: dict[str, Any] = {}
    reason = obstacle_of(tried)
    while reason is not None:
        alternatives = _alternatives(known | tried)
        name = next((x for x in alternatives if f"{x}=" in reason and x not in chosen), None)
        if name is None or name in needed:
            break
        needed[name] = tried[name] = alternatives[name]
        reason = obstacle_of(tried)
    return needed if reason is None else {}


def _alternatives(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What each of these settings becomes where its value is in the way."""
    size = fields["attention_head_size"]
    return {
        "layers": "ga",
        "readout": "last",
        "attention_head_size": size + size % 2,
        "num_attention_heads": 1,
    }
