"""What adapters have in common: tensors taken by name, the vocabulary, and what they make.

An adapter maps the tensors of a model that was trained elsewhere to the parameters of one of ours
that computes the same. What it cannot map it refuses, naming it.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.results import Weights

ROLES: Mapping[str, Sequence[str]] = {
    "begin": ("<bos>", "<s>", "<cls>", "[CLS]", "[BOS]", "CLS", "BOS", "^"),
    "separator": ("<sep>", "[SEP]", "SEP", "|"),
    "end": ("<eos>", "</s>", "[EOS]", "EOS", "END", "$"),
    "padding": ("<pad>", "[PAD]", "PAD", "_"),
}
"""What special tokens are called in vocabularies."""

TABLE = "positions.table.weight"
"""Our parameter of learned positions."""

ACTIVATION_ALIASES = ("hidden_act", "activation_function")
"""What else settings call an activation."""

NEVER = -1e4
"""The bias of a token that a head does not know: no other number is as low."""


def short(value: Any) -> str:
    """A name or a value in a message of one line."""
    return " ".join(repr(value).split())[:60]


class Tensors:
    """The tensors of a file, by name: each is taken once, and one that is left has no place."""

    def __init__(self, tensors: Weights, causal_mask: str | None = None) -> None:
        self._left = dict(tensors)
        self.causal_mask = causal_mask
        """The buffer that says that a token attends to none after it."""
        self.read_as: dict[str, str] = {}
        """The names of tensors that are found by their shapes, by what they are taken for."""

    @property
    def names(self) -> list[str]:
        return sorted(self._left)

    def has(self, name: str) -> bool:
        return name in self._left

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor that is there.

        Raises:
            ConfigError: it is not.
        """
        if name not in self._left:
            raise ConfigError(f"tensor {short(name)} is missing")
        return self._left[name].shape

    def matrix(self, name: str) -> tuple[int, int]:
        """The rows and columns of a matrix that is there.

        Raises:
            ConfigError: it is missing, or no matrix.
        """
        if len(found := self.shape(name)) != 2:
            raise ConfigError(f"tensor {short(name)} has the shape {found}, expected a matrix")
        return found[0], found[1]

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """A tensor of this shape; None stands for any size.

        Raises:
            ConfigError: it is missing, or has another shape.
        """
        found = self.shape(name)
        fits = len(found) == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, found, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise ConfigError(f"tensor {short(name)} has the shape {found}, expected ({wanted})")
        return self._left.pop(name)

    def take_bias(self, name: str, like: np.ndarray, *, expected: bool | None = None) -> np.ndarray:
        """A bias for the rows of a matrix; zeros where the model has none.

        Args:
            expected: whether the layers beside it have biases; None where none are beside it.

        Raises:
            ConfigError: it has another shape, or is missing where others are not.
        """
        if self.has(name) if expected is None else expected:
            return self.take(name, len(like))
        return np.zeros_like(like[:, 0])

    def leave_out(self, unread: Callable[[str], bool]) -> None:
        """Forgets what no answer is computed from."""
        self._left = {name: x for name, x in self._left.items() if not unread(name)}

    def check_empty(self, adapter: str) -> None:
        """Refuses tensors that nothing was made of.

        Raises:
            ConfigError: there is one.
        """
        if self._left:
            raise ConfigError(
                f"tensor {short(self.names[0])} has no place in a model read as {adapter!r}; "
                "expected the tensors of that class, an embedding and a linear head"
            )


