"""The ids of a task's tokens in a foreign model, from files of ours and of Hugging Face's."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.text import TwiceError, refuse_duplicates, short

OWN = "vocabulary.json"
"""The name of our file."""

BESIDE = (OWN, "tokenizer.json", "vocab.json", "vocab.txt", "added_tokens.json")
"""Files with the ids of tokens."""

OF_TOKENIZER = ("special_tokens_map.json", "tokenizer_config.json")
"""Files with the special tokens."""

_LIKE_ONE = re.compile(r"vocab|token|merges|spiece|sentencepiece|stoi|itos|char2|2id|id2", re.I)
"""Names of files that may be vocabularies."""

_MAY_SAY_IDS = re.compile(
    rf"{_LIKE_ONE.pattern}|^(?!(generation_)?config\.json$).*\.(json|txt|csv|tsv|ya?ml|pkl)$", re.I
)

ROLES: Mapping[str, Sequence[str]] = {
    "begin": ("<bos>", "<s>", "<cls>", "[CLS]", "[BOS]", "CLS", "BOS", "^"),
    "separator": ("<sep>", "[SEP]", "SEP", "|"),
    "end": ("<eos>", "</s>", "[EOS]", "EOS", "END", "$"),
    "padding": ("<pad>", "[PAD]", "PAD", "_"),
}
"""Names of special tokens in vocabularies."""

NEVER = -1e4
"""The bias of a token that a head does not know, lower than any other number."""


def read_json(path: Path) -> Any:
    """Reads a file of JSON.

    Raises:
        ConfigError: there is none, it is no JSON, or an object has a key twice.
    """
    try:
        return json.loads(_read_text(path), object_pairs_hook=refuse_duplicates)
    except TwiceError as error:
        raise ConfigError(f"{path}: it has {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: no JSON ({' '.join(str(error).split())[:100]})") from None


def _read_text(path: Path) -> str:
    try:
        # Files from Windows may begin with a byte order mark, and end lines with two characters.
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{path}: no text in UTF-8") from None


@dataclass(frozen=True)
class VocabularyFile:
    """The contents of files of a vocabulary."""

    given: Any = None
    """Ids by token, or tokens in the order of their ids; None if no file has them."""
    files: Sequence[str] = ()
    """Names of the files with the ids."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Special tokens by their names in Hugging Face's tokenizer settings, such as `cls_token`."""
    pieces: bool = False
    """True if texts are cut into pieces of several letters, if there are such tokens."""
    unread: Sequence[str] = ()
    """Other files that may have ids, and parts of files that change the reading of a text."""

    def check_pieces(self, alphabet: Sequence[str]) -> None:
        """Refuses a tokenizer that reads several letters as one token.

        Raises:
            ConfigError: it does.
        """
        if not self.pieces or not isinstance(self.given, Mapping):
            return
        letters = "|".join(map(re.escape, alphabet))
        # Letters run together in a piece; tokens with names are separate words.
        several = "+" if max(map(len, alphabet)) == 1 else ""
        # The prefixes are the marks by which tokenizers continue or begin a word.
        piece = re.compile(f"(?:##|Ġ|▁)?(?:{letters}){several}")
        others = [x for x in self.given if x not in tuple(alphabet)]
        if found := [x for x in others if piece.fullmatch(str(x))]:
            raise ConfigError(
                f"{self.files[0]}: the tokenizer has {short(found[0])} besides {alphabet[0]!r}, "
                "so that its model reads other tokens than the task's; where it was trained on "
                "those one by one, give their ids as ",
                Parameter("tokens"),
            )


def read_vocabulary(path: Path) -> VocabularyFile:
    """Reads one file.

    Raises:
        ConfigError: it cannot be read, or has no ids.
    """
    name = path.name
    if path.suffix == ".txt":
        # The number of a line is an id: blank lines count, except at the end.
        lines = _read_text(path).rstrip("\n").split("\n")
        return VocabularyFile(_ids_of(name, lines), (name,), pieces=True)
    content = read_json(path)
    model = content.get("model") if isinstance(content, Mapping) else None
    if not isinstance(model, Mapping) or "vocab" not in model:
        return VocabularyFile(content, (name,))
    # A tokenizer of Hugging Face.
    vocab = model["vocab"]
    # A Unigram tokenizer lists its tokens with their scores.
    if isinstance(vocab, list) and all(isinstance(x, list) and x for x in vocab):
        vocab = [x[0] for x in vocab]
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(x, Mapping) for x in added):
        raise ConfigError(f"{name}: added_tokens={short(added)}: expected tokens with their ids")
    ids = _ids_of(name, vocab) | {x.get("content"): x.get("id") for x in added}
    parts = [f"{name}'s {x}" for x in ("normalizer", "post_processor") if content.get(x)]
    return VocabularyFile(ids, (name,), {}, model.get("type") != "WordLevel", parts)


