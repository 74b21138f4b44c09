"""Reading of a foreign model as a network of ours with the same function, by its format's table.

Refusals name a tensor that is missing, has no place or another shape, or a setting whose value no
model of the format has.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqcls.adapters.formats import CELLS, OWN, RECURRENT, TABLE, Format, Row
from seqcls.adapters.taking import Settings, Tensors, bias_of, is_position
from seqcls.adapters.vocabulary import Vocabulary
from seqcls.config import ABOUT
from seqcls.errors import ConfigError
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.results import Weights
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.text import short

MOST_PLACES = 10_000
"""Number of rows of a table of waves that is not in the file."""

_HEAD = re.compile(r"(head|fc|out|linear|classif|decoder|proj|logit|dense)\w*\.weight$")
"""Names of matrices that are a head rather than the only embedding."""


class Loaded(NamedTuple):
    """The fields of a network of ours, and its parameters."""

    fields: dict[str, Any]
    weights: Weights
    reading: Mapping[str, Any] = {}
    """A record of their sources; see `ForeignWeights.read`."""


class Reader:
    """Reader of one model, with its tensors and options."""

    def __init__(
        self, form: Format, tensors: Tensors, settings: Settings, vocabulary: Vocabulary
    ) -> None:
        self.form = form
        self.tensors = tensors
        self.settings = settings
        self.vocabulary = vocabulary
        self.weights = Weights()
        self.options: dict[str, Any] = {}
        self.readout = "first"

    def read(self) -> Loaded:
        """Reads the network; tensors without a place are left.

        Raises:
            ConfigError: a tensor or a setting is missing, or cannot be read.
        """
        form, weights, sizes = self.form, self.weights, self.tensors.sizes
        self._read_blocks(self._find_blocks())
        hidden = sizes["hidden"]
        fields: dict[str, Any] = {"num_blocks": sizes["blocks"], "hidden_size": hidden}
        fields |= {"biases": True, **form.fields}
        if form is RECURRENT:
            fields["architecture"] = _cell(form.sign, sizes)
        fields |= self._read_options()
        # Answers at places need no readout, but looking ids up takes one.
        self.readout = fields.setdefault("readout", "first")
        if form is not RECURRENT:
            fields |= self._transformer_fields()
            self._read_places()
            fields["positions"] = "learned" if TABLE in weights else "none"
        name, table = self._read_embedding()
        embedded = self.vocabulary.embedding(table, self.readout, name)
        # Our Transformer has no such factor (Vaswani et al. 2017), so it goes into the embeddings.
        if self.options.get("embedding_scale") == "sqrt":
            embedded = embedded * np.sqrt(hidden).astype(embedded.dtype)
        if form is RECURRENT:
            first = "layers.0.input_weight"
            embedded, weights[first] = _widen(embedded, weights[first], hidden)
        head = self._read_head(table)
        weights |= {"embedding.weight": embedded}
        weights |= dict(zip(("classifier.weight", "classifier.bias"), head, strict=True))
        sizes |= {"tokens": len(table), "places": len(weights.get(TABLE, ()))}
        self.settings.check_sizes({theirs: sizes[ours] for theirs, ours in form.sizes.items()})
        # Some models count positions from an offset; the rows before it are never read.
        if (offset := self.options.get("position_offset", 0)) and TABLE in weights:
            if offset >= sizes["places"]:
                raise ConfigError(
                    f"position_offset={offset}: expected fewer than the {sizes['places']} places"
                )
            weights[TABLE] = weights[TABLE][offset:]
        return Loaded(fields, weights)

    def _find_blocks(self) -> str:
        """Finds the prefix of the names of blocks."""
        form, names = self.form, sorted(self.tensors.left)
        found = [x for x in names if re.fullmatch(rf"(.*\.)?{re.escape(form.sign)}", x)]
        if len(found) != 1:
            shown = f"{', '.join(found):.60}" if found else "none"
            raise ConfigError(f"tensors named {form.sign!r}: {shown}; expected one {form.name}")
        if other := [x for x in names if re.fullmatch(form.refused[0], x)]:
            raise ConfigError(f"tensor {short(other[0])}: {form.refused[1]}")
        for name in names:
            if re.fullmatch(form.left_out, name):
                del self.tensors.left[name]
        return found[0].removesuffix(form.sign)

    def _read_blocks(self, prefix: str) -> None:
        """Reads the parameters of all blocks and of the norm after them."""
        tensors, block = self.tensors, 0
        first = f"{prefix}{self.form.blocks[0].theirs}"
        # A model has biases in all layers or in none, so the first one decides.
        has_biases = first.format(0).replace("*", "bias") in tensors.left
        while block == 0 or first.format(block).replace("*", "weight") in tensors.left:
            for row in self.form.blocks:
                self._read_row(row, prefix, block, has_biases)
            block += 1
        # A tensor left over in a block must not be taken for an embedding or a head.
        tensors.within_blocks = tuple(first.partition("{}")[0] + f"{x}." for x in range(block))
        if (final := self.form.final) is not None:
            names = (f"{prefix}{final.theirs}".replace("*", x) for x in ("weight", "bias"))
            has_weight, has_bias = (name in tensors.left for name in names)
            if has_weight or self.form.fields.get("final_norm"):
                self._read_row(final, prefix, 0, has_biases or has_bias)
        # Blocks of a Transformer read the hidden state; recurrent layers have separate inputs.
        tensors.sizes.setdefault("inputs", tensors.sizes["hidden"])
        tensors.sizes["blocks"] = block

    def _read_row(self, row: Row, prefix: str, block: int, has_biases: bool) -> None:
        """Reads our parameters out of the tensors of one layer."""
        theirs, parts = f"{prefix}{row.theirs.format(block)}", len(row.ours)
        # Later layers read the state of the one before.
        axes = ["hidden" if block and x == "inputs" else x for x in row.shape]
        weight, bias = (theirs.replace("*", x) for x in ("weight", "bias"))
        matrix = self.tensors.take(weight, *axes, parts=parts, transposed=row.transposed)
        # Our network is made with biases, and zeros change nothing.
        biases = np.zeros_like(matrix, shape=len(matrix))
        if has_biases:
            biases = self.tensors.take(bias, axes[0], parts=parts)
        for kind, values in (("weight", matrix), ("bias", biases)):
            for name, own in zip(row.ours, np.split(values, parts), strict=True):
                ours = name.format(block).replace("*", kind)
                self.weights[ours] = np.ascontiguousarray(own)

    def _read_options(self) -> dict[str, Any]:
        """Looks up the format's settings and returns our fields with their values."""
        form, tensors, sizes = self.form, self.tensors, self.tensors.sizes
        # Answers at places are read at each of them, whatever the readout.
        unasked = {"readout"} if self.vocabulary.at_places else set[str]()
        # Gates have no nonlinearity to choose.
        if sizes.get("gates", sizes["hidden"]) != sizes["hidden"]:
            unasked |= {"nonlinearity"} - self.settings.given.keys()
        # A model that answers at every place must not read later tokens.
        is_causal = self.vocabulary.at_places or tensors.causal_mask
        defaults = {"mask": "causal"} if is_causal else {}
        fields = {}
        for name, setting in form.settings.items():
            if name in unasked:
                continue
            self.options[name] = value = self.settings.get(name, defaults.get(name))
            if setting.field:
                among = setting.values
                fields[setting.field] = (
                    among[value] if isinstance(among, Mapping) and among else value
                )
        if tensors.causal_mask and self.options.get("mask") == "causal":
            tensors.read_as["mask"] = tensors.causal_mask
        return fields

    def _transformer_fields(self) -> dict[str, Any]:
        """Returns the fields of a Transformer that its sizes determine."""
        sizes, hidden = self.tensors.sizes, self.tensors.sizes["hidden"]
        name = "n_head" if "n_head" in self.options else "heads"
        if hidden % (heads := self.options[name]):
            raise ConfigError(f"{name}={heads}: expected a divisor of the width, {hidden}")
        if self.options.get("scale_attn_weights") is False:
            # Our attention divides scores by the root of a head's size.
            for name, query in self.weights.items():
                if ".query." in name:
                    query *= np.sqrt(hidden // heads).astype(query.dtype)
        return {
            "attention_head_size": hidden // heads,
            "feed_forward_size": sizes["inner"],
            "final_norm": "final_norm.weight" in self.weights,
        }

    def _read_places(self) -> None:
        """Reads the table of positions, if the model has one.

        The table is a tensor with `pos` or `pe` in its name; with `positions=sinusoidal` it is that
        of PyTorch's tutorial, with alternating sines and cosines.
        """
        tensors, hidden = self.tensors, self.tensors.sizes["hidden"]
        name = next((x for x in sorted(tensors.left) if is_position(x)), None)
        if name is not None:
            table = tensors.left.pop(name)
            # Tables may have axes of one row, such as (places, 1, hidden) in PyTorch's tutorial.
            rows = max(table.shape[:-1], default=0)
            if table.shape[-1:] != (hidden,) or table.size != rows * hidden:
                raise ConfigError(
                    f"tensor {short(name)} has the shape {table.shape}, expected (any, {hidden})"
                )
            self.weights[TABLE] = table.reshape(rows, hidden)
            tensors.read_as["positions"] = name
        elif self.form.fields.get("positions"):
            raise ConfigError(f"no table of positions, as {self.form.name} has one")
        if self.options.get("positions") != "sinusoidal":
            return
        places = np.arange(MOST_PLACES if name is None else len(self.weights[TABLE]))
        # Vaswani et al. 2017, section 3.5, with alternating sines and cosines along the width.
        angles = places[:, None] * 10_000 ** (-np.arange(0, hidden, 2) / hidden)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(places), -1)
        waves = waves[:, :hidden].astype(next(iter(self.weights.values())).dtype)
        # Computed in float32 elsewhere, the same waves differ in their last digits.
        if not np.allclose(self.weights.get(TABLE, waves), waves, atol=1e-3):
            raise ConfigError(
                f"tensor {short(name)} has other numbers than positions='sinusoidal'; leave "
                "it out to read the table"
            )
        self.weights[TABLE] = waves

    def _read_embedding(self) -> tuple[str, np.ndarray]:
        """Finds the embedding among the tensors left; returns its name and its numbers."""
        tensors, width = self.tensors, self.tensors.sizes["inputs"]
        # A matrix with a bias beside it is a linear layer.
        matrices = [x for x in tensors.matrices_of(width) if bias_of(x) not in tensors.left]
        called = [x for x in matrices if re.search("emb|tok|wte", x)]
        head = tensors.find("head", self.options["head"], ())
        others = [x for x in matrices if not _HEAD.search(x) and x != head]
        found = called or (others if len(others) == 1 else [])
        name = tensors.find("embedding", self.options["embedding"], found)
        tensors.read_as["embedding"] = name or "none: tokens are one-hot"
        if name is not None:
            return name, tensors.take(name, "tokens", "inputs")
        if self.form is not RECURRENT:
            raise ConfigError(f"no embedding: expected a matrix of {width} columns; name it")
        return self.form.sign, np.eye(width, dtype=next(iter(self.weights.values())).dtype)

    def _read_head(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Reads our head from the matrix left that reads the state, or from the embeddings."""
        tensors, vocabulary, options = self.tensors, self.vocabulary, self.options
        hidden = tensors.sizes["hidden"]
        name = tensors.find("head", options["head"], tensors.matrices_of(hidden))
        has_answers = vocabulary.has_token_outputs or "yes" in options
        if name is None and not (has_answers and table.shape[1] == hidden):
            raise ConfigError(f"no linear head: expected a matrix with {hidden} columns")
        weight = table if name is None else tensors.take(name, "answers", "hidden")
        bias = np.zeros_like(weight[:, 0])
        if name is not None and bias_of(name) in tensors.left:
            bias = tensors.take(bias_of(name), "answers")
        tensors.read_as["head"] = name = name or "the embeddings"
        if "tie_word_embeddings" in options:
            self._check_tying(table, weight)
        if "yes" in options and not vocabulary.at_places and not name.endswith("score.weight"):
            # A language model answers by its next token. `embedding` is called for its refusal of a
            # head with fewer rows than the vocabulary has ids.
            vocabulary.embedding(weight, self.readout, name)
            answers = [vocabulary.answer_id(x, options[x]) for x in ("no", "yes")]
            weight, bias = weight[answers], bias[answers]
        return vocabulary.head(weight, bias, self.readout, name)

    def _check_tying(self, table: np.ndarray, head: np.ndarray) -> None:
        """Refuses contradictory tensors and settings: a separate head that is missing, or one that
        is tied to the embeddings and differs from them.
        """
        name, embedding = (self.tensors.read_as[x] for x in ("head", "embedding"))
        tied = self.options["tie_word_embeddings"]
        if tied is None and self.settings.folder_settings.get("model_type") == "gpt2":
            # Hugging Face's default is the embeddings.
            tied = True
        if tied is False and name == "the embeddings":
            raise ConfigError("tensor 'lm_head.weight' is missing, and tie_word_embeddings=False")
        if tied and name.endswith("lm_head.weight") and not np.array_equal(head, table):
            raise ConfigError(
                f"tensor {short(name)} differs from {short(embedding)}, which is the head with "
                "tie_word_embeddings=True: expected False, or the same numbers"
            )


def _cell(name: str, sizes: Mapping[str, int]) -> str:
    """Returns the architecture with so many gates."""
    rows, hidden = sizes["gates"], sizes["hidden"]
    if hidden == 0 or rows % hidden or rows // hidden not in CELLS:
        raise ConfigError(
            f"tensor {name!r} has {rows} rows and {hidden} units: expected 1 gate (RNN), 3 (GRU) "
            "or 4 (LSTM)"
        )
    return CELLS[rows // hidden]


def _widen(embedded: np.ndarray, weight: np.ndarray, hidden: int) -> tuple[np.ndarray, np.ndarray]:
    """Makes embeddings as wide as the hidden state, and a first layer's weight with equal products.

    Narrower embeddings are padded with zeros. Wider ones become one-hot, and the products the
    layer's weight, if there are no more tokens than hidden numbers.
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


def read_own(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """Reads a model that `seqcls give` wrote, with our names.

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
    if vocabulary.file.given is not None and ids != [*range(FIRST_LETTER, FIRST_LETTER + len(ids))]:
        raise ConfigError(
            f"the vocabulary: expected ids from {FIRST_LETTER} in the order of the task's tokens, "
            "as `seqcls give` writes them"
        )
    if other := [x for x in network if x not in ABOUT or ABOUT[x].group != "Network"]:
        raise ConfigError(f"config.json: network has {short(other[0])}, no setting of one")
    # The names are ours, so every tensor has a place.
    weights, tensors.left = {**tensors.left}, {}
    return Loaded(dict(network), weights)
