"""What a model writes of a picture of one's own, which need be of no string."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.decoding.searching import beam, greedy
from seqcls.engines.base import Written
from seqcls.errors import ConfigError
from seqcls.interpretability.model.readable_model import plain_model
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.interpretability.states.by_strings import (
    MAX_TOKENS,
    attends_to_pictures,
    over_picture,
)
from seqcls.interpretability.states.output_tokens import OutputToken, tokens_of
from seqcls.kinds.transduction import end_id, separator_id
from seqcls.models.base import Classifier
from seqcls.models.positions import longest_readable
from seqcls.models.two_streams.pictures import PictureEncoder, page_of
from seqcls.pictures.user_pictures import Ink
from seqcls.tokens.tokenizer import CLS


@dataclass(frozen=True, eq=False)
class Read:
    """What is read of a picture."""

    text: str
    tokens: tuple[OutputToken, ...]
    """As they are written, `END` among them where it came."""
    weights: Float[np.ndarray, "block head token row column"] | None
    """Over the picture at each token; None where nothing attends to it."""


def read_picture(model: TrainedModel, picture: Ink) -> Read:
    """Has a model read a picture, by the decoding of its configuration.

    Args:
        model: one that reads pictures.
        picture: as large as those that it was trained on.

    Raises:
        ConfigError: the model reads none, or others.
    """
    if not model.problem.network.picture:
        raise ConfigError(f"task={model.config.task!r} draws no pictures: its models read none")
    page = page_of(model.problem.network)
    if picture.shape != page.shape:
        raise ConfigError(f"a picture of {picture.shape} pixels: expected {page.shape}")
    plain = _seeing(model, torch.from_numpy(picture.astype(np.float64)))
    beginning = [CLS, separator_id(plain.config)]
    with torch.no_grad():
        written = _written(model, plain, torch.tensor([beginning]))
        said = [*written.tokens, *([end_id(plain.config)] if written.ended else [])]
        kept = plain.activations(torch.tensor([beginning + said[:-1]]))
    weights = over_picture(plain, kept) if attends_to_pictures(plain) else None
    text = model.tokenizer.decode(written.tokens)
    return Read(text, tokens_of(model, said, kept["decoder.logits"][0]), weights)


def _seeing(model: TrainedModel, picture: Tensor) -> Classifier:
    """A model of its own, which sees this picture: the other is shared."""
    plain = deepcopy(plain_model(model))
    for module in plain.modules():
        if isinstance(module, PictureEncoder):
            module.shown = picture
    return plain


def _written(model: TrainedModel, plain: Classifier, ids: Tensor) -> Written:
    config, page = model.config, page_of(plain.config)
    longest = page.max_lines * (page.line_length + 1) - 1
    places = longest_readable(plain.config)
    limit = min(2 * longest, MAX_TOKENS, places or MAX_TOKENS)
    limits, end = torch.tensor([limit]), end_id(plain.config)
    if config.decoding == "beam":
        return beam(plain, ids, limits, end, config.beam_width)[0][0]
    return greedy(plain, ids, limits, end)[0]