def vocabulary_beside(folder: Path, *, is_alone: bool) -> VocabularyFile:
    """Reads the vocabulary from all files of a folder.

    Args:
        is_alone: True if there is one file of weights; otherwise it is not known whose it is.

    Raises:
        ConfigError: one cannot be read, or two have different ids of one token.
    """
    names = sorted(x.name for x in folder.iterdir()) if folder.is_dir() else []
    known = [x for x in (*BESIDE, *OF_TOKENIZER) if x in names] if is_alone else []
    if OWN in known:
        # Our file is complete.
        known = [OWN]
    # If no known file has the ids, any other may.
    like_one = _LIKE_ONE if set(known) & set(BESIDE) or not is_alone else _MAY_SAY_IDS
    others = [x for x in names if x not in known and (x in BESIDE or like_one.search(x))]
    read = {x: read_vocabulary(folder / x) for x in known if x in BESIDE}
    if known == [OWN]:
        return VocabularyFile(read[OWN].given, (OWN,), unread=others)
    settings = {x: read_json(folder / x) for x in known if x in OF_TOKENIZER}
    ids: dict[str, int] = {}
    files: dict[str, str] = {}
    sources = [*((x, _ids_of(x, y.given)) for x, y in read.items())]
    sources += [(x, _added_ids(x, y)) for x, y in settings.items()]
    for name, token, number in ((x, *row) for x, y in sources for row in y.items()):
        if ids.setdefault(token, number) != number:
            raise ConfigError(
                f"{files[token]} and {name}: two ids of the token {short(token)}, {ids[token]} "
                f"and {number}; give the right ones as ",
                Parameter("tokens"),
            )
        files.setdefault(token, name)
    return VocabularyFile(
        ids if read or ids else None,
        tuple(dict.fromkeys(files.values())),
        {x: y for content in settings.values() for x, y in _roles(content).items()},
        ("merges.txt" in others and is_alone) or any(x.pieces for x in read.values()),
        [*others, *(x for file in read.values() for x in file.unread)],
    )


