"""A model of theirs as a network of ours with the same function, by the table of its format.

What cannot be read is refused by name: a tensor that is missing, or has no place or another shape,
and a setting that has another value than such a model may have.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqcls.adapters.formats import CELLS, OWN, RECURRENT, TABLE, Format, Row
from seqcls.adapters.taking import Settings, Tensors, bias_of, is_position
from seqcls.adapters.vocabulary import Vocabulary, short
from seqcls.config import ABOUT
from seqcls.errors import ConfigError
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.results import Weights
from seqcls.strings.tokenizer import FIRST_LETTER

MOST_PLACES = 10_000
"""Rows of a table of waves that is not in the file."""

_HEAD = re.compile(r"(head|fc|out|linear|classif|decoder|proj|logit|dense)\w*\.weight$")
"""In names of matrices that are no embedding where they stand alone."""


class Loaded(NamedTuple):
    """The fields of a network of ours, and its parameters."""

    fields: dict[str, Any]
    weights: Weights
    reading: Mapping[str, Any] = {}
    """How they were read; see `ForeignWeights.read`."""


def read(form: Format, tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """The network that a model of a format is; of `tensors` those are left that have no place.

    Raises:
        ConfigError: a tensor or a setting is missing, or cannot be read.
    """
    prefix = _find_blocks(form, tensors)
    weights, sizes = _read_blocks(form, tensors, prefix)
    hidden, dtype = sizes["hidden"], next(iter(weights.values())).dtype
    fields = {**form.fields, "num_blocks": sizes["blocks"], "hidden_size": hidden, "biases": True}
    # Answers at places are read off at each of them, whatever a readout says.
    unasked = {"readout"} if vocabulary.at_places else set[str]()
    if form is RECURRENT:
        fields["architecture"] = _cell(form.sign, sizes)
        if sizes["gates"] != hidden and "nonlinearity" not in settings.given:
            # Gates have none to choose.
            unasked.add("nonlinearity")
    # A model that answers at every place must not see what follows.
    is_causal = vocabulary.at_places or tensors.causal_mask
    defaults = {"mask": "causal"} if is_causal else {}
    options = {x: settings.get(x, defaults.get(x)) for x in form.settings if x not in unasked}
    for name, value in options.items():
        if ours := form.settings[name].field:
            among = form.settings[name].values
            fields[ours] = among[value] if isinstance(among, Mapping) and among else value
    # Nothing reads it where answers stand at places, but looking ids up asks for one.
    readout = fields.setdefault("readout", "first")
    if tensors.causal_mask and options.get("mask") == "causal":
        tensors.read_as["mask"] = tensors.causal_mask
    if form is not RECURRENT:
        fields |= _transformer_fields(options, sizes, weights)
        places = _read_places(form, tensors, options, hidden, dtype)
        fields["positions"] = "none" if places is None else "learned"
        weights |= {} if places is None else {TABLE: places}
    name, table = _read_embedding(form, tensors, options, sizes["inputs"], dtype)
    embedded = vocabulary.embedding(table, readout, name)
    # Our Transformer has no such factor (Vaswani et al. 2017), so the embeddings take it up.
    if options.get("embedding_scale") == "sqrt":
        embedded = embedded * np.sqrt(hidden).astype(embedded.dtype)
    if form is RECURRENT:
        first = "layers.0.input_weight"
        embedded, weights[first] = _widen(embedded, weights[first], hidden)
    head = _read_head(tensors, settings, options, vocabulary, table, hidden, readout)
    weights |= {"embedding.weight": embedded}
    weights |= dict(zip(("classifier.weight", "classifier.bias"), head, strict=True))
    sizes |= {"tokens": len(table), "places": len(weights.get(TABLE, ()))}
    settings.check_sizes({theirs: sizes[ours] for theirs, ours in form.sizes.items()})
    # Some models count places from an offset on; the rows before it are never read.
    if (offset := options.get("position_offset", 0)) and TABLE in weights:
        if offset >= sizes["places"]:
            raise ConfigError(
                f"position_offset={offset}: expected fewer than the {sizes['places']} places"
            )
        weights[TABLE] = weights[TABLE][offset:]
    return Loaded(fields, weights)


def _find_blocks(form: Format, tensors: Tensors) -> str:
    """What stands before the names of blocks."""
    names = sorted(tensors.left)
    found = [x for x in names if re.fullmatch(rf"(.*\.)?{re.escape(form.sign)}", x)]
    if len(found) != 1:
        shown = f"{', '.join(found):.60}" if found else "none"
        raise ConfigError(f"tensors named {form.sign!r}: {shown}; expected one {form.name}")
    if other := [x for x in names if re.fullmatch(form.refused[0], x)]:
        raise ConfigError(f"tensor {short(other[0])}: {form.refused[1]}")
    tensors.left = {x: y for x, y in tensors.left.items() if not re.fullmatch(form.left_out, x)}
    return found[0].removesuffix(form.sign)


def _read_blocks(form: Format, tensors: Tensors, prefix: str) -> tuple[Weights, dict[str, int]]:
    """The parameters of all blocks and the norm after them, and the sizes that they have."""
    weights, sizes, block = Weights(), dict[str, int](), 0
    first = f"{prefix}{form.blocks[0].theirs}"
    # A model has biases in all of its layers or in none, so the first one tells.
    has_biases = first.format(0).replace("*", "bias") in tensors.left
    while block == 0 or first.format(block).replace("*", "weight") in tensors.left:
        for row in form.blocks:
            weights |= _read_row(row, tensors, prefix, block, sizes, has_biases)
        block += 1
    # What is left over in a block must not be taken for an embedding or a head.
    tensors.within_blocks = tuple(first.partition("{}")[0] + f"{x}." for x in range(block))
    if form.final:
        weight, bias = (f"{prefix}{form.final.theirs}".replace("*", x) for x in ("weight", "bias"))
        if weight in tensors.left or form.fields.get("final_norm"):
            has_bias = has_biases or bias in tensors.left
            weights |= _read_row(form.final, tensors, prefix, 0, sizes, has_bias)
    # Blocks of a Transformer read the hidden state; recurrent layers have inputs of another size.
    return weights, {"inputs": sizes["hidden"], **sizes, "blocks": block}


def _read_row(
    row: Row, tensors: Tensors, prefix: str, block: int, sizes: dict[str, int], has_biases: bool
) -> Weights:
    """Our parameters out of the tensors of one layer; `sizes` that it is the first to have are
    set.
    """
    theirs = f"{prefix}{row.theirs.format(block)}"
    weight, bias = (theirs.replace("*", x) for x in ("weight", "bias"))
    # Later layers read what the one before gives.
    names = ["hidden" if block and x == "inputs" else x for x in row.shape]
    shape = tensors.shape(weight)
    if len(shape) == len(names):
        outputs, *inputs = shape[::-1] if row.transposed else shape
        # Inputs first: outputs are those of several parts.
        for name, size in zip(names[1:], inputs, strict=True):
            sizes.setdefault(name, size)
        sizes.setdefault(names[0], outputs // len(row.ours))
    known = [sizes.get(name) for name in names]
    if known[0] is not None:
        known[0] *= len(row.ours)
    matrix = tensors.take(weight, *(known[::-1] if row.transposed else known))
    matrix = matrix.T if row.transposed else matrix
    # The network here is made with biases, and zeros change nothing.
    biases = np.zeros_like(matrix, shape=len(matrix))
    if has_biases:
        biases = tensors.take(bias, len(matrix))
    made = Weights()
    for name, rows, numbers in zip(
        row.ours, np.split(matrix, len(row.ours)), np.split(biases, len(row.ours)), strict=True
    ):
        made[name.format(block).replace("*", "weight")] = np.ascontiguousarray(rows)
        made[name.format(block).replace("*", "bias")] = numbers.copy()
    return made


def _cell(name: str, sizes: Mapping[str, int]) -> str:
    """The architecture that has so many gates."""
    rows, hidden = sizes["gates"], sizes["hidden"]
    if hidden == 0 or rows % hidden or rows // hidden not in CELLS:
        raise ConfigError(
            f"tensor {name!r} has {rows} rows and {hidden} units: expected 1 gate (RNN), 3 (GRU) "
            "or 4 (LSTM)"
        )
    return CELLS[rows // hidden]


def _transformer_fields(
    options: Mapping[str, Any], sizes: Mapping[str, int], weights: Weights
) -> dict[str, Any]:
    """The fields of a Transformer by its sizes."""
    name, hidden = "n_head" if "n_head" in options else "heads", sizes["hidden"]
    if hidden % (heads := options[name]):
        raise ConfigError(f"{name}={heads}: expected a divisor of the width, {hidden}")
    if options.get("scale_attn_weights") is False:
        # The house divides scores by the root of a head's size.
        for name, query in weights.items():
            if ".query." in name:
                query *= np.sqrt(hidden // heads).astype(query.dtype)
    return {
        "attention_head_size": hidden // heads,
        "feed_forward_size": sizes["inner"],
        "final_norm": "final_norm.weight" in weights,
    }


def _read_places(
    form: Format, tensors: Tensors, options: Mapping[str, Any], hidden: int, dtype: np.dtype
) -> np.ndarray | None:
    """The table of positions, a row a place; None where the model knows none.

    A table may stand in a tensor of a name with `pos`, or `pe`; with `positions=sinusoidal` it is
    that of PyTorch's tutorial, sines and cosines in turn.
    """
    names = [x for x in sorted(tensors.left) if is_position(x)]
    if not names and form.fields.get("positions"):
        raise ConfigError(f"no table of positions, as {form.name} has one")
    table = None
    if names:
        # Tables may have axes of one row, such as (places, 1, hidden) in PyTorch's tutorial.
        table = tensors.take(names[0], *[None] * len(tensors.shape(names[0])))
        rows = max(table.shape[:-1], default=0)
        if table.shape[-1:] != (hidden,) or table.size != rows * hidden:
            raise ConfigError(
                f"tensor {short(names[0])} has the shape {table.shape}, expected (any, {hidden})"
            )
        table = table.reshape(rows, hidden)
        tensors.read_as["positions"] = names[0]
    if options.get("positions") == "sinusoidal":
        places = np.arange(MOST_PLACES if table is None else len(table))
        # Vaswani et al. 2017, section 3.5, with sines and cosines in turn along the width.
        angles = places[:, None] * 10_000 ** (-np.arange(0, hidden, 2) / hidden)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(places), -1)
        waves = waves[:, :hidden].astype(dtype)
        # Computed in float32 elsewhere, the same waves differ in their last digits.
        if table is not None and not np.allclose(table, waves, atol=1e-3):
            raise ConfigError(
                f"tensor {short(names[0])} has other numbers than positions='sinusoidal'; leave "
                "it out to read the table"
            )
        table = waves if table is None else table
    return table


def _read_embedding(
    form: Format, tensors: Tensors, options: Mapping[str, Any], width: int, dtype: np.dtype
) -> tuple[str, np.ndarray]:
    """The name of the embedding among what is left, and its numbers."""
    name = _find_named(tensors, options["embedding"])
    if name is None:
        # A matrix with a bias beside it is a linear layer.
        matrices = [
            x
            for x in tensors.matrices
            if tensors.shape(x)[1] == width and bias_of(x) not in tensors.left
        ]
        called = [x for x in matrices if re.search("emb|tok|wte", x)]
        if len(called) > 1:
            raise ConfigError(
                f"tensors {', '.join(called):.60} may each be the embedding: say which it is, as "
                f"embedding={called[-1].removesuffix('.weight')}"
            )
        head = _find_named(tensors, options["head"])
        others = [x for x in matrices if not _HEAD.search(x) and x != head]
        name = next(iter(called or (others if len(others) == 1 else [])), None)
    tensors.read_as["embedding"] = name or "none: tokens are one-hot"
    if name is None:
        if form is not RECURRENT:
            raise ConfigError(f"no embedding: expected a matrix of {width} columns; name it")
        return form.sign, np.eye(width, dtype=dtype)
    return name, tensors.take(name, None, width)


def _find_named(tensors: Tensors, name: Any) -> str | None:
    """The tensor that a setting names, with or without `.weight`."""
    if name is None:
        return None
    return str(name) if str(name) in tensors.left else f"{name}.weight"


def _widen(embedded: np.ndarray, weight: np.ndarray, hidden: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings as wide as the hidden state, and the first layer's weight, with equal products.

    Narrower ones are padded with zeros. Of wider ones the products are what the layer has, where
    there are no more tokens than hidden numbers.
    """
    tokens, inputs = embedded.shape
    if inputs > hidden:
        if tokens > hidden:
            raise ConfigError(
                f"embeddings of {inputs} numbers of {tokens} tokens before {hidden} units: "
                f"expected at most {hidden} numbers, or tokens"
            )
        # Multiplied in double precision, the products are rounded once.
        products = weight.astype(np.float64) @ embedded.T.astype(np.float64)
        weight, embedded = products.astype(weight.dtype), np.eye(tokens, dtype=weight.dtype)
    missing = hidden - embedded.shape[1]
    return np.pad(embedded, ((0, 0), (0, missing))), np.pad(weight, ((0, 0), (0, missing)))


