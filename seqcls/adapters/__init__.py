"""Reading of weights trained elsewhere as parameters of the architectures here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqcls.adapters.files import find_weights, is_causal, read_tensors
from seqcls.adapters.formats import FORMATS, OWN, TABLE
from seqcls.adapters.reading import Loaded, Reader, read_own
from seqcls.adapters.taking import Settings, Tensors
from seqcls.adapters.vocabulary import (
    ROLES,
    Vocabulary,
    VocabularyFile,
    read_json,
    read_vocabulary,
    vocabulary_beside,
)
from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.results import Weights
from seqcls.text import short

__all__ = ["FORMATS", "ForeignWeights", "read_weights"]

WRAPPERS = ("module.", "_orig_mod.", "model.")
"""Prefixes of all names in a network that was wrapped, for parallel training or compilation."""

_COMPUTED_FROM = re.compile(r"(^|\.)parametrizations\.|(weight|bias)\w*_(g|v|orig)$")
"""Tensors from which PyTorch computes normalized or pruned weights."""

_INERT = re.compile(
    r"transformers_version|(torch_)?dtype|architectures|initializer_range|use_cache|"
    r"_name_or_path|summary_.*|.*dropout.*|.*_pdrop|(bos|eos|pad|sep|cls|unk)_token_id|n_ctx|"
    r"reorder_and_upcast_attn|gradient_checkpointing|batch_first|return_dict|output_.*|"
    r"chunk_size_feed_forward|problem_type|seed|lr|learning_rate|batch_size|epochs"
)
"""Settings of `config.json` that no answer depends on."""


@dataclass(frozen=True)
class ForeignWeights:
    """A file of weights, with the settings and the vocabulary beside it."""

    path: Path
    tensors: Weights
    folder_settings: Mapping[str, Any]
    vocabulary: VocabularyFile
    buffers: Weights = field(default_factory=dict)
    """Tensors other than weights: masks, and whole numbers."""

    def format_name(self, named: str | None) -> str:
        """Returns the named format, or the one that has such tensors.

        Raises:
            ConfigError: there is no such format, or `config.json` names another kind of model.
        """
        if named is not None:
            if named not in FORMATS:
                raise ConfigError(f"weights as {short(named)}: expected {', '.join(FORMATS)}")
            return named
        signs = {name: x.sign for name, x in FORMATS.items() if x.sign}
        found = [
            name
            for name, sign in signs.items()
            # Names may have a prefix; the dots keep a sign from being found within a longer word.
            if any(f".{x}".endswith(f".{sign}") for x in self.tensors)
        ]
        if not found and self.folder_settings.get("format") != OWN:
            raise ConfigError(
                f"{self.path}: tensors {', '.join(sorted(self.tensors)):.60} are of no kind that "
                f"is known here: expected a name with {', '.join(signs.values())}"
            )
        name, model_type = found[0] if found else OWN, self.folder_settings.get("model_type")
        if found and model_type is not None and model_type not in FORMATS[name].model_types:
            raise ConfigError(
                f"{self.path}: config.json has model_type={short(model_type)}, and its tensors "
                f"have names as those of {name!r}; where it is one all the same, say ",
                Parameter("adapter", name),
            )
        return name

    def read(
        self, name: str, alphabet: Sequence[str], given: Mapping[str, Any], network: NetworkConfig
    ) -> Loaded:
        """Reads the network and the parameters of a model for a task with these tokens.

        Its `reading` has the format (`read_as`), the settings by source (given, `config.json`,
        assumed), the `tensors` found by their shapes, the ids of the `vocabulary` and their files,
        and the settings, tensors and files that were `not_read`.

        Args:
            name: the format, one of `FORMATS`.
            alphabet: the task's tokens.
            given: settings, by name.
            network: the settings of a network that the task determines.

        Raises:
            ConfigError: a tensor or a setting is missing, or has no place.
        """
        form = FORMATS[name]
        settings = Settings(form, given, self.folder_settings)
        if unknown := sorted(set(given) - set(form.settings)):
            raise ConfigError(
                f"{unknown[0]:.60}: not read by {name!r}; expected {', '.join(form.settings)}"
            )
        self.vocabulary.check_pieces(alphabet)
        vocabulary = Vocabulary.from_file(alphabet, self.vocabulary, network)
        # Some weights are scaled in place while they are read, so the file's are copied.
        given_tensors = {x: y.copy() for x, y in self.tensors.items()}
        # Wrappers may be nested, as of a compiled model that was trained in parallel.
        while wrappers := [x for x in WRAPPERS if all(y.startswith(x) for y in given_tensors)]:
            given_tensors = {x.removeprefix(wrappers[0]): y for x, y in given_tensors.items()}
        if computed := [x for x in given_tensors if _COMPUTED_FROM.search(x)]:
            raise ConfigError(
                f"tensor {short(computed[0])} is a part of which a weight is computed; save the "
                "weights themselves, after torch.nn.utils.parametrize.remove_parametrizations, "
                "remove_weight_norm, remove_spectral_norm or prune.remove"
            )
        causal = [x for x, buffer in self.buffers.items() if is_causal(buffer)]
        tensors = Tensors(given_tensors, next(iter(causal), None))
        if name == OWN:
            fields, weights, _ = read_own(tensors, settings, vocabulary)
        else:
            fields, weights, _ = Reader(form, tensors, settings, vocabulary).read()
        if tensors.left:
            raise ConfigError(
                f"tensor {short(min(tensors.left))} has no place in a model read as {name!r}; "
                "expected the tensors of that class, an embedding and a linear head"
            )
        # All tensors have one type: `read_tensors` refuses others.
        precision = next(iter(weights.values())).dtype.name if weights else "float32"
        reading = self._reading(name, settings, tensors, vocabulary)
        reading["places"] = len(weights[TABLE]) if TABLE in weights else None
        return Loaded({**fields, "precision": precision}, weights, reading)

    def _reading(
        self, name: str, settings: Settings, tensors: Tensors, vocabulary: Vocabulary
    ) -> dict[str, Any]:
        # `tensors` already has the sources of an embedding, a table and a head.
        reported_elsewhere = ("position_offset", "positions", "embedding", "head", *tensors.read_as)
        by_source = {
            source: {
                x: value
                for x, (by, value) in settings.found.items()
                if by == source
                and value is not None
                and not (by == "assumed" and x in reported_elsewhere)
            }
            for source in ("given", "config.json", "assumed")
        }
        unread = [
            f"config.json's {x}={short(value)}"
            for x, value in self.folder_settings.items()
            if name != OWN
            and x not in settings.read
            and not _INERT.fullmatch(x)
            and not (x == "model_type" and value in FORMATS[name].model_types)
            # A setting that is off or empty changes nothing.
            and value not in (None, False, [], {})
        ]
        buffers = [x for x in self.buffers if x not in tensors.read_as.values()]
        special = {x: vocabulary.special_token(x) for x in ROLES}
        return {
            "read_as": name,
            "settings": {x: y for x, y in by_source.items() if y},
            "tensors": dict(tensors.read_as),
            "vocabulary": {x: vocabulary.ids[x] for x in vocabulary.alphabet},
            "special_tokens": {
                x: {"token": y, "id": vocabulary.ids[y]} for x, y in special.items() if y
            },
            "vocabulary_files": list(self.vocabulary.files),
            "not_read": [
                *unread,
                *(f"tensor {short(x)}" for x in buffers),
                *self.vocabulary.unread,
            ],
        }


def read_weights(path: Path, vocabulary: Path | None = None) -> ForeignWeights:
    """Reads a file of weights, or a folder with `model.safetensors` and `config.json`.

    Args:
        path: the file or the folder; a vocabulary in the folder is read, too, in a file of ours or
            of Hugging Face's. Of a file that is the only one of weights in its folder, so are both.
        vocabulary: another file of the vocabulary.

    Raises:
        ConfigError: there is none, or it is no safetensors file of finite numbers.
    """
    file, is_alone = find_weights(path)
    tensors, buffers = read_tensors(file)
    # With several files of weights it is not known whose settings these are.
    settings = file.parent / "config.json"
    beside = read_json(settings) if is_alone and settings.exists() else {}
    if not isinstance(beside, dict):
        raise ConfigError(f"{settings}: no object of settings")
    tokens = (
        read_vocabulary(vocabulary)
        if vocabulary
        else vocabulary_beside(file.parent, is_alone=is_alone)
    )
    return ForeignWeights(path, tensors, beside, tokens, buffers)
