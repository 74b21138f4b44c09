"""States of any model along one string, in double precision."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from seqcls.errors import ConfigError
from seqcls.interpretability import readable_model
from seqcls.interpretability.readable_model import check_length, name_tokens, plain_model
from seqcls.interpretability.rows import record
from seqcls.interpretability.states_of_outputs import OutputToken
from seqcls.interpretability.trained_model import Answer, TrainedModel
from seqcls.interpretability.wording import Table
from seqcls.kinds.places import PlacesKind
from seqcls.models.base import Classifier, read_states
from seqcls.models.forms import form
from seqcls.models.mixing import blocks_of
from seqcls.models.pictures import memory_shape
from seqcls.strings.token_strings import TokenStrings

Kind = Literal["attention", "cross-attention", "self-attention"]
"""The tokens that are attended to: all that is read; of a decoder that reads outputs apart
from inputs the input, or the output so far."""


class LogitStep(NamedTuple):
    """One part of a model and what it adds to the logit."""

    part: str
    """`embedding`, `head`, `feed-forward`, `bias` or `norm`."""
    block: int | None
    """None where there is one."""
    head: int | None
    adds: float
    logit: float
    """The logit if the classifier read the stream after this part."""

    @property
    def text(self) -> str:
        """The name of the step, such as `block 0: head 1`."""
        part = self.part if self.head is None else f"head {self.head}"
        return part if self.block is None else f"block {self.block}: {part}"


class Patterns(NamedTuple):
    """The attention weights of every token, in every head."""

    tokens: tuple[str, ...]
    """The tokens attended to, as the model reads them; a token may attend to itself."""
    rows: tuple[str, ...]
    """The tokens that attend: others where output and input are read apart."""
    weights: Float[np.ndarray, "block head attending position"]
    """Row: the token that attends; column: its key. Rows sum to 1, or to 0 without keys."""
    blocks: tuple[int, ...]
    """The number of each block; others may not attend."""


class Prefixes(NamedTuple):
    """A string's prefixes, the empty one first, each evaluated as a string or at its place."""

    tokens: tuple[str, ...]
    """The last token of each prefix; of the empty one none."""
    logits: Float[np.ndarray, " prefix"]
    labels: np.ndarray
    """Labels of a language, None where a file has none; else the targets as text."""
    answers: tuple[str, ...] = ()
    """The answer at each place, where every place is answered."""

    def table(self) -> Table:
        """A row a prefix."""
        columns: dict[str, Any] = {"token": self.tokens, "logit": self.logits.round(4).tolist()}
        title, labels = "the logit after every prefix", self.labels.tolist()
        if any(isinstance(label, str) for label in labels):
            title = "the margin after every prefix"
            columns = {"token": self.tokens, "margin": columns["logit"], "target": labels}
            columns |= {"answer": self.answers} if self.answers else {}
        else:
            columns["label"] = ["not known" if x is None else str(int(x)) for x in labels]
        rows = zip(*columns.values(), strict=True)
        return Table(title, [dict(zip(columns, row, strict=True)) for row in rows])


class Units(NamedTuple):
    """A recurrent network's states, or a decoder's, after every token that it reads."""

    tokens: tuple[str, ...]
    states: Float[np.ndarray, "layer position hidden"]
    gates: dict[str, Float[np.ndarray, "layer position _"]]
    """By name; an LSTM's `cell` among them. None for a plain network."""
    layers: dict[str, int]
    """The layers' places by name; others may have no units."""

    def table(self) -> Table:
        """A row a token: the last layer's units after it."""
        rows = zip(self.tokens, self.states[-1].round(3).tolist(), strict=True)
        return Table(
            "the last layer's units after each token",
            [
                {"token": token, **{f"unit {x}": value for x, value in enumerate(values)}}
                for token, values in rows
            ],
        )


class Path(NamedTuple):
    """States along a string in the plane in which they vary most."""

    points: Float[np.ndarray, "position 2"]
    shares: tuple[float, float]
    """The share of all variance along each axis."""


