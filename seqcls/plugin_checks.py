"""Checks of kinds, tasks and architectures of other packages before anything is trained.

Their descriptions are compared with their behavior on a few drawn strings.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from seqcls.config import NetworkConfig
from seqcls.kinds.base import Words
from seqcls.models.positions import read_ids
from seqcls.plugins import UnfitError
from seqcls.strings.alphabets import alphabet_obstacle, composing_obstacle
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.base import BulkTask, CountTask, InputTask, LanguageTask, Task

TRIED = 8
"""Number of inputs drawn to be evaluated with random outputs."""


def check_kind(kind: Any, task: Task) -> None:
    """Evaluates random outputs by a kind, and refuses results that cannot be stored or shown.

    Raises:
        UnfitError: a result or a description is not as expected.
    """
    outputs = kind.num_outputs(task)
    if not isinstance(outputs, int) or outputs < 1:
        raise UnfitError(f"has num_outputs={outputs!r:.60}, expected a whole number from 1")
    if not isinstance(task, InputTask):
        raise UnfitError(f"is of {type(task).__name__}, which draws no inputs")
    rng = np.random.default_rng(0)
    lengths = [length for length in range(TRIED) if task.has_input(length)]
    rows = [task.draw_input(rng, length).tolist() for length in lengths]
    strings = TokenStrings.of_lists(len(task.alphabet), rows)
    targets = kind.targets(task, strings)
    random_outputs = rng.normal(size=(len(rows), outputs) if outputs > 1 else len(rows))
    answered: dict[str, Any] = {
        "targets": targets,
        "answers": kind.answers(random_outputs),
        "margins": kind.margins(random_outputs, targets),
        "texts": kind.texts(task, targets),
    }
    for name, values in answered.items():
        if values is None or len(values) != len(rows):
            raise UnfitError(f"gives {name} as {values!r:.60}, expected one for each string")
    for part, needed in (("words", Words), ("answer_columns", tuple)):
        if not isinstance(getattr(kind, part, None), needed):
            raise UnfitError(f"has no {part}, which `seqcls.kinds.membership.OneAnswer` gives")
    # Words have to fit into sentences.
    for name, text in vars(kind.words).items():
        num_braces = int(name in ("miss", "misses"))
        braces = isinstance(text, str) and (text.count("{}"), text.count("{"), text.count("}"))
        if not text or braces != (num_braces,) * 3:
            expected = "text with one {} in it" if num_braces else "text without braces"
            raise UnfitError(f"has words with {name}={text!r:.60}, expected {expected}")
    if kind.cells:
        raise UnfitError(f"has cells={kind.cells!r:.60}, expected none: only languages have them")


@lru_cache(maxsize=256)
def check_architecture(network: NetworkConfig) -> None:
    """Runs a model on two strings, and refuses buffers that change and states not recorded.

    Raises:
        UnfitError: the model has these, no parameter, or outputs of another shape.
    """
    import torch

    from seqcls.models.initialization import initial_parameters, load_parameters, make_model

    values = initial_parameters(network, 0)
    if not values:
        raise UnfitError("has no parameter, so there is nothing to train")
    model = make_model(network).to(getattr(torch, network.precision))
    load_parameters(model, values)
    if network.head not in ("string", "places") or network.picture or network.coupling:
        # Only the task knows the inputs of such a model.
        return
    # With two lengths one string is padded.
    letters = [[0] * length for length in (2, 3)]
    read = read_ids(TokenStrings.of_lists(network.num_letters, letters), network.readout)
    ids = torch.from_numpy(read).long()
    # A model that draws numbers must not change the state of the global generator.
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        outputs = model.eval()(ids)
        recorded = model.activations(ids)
        buffers = {name: value.clone() for name, value in model.named_buffers()}
        # Only in training a buffer may change, such as a running mean.
        if buffers:
            model.use_dropout_generator(torch.Generator())
            model.train()(ids)
    is_one = network.head == "string" and network.num_outputs == 1
    expected_shape = tuple(ids.shape) if network.head == "places" else (len(ids),)
    expected_shape += () if is_one else (network.num_outputs,)
    if tuple(outputs.shape) != expected_shape:
        raise UnfitError(
            f"gives outputs of the shape {tuple(outputs.shape)} for {len(ids)} strings, expected "
            f"{expected_shape}"
        )
    for name, value in model.named_buffers():
        if not torch.equal(value, buffers[name]):
            raise UnfitError(
                f"has a buffer {name!r} that changes while it trains, and only parameters are "
                "kept; use what has none, such as LayerNorm in place of BatchNorm"
            )
    named = {
        "parts": model.parts().values(),
        "sites": [x for names in model.sites().values() for x in names],
        "attention": model.attention(),
        "units": [x for layer in model.units() for x in layer.values()],
    }
    for method, names in named.items():
        if unknown := [x for x in names if x not in recorded]:
            raise UnfitError(
                f"names a state {unknown[0]!r:.60} in {method}() that it never records"
            )


MOST_LETTERS = 254
"""Largest alphabet; with `CLS` and `PAD` token ids fit a byte."""

DRAWS = 100
"""Number of strings drawn to be compared with the labels, half of them positive."""


def check_language(task: Any) -> None:
    """Refuses a language with an alphabet or a description that cannot be used.

    Raises:
        UnfitError: an attribute is not as expected.
    """
    alphabet = task.alphabet
    tokens = alphabet if isinstance(alphabet, str | tuple) else ()
    if not 1 <= len(tokens) <= MOST_LETTERS or not all(isinstance(x, str) for x in tokens):
        raise UnfitError(
            f"has alphabet={alphabet!r:.60}, expected text of 1 to {MOST_LETTERS} characters, or a "
            "tuple of as many tokens"
        )
    obstacle = alphabet_obstacle(alphabet) or composing_obstacle(alphabet)
    if obstacle is not None:
        raise UnfitError(f"has alphabet={alphabet!r:.60}: {obstacle}")
    if not isinstance(task.order_sensitive, bool):
        raise UnfitError(f"has order_sensitive={task.order_sensitive!r:.60}, expected a bool")
    if not isinstance(described := task.describe(), str):
        raise UnfitError(f"describes itself by {described!r:.60}, expected a sentence")
    # Drawn strings are cached by their task, so one that cannot be hashed has to fail here.
    hash(task)


@lru_cache(maxsize=1024)
def check_draws(task: LanguageTask, lengths: range) -> None:
    """Draws a hundred strings of these lengths and compares their labels with the language.

    Raises:
        UnfitError: values that are no strings of the alphabet, or strings with another label.
    """
    rng = np.random.default_rng(0)
    for positive in (True, False):
        allowed = [length for length in lengths if task.has(length, positive)]
        chosen = rng.choice(allowed, DRAWS // 2)
        if isinstance(task, BulkTask):
            many = np.asarray(task.draw_many(rng, chosen, positive))
            drawn = [row[:n] for n, row in zip(chosen, many, strict=True)]
        else:
            drawn = [np.asarray(task.draw(rng, n, positive)) for n in chosen.tolist()]
        strings = _strings(task, chosen, drawn)
        answers = {"labels": task.labels(strings)}
        if isinstance(task, CountTask):
            answers["labels_of_counts"] = task.labels_of_counts(strings.counts)
        for name, labels in answers.items():
            _check_shape(name, labels, len(strings), "b")
            for row in np.flatnonzero(labels != positive)[:1]:
                text = Tokenizer(task.alphabet).spell(drawn[row].tolist())
                raise UnfitError(
                    f"draws {text[:60]!r} as a {'positive' if positive else 'negative'} string, "
                    f"which {name} contradicts"
                )


@lru_cache(maxsize=1024)
def check_inputs(task: InputTask, lengths: range) -> None:
    """Draws a hundred inputs of these lengths and checks their targets.

    Raises:
        UnfitError: values that are no inputs, or inputs without one target each.
    """
    rng = np.random.default_rng(0)
    allowed = [length for length in lengths if task.has_input(length)]
    chosen = rng.choice(allowed, DRAWS)
    drawn = [np.asarray(task.draw_input(rng, n)) for n in chosen.tolist()]
    targets = task.targets(_strings(task, chosen, drawn))
    if not isinstance(targets, np.ndarray) or targets.shape[:1] != (DRAWS,):
        raise UnfitError(f"gives targets as {targets!r:.60}, expected an array of one a string")


def _strings(task: Any, lengths: np.ndarray, drawn: list[np.ndarray]) -> TokenStrings:
    """Returns drawn strings after checking their lengths, letters and features."""
    for length, row in zip(lengths.tolist(), drawn, strict=True):
        _check_shape(f"a string of {length} letters", row, length, "biu")
        if length and not 0 <= row.min() <= row.max() < len(task.alphabet):
            raise UnfitError(
                f"draws the letter {row.min() if row.min() < 0 else row.max()}, expected numbers "
                f"from 0 to {len(task.alphabet) - 1}"
            )
    strings = TokenStrings.of_lists(len(task.alphabet), [row.tolist() for row in drawn])
    for name, values in task.features(strings).items():
        _check_shape(f"feature {name!r}", np.asarray(values), len(strings), "biuf")
    return strings


def _check_shape(what: str, given: Any, size: int, kinds: str) -> None:
    """Refuses a value that is no array of so many values of these kinds of NumPy's."""
    if not isinstance(given, np.ndarray):
        raise UnfitError(f"gives {what} as {given!r:.60}, expected an array of NumPy's")
    if given.shape != (size,) or (size and given.dtype.kind not in kinds):
        expected = {"b": "bool", "biu": "whole numbers", "biuf": "numbers"}[kinds]
        raise UnfitError(
            f"gives {what} as {given.dtype} of shape {given.shape}, expected {expected} of shape "
            f"({size},)"
        )
