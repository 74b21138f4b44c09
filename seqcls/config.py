"""All that determines a trained model but its seed, as one frozen value."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)

from seqcls.curricula import frozen_as_json, stages_as_json
from seqcls.errors import ConfigError
from seqcls.permutation_groups import GroupName
from seqcls.strings.alphabets import alphabet_obstacle, composing_obstacle
from seqcls.strings.tokenizer import MAX_LETTERS
from seqcls.text import canonical_json, in_one_line

MAX_MODEL_SEED = 2**63 - 1
MAX_REQUIRED_LETTERS = 10
"""The sampler keeps a budget for each of the 2**r sets of required letters."""

REPORT_TASK = "contains_all"
REPORT_SAMPLER = "variable_length"
"""How the report's program draws the strings of its task; it can draw those of no other."""

IMPORTED = "imported"
"""The architecture of models that were trained elsewhere: of them only results are known."""

COUPLED = ("coupled_marks", "coupled")
"""The position schemes in which tokens of input and output share places, as the task says."""

ANY_SAMPLER = "balanced_strings"
"""Draws the strings of any task."""

AS_TRAINED = "as_trained"
"""Said of tests: what they are drawn by is what training is drawn by."""

AS_OTHERS = 1.0
"""The same, said as a share."""

PARTS = ("train", "validation", "test")
_SAMPLERS = tuple(f"{part}_sampler" for part in PARTS)

GROUPS = ("Task", "Strings", "Network", "Training")
"""The groups of settings of a new sweep."""


class About:
    """What is said of a field in its annotation; what it means, its docstring says.

    Args:
        group: where it stands among the settings of a new sweep; None where it is filled in.
        place: its place in the group, where those come first that are asked for most.
        readers: of a field later than the first version's, the fields that name who may read it,
            `kind` among them. Where none of them does, it has to keep its default.
    """

    def __init__(self, group: str | None, place: int, *readers: str) -> None:
        self.group, self.place, self.readers = group, place, readers


Size = Annotated[int, Field(ge=0, le=4096)]
PositiveSize = Annotated[int, Field(ge=1, le=4096)]
StringLength = Annotated[int, Field(ge=1, le=10_000)]
LeastLength = Annotated[int, Field(ge=0, le=10_000)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
"""The name of a task, a sampler, a position scheme or an architecture, a plug-in's among them."""

BatchSize = Annotated[int, Field(ge=1, le=1_000_000)]
Alpha = Annotated[float, Field(ge=0.05, le=1e6)]
"""Below that a Dirichlet draw of only zeros, after rounding, would be more than a theory."""
SamplerSeed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(gt=0, lt=1)]
InitStrategy = Literal["default", "output_fan_out"]
Decay = Literal["all", "matrices"]
Answered = Literal["string", "prefixes", "next_symbols", "states"]
LanguageClass = Literal[
    "SL", "coSL", "SP", "coSP", "LT", "LTT", "PT", "PLT", "TSL", "TcoSL", "TLT", "TLTT", "TPLT",
    "SF", "Zp", "Reg",
]  # fmt: skip


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            raise ConfigError(in_one_line(cls, error)) from None


def are_imported(fields: Mapping[str, Any]) -> bool:
    """Whether a configuration's fields, or those that a sweep fixes, are of models trained
    elsewhere.
    """
    # What marks them is a name in the architecture's place, where there is no class to be asked.
    return fields.get("architecture") == IMPORTED


