"""Training as a plain loop: one readable model, PyTorch's own loss, optimizer and schedules."""

import json
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

from seqcls.config import RunConfig
from seqcls.kinds import Examples
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions import read_ids
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import Problem
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD


class Trained(NamedTuple):
    """Results of a plain training loop."""

    weights: dict[str, Tensor]
    train_losses: list[float]
    validation_losses: list[float]


def sum_of_losses(
    problem: Problem, model: Classifier, examples: Examples, places: TrainingPlaces | None = None
) -> tuple[Tensor, int]:
    """The sum of the losses of examples, and the number by which training divides it.

    Args:
        places: draws the positions of training; by default those of tests are used.
    """
    kind, task, network = problem.kind, problem.task, problem.network
    ids = torch.from_numpy(read_ids(kind.reading(task, examples), network.readout)).int()
    longest = int((ids != PAD).sum(dim=1).max())
    own = places.draw(ids[:, :longest]) if places else None
    if own is not None:
        own = nn.functional.pad(own, (0, ids.shape[1] - own.shape[1]))
    outputs = model(ids, own)
    if network.head == "string":
        targets = torch.from_numpy(examples.labels).to(outputs.dtype)
        if problem.config.train_loss == "sigmoid_scaled":
            for _ in range(2):
                outputs = -outputs / (1 + 1 / (1 + torch.exp(-outputs)))
        return nn.BCEWithLogitsLoss(reduction="sum")(outputs, targets), len(examples)
    selected = Batch(network, ids, torch.zeros(1, 1).long()).select_predicted(outputs)
    encoded = torch.from_numpy(kind.encoded(task, examples, network))
    return kind.losses(selected, encoded, "default").sum(), kind.units(encoded)


def schedule_of(config: RunConfig, optimizer: torch.optim.Optimizer) -> LRScheduler:
    """The learning rate schedule of a configuration, by PyTorch."""
    number, warm = config.max_num_epochs, config.warm_up_steps
    if config.learning_rate_interval == "step":
        number = number * config.train_size // config.train_batch_size - warm
    factor = config.final_learning_rate_factor
    falling: LRScheduler = LinearLR(optimizer, 1.0, factor, total_iters=number)
    if config.learning_rate_schedule == "cosine":
        falling = CosineAnnealingLR(optimizer, number, eta_min=factor * config.learning_rate)
    if not warm:
        return falling
    growing = LinearLR(optimizer, 1 / warm, 1.0, total_iters=warm - 1)
    return SequentialLR(optimizer, [growing, falling], milestones=[warm])


PARAMETER_PREFIXES = {"embeddings": "embedding.", "positions": "positions.", "head": "classifier."}
"""Prefixes of the names of a part's parameters."""


def is_frozen(config: RunConfig, name: str, done: int, steps: int) -> bool:
    """True if a parameter is frozen after so many of all steps."""
    for part, share in json.loads(config.freeze or "[]"):
        number = part.removeprefix("blocks").removeprefix("block ")
        blocks = (f"blocks.{number}", f"layers.{number}")
        if done < round(share * steps) and name.startswith(PARAMETER_PREFIXES.get(part, blocks)):
            return True
    return False


def train_plainly(problem: Problem, seed: int) -> Trained:
    """Trains one plain model for all epochs."""
    config = problem.config
    model = make_model(problem.network).to(getattr(torch, config.precision))
    model.load_state_dict(initial_parameters(problem.network, seed))
    model.use_dropout_generator(torch.Generator().manual_seed(config.train_seed))
    matrices = [x for x in model.parameters() if x.ndim >= 2]
    others: dict[str, Any] = {"params": [x for x in model.parameters() if x.ndim < 2]}
    if config.decay == "matrices":
        others["weight_decay"] = 0.0
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, others], lr=config.learning_rate, weight_decay=config.weight_decay
    )
    schedule = schedule_of(config, optimizer)
    validation = stream(problem.validation).epoch(0)
    places = TrainingPlaces(problem.network, config.train_seed)
    train_losses, validation_losses = [], []
    steps = config.max_num_epochs * -(-problem.train.epoch_size // config.train_batch_size)
    done = 0
    for epoch in range(config.max_num_epochs):
        strings, total = stream(problem.train).epoch(epoch), 0.0
        model.train()
        for start in range(0, len(strings), config.train_batch_size):
            batch = strings.take(slice(start, start + config.train_batch_size))
            loss, units = sum_of_losses(problem, model, batch, places)
            (loss / units).backward()
            for name, value in model.named_parameters():
                if is_frozen(config, name, done, steps):
                    value.grad = None
            if config.gradient_clip:
                nn.utils.clip_grad_norm_(model.parameters(), config.gradient_clip)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            total += loss.item()
            if config.learning_rate_interval == "step":
                schedule.step()
        if config.learning_rate_interval == "epoch":
            schedule.step()
        model.eval()
        train_losses.append(total)
        with torch.no_grad():
            validation_losses.append(sum_of_losses(problem, model, validation)[0].item())
    weights = {name: value.detach() for name, value in model.named_parameters()}
    return Trained(weights, train_losses, validation_losses)