def _ids_of(name: str, given: Any) -> dict[Any, Any]:
    """Returns ids by token; `Vocabulary.from_file` refuses ids that are no numbers."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, list) or not all(isinstance(x, str) for x in given):
        raise ConfigError(f"{name}: {short(given)}: expected ids by token")
    if twice := [token for token, times in Counter(given).items() if times > 1]:
        raise ConfigError(f"{name}: the token {short(twice[0])} twice; keep one")
    return {token: number for number, token in enumerate(given)}


def _added_ids(name: str, settings: Any) -> dict[Any, Any]:
    added = settings.get("added_tokens_decoder", {}) if isinstance(settings, Mapping) else {}
    if not isinstance(added, Mapping) or not all(str(x).isdecimal() for x in added):
        raise ConfigError(f"{name}: added_tokens_decoder={short(added)}: expected tokens by id")
    return {_content(token): int(number) for number, token in added.items()}


def _roles(settings: Any) -> dict[str, str]:
    found = settings.items() if isinstance(settings, Mapping) else ()
    named = {name: _content(token) for name, token in found if str(name).endswith("_token")}
    return {name: token for name, token in named.items() if isinstance(token, str)}


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, Mapping) else token


@dataclass(frozen=True)
class Vocabulary:
    """The foreign model's ids of the task's tokens and of special tokens."""

    alphabet: Sequence[str]
    ids: Mapping[str, int]
    network: NetworkConfig
    """The settings of a network that the task determines: head, outputs and letters."""
    file: VocabularyFile
    """The files with the ids, if there are any."""

    @property
    def at_places(self) -> bool:
        """True if a string has more answers than one: tokens of an output, or one a prefix."""
        return self.network.head != "string"

    @property
    def has_token_outputs(self) -> bool:
        """True if the head has an output for each token id."""
        return self.at_places and self.network.num_outputs == self.network.vocabulary_size

    @classmethod
    def from_file(
        cls, alphabet: Sequence[str], file: VocabularyFile, network: NetworkConfig
    ) -> "Vocabulary":
        """Makes the vocabulary of a task with these tokens.

        If no file has ids, these are the task's tokens in order, without special ones.

        Raises:
            ConfigError: the files have no ids, lack a token of the task, or have two with one id.
        """
        given = list(alphabet) if file.given is None else file.given
        if isinstance(given, list):
            # Texts are checked first, since only hashable values make a set.
            distinct = _are_texts(given) and len(set(given)) == len(given)
            given = {token: number for number, token in enumerate(given)} if distinct else None
        if not isinstance(given, Mapping) or not _are_texts(given) or not _are_ids(given.values()):
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
        return cls(tuple(alphabet), dict(given), network, file)

    def special_token(self, role: str) -> str | None:
        """Returns the vocabulary's token for a role; None if there is none."""
        theirs = {
            "begin": ("bos_token", "cls_token") if self.at_places else ("cls_token", "bos_token"),
            "separator": ("sep_token",),
            "end": ("eos_token",),
            "padding": ("pad_token",),
        }[role]
        # A token of the whole string comes before one that only begins it.
        usual = sorted(ROLES[role], key=lambda x: self.at_places or "cls" not in x.lower())
        named = [*(self.file.roles[x] for x in theirs if x in self.file.roles), *usual]
        return next((x for x in named if x in self.ids and x not in self.alphabet), None)

    def rows(self, readout: str) -> list[int | None]:
        """Lists the foreign id of each of our token ids; None if the model reads no such token.

        Raises:
            ConfigError: it has to read one that the vocabulary does not have.
        """

        def find(role: str, why: str = "") -> int | None:
            if (token := self.special_token(role)) is None and why:
                raise ConfigError(
                    f"{why}: the vocabulary has no {role} token; expected one called "
                    f"{', '.join(ROLES[role][:3])} or {ROLES[role][3]}"
                )
            return None if token is None else self.ids[token]

        # Other readouts read no special token.
        special: int | None = None
        if self.at_places:
            special = find("begin", "answers at places are read from left to right")
        elif readout in ("first", "last"):
            special = find({"first": "begin", "last": "end"}[readout], f"readout={readout!r}")
        rows = [special, find("padding"), *(self.ids[x] for x in self.alphabet)]
        if self.network.num_letters > len(self.alphabet):
            follows = "an output is written after an input" if self.network.writes else ""
            rows += [find("separator", follows), find("end", "the end of a string is predicted")]
        return rows

    def answer_id(self, answer: str, token: Any) -> int:
        """Returns the id of the token by which a language model answers `yes` or `no`."""
        if token is None or str(token) not in self.ids:
            is_named = f"is {short(token)}, not in the vocabulary"
            reason = "is not named" if token is None else is_named
            raise ConfigError(
                f"the token that says {answer} of a string {reason}: name both, as yes=1 and no=0"
            )
        return self.ids[str(token)]

    def embedding(self, table: np.ndarray, readout: str, name: str) -> np.ndarray:
        """Makes our embeddings from a table with a row for each foreign id."""
        rows = self.rows(readout)
        if (largest := max(self.ids.values())) >= len(table):
            raise ConfigError(
                f"tensor {short(name)} has {len(table)} rows, and the vocabulary the id {largest}"
            )
        if len(table) > len(self.ids) and self.file.given is None:
            raise ConfigError(
                f"tensor {short(name)} has {len(table)} rows, and the task {len(self.ids)} tokens: "
                "say which are theirs, in a vocabulary with ids by token"
            )
        # Tokens that the model never reads need a row too, of any numbers.
        none = np.zeros_like(table[0])
        return np.stack([none if x is None else table[x] for x in rows])

    def head(
        self, weight: np.ndarray, bias: np.ndarray, readout: str, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Makes our head from one with a row for each foreign id, or for each answer."""
        if self.has_token_outputs:
            known = np.array([x is not None for x in self.rows(readout)])
            # Rows of a head are selected by id, like rows of embeddings.
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


def _are_texts(values: Any) -> bool:
    return all(isinstance(x, str) for x in values)


def _are_ids(values: Any) -> bool:
    return all(isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 10**6 for x in values)
