"""Files of a vocabulary: ours, and those that Hugging Face writes beside weights."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqcls.adapters.base import short
from seqcls.errors import ConfigError, Parameter
from seqcls.text import TwiceError, each_once

OWN = "vocabulary.json"
"""The name of ours."""

BESIDE = (OWN, "tokenizer.json", "vocab.json", "vocab.txt", "added_tokens.json")
"""Files that say which ids tokens have."""

OF_TOKENIZER = ("special_tokens_map.json", "tokenizer_config.json")
"""Files that say which tokens are special."""

_LIKE_ONE = re.compile(r"vocab|token|merges|spiece|sentencepiece|stoi|itos|char2|2id|id2", re.I)
"""In names of files that may be vocabularies."""

_MAY_SAY_IDS = re.compile(
    rf"{_LIKE_ONE.pattern}|^(?!(generation_)?config\.json$).*\.(json|txt|csv|tsv|ya?ml|pkl)$", re.I
)

_MARKS = r"(?:##|Ġ|▁)"
"""What tokenizers write before a piece of a word, or the first one."""


@dataclass(frozen=True)
class VocabularyFile:
    """What files say of a vocabulary."""

    given: Any = None
    """Ids by token, or tokens in the order of their ids; None where no file says it."""
    files: Sequence[str] = ()
    """The names of those that say it."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Special tokens, by names as `cls_token`."""
    pieces: bool = False
    """Whether texts are cut into pieces of several letters, where there are such tokens."""
    unread: Sequence[str] = ()
    """Files that may say it, too, and parts of files that change what is read of a text."""

    def check_pieces(self, alphabet: Sequence[str]) -> None:
        """Refuses a tokenizer that reads several letters as one token.

        Raises:
            ConfigError: it does.
        """
        if not self.pieces or not isinstance(self.given, Mapping):
            return
        letters = "|".join(map(re.escape, alphabet))
        several = "+" if max(map(len, alphabet)) == 1 else ""
        piece = re.compile(f"{_MARKS}?(?:{letters}){several}")
        others = [x for x in self.given if x not in tuple(alphabet)]
        if found := [x for x in others if piece.fullmatch(str(x))]:
            raise ConfigError(
                f"{self.files[0]}: the tokenizer has {short(found[0])} besides {alphabet[0]!r}, "
                "so that its model reads other tokens than the task's; where it was trained on "
                "those one by one, give their ids as ",
                Parameter("tokens"),
            )


def read_vocabulary(path: Path) -> VocabularyFile:
    """What one file says.

    Raises:
        ConfigError: it cannot be read, or says no ids.
    """
    if path.suffix == ".txt":
        lines = _text(path).rstrip("\n").split("\n")
        return VocabularyFile(_ids(path.name, lines), (path.name,), pieces=True)
    return _of_content(path.name, read_json(path))


def vocabulary_beside(folder: Path, *, is_alone: bool) -> VocabularyFile:
    """What the files of a folder say together.

    Args:
        is_alone: whether there is one file of weights; beside several nothing says whose it is.

    Raises:
        ConfigError: one cannot be read, or two say two ids of one token.
    """
    try:
        names = sorted(x.name for x in folder.iterdir())
    except OSError:
        names = []
    known = [x for x in (*BESIDE, *OF_TOKENIZER) if x in names] if is_alone else []
    if OWN in known:
        # Ours says it all.
        known = [OWN]
    # Where nothing says the ids, any file may.
    like_one = _LIKE_ONE if set(known) & set(BESIDE) or not is_alone else _MAY_SAY_IDS
    others = [x for x in names if x not in known and (x in BESIDE or like_one.search(x))]
    read = {x: read_vocabulary(folder / x) for x in known if x in BESIDE}
    settings = {x: read_json(folder / x) for x in known if x in OF_TOKENIZER}
    if known == [OWN]:
        (own,) = read.values()
        return VocabularyFile(own.given, own.files, unread=others)
    of_settings = {x: _read_added(x, said) for x, said in settings.items()}
    ids: dict[str, int] = {}
    files: dict[str, str] = {}
    for name, given in [*((x, _ids(x, y.given)) for x, y in read.items()), *of_settings.items()]:
        for token, number in given.items():
            if ids.setdefault(token, number) != number:
                raise ConfigError(
                    f"{files[token]} and {name}: two ids of the token {short(token)}, "
                    f"{ids[token]} and {number}; give the right ones as ",
                    Parameter("tokens"),
                )
            files.setdefault(token, name)
    roles = {x: y for said in settings.values() for x, y in _roles(said).items()}
    merges = "merges.txt" in others and is_alone
    return VocabularyFile(
        ids if read or ids else None,
        tuple(dict.fromkeys(files.values())),
        roles,
        merges or any(x.pieces for x in read.values()),
        [*others, *(x for file in read.values() for x in file.unread)],
    )


def read_json(path: Path) -> Any:
    """The content of a file of JSON.

    Raises:
        ConfigError: there is none, it is no JSON, or an object has a key twice.
    """
    try:
        return json.loads(_text(path), object_pairs_hook=each_once)
    except TwiceError as error:
        raise ConfigError(f"{path}: it has {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: no JSON ({' '.join(str(error).split())[:100]})") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{path}: no text in UTF-8") from None


def _of_content(name: str, content: Any) -> VocabularyFile:
    """What a file of JSON says: a tokenizer of Hugging Face, or ids by token."""
    model = content.get("model") if isinstance(content, Mapping) else None
    if not isinstance(model, Mapping) or "vocab" not in model:
        return VocabularyFile(content, (name,))
    vocab = model["vocab"]
    if isinstance(vocab, list) and all(isinstance(x, list) and x for x in vocab):
        vocab = [x[0] for x in vocab]
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(x, Mapping) for x in added):
        raise ConfigError(f"{name}: added_tokens={short(added)}: expected tokens with their ids")
    ids = _ids(name, vocab) | {x.get("content"): x.get("id") for x in added}
    parts = [x for x in ("normalizer", "post_processor") if content.get(x)]
    pieces = model.get("type") != "WordLevel"
    return VocabularyFile(ids, (name,), {}, pieces, [f"{name}'s {x}" for x in parts])


def _ids(name: str, given: Any) -> dict[Any, Any]:
    """Ids by token; others are refused by `Vocabulary.of`."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, list) or not all(isinstance(x, str) for x in given):
        raise ConfigError(f"{name}: {short(given)}: expected ids by token")
    ids: dict[Any, Any] = {}
    for number, token in enumerate(given):
        if token in ids:
            raise ConfigError(f"{name}: the token {short(token)} twice; keep one")
        ids[token] = number
    return ids


def _read_added(name: str, settings: Any) -> dict[Any, Any]:
    added = settings.get("added_tokens_decoder", {}) if isinstance(settings, Mapping) else {}
    if not isinstance(added, Mapping) or not all(str(x).isdecimal() for x in added):
        raise ConfigError(f"{name}: added_tokens_decoder={short(added)}: expected tokens by id")
    return {_content(token): int(number) for number, token in added.items()}


def _roles(settings: Any) -> dict[str, str]:
    found = settings.items() if isinstance(settings, Mapping) else ()
    said = {name: _content(token) for name, token in found if str(name).endswith("_token")}
    return {name: token for name, token in said.items() if isinstance(token, str)}


def _content(token: Any) -> Any:
    return token.get("content") if isinstance(token, Mapping) else token