class ModelStates(NamedTuple):
    """A model's states along a string, as far as its architecture has them."""

    answer: Answer
    prefixes: Prefixes | None
    """None of a model that writes."""
    output: tuple[OutputToken, ...] | None
    """The output that a model writes, token by token; None of a model that answers at once."""
    steps: tuple[LogitStep, ...] | None
    """The contribution of each part to the logit; None without a residual stream."""
    attention: Patterns | None
    units: Units | None
    path: Path | None
    """The path of the last layer's units, in the plane in which they vary most."""

    def record(self) -> dict[str, Any]:
        """The answer and the states as programs read them, as far as there are any."""
        prefixes, attention, units, path = self.prefixes, self.attention, self.units, self.path
        found = {
            "prefix_logits": prefixes and prefixes.logits,
            "prefix_answers": (prefixes and prefixes.answers) or None,
            "output": self.output,
            "steps": self.steps,
            "tokens": (attention and attention.tokens) or (units and units.tokens),
            "attention": attention and attention.weights,
            "units": units and units.states,
            "gates": units and units.gates,
            "path": path and path.points,
        }
        states = {name: record(x) for name, x in found.items() if x is not None}
        return {**self.answer.record(), **states}

    def describe(self, model: TrainedModel) -> Iterator[str | Table]:
        """The answer, and a table of each of the states."""
        yield f"{model.name}: {self.answer.text}"
        if self.steps is not None:
            steps = [
                {**x._asdict(), "adds": np.round(x.adds, 4), "logit": np.round(x.logit, 4)}
                for x in self.steps
            ]
            yield Table("what each part adds to the logit", steps)
        if self.units is not None:
            yield self.units.table()
        if self.output is not None:
            written = [
                {
                    "token": x.token,
                    "probability": np.round(x.probability, 4),
                    "runner-up": x.runner_up,
                    "its probability": np.round(x.runner_up_probability, 4),
                }
                for x in self.output
            ]
            yield Table("the output, token by token", written)
        if self.prefixes is not None:
            yield self.prefixes.table()


def layer_word(model: TrainedModel) -> str:
    """The word for the layers of `recurrent_units`: layer or block, maybe of a decoder."""
    plain = plain_model(model)
    if not plain.decoder_states():
        return "block" if model.config.layers else "layer"
    in_layers = any("layers." in name for name in plain.decoder_states())
    return "decoder layer" if in_layers else "decoder block"


def attention_kinds(model: TrainedModel) -> tuple[Kind, ...]:
    """The kinds of attention to tokens that a model has."""
    plain = plain_model(model)
    if not plain.decoder_states():
        return ("attention",) if plain.attention() else ()
    kinds: tuple[Kind, ...] = ("cross-attention", "self-attention")
    # A picture has no tokens that could name what is attended to.
    kinds = kinds[1:] if plain.config.picture else kinds
    return tuple(x for x in kinds if _decoder_weights(plain, x))


def attention_patterns(model: TrainedModel, letters: Sequence[int], kind: Kind) -> Patterns | None:
    """The attention weights of every block and head for one string; None of a model without.

    A model that writes reads its own output after the string.

    Raises:
        InvalidStringError: the string is longer than `MAX_TOKENS`.
    """
    if kind not in attention_kinds(model):
        return None
    plain, config = plain_model(model), model.config
    blocks = plain.attention() if kind == "attention" else _decoder_weights(plain, kind)
    tokens, states = _states(model, letters, blocks)
    weights = np.stack([states[block] for block in blocks])
    # In a hybrid, blocks that attend keep their numbers among all blocks.
    numbers = blocks_of(config.layers, True) or tuple(range(len(blocks)))
    if kind == "attention":
        return Patterns(tokens, tokens, weights, numbers)
    start = len(letters) + 1
    # An encoder reads `CLS` and the input, and `SEP` begins what the decoder reads.
    read = tokens[:start] if kind == "cross-attention" else tokens[start:]
    return Patterns(read, tokens[start:], weights, numbers)


def picture_attention(
    model: TrainedModel, letters: Sequence[int]
) -> Float[np.ndarray, "block head token row column"]:
    """The weights over the picture at each token that is written, `END` or the last included.

    Raises:
        ConfigError: the model attends to no picture.
        InvalidStringError: the string is longer than `MAX_TOKENS`.
    """
    plain = plain_model(model)
    names = _decoder_weights(plain, "cross-attention") if plain.config.picture else ()
    if not names:
        raise ConfigError(f"architecture={model.config.architecture!r} attends to no picture")
    _, states = _states(model, letters, names)
    weights = np.stack([states[name] for name in names])
    return weights.reshape(*weights.shape[:-1], *memory_shape(plain.config))


def _decoder_weights(plain: Classifier, kind: Kind) -> list[str]:
    """The names of a decoder's weights of a kind, a block each."""
    is_self_attention = kind == "self-attention"
    names = [x for x in plain.attention() if x.startswith("decoder.")]
    return [x for x in names if (".attention." in x) == is_self_attention]


# A logit as the sum of what each part of a model adds to it.


