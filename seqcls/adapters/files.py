"""Files of weights: safetensors alone, read without running any of their content."""

import re
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from seqcls.errors import ConfigError
from seqcls.results import Weights
from seqcls.text import short

MOST_BYTES = 2**28
"""The largest file of weights that is read, since the models here are small."""

# A zip archive, in which PyTorch saves, begins with PK; a bare pickle with its protocol, 2 to 5.
PICKLES = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""First bytes of pickles, packed or not."""

PICKLED = (".bin", ".pt", ".pth", ".ckpt")
"""Suffixes of files that PyTorch saves."""

CONVERT = (
    'python -c "import torch; from safetensors.torch import save_file; '
    "read = torch.load('model.pt', weights_only=True, map_location='cpu'); "
    "save_file({k: v.clone().contiguous() for k, v in read.items()}, 'model.safetensors')\" "
    "(of a checkpoint with more in it, read['model'] or what its state dict is called there)"
)
"""Command that converts a state dict to safetensors."""

CONVERT_ARRAYS = (
    'python -c "import numpy; from safetensors.numpy import save_file; '
    "save_file(dict(numpy.load('model.npz')), 'model.safetensors')\""
)

READABLE = ("F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")
"""Types of tensors that are read; whole numbers are left out, since no output depends on them."""

_MASK = re.compile(r"(.*\.)?(\w*mask|tril|triu)")
"""Names of buffers that are attention masks."""

_BUFFERS = re.compile(
    r"(.*\.)?(position_ids|positions|token_type_ids|num_batches_tracked|masked_bias|attn\.bias)"
)
"""Names of other tensors of whole numbers beside the weights."""

# `model-00001-of-00001` is a whole model, so a count of 1 is no part.
_PART = re.compile(r".*-\d+-of-(?!0*1$)\d+")
"""Names of files with some of a model's tensors, as Hugging Face writes them."""


def find_weights(path: Path) -> tuple[Path, bool]:
    """Finds the file of weights of a path, a file or a folder.

    Returns:
        The file, and True if its folder has no other.

    Raises:
        ConfigError: there is none, or a folder has several.
    """
    folder = path if path.is_dir() else path.parent
    found = sorted(folder.glob("*.safetensors"))
    if parts := [x for x in (found if path.is_dir() else [path]) if _PART.fullmatch(x.stem)]:
        raise ConfigError(
            f"{parts[0]}: a part of a model of several files; join their tensors in one file, "
            "model.safetensors, in a folder with its config.json and vocabulary alone"
        )
    if path.is_dir() and len(found) != 1:
        # Reading a pickle is refused with the command that converts it.
        for pickle in () if found else sorted(x for x in folder.iterdir() if x.suffix in PICKLED):
            read_tensors(pickle)
        what = "no file of weights" if not found else f"{len(found)} files of weights"
        raise ConfigError(f"{path}: {what} in it, expected one, model.safetensors")
    file = found[0] if path.is_dir() else path
    return file, [x.name for x in found] == [file.name]


def read_tensors(path: Path) -> tuple[Weights, Weights]:
    """Reads the weights of a file, tensors of floating-point numbers, and its other tensors.

    Raises:
        ConfigError: it is no safetensors file of finite numbers.
    """
    _refuse_other_files(path)
    try:
        with safe_open(path, framework="numpy") as file:
            names = file.keys()
            types = {name: file.get_slice(name).get_dtype() for name in names}
            # NumPy lacks some types, and the library does not name the tensor.
            if other := [name for name in names if types[name] not in READABLE]:
                raise ValueError(
                    f"tensor {short(other[0])} is of type {types[other[0]]!r}, expected F32 or F64"
                )
            every = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, ValueError, OSError) as error:
        # The message has to be one line.
        reason = " ".join(str(error).split())[:160]
        raise ConfigError(f"{path}: no safetensors file that can be read ({reason})") from None
    tensors = {
        name: x
        for name, x in every.items()
        if x.dtype.kind == "f" and not (_MASK.fullmatch(name) and is_causal(x))
    }
    if not tensors:
        raise ConfigError(f"{path}: holds no tensor of floating-point numbers")
    if len({x.dtype for x in tensors.values()}) > 1:
        raise ConfigError(f"{path}: tensors of two types, expected all F32 or all F64")
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise ConfigError(f"{path}: tensor {short(name)} has a value that is not finite")
    others = {name: x for name, x in every.items() if name not in tensors}
    for name, values in others.items():
        if not (_MASK.fullmatch(name) or _BUFFERS.fullmatch(name)):
            raise ConfigError(
                f"{path}: tensor {short(name)} is of {values.dtype}, expected F32 or F64: weights "
                "of whole numbers are not read"
            )
    return tensors, others


def is_causal(buffer: np.ndarray) -> bool:
    """True if a buffer is a causal mask, whatever numbers it has."""
    # A mask of one token does not determine an order.
    if buffer.ndim != 2 or len(set(buffer.shape)) != 1 or len(buffer) < 2:
        return False
    # Some masks are 1 and 0, some 0 and -inf, some the reverse: both sides must only differ.
    inside = np.tri(len(buffer), dtype=bool)
    sides = np.unique(buffer[inside]), np.unique(buffer[~inside])
    return all(len(x) == 1 for x in sides) and bool(sides[0][0] != sides[1][0])


def _refuse_other_files(path: Path) -> None:
    """Refuses a missing or large file, a pickle or an archive, with a remedy."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ConfigError(f"{path}: no file; expected one of weights, or a folder with one")
        if size > MOST_BYTES:
            raise ConfigError(f"{path}: {size:,} bytes, expected at most {MOST_BYTES:,}")
        with path.open("rb") as file:
            begin = file.read(9)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{str(path)!r:.200}: cannot be read: {reason}") from None
    # These bytes may be the length of a safetensors header, which begins with a brace after it.
    if not begin.startswith(PICKLES) or begin[8:] == b"{":
        return
    names = list[str]()
    with suppress(zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError):
        names = zipfile.ZipFile(path).namelist()
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