class _NetworkFields(_Settings):
    """What a run says of its network; whether the parts are there, `seqcls.problem` asks."""

    num_letters: Annotated[int, Field(ge=1, le=MAX_LETTERS), About("Task", 10)] = 3
    """The size of the alphabet of tasks over lowercase letters; others bring an alphabet of
    their own."""
    hidden_size: Annotated[PositiveSize, About("Network", 2)] = 2
    """Numbers in the state of each token."""
    num_attention_heads: Annotated[Size, About("Network", 3)] = 2
    """Heads of each attention layer; 0 leaves attention out."""
    attention_head_size: Annotated[PositiveSize, About("Network", 11)] = 1
    """Numbers in each head's queries, keys and values."""
    feed_forward_size: Annotated[Size, About("Network", 12)] = 2
    """Units of the feed-forward layer; 0 leaves it out."""
    layer_norm: Annotated[Literal["rms", "nn"], About("Network", 13)] = "rms"
    """`rms`: root mean square only; `nn`: PyTorch's `LayerNorm`."""
    layer_norm_eps: Annotated[float, Field(ge=0, le=1), About("Network", 14)] = 1e-5
    """0 means no norm at all."""
    no_attend_cls: Annotated[bool, About("Network", 17)] = False
    """Whether tokens cannot attend to `CLS`."""
    dropout_rate: Annotated[float, Field(ge=0, lt=1), About("Network", 22)] = 0.0
    """The share of states that training sets to 0."""
    embeddings_init_strategy: Annotated[
        Literal["default", "linear_like", "gpt2"], About("Network", 23)
    ] = "default"
    """`gpt2`: of all weights, as Radford et al. (2019) draw them."""
    attention_init_strategy: Annotated[InitStrategy, About("Network", 24)] = "default"
    """How attention's weights are drawn."""
    feed_forward_init_strategy: Annotated[InitStrategy, About("Network", 25)] = "default"
    """How the feed-forward layer's weights are drawn."""
    precision: Annotated[Literal["float32", "float64"], About("Network", 35)] = "float32"
    """The precision of all numbers, in training and in testing."""

    architecture: Annotated[Name, About("Network", 1)] = "transformer"
    """The network."""
    num_blocks: Annotated[int, Field(ge=1, le=64), About("Network", 4, "architecture")] = 1
    """Blocks of a Transformer; layers of a recurrent network."""
    layers: Annotated[str, Field(max_length=64), About("Network", 5, "architecture")] = ""
    """The blocks of `hybrid`, the first first, a letter for the mixer of each: `a` attention, `d`
    DeltaNet, `g` Gated DeltaNet, `p` DeltaProduct, `m` Mamba, `l` linear attention, `s` sLSTM, `r`
    LSTM."""
    positions: Annotated[Name, About("Network", 6, "architecture")] = "none"
    """How a Transformer knows a token's place."""
    position_draw: Annotated[Literal["sorted", "shifted"], About("Network", 8, "positions")] = (
        "sorted"
    )
    """How `learned` places are drawn in training: `shifted` moves each string's by one offset,
    drawn so that it still fits a table for the longest test string."""
    attention: Annotated[Literal["additive", "none"], About("Network", 19, "architecture")] = (
        "additive"
    )
    """What `recurrent_attention` has: whether the decoder attends to the encoder's states (Bahdanau
    et al. 2015), or only starts from the last (Sutskever et al. 2014)."""
    position_range: Annotated[int, Field(ge=0, le=1_000_000), About("Network", 7, "positions")] = 0
    """Above 0, places are drawn from so many, anew for every batch (Ruoss et al. 2023)."""
    attention_mask: Annotated[Literal["full", "causal"], About("Network", 10, "architecture")] = (
        "full"
    )
    """`causal`: a token attends only to itself and those before it."""
    readout: Annotated[
        Literal["first", "last", "mean", "last_letter"], About("Network", 9, "architecture")
    ] = "first"
    """`first`: at `CLS` before the string; `last`: at an end token after it; `mean`: over the
    string's own tokens, with neither; `last_letter`: at the last of these."""
    attention_scale: Annotated[
        Literal["sqrt", "log_length", "learned_log_length"], About("Network", 18, "architecture")
    ] = "sqrt"
    """`log_length`: scores times ln N as well, N the tokens that the model reads; with a causal
    mask those up to the one that attends. `learned_log_length`: times s ln N + b, with an s and a
    b for each head, which are learned (Nakanishi 2025)."""
    norm_placement: Annotated[Literal["pre", "post"], About("Network", 15, "architecture")] = "pre"
    """Norms before or after attention and feed-forward."""
    activation: Annotated[
        Literal["gelu", "relu", "gelu_tanh"], About("Network", 20, "architecture")
    ] = "gelu"
    """`gelu_tanh`: the approximation by tanh (Hendrycks & Gimpel 2016)."""
    biases: Annotated[bool, About("Network", 21, "architecture")] = False
    """Whether linear layers and cells have biases."""
    final_norm: Annotated[bool, About("Network", 16, "architecture")] = False
    """Whether the last block's output is normalized once more."""
    tied_embeddings: Annotated[bool, About("Network", 26, "kind")] = False
    """Whether the head's weights are the embeddings: of transductions alone."""
    embedding_scale: Annotated[Literal["none", "sqrt"], About("Network", 27, "architecture")] = (
        "none"
    )
    """`sqrt`: embeddings times the root of the hidden size (Vaswani et al. 2017)."""
    eigenvalue_range: Annotated[
        Literal["positive", "signed"], About("Network", 28, "architecture")
    ] = "positive"
    """What a memory keeps from one token to the next, in `deltanet`, `gated_deltanet`,
    `deltaproduct` and `mamba`: factors from 0 to 1, or from -1 to 1 (Grazzi et al. 2024)."""
    short_convolution: Annotated[bool, About("Network", 29, "architecture")] = True
    """Whether `deltanet`, `gated_deltanet` and `deltaproduct` mix queries, keys and values with the
    three tokens before."""
    householder_steps: Annotated[int, Field(ge=1, le=16), About("Network", 30, "architecture")] = 2
    """How often `deltaproduct` writes to its memory with each token (Siems et al. 2025)."""
    expand: Annotated[int, Field(ge=1, le=64), About("Network", 31, "architecture")] = 2
    """How many times as wide as the hidden state the channels of `mamba` are."""
    state_size: Annotated[PositiveSize, About("Network", 32, "architecture")] = 16
    """Numbers that each channel of `mamba` keeps."""
    picture_blocks: Annotated[int, Field(ge=1, le=64), About("Network", 33, "architecture")] = 4
    """Residual blocks that read a picture; every two halve its sides and double the channels."""
    picture_channels: Annotated[int, Field(ge=1, le=512), About("Network", 34, "architecture")] = 16
    """Channels of the first of these blocks."""

    @property
    def has_norms(self) -> bool:
        return self.layer_norm_eps > 0

    @property
    def is_imported(self) -> bool:
        """Whether only predictions are known of its models: they were trained elsewhere."""
        return are_imported({"architecture": self.architecture})