@dataclass(frozen=True)
class Vocabulary:
    """Which of the foreign model's ids are the task's tokens and the special ones."""

    alphabet: Sequence[str]
    ids: Mapping[str, int]
    network: NetworkConfig
    """What the task asks of a network: its head, outputs and letters."""
    is_named: bool = True
    """Whether somebody has said which ids these are."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Special tokens by what Hugging Face's settings of a tokenizer call them: `cls_token`."""

    @property
    def at_places(self) -> bool:
        """Whether an answer is read at more places than one: of an output, or of every prefix."""
        return self.network.head != "string"

    @property
    def of_tokens(self) -> bool:
        """Whether the head has a number for each token."""
        return self.at_places and self.network.num_outputs == self.network.vocabulary_size

    @classmethod
    def of(
        cls,
        alphabet: Sequence[str],
        given: Any,
        network: NetworkConfig,
        roles: Mapping[str, str] | None = None,
    ) -> "Vocabulary":
        """A vocabulary as a file has it: ids by token, or tokens in the order of their ids.

        Args:
            alphabet: the task's tokens.
            given: None for the task's tokens in their order, and no special ones.
            network: as the attribute, and `roles`.

        Raises:
            ConfigError: it is none of these, lacks a token of the task, or has two of one id.
        """
        if not (is_named := given is not None):
            given = list(alphabet)
        if isinstance(given, list):
            given = dict(zip(given, range(len(given)), strict=True)) if _texts(given) else None
        if not isinstance(given, Mapping) or not _texts(given) or not _numbers(given.values()):
            raise ConfigError(
                "the vocabulary: expected distinct tokens in the order of their ids, or ids by "
                'token, as {"a": 0, "b": 1, "<bos>": 2}'
            )
        if missing := [token for token in alphabet if token not in given]:
            raise ConfigError(
                f"token {missing[0]!r} of the task is not in the vocabulary: {', '.join(given):.60}"
            )
        tokens = Counter(given.values())
        if shared := [given[token] for token in alphabet if tokens[given[token]] > 1]:
            named = " and ".join(repr(x) for x in given if given[x] == shared[0])
            raise ConfigError(
                f"the vocabulary: {named:.60} have one id, {shared[0]}; give each its own"
            )
        return cls(tuple(alphabet), dict(given), network, is_named, roles or {})

    def special(self, role: str) -> int | None:
        """The id of a special token; None where the vocabulary has none of its names."""
        token = self.special_token(role)
        return None if token is None else self.ids[token]

    def special_token(self, role: str) -> str | None:
        """What stands for a special token in the vocabulary."""
        theirs = {
            "begin": ("bos_token", "cls_token") if self.at_places else ("cls_token", "bos_token"),
            "separator": ("sep_token",),
            "end": ("eos_token",),
            "padding": ("pad_token",),
        }[role]
        # A token of the whole string comes before one that only begins it.
        usual = sorted(ROLES[role], key=lambda x: self.at_places or "cls" not in x.lower())
        named = [*(self.roles[x] for x in theirs if x in self.roles), *usual]
        return next((x for x in named if x in self.ids and x not in self.alphabet), None)

    def _require(self, role: str, why: str) -> int:
        if (found := self.special(role)) is None:
            raise ConfigError(
                f"{why}: the vocabulary has no {role} token; expected one called "
                f"{', '.join(ROLES[role][:3])} or {ROLES[role][3]}"
            )
        return found

    def answer_id(self, settings: "Settings", answer: str) -> int:
        """The id of the token by which a language model says `yes` or `no` of a string.

        Raises:
            ConfigError: none is named, or the vocabulary does not have it.
        """
        token = settings.get(answer, None)
        if token is None or str(token) not in self.ids:
            said = "is not named" if token is None else f"is {short(token)}, not in the vocabulary"
            raise ConfigError(
                f"the token that says {answer} of a string {said}: name both, as yes=1 and no=0"
            )
        return self.ids[str(token)]

    def rows(self, readout: str) -> list[int | None]:
        """The foreign id of each of our token ids; None where the model reads no such token."""
        special: int | None = None
        if self.at_places:
            special = self._require("begin", "answers at places are read from left to right")
        elif readout in ("first", "last"):
            role = {"first": "begin", "last": "end"}[readout]
            special = self._require(role, f"readout={readout!r}")
        rows = [special, self.special("padding"), *(self.ids[x] for x in self.alphabet)]
        if self.network.num_letters > len(self.alphabet):
            separator = self.special("separator")
            if self.network.writes and separator is None:
                separator = self._require("separator", "an output is written after an input")
            rows += [separator, self._require("end", "the end of a string is predicted")]
        return rows

    def embedding(self, table: np.ndarray, readout: str, name: str) -> np.ndarray:
        """Our embeddings out of a table with a row for each foreign id."""
        rows = self.rows(readout)
        if (largest := max(self.ids.values())) >= len(table):
            raise ConfigError(
                f"tensor {short(name)} has {len(table)} rows, and the vocabulary the id {largest}"
            )
        if len(table) > len(self.ids) and not self.is_named:
            raise ConfigError(
                f"tensor {short(name)} has {len(table)} rows, and the task {len(self.ids)} tokens: "
                "say which are theirs, in a vocabulary with ids by token"
            )
        none = np.zeros_like(table[0])
        return np.stack([none if x is None else table[x] for x in rows])

    def head(
        self, weight: np.ndarray, bias: np.ndarray | None, readout: str, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Our head out of one with a row for each foreign id, or for each answer of a language."""
        bias = np.zeros_like(weight[:, 0]) if bias is None else bias
        if self.of_tokens:
            known = np.array([x is not None for x in self.rows(readout)])
            numbers = self.embedding(weight, readout, name)
            biases = self.embedding(bias[:, None], readout, name)[:, 0]
            return numbers, np.where(known, biases, NEVER).astype(bias.dtype)
        several = self.network.num_outputs
        if len(weight) not in ((1, 2) if several == 1 else (several,)):
            one = "1 of a language, or 2, the second for strings in it"
            raise ConfigError(
                f"tensor {short(name)} has {len(weight)} rows: expected "
                f"{one if several == 1 else several}"
            )
        if several == 1 and len(weight) == 2:
            # The second class is likelier where its logit is larger.
            return weight[1:] - weight[:1], bias[1:] - bias[:1]
        return weight, bias


def _texts(values: Any) -> bool:
    return all(isinstance(x, str) for x in values) and len(set(values)) == len(values)


def _numbers(values: Any) -> bool:
    return all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 10**6 for x in values)


@dataclass(frozen=True)
class Settings:
    """What the tensors do not say: of a folder's `config.json`, and what is given besides."""

    given: Mapping[str, Any]
    of_folder: Mapping[str, Any] = field(default_factory=dict)
    found: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """Each setting that was asked for: who says it (given, config.json, or nobody: assumed)."""
    read: set[str] = field(default_factory=set)
    """What was looked for in `config.json`."""

    def get(self, name: str, default: Any, among: Sequence[Any] = (), *aliases: str) -> Any:
        """A setting, one of some values where these are named.

        Raises:
            ConfigError: it is none of them.
        """
        value, source = self.given.get(name, default), "given"
        self.read.update((name, *aliases))
        if name not in self.given:
            said = [self.of_folder[x] for x in (name, *aliases) if x in self.of_folder]
            value, source = (said[0], "config.json") if said else (value, "assumed")
        self.found[name] = source, value
        if among and value not in among:
            # As they are typed: true, not True.
            expected = " or ".join(x if isinstance(x, str) else json.dumps(x) for x in among)
            raise ConfigError(f"{name}={short(value)}: expected {expected}")
        return value

    def number(self, name: str, *aliases: str, default: int | None = None) -> int:
        """A whole number from 1.

        Raises:
            ConfigError: it is none, or there is none.
        """
        value = self.get(name, default, (), *aliases)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 4096:
            if value is None:
                raise ConfigError(f"{name} is not in the tensors: give it, as {name}=2")
            raise ConfigError(f"{name}={short(value)}: expected a whole number from 1 to 4096")
        return value

    def epsilon(self, name: str) -> float:
        """What a norm adds to the variance.

        Raises:
            ConfigError: it is no number from 0 to 1, and not 0.
        """
        value = self.get(name, 1e-5)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
            raise ConfigError(f"{name}={short(value)}: expected a number above 0, up to 1")
        return float(value)

    def check_sizes(self, **found: int) -> None:
        """Refuses settings of a network of other sizes: they are not of these tensors.

        Raises:
            ConfigError: they name another size.
        """
        for name, size in found.items():
            self.read.add(name)
            said = self.given.get(name, self.of_folder.get(name))
            if said is not None and said != size:
                raise ConfigError(
                    f"{name}={short(said)}, and by its tensors it is {size}: a tensor is missing, "
                    "or the settings are of another model"
                )

    def check_known(self, adapter: str, known: Sequence[str]) -> None:
        """Refuses what an adapter does not read.

        Raises:
            ConfigError: something is.
        """
        if unknown := sorted(set(self.given) - set(known)):
            raise ConfigError(
                f"{unknown[0]:.60}: not read by {adapter!r}; expected {', '.join(known)}"
            )


class Loaded(NamedTuple):
    """The fields of a network of ours, and its parameters."""

    fields: dict[str, Any]
    weights: Weights
    reading: Mapping[str, Any] = {}
    """How they were read; see `ForeignWeights.read`."""


class Adapter(NamedTuple):
    """One way in which weights are written."""

    sign: str
    """What stands in a name of its tensors and of no other adapter's; empty for our own."""
    settings: Sequence[str]
    read: Callable[[Tensors, Settings, Vocabulary], Loaded]
    model_types: Sequence[str] = ()
    """What such a model may be called in `config.json`, as `model_type`."""


def transformer_fields(blocks: int, hidden: int, heads: int, inner: int) -> dict[str, Any]:
    """The fields that every Transformer of PyTorch's norms has, by its sizes."""
    return {
        "architecture": "transformer",
        "num_blocks": blocks,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "attention_head_size": hidden // heads,
        "feed_forward_size": inner,
        "layer_norm": "nn",
        "biases": True,
    }


READOUTS = ("first", "last", "mean", "last_letter")


def readout_of(settings: Settings, vocabulary: Vocabulary, default: str) -> str:
    """Where the answer of a string is read, if it is not everywhere."""
    if vocabulary.at_places:
        return "first"
    return str(settings.get("readout", default, READOUTS))
