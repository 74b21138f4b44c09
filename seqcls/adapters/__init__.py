"""Weights that were trained elsewhere, read as parameters of the architectures here.

They are read from safetensors files alone: no pickle is ever opened.
"""

import io
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from seqcls.adapters.base import (
    ROLES,
    TABLE,
    Adapter,
    Loaded,
    Settings,
    Tensors,
    Vocabulary,
    short,
)
from seqcls.adapters.encoder import ENCODER
from seqcls.adapters.gpt2 import GPT2
from seqcls.adapters.recurrent import RECURRENT
from seqcls.adapters.vocabularies import (
    VocabularyFile,
    read_json,
    read_vocabulary,
    vocabulary_beside,
)
from seqcls.config import ABOUT, NetworkConfig
from seqcls.errors import ConfigError, Parameter
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.results import Weights
from seqcls.strings.tokenizer import FIRST_LETTER

__all__ = ["ADAPTERS", "FORMAT", "ForeignWeights", "read_weights"]

MOST_BYTES = 2**28
"""The largest file of weights that is read: the models here are small."""

PICKLES = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How they begin, packed or not."""

PICKLED = (".bin", ".pt", ".pth", ".ckpt")
"""How the names of files end that PyTorch saves."""

CONVERT = (
    'python -c "import torch; from safetensors.torch import save_file; '
    "read = torch.load('model.pt', weights_only=True, map_location='cpu'); "
    "save_file({k: v.clone().contiguous() for k, v in read.items()}, 'model.safetensors')\" "
    "(of a checkpoint with more in it, read['model'] or what its state dict is called there)"
)
"""Writes the file that is read here, of a state dict."""

CONVERT_ARRAYS = (
    'python -c "import numpy; from safetensors.numpy import save_file; '
    "save_file(dict(numpy.load('model.npz')), 'model.safetensors')\""
)

WRAPPERS = ("module.", "_orig_mod.", "model.")
"""What stands before every name where the network was wrapped: trained in parallel, compiled."""

FORMAT = "seqcls"
"""The format that `config.json` of a model given by this program names."""


def _read_own(tensors: Tensors, settings: Settings, vocabulary: Vocabulary) -> Loaded:
    """Reads a model that `seqcls give` wrote: the names are ours."""
    network = settings.of_folder.get("network")
    if settings.of_folder.get("format") != FORMAT or not isinstance(network, Mapping):
        raise ConfigError("config.json: expected that of a model that `seqcls give` wrote")
    architecture, positions = network.get("architecture"), network.get("positions", "none")
    if architecture not in MODELS or positions not in POSITIONS:
        raise ConfigError(f"architecture={short(architecture)}: not installed here")
    if list(settings.of_folder.get("alphabet", vocabulary.alphabet)) != list(vocabulary.alphabet):
        raise ConfigError("the model reads other tokens than the task has; name its own task")
    first = FIRST_LETTER
    if vocabulary.is_named and list(map(vocabulary.ids.get, vocabulary.alphabet)) != list(
        range(first, first + len(vocabulary.alphabet))
    ):
        raise ConfigError(
            f"the vocabulary: expected ids from {first} in the order of the task's tokens, as "
            "`seqcls give` writes them"
        )
    if other := [x for x in network if x not in ABOUT or ABOUT[x].group != "Network"]:
        raise ConfigError(f"config.json: network has {short(other[0])}, which is no setting of one")
    return Loaded(dict(network), {name: _take_any(tensors, name) for name in tensors.names})


def _take_any(tensors: Tensors, name: str) -> np.ndarray:
    return tensors.take(name, *tensors.shape(name))


ADAPTERS: Mapping[str, Adapter] = {
    "gpt2": GPT2,
    "recurrent": RECURRENT,
    "transformer_encoder": ENCODER,
    "seqcls": Adapter("", (), _read_own),
}
"""The ways in which weights are written, by name."""


_INERT = re.compile(
    r"transformers_version|(torch_)?dtype|architectures|initializer_range|use_cache|"
    r"_name_or_path|summary_.*|.*dropout.*|.*_pdrop|(bos|eos|pad|sep|cls|unk)_token_id|n_ctx|"
    r"reorder_and_upcast_attn|gradient_checkpointing|batch_first|return_dict|output_.*|"
    r"chunk_size_feed_forward|problem_type|seed|lr|learning_rate|batch_size|epochs"
)
"""Settings of `config.json` that no answer depends on."""


@dataclass(frozen=True)
class ForeignWeights:
    """A file of weights, and what stands beside it."""

    path: Path
    tensors: Weights
    of_folder: Mapping[str, Any]
    vocabulary: VocabularyFile
    buffers: Weights = field(default_factory=dict)
    """Tensors that are no weights: masks, and whole numbers."""

    def adapter_name(self, named: str | None) -> str:
        """The adapter that is named, or whose tensors these are.

        Raises:
            ConfigError: there is no such adapter, or `config.json` names another kind of model.
        """
        if named is not None:
            if named not in ADAPTERS:
                raise ConfigError(f"weights as {short(named)}: expected {', '.join(ADAPTERS)}")
            return named
        signs = {name: x.sign for name, x in ADAPTERS.items() if x.sign}
        found = [name for name, x in signs.items() if any(x in tensor for tensor in self.tensors)]
        if not found and self.of_folder.get("format") != FORMAT:
            raise ConfigError(
                f"{self.path}: tensors {', '.join(sorted(self.tensors)):.60} are of no kind that "
                f"is known here: expected a name with {', '.join(signs.values())}"
            )
        name, said = found[0] if found else "seqcls", self.of_folder.get("model_type")
        if found and said is not None and said not in ADAPTERS[name].model_types:
            raise ConfigError(
                f"{self.path}: config.json has model_type={short(said)}, and its tensors have "
                f"names as those of {name!r}; where it is one all the same, say ",
                Parameter("adapter", name),
            )
        return name

    def read(
        self, adapter: str, alphabet: Any, given: Mapping[str, Any], network: NetworkConfig
    ) -> Loaded:
        """The network and the parameters of a model for a task with these tokens.

        Its `reading` has the adapter (`read_as`), the settings that were given, that
        `config.json` has, and that were assumed, which `tensors` were found by their shapes, the
        ids of the `vocabulary` and the files that have them, and what was `not_read`.

        Raises:
            ConfigError: a tensor or a setting is missing, or has no place.
        """
        reads = ADAPTERS[adapter]
        settings = Settings(given, self.of_folder)
        settings.check_known(adapter, reads.settings)
        self.vocabulary.check_pieces(alphabet)
        vocabulary = Vocabulary.of(alphabet, self.vocabulary.given, network, self.vocabulary.roles)
        given_tensors = {name: x.copy() for name, x in self.tensors.items()}
        while wrappers := [x for x in WRAPPERS if all(y.startswith(x) for y in given_tensors)]:
            given_tensors = {x.removeprefix(wrappers[0]): y for x, y in given_tensors.items()}
        if computed := [x for x in given_tensors if _COMPUTED_FROM.search(x)]:
            raise ConfigError(
                f"tensor {short(computed[0])} is a part of which a weight is computed; save the "
                "weights themselves, after torch.nn.utils.parametrize.remove_parametrizations, "
                "remove_weight_norm, remove_spectral_norm or prune.remove"
            )
        causal = [name for name, x in self.buffers.items() if _is_causal(x)]
        tensors = Tensors(given_tensors, next(iter(causal), None))
        fields, weights, _ = reads.read(tensors, settings, vocabulary)
        tensors.check_empty(adapter)
        # Only where an adapter reads it: another's folder may say it of something else.
        places_cut = "position_offset" in reads.settings and settings.get("position_offset", 0)
        if (table := weights.get(TABLE)) is not None and places_cut:
            offset = settings.number("position_offset")
            if offset >= len(table):
                raise ConfigError(
                    f"position_offset={offset}: expected fewer than the {len(table)} places"
                )
            weights[TABLE] = table[offset:]
        precision = next(iter(weights.values())).dtype.name if weights else "float32"
        reading = self._reading(adapter, settings, tensors, vocabulary, weights)
        return Loaded({**fields, "precision": precision}, weights, reading)

    def _reading(
        self,
        adapter: str,
        settings: Settings,
        tensors: Tensors,
        vocabulary: Vocabulary,
        weights: Weights,
    ) -> dict[str, Any]:
        said = {
            source: {
                x: value
                for x, (by, value) in settings.found.items()
                if by == source and value is not None
            }
            for source in ("given", "config.json", "assumed")
        }
        # The network says where an embedding, a table and a head were found.
        for name in ("position_offset", "positions", "embedding", "head", *tensors.read_as):
            said["assumed"].pop(name, None)
        is_own, known = adapter == "seqcls", ADAPTERS[adapter].model_types
        unread = [
            f"config.json's {name}={short(value)}"
            for name, value in self.of_folder.items()
            if not is_own
            and name not in settings.read
            and not _INERT.fullmatch(name)
            and not (name == "model_type" and value in known)
            and value not in (None, False, [], {})
        ]
        taken = tensors.read_as.values()
        buffers = [f"tensor {short(x)}" for x in self.buffers if x not in taken]
        special = {x: vocabulary.special_token(x) for x in ROLES}
        return {
            "read_as": adapter,
            "settings": {x: y for x, y in said.items() if y},
            "tensors": dict(tensors.read_as),
            "places": len(weights[TABLE]) if TABLE in weights else None,
            "vocabulary": {x: vocabulary.ids[x] for x in vocabulary.alphabet},
            "special_tokens": {
                x: {"token": y, "id": vocabulary.ids[y]} for x, y in special.items() if y
            },
            "vocabulary_files": list(self.vocabulary.files),
            "not_read": [*unread, *buffers, *self.vocabulary.unread],
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
    folder = path if path.is_dir() else path.parent
    found = sorted(folder.glob("*.safetensors"))
    if parts := [x for x in (found if path.is_dir() else [path]) if _PART.fullmatch(x.stem)]:
        raise ConfigError(
            f"{parts[0]}: a part of a model of several files; join their tensors in one file, "
            "model.safetensors, in a folder with its config.json and vocabulary alone"
        )
    if path.is_dir() and len(found) != 1:
        for pickle in () if found else sorted(x for x in folder.iterdir() if x.suffix in PICKLED):
            _read_tensors(pickle)
        what = "no file of weights" if not found else f"{len(found)} files of weights"
        raise ConfigError(f"{path}: {what} in it, expected one, model.safetensors")
    file = found[0] if path.is_dir() else path
    tensors, buffers = _read_tensors(file)
    # Beside several files nothing says whose settings these are.
    is_alone = [x.name for x in found] == [file.name]
    settings = folder / "config.json"
    beside = read_json(settings) if is_alone and settings.exists() else {}
    if not isinstance(beside, dict):
        raise ConfigError(f"{settings}: no object of settings")
    tokens = (
        read_vocabulary(vocabulary) if vocabulary else vocabulary_beside(folder, is_alone=is_alone)
    )
    return ForeignWeights(path, tensors, beside, tokens, buffers)


def _names_in_archive(data: bytes) -> list[str]:
    """The names of an archive's files; none where it is no archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError):
        return []