class NetworkConfig(_NetworkFields):
    """The network: everything that determines its parameters' shapes and its function.

    Made from a run's configuration by `seqcls.problem.resolve`, which knows its alphabet.
    """

    num_letters: Annotated[int, Field(ge=1, le=254)] = 3
    """Tokens of the alphabet, whatever they are."""
    num_outputs: Annotated[int, Field(ge=1, le=4096)] = 1
    """Numbers that the head gives of a string."""
    trained_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Tokens of the longest string that it is trained on."""
    tested_length: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Tokens of the longest string that it is tested on, with `position_draw` `shifted`."""
    head: Literal["string", "output", "all", "places"] = "string"
    """What the head answers: one thing of each string, every token of its output, in training
    those of its input too, or something at every place of the string, `CLS` before it among
    them."""
    coupling: str = ""
    """The task and its fields as JSON, with positions `coupled` or `coupled_marks`: it says which
    tokens belong together; and whether marks are moved along."""
    picture: str = ""
    """The task and its fields as JSON, where it draws what models see."""
    place_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Draws the places of tested strings, with `position_range`."""

    @property
    def vocabulary_size(self) -> int:
        return self.num_letters + 2

    @property
    def writes(self) -> bool:
        """Whether it answers with an output, token by token."""
        return self.head in ("output", "all")


class RunConfig(_NetworkFields):
    """One configuration of task, alphabet, network, strings and training.

    Every field is an axis that a sweep can vary; the defaults are those of the report's program.
    Strings of other tasks than the report's are drawn by `balanced_strings` where no sampler is
    named. Whether task, samplers and network fit each other, `seqcls.problem.configuration` asks.

    Raises:
        ConfigError: an unknown field, or a value out of its limits.
    """

    task: Annotated[Name, About("Task", 1)] = REPORT_TASK
    """The language to recognize, or the transduction to compute."""
    required_letters: Annotated[str, About("Task", 11)] = "ab"
    """The letters that every positive string of `contains_all` holds."""
    alphabet: Annotated[str, Field(max_length=MAX_LETTERS), About("Task", 3, "task")] = ""
    """The tokens of `regular`, `counting` and `rewrite`, one character each; of the last two also
    names with a space between, such as `push pop a`."""
    pattern: Annotated[str, Field(max_length=1_000), About("Task", 4, "task")] = ""
    """The regular expression of `regular`, or what `rewrite` replaces."""
    formula: Annotated[str, Field(max_length=1_000), About("Task", 6, "task")] = ""
    """The formula over letter counts of `counting`."""
    group: Annotated[GroupName, About("Task", 7, "task")] = "Z5"
    """Whose elements are the tokens of `word_problem` and `write_products`."""
    bracket_types: Annotated[int, Field(ge=1, le=2), About("Task", 8, "task")] = 1
    """Bracket types of `dyck`: one, or two."""
    max_depth: Annotated[int, Field(ge=0, le=10_000), About("Task", 9, "task")] = 0
    """Brackets open at once in `dyck`; 0 means no limit."""
    num_tokens: Annotated[int, Field(ge=1, le=200), About("Task", 12, "task")] = 2
    """Tokens that inputs of `copy`, `reverse`, `duplicate`, `sort`, `write_odds_first`, `retrieval`
    and, beside noise, `selective_copy` may hold; keys of `associative_recall` and
    `consistent_pairs`, which have as many values."""
    distinct: Annotated[bool, About("Task", 13, "task")] = False
    """Whether no input of the first five holds a token twice, and none of `associative_recall` a
    key."""
    ignore_share: Annotated[float, Field(ge=0, lt=1), About("Task", 30, "task")] = 0.8
    """The share of instructions between the first and the last of `flip_flop` and `write_flip_flop`
    that are `i`: 0.98 is sparse, 0.1 dense."""
    test_ignore_share: Annotated[float, Field(ge=0, le=1), About("Task", 34, "task")] = AS_OTHERS
    """That share in test strings; 1: the same as in others."""
    data_tokens: Annotated[int, Field(ge=1, le=1_000), About("Task", 31, "task")] = 4
    """Tokens of every input of `selective_copy` that are no noise."""
    neighbor: Annotated[Literal["right", "left"], About("Task", 32, "task")] = "right"
    """Which token beside the one that `retrieval` looks for is its output."""
    occurrence: Annotated[Literal["last", "first", "unique"], About("Task", 33, "task")] = "last"
    """Which of that token's occurrences it looks for; `unique`: there is one."""
    base: Annotated[Literal[2, 10], About("Task", 14, "task")] = 2
    """The base of the numbers of arithmetic tasks."""
    digit_order: Annotated[Literal["most_first", "least_first"], About("Task", 15, "task")] = (
        "most_first"
    )
    """Whether numbers start with their highest or their lowest digit."""
    operand_lengths: Annotated[Literal["free", "equal"], About("Task", 16, "task")] = "free"
    """`equal`: operands are padded with zeros to one length."""
    replacement: Annotated[str, Field(max_length=1_000), About("Task", 5, "task")] = ""
    r"""What `rewrite` puts in the place of every match of `pattern`; `\1` is its first group."""
    line_length: Annotated[int, Field(ge=1, le=200), About("Task", 17, "task")] = 6
    """Characters of a line of `paragraph` at most."""
    max_lines: Annotated[int, Field(ge=1, le=200), About("Task", 18, "task")] = 6
    """Lines that a picture has room for."""
    font: Annotated[Literal["pillow", "digits"], About("Task", 19, "task")] = "pillow"
    """`pillow`: its bitmap font; `digits`: ten handwritten ones of each."""
    distortion: Annotated[float, Field(ge=0, le=1), About("Task", 20, "task")] = 0.0
    """Jitter, spacing, slant, faint ink and noise of pictures; 0 for none."""
    language_class: Annotated[LanguageClass, About("Task", 23, "task")] = "SL"
    """The class of `subregular`, as MLRegTest names it: `SL` strictly local, `TPLT` piecewise
    locally testable on a tier."""
    width: Annotated[int, Field(ge=1, le=7), About("Task", 24, "task")] = 2
    """Letters of the longest block or subsequence that decides, of `Zp` the prime that letters are
    counted modulo."""
    threshold: Annotated[int, Field(ge=1, le=10), About("Task", 25, "task")] = 2
    """Occurrences of a block that `LTT` tells apart, blocks one after another that `PLT` does."""
    alphabet_size: Annotated[int, Field(ge=2, le=64), About("Task", 26, "task")] = 4
    """Letters of `subregular`."""
    tier_size: Annotated[int, Field(ge=1, le=63), About("Task", 27, "task")] = 2
    """Letters on the tier, of the classes that have one: all others are left out."""
    language_seed: Annotated[SamplerSeed, About("Task", 28, "task")] = 0
    """Which of the languages of these fields."""
    answers: Annotated[Answered, About("Task", 29, "kind")] = "string"
    """What is asked of a language: whether the string is in it, or at every place whether the
    prefix is (`prefixes`), which tokens may follow (`next_symbols`), or in which state its
    automaton is (`states`)."""
    loss_on: Annotated[Literal["output", "all"], About("Training", 16, "kind")] = "output"
    """Which tokens a transduction's training loss counts: `all` has the input's too."""
    decoding: Annotated[Literal["greedy", "beam"], About("Task", 21, "kind")] = "greedy"
    """`greedy`: the likeliest token each time; `beam`: several outputs are kept at once."""
    beam_width: Annotated[int, Field(ge=1, le=1_000), About("Task", 22, "kind")] = 5
    """Outputs that `beam` keeps at once."""
    plugins: Annotated[str, Field(max_length=1_000)] = ""
    """Names and versions of the packages that results depend on; `seqcls.problem` fills them in."""

    train_sampler: Annotated[Name, About("Strings", 9)] = REPORT_SAMPLER
    train_max_length: Annotated[StringLength, About("Strings", 1)] = 10
    train_lengths: Annotated[
        str, Field(max_length=1_000), About("Strings", 31, "train_sampler")
    ] = ""
    """Stages of training on longer and longer strings, the longest length of each and the share of
    training at which it ends: `[[8, 0.2], [16, 0.5], [40, 1.0]]`, where the last length is
    `train_max_length`. Nothing: all lengths from the start."""
    train_alpha: Annotated[Alpha, About("Strings", 11)] = 1.0
    train_size: Annotated[BatchSize, About("Strings", 12)] = 10_000
    """Strings of an epoch, at least a batch; `variable_length` rounds down to whole batches."""
    sequence_length: Annotated[int, Field(ge=2, le=100), About("Strings", 13)] = 10
    """Tokens of each string of `fixed_length`, `CLS` counted."""
    train_batch_size: Annotated[BatchSize, About("Strings", 14)] = 64
    train_seed: Annotated[SamplerSeed, About("Strings", 15)] = 0

    validation_max_length: Annotated[StringLength, About("Strings", 16)] = 50
    validation_alpha: Annotated[Alpha, About("Strings", 19)] = 0.5
    validation_size: Annotated[BatchSize, About("Strings", 20)] = 1_000
    validation_batch_size: Annotated[BatchSize, About("Strings", 21)] = 64
    validation_seed: Annotated[SamplerSeed, About("Strings", 22)] = 0

    test_max_length: Annotated[StringLength, About("Strings", 2)] = 200
    test_alpha: Annotated[Alpha, About("Strings", 26)] = 0.1
    test_size: Annotated[BatchSize, About("Strings", 27)] = 10_000
    test_batch_size: Annotated[BatchSize, About("Strings", 28)] = 256
    test_seed: Annotated[SamplerSeed, About("Strings", 29)] = 2

    validation_sampler: Annotated[Name, About("Strings", 17)] = REPORT_SAMPLER
    test_sampler: Annotated[Name, About("Strings", 23)] = REPORT_SAMPLER
    train_min_length: Annotated[LeastLength, About("Strings", 10, "train_sampler")] = 0
    validation_min_length: Annotated[LeastLength, About("Strings", 18, "validation_sampler")] = 0
    test_min_length: Annotated[LeastLength, About("Strings", 24, "test_sampler")] = 0
    train_set: Annotated[Literal["fresh", "fixed"], About("Strings", 5, "train_sampler")] = "fresh"
    """Whether `balanced_strings` draws new strings for every epoch, or shuffles the first's."""
    negatives: Annotated[
        Literal["uniform", "edits", "mixed", "near", "border"], About("Strings", 3, *_SAMPLERS)
    ] = "mixed"
    """How `balanced_strings` draws negative strings; `near`: up to a third of them are positive
    ones with a token or two changed and no pair of neighbors that positive strings lack; `border`:
    each is at edit distance 1 from a positive string."""
    test_negatives: Annotated[
        Literal["as_trained", "uniform", "edits", "mixed", "near", "border"],
        About("Strings", 25, "test_sampler"),
    ] = "as_trained"
    """How negative test strings are drawn; `as_trained`: as `negatives` says."""
    test_strings: Annotated[
        Literal["random", "random_and_border"], About("Strings", 30, "test_sampler")
    ] = "random"
    """Which strings `balanced_strings` tests on; `random_and_border`: uniform ones, and as many in
    pairs at edit distance 1, one in the language and one outside."""
    negative_lengths: Annotated[
        Literal["redrawn", "uniform", "nearest"], About("Strings", 4, *_SAMPLERS)
    ] = "redrawn"
    """Whether a candidate that is positive is drawn again length and all, or a negative string's
    length is uniform among those that have one, and kept; `nearest`: near ones of a length without
    positive strings have the nearest length with some."""
    disjoint: Annotated[bool, About("Strings", 6, "test_sampler")] = False
    """Whether strings that were trained on are kept out of a test set of `balanced_strings` or
    `uniform_inputs`."""

    dataset: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$"), About("Task", 2, "task")] = ""
    """The digest of a file's content; specifications name the file, as `path`."""
    validation_share: Annotated[Share, About("Strings", 7, *_SAMPLERS)] = 0.1
    """The share of a file's distinct strings, where it has no split of that name."""
    test_share: Annotated[Share, About("Strings", 8, *_SAMPLERS)] = 0.2
    """The share for testing, like `validation_share`."""

    imported: Annotated[str, Field(max_length=100_000), About(None, 0, "architecture")] = ""
    """The name and settings of a model trained elsewhere, as JSON; see `seqcls.imported`. With an
    architecture of ours its weights are here."""

    train_loss: Annotated[Literal["default", "sigmoid_scaled"], About("Training", 7)] = "default"
    """`sigmoid_scaled`: the loss of the report's program."""
    learning_rate: Annotated[float, Field(gt=0, le=10), About("Training", 1)] = 1e-2
    """The optimizer's rate at the start."""
    final_learning_rate_factor: Annotated[float, Field(ge=0, le=1), About("Training", 3)] = 0.5
    """What is left of the learning rate after `max_num_epochs` epochs."""
    learning_rate_schedule: Annotated[Literal["linear", "cosine"], About("Training", 4)] = "linear"
    """The way it falls to that."""
    learning_rate_interval: Annotated[Literal["epoch", "step"], About("Training", 5)] = "epoch"
    """Whether it falls after every epoch, or at every step after the warm-up."""
    warm_up_steps: Annotated[int, Field(ge=0, le=1_000_000), About("Training", 6)] = 0
    """Steps over which the learning rate grows to its value, linearly."""
    max_num_epochs: Annotated[int, Field(ge=1, le=100_000), About("Training", 2)] = 30
    """Training ends after so many epochs."""
    min_num_epochs: Annotated[int, Field(ge=0, le=100_000), About("Training", 8)] = 5
    """Training does not stop early before so many epochs."""
    patience: Annotated[int, Field(ge=1, le=100_000), About("Training", 9)] = 3
    """Epochs without a lower validation loss after which training stops."""
    min_validation_loss: Annotated[float, Field(ge=0), About("Training", 10)] = 0.05
    """Training stops below this sum over the validation strings, in nats."""
    stop_when_right: Annotated[bool, About("Training", 11)] = False
    """Whether training ends, and keeps that model, as soon as every validation string of trained
    lengths is answered right."""
    check_every: Annotated[
        int, Field(ge=0, le=1_000_000_000), About("Training", 12, "stop_when_right")
    ] = 0
    """Steps after which that is looked at, counted over all of training; 0: only after epochs."""
    train_more_steps: Annotated[
        int, Field(ge=0, le=1_000_000_000), About("Training", 18, "stop_when_right")
    ] = 0
    """Steps that training goes on for once all was right: it then ends, and keeps that model, as
    soon as all is right when it is looked at."""
    weight_decay: Annotated[float, Field(ge=0, le=10), About("Training", 13)] = 0.01
    """How strongly weights are pulled toward 0."""
    decay: Annotated[Decay, About("Training", 14)] = "all"
    """Which weights are: all, or only matrices, embeddings among them, and no biases or norms."""
    gradient_clip: Annotated[float, Field(ge=0, le=1e6), About("Training", 15)] = 0.0
    """The largest norm of a member's gradient; 0 means no limit."""

    freeze: Annotated[str, Field(max_length=1_000), About("Training", 17)] = ""
    """Parts whose weights stay as they were drawn until a share of training, such as
    `[["embeddings", 0.2]]`: `embeddings`, `positions`, `blocks`, one `block 0`, `head`."""

    @field_validator("train_lengths", mode="before")
    @classmethod
    def _read_stages(cls, value: Any) -> str:
        return stages_as_json(value)

    @field_validator("freeze", mode="before")
    @classmethod
    def _read_frozen(cls, value: Any) -> str:
        return frozen_as_json(value)

    @model_validator(mode="before")
    @classmethod
    def _blocks_of_layers(cls, fields: Any) -> Any:
        layers = fields.get("layers") if isinstance(fields, Mapping) else None
        if not isinstance(layers, str) or not layers or fields.get("num_blocks") != len(layers):
            return fields
        # What layers say already; said once, what is the same has one key.
        return {name: value for name, value in fields.items() if name != "num_blocks"}

    @model_validator(mode="before")
    @classmethod
    def _samplers_of_the_task(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or fields.get("task", REPORT_TASK) == REPORT_TASK:
            return fields
        return {**{f"{part}_sampler": ANY_SAMPLER for part in PARTS}, **fields}

    @field_validator("required_letters")
    @classmethod
    def _in_order(cls, letters: str) -> str:
        if not letters or len(set(letters)) < len(letters):
            raise ValueError("expected distinct letters, at least one, such as 'ab'")
        if len(letters) > MAX_REQUIRED_LETTERS:
            raise ValueError(f"expected at most {MAX_REQUIRED_LETTERS} letters")
        return "".join(sorted(letters))

    @field_validator("alphabet")
    @classmethod
    def _of_tokens(cls, alphabet: str) -> str:
        names = alphabet.split(" ")
        if "" in names and alphabet:
            raise ValueError("expected visible tokens with one space between, such as 'push pop'")
        if len(names) > 1 and max(map(len, names)) == 1:
            # One language has one key.
            raise ValueError("expected no spaces between tokens of one character, such as 'ab'")
        tokens = names if len(names) > 1 else alphabet
        obstacle = alphabet_obstacle(tokens) or composing_obstacle(tokens)
        if obstacle is not None:
            raise ValueError(obstacle)
        return alphabet

    @property
    def is_loaded(self) -> bool:
        """Whether its models' weights were trained elsewhere and loaded here."""
        return bool(self.imported) and not self.is_imported

    @cached_property
    def knows_trained_lengths(self) -> bool:
        """Whether it says of what lengths the strings were that its models were trained on."""
        if self.is_imported or not self.imported:
            return not self.is_imported
        return bool(self._origin.get("trained"))

    @property
    def loaded_places(self) -> int | None:
        """Rows of the table of positions that was loaded; None where there is none."""
        places = self._origin.get("places") if self.is_loaded else None
        return places if isinstance(places, int) and places > 0 else None

    @cached_property
    def _origin(self) -> Mapping[str, Any]:
        """What is kept of a model that was trained elsewhere; see `seqcls.imported`."""
        try:
            content = json.loads(self.imported or "{}")
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    @classmethod
    def from_mapping(cls, fields: Mapping[str, Any]) -> Self:
        """A configuration from the names and values of its fields.

        Raises:
            ConfigError: as the class.
        """
        return cls.model_validate(dict(fields))

    @cached_property
    def changed(self) -> dict[str, Any]:
        """The fields that differ from their default, by name."""
        defaults = default_fields()
        fields = sorted(self.model_dump().items())
        # Adding zero makes -0.0 what it equals.
        positive = {k: v + 0.0 if isinstance(v, float) else v for k, v in fields}
        return {k: v for k, v in positive.items() if v != defaults[k]}

    @cached_property
    def key(self) -> str:
        """A hash of the fields that differ from their default, as 64 hexadecimal digits.

        A field added later, at its default, changes no key.
        """
        return hashlib.sha256(canonical_json(self.changed).encode()).hexdigest()

    @cached_property
    def group_key(self) -> str:
        """Equal for configurations whose members can train in one group, seeds aside.

        Initial values are the members' own; all else, shapes and strings and steps, they share.
        """
        not_shared = {
            "embeddings_init_strategy",
            "attention_init_strategy",
            "feed_forward_init_strategy",
        }
        return canonical_json({k: v for k, v in self.changed.items() if k not in not_shared})


ABOUT = {
    name: about
    # Fields of a run before those of its network.
    for name in sorted(RunConfig.model_fields, key=_NetworkFields.model_fields.__contains__)
    for about in RunConfig.model_fields[name].metadata
    if isinstance(about, About)
}


def default_fields() -> dict[str, Any]:
    """Every field of a configuration with its default."""
    return {name: field.default for name, field in RunConfig.model_fields.items()}


def check_model_seed(seed: int) -> int:
    """The seed, where PyTorch's generators and every database can hold it.

    Raises:
        ConfigError: it is no whole number from 0 to `MAX_MODEL_SEED`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_MODEL_SEED:
        raise ConfigError(
            f"model_seed={seed!r}: expected a whole number from 0 to {MAX_MODEL_SEED}"
        )
    return seed