def _read_head(
    tensors: Tensors,
    settings: Settings,
    options: Mapping[str, Any],
    vocabulary: Vocabulary,
    table: np.ndarray,
    hidden: int,
    readout: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Our head, out of the one matrix that is left and reads the state, or of the embeddings."""
    names = [x for x in tensors.matrices if tensors.shape(x)[1] == hidden]
    if (named := _find_named(tensors, options["head"])) is not None:
        names = [named]
    if len(names) > 1:
        raise ConfigError(
            f"tensors {', '.join(names):.60} may each be the head: expected one linear layer; say "
            f"which it is, as head={names[-1].removesuffix('.weight')}"
        )
    has_answers = vocabulary.has_token_outputs or "yes" in options
    if not names and not (has_answers and table.shape[1] == hidden):
        raise ConfigError(f"no linear head: expected a matrix with {hidden} columns")
    name, weight, bias = "the embeddings", table, np.zeros_like(table[:, 0])
    if names:
        name = names[0]
        weight = tensors.take(name, None, hidden)
        bias = np.zeros_like(weight[:, 0])
        if bias_of(name) in tensors.left:
            bias = tensors.take(bias_of(name), len(weight))
    tensors.read_as["head"] = name
    if "tie_word_embeddings" in options:
        _check_tying(settings, tensors, options["tie_word_embeddings"], table, weight)
    if "yes" in options and not vocabulary.at_places and not name.endswith("score.weight"):
        # A language model says whether a string is in the language by its next token.
        # Called for what it refuses: a head with fewer rows than the vocabulary has ids.
        vocabulary.embedding(weight, readout, name)
        answers = [_answer_id(vocabulary, x, options[x]) for x in ("no", "yes")]
        weight, bias = weight[answers], bias[answers]
    return vocabulary.head(weight, bias, readout, name)


def _answer_id(vocabulary: Vocabulary, answer: str, token: Any) -> int:
    """The id of the token by which a language model says `yes` or `no` of a string."""
    if token is None or str(token) not in vocabulary.ids:
        reason = "is not named" if token is None else f"is {short(token)}, not in the vocabulary"
        raise ConfigError(
            f"the token that says {answer} of a string {reason}: name both, as yes=1 and no=0"
        )
    return vocabulary.ids[str(token)]


def _check_tying(
    settings: Settings, tensors: Tensors, tied: bool | None, table: np.ndarray, head: np.ndarray
) -> None:
    """Refuses a head of which tensors and settings say two things: that it is one of its own and is
    missing, or that it is the embeddings and differs.
    """
    name, embedding = tensors.read_as["head"], tensors.read_as["embedding"]
    if tied is None and settings.folder_settings.get("model_type") == "gpt2":
        # Where Hugging Face's settings say nothing, it takes the embeddings.
        tied = True
    if tied is False and name == "the embeddings":
        raise ConfigError("tensor 'lm_head.weight' is missing, and tie_word_embeddings=False")
    if tied and name.endswith("lm_head.weight") and not np.array_equal(head, table):
        raise ConfigError(
            f"tensor {short(name)} differs from {short(embedding)}, which is the head with "
            "tie_word_embeddings=True: expected False, or the same numbers"
        )


def read_own(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """A model that `seqcls give` wrote: the names are ours.

    Raises:
        ConfigError: `config.json` or the vocabulary is not that of one.
    """
    network = settings.folder_settings.get("network")
    if settings.folder_settings.get("format") != OWN or not isinstance(network, Mapping):
        raise ConfigError("config.json: expected that of a model that `seqcls give` wrote")
    architecture, positions = network.get("architecture"), network.get("positions", "none")
    if architecture not in MODELS or positions not in POSITIONS:
        raise ConfigError(f"architecture={short(architecture)}: not installed here")
    alphabet = settings.folder_settings.get("alphabet", vocabulary.alphabet)
    if list(alphabet) != list(vocabulary.alphabet):
        raise ConfigError("the model reads other tokens than the task has; name its own task")
    ids = [vocabulary.ids[x] for x in vocabulary.alphabet]
    if vocabulary.is_named and ids != [*range(FIRST_LETTER, FIRST_LETTER + len(ids))]:
        raise ConfigError(
            f"the vocabulary: expected ids from {FIRST_LETTER} in the order of the task's tokens, "
            "as `seqcls give` writes them"
        )
    if other := [x for x in network if x not in ABOUT or ABOUT[x].group != "Network"]:
        raise ConfigError(f"config.json: network has {short(other[0])}, no setting of one")
    # The names are ours, so that none is left without a place.
    weights, tensors.left = {**tensors.left}, {}
    return Loaded(dict(network), weights)
