"""Fields of a configuration for each part of its strings: training, validation and test."""

from typing import Annotated

from pydantic import Field

from seqcls.declarations import About, Fields, Name, Seed

REPORT_SAMPLER = "variable_length"
"""The sampler of the report's program, for its task only."""

ANY_SAMPLER = "balanced_strings"
"""The sampler for any language."""

Length = Annotated[int, Field(ge=1, le=10_000)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]
Alpha = Annotated[float, Field(ge=0.05, le=1e6)]
"""Below this, a Dirichlet draw of only zeros, after rounding, could happen in practice."""


class PartFields(Fields, alone=True):
    """sampler: How {} strings are drawn.
    max_length: Tokens of the longest {} string.
    alpha: How evenly letters are mixed in {} strings; if small, one letter dominates.
    size: Number of {} strings.
    train_size: Strings of an epoch, at least a batch; `variable_length` rounds down to whole
        batches.
    batch_size: Strings in a {} batch.
    seed: Seed of the generator that draws {} strings.
    """

    train_sampler: Annotated[Name, About("Strings", 9)] = REPORT_SAMPLER
    train_max_length: Annotated[Length, About("Strings", 1, "max_length max_len")] = 10
    train_alpha: Annotated[Alpha, About("Strings", 11)] = 1.0
    train_size: Annotated[Number, About("Strings", 12)] = 10_000
    train_batch_size: Annotated[Number, About("Strings", 14, "batch_size batch")] = 64
    train_seed: Annotated[Seed, About("Strings", 15)] = 0

    validation_sampler: Annotated[Name, About("Strings", 17)] = REPORT_SAMPLER
    validation_max_length: Annotated[Length, About("Strings", 16)] = 50
    validation_alpha: Annotated[Alpha, About("Strings", 19)] = 0.5
    validation_size: Annotated[Number, About("Strings", 20)] = 1_000
    validation_batch_size: Annotated[Number, About("Strings", 21)] = 64
    validation_seed: Annotated[Seed, About("Strings", 22)] = 0

    test_sampler: Annotated[Name, About("Strings", 23)] = REPORT_SAMPLER
    test_max_length: Annotated[Length, About("Strings", 2)] = 200
    test_alpha: Annotated[Alpha, About("Strings", 26)] = 0.1
    test_size: Annotated[Number, About("Strings", 27)] = 10_000
    test_batch_size: Annotated[Number, About("Strings", 28)] = 256
    test_seed: Annotated[Seed, About("Strings", 29)] = 2