def logit_steps(model: TrainedModel, letters: Sequence[int]) -> tuple[LogitStep, ...] | None:
    """The contribution of each part to the logit of a string, in the order of the computation.

    The logit is linear in the residual stream where it is read, so the parts sum to it exactly, in
    double precision; by letter counts where the order of tokens has no part in it. Norms before
    attention and before the feed-forward are inside of what is added, as they act on this string.
    With the norms after each sum (`norm_placement = "post"`), or one after the last block
    (`final_norm`), what is added is scaled by every later norm, which is held at the scale that it
    has for this string. None of a model without a residual stream, or with more than one logit.
    """
    plain, network = plain_model(model), model.problem.network
    one_logit = network.num_outputs == 1 and network.head == "string"
    if not one_logit or (stream := form(plain, "residual_stream")) is None:
        return None
    batch, head, adds = readable_model.read_string(model, letters), stream().head, []
    with torch.no_grad():
        for x in stream().parts(readable_model.states(model, batch)):
            # A mean is linear, too: the mean of what a part adds is its share of the logit.
            read = read_states(plain.config, x.states, batch.ids, batch.times)
            adds.append((x.name, x.block, x.head, float((read @ head.weight.T).squeeze())))
        if head.bias is not None:
            # Last, so that the steps end at the logit itself.
            adds.append(("bias", None, None, float(head.bias)))
    logits = accumulate(added for *_, added in adds)
    return tuple(LogitStep(*step, logit) for step, logit in zip(adds, logits, strict=True))


def prefix_logits(model: TrainedModel, letters: Sequence[int]) -> Prefixes:
    """The logit after every prefix of a string: where the decision is made.

    Raises:
        ConfigError: the model writes, and a prefix of its input need be no input.
        InvalidStringError: the string is longer than `MAX_TOKENS`.
    """
    if reason := model.problem.lacks("prefixes"):
        raise ConfigError(reason)
    check_length(model, letters)
    kind, tokens = model.problem.kind, ("", *(model.tokenizer.alphabet[x] for x in letters))
    if isinstance(kind, PlacesKind):
        # Every place has an answer of its own, so one run answers all prefixes.
        outputs = readable_model.run(model, readable_model.read(model, [letters]))[0].numpy()
        strings = TokenStrings.of_lists(model.num_letters, [letters])
        targets = kind.targets(model.task, strings)[0].astype(np.int64)
        right, answers = (
            [kind.texts(model.task, np.array([[code]]))[0] for code in codes.tolist()]
            for codes in (targets, kind.decide(outputs))
        )
        margins = kind.place_margins(outputs, targets)
        return Prefixes(tokens, margins, np.array(right, dtype=object), tuple(answers))
    answered = model.ask_all([tuple(letters[:end]) for end in range(len(letters) + 1)])
    labels = np.array(model.decode(answered.targets))
    known = model.problem.knows(answered.strings)
    if not known.all():
        # None marks an unknown label, which an array of booleans cannot hold.
        labels = labels.astype(object)
        labels[~known] = None
    return Prefixes(tokens, answered.score.astype(np.float64), labels)


def recurrent_units(model: TrainedModel, letters: Sequence[int]) -> Units | None:
    """The state of every unit after every token, and every gate; as `attention_patterns`.

    Of an encoder-decoder the states of the decoder's blocks, from `SEP` on. None of a model that is
    not recurrent, and of a hybrid whose memories are of several kinds.

    Raises:
        InvalidStringError: the string is longer than `MAX_TOKENS`.
    """
    plain, config = plain_model(model), model.config
    start, layers = 0, plain.units()
    if names := plain.decoder_states():
        start, layers = len(letters) + 1, tuple({"state": name} for name in names)
    if not layers:
        return None
    tokens, states = _states(model, letters, [x for layer in layers for x in layer.values()])
    gates = {x: np.stack([states[layer[x]] for layer in layers]) for x in layers[0]}
    numbers = blocks_of(config.layers, False) or range(len(layers))
    by_name = {str(number): layer for layer, number in enumerate(numbers)}
    return Units(tokens[start:], gates.pop("state"), gates, by_name)


def principal_path(states: Float[np.ndarray, "position hidden"]) -> Path:
    """States in their first two principal components, each turned so that its largest is positive.

    With fewer than two directions the others are zero.
    """
    # The mean of no states is NaN.
    centered = states - states.mean(axis=0, keepdims=True) if len(states) else states
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    points = np.zeros((len(states), 2))
    number = min(2, len(sizes))
    points[:, :number] = left[:, :number] * sizes[:number]
    # An SVD leaves signs open; a fixed choice draws the same path each time.
    if len(points):
        largest = np.abs(points).argmax(axis=0)
        points *= np.where(points[largest, np.arange(2)] < 0, -1.0, 1.0)
    variance = np.zeros(2)
    total = float((sizes**2).sum())
    if total > 0:
        variance[:number] = sizes[:number] ** 2 / total
    return Path(points, (float(variance[0]), float(variance[1])))


def _states(
    model: TrainedModel, letters: Sequence[int], names: Sequence[str]
) -> tuple[tuple[str, ...], Mapping[str, Float[np.ndarray, "*state"]]]:
    """The tokens that are read of one string, and the states of these names."""
    check_length(model, letters)
    batch = readable_model.read(model, [letters])
    states = readable_model.states(model, batch, names)
    tokens = name_tokens(model, batch.ids[0].tolist())
    return tokens, {name: x[0].numpy() for name, x in states.items()}