def _is_causal(buffer: np.ndarray) -> bool:
    """Whether a buffer says that a token attends to none after it, whatever numbers it has."""
    if buffer.ndim != 2 or len(set(buffer.shape)) != 1 or len(buffer) < 2:
        return False
    inside = np.tri(len(buffer), dtype=bool)
    sides = np.unique(buffer[inside]), np.unique(buffer[~inside])
    return all(len(x) == 1 for x in sides) and bool(sides[0][0] != sides[1][0])


def _read_tensors(path: Path) -> tuple[Weights, Weights]:
    """The tensors of floating-point numbers, and those that are no weights."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ConfigError(f"{path}: no file; expected one of weights, or a folder with one")
        if size > MOST_BYTES:
            raise ConfigError(f"{path}: {size:,} bytes, expected at most {MOST_BYTES:,}")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"{str(path)!r:.200}: cannot be read: {said}") from None
    # A header may be as long as these bytes say, too: after its length it begins with a brace.
    if data[:2] in PICKLES and data[8:9] != b"{":
        names = _names_in_archive(data)
        if own := [name for name in names if name.endswith(".safetensors")]:
            raise ConfigError(f"{path}: an archive with {short(own[0])} in it; unpack it first")
        if any(name.endswith(".npy") for name in names):
            raise ConfigError(
                f"{path}: arrays of NumPy, expected safetensors; convert it: {CONVERT_ARRAYS}"
            )
        raise ConfigError(
            f"{path}: a pickle, which may run any program when it is opened, and is not: expected "
            f"safetensors; convert it where you trust it: {CONVERT}"
        )
    try:
        _check_header(data)
        every = load(data)
        tensors = {
            name: x
            for name, x in every.items()
            if x.dtype.kind == "f" and not (_MASK.fullmatch(name) and _is_causal(x))
        }
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        said = " ".join(str(error).split())[:160]
        raise ConfigError(f"{path}: no safetensors file that can be read ({said})") from None
    if not tensors:
        raise ConfigError(f"{path}: holds no tensor of floating-point numbers")
    if len({x.dtype for x in tensors.values()}) > 1:
        raise ConfigError(f"{path}: tensors of two types, expected all F32 or all F64")
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise ConfigError(f"{path}: tensor {short(name)} has a value that is not finite")
    others = {name: x for name, x in every.items() if name not in tensors}
    known = re.compile(f"{_MASK.pattern}|{_BUFFERS.pattern}")
    if unknown := [name for name in others if not known.fullmatch(name)]:
        raise ConfigError(
            f"{path}: tensor {short(unknown[0])} is of {others[unknown[0]].dtype}, expected F32 or "
            "F64: weights of whole numbers are not read"
        )
    return tensors, others


_MASK = re.compile(r"(.*\.)?(\w*mask|tril|triu)")
"""Buffers that say which tokens attend to which."""

_BUFFERS = re.compile(
    r"(.*\.)?(position_ids|positions|token_type_ids|num_batches_tracked|masked_bias|attn\.bias)"
)
"""Other tensors of whole numbers that models have beside their weights."""

_PART = re.compile(r".*-\d+-of-(?!0*1$)\d+")
"""A file that has some of a model's tensors, as Hugging Face names them."""

_COMPUTED_FROM = re.compile(r"(^|\.)parametrizations\.|(weight|bias)\w*_(g|v|orig)$")
"""Tensors of which PyTorch computes weights, where these are normed or pruned."""

READABLE = ("F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")
"""Types of tensors; no answer is computed from whole numbers, which are left out."""


def _check_header(data: bytes) -> None:
    """Refuses numbers of types that no model here has, by the tensor's name.

    Raises:
        ValueError: there is one, or no header.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError(f"it has {len(data):,} bytes, and its header says more: truncated")
    header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError("its header names no tensors")
    for name, about in header.items():
        if name == "__metadata__":
            continue
        dtype = about.get("dtype") if isinstance(about, dict) else None
        if dtype not in READABLE:
            raise ValueError(f"tensor {short(name)} is of type {short(dtype)}, expected F32 or F64")
