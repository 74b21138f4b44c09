"""Transduction: which string is right? Written token by token, each read off its own logits.

One stream: a model reads `CLS x SEP y` from left to right, x the input and y the target. From `SEP`
on it predicts the next token: y, then `END`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import NetworkConfig
from seqcls.kinds.base import ErrorColumn, Examples, Measure, Words
from seqcls.results import ErrorKind
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD, Tokenizer
from seqcls.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor


NO_TARGET = -1
"""Stands among encoded targets where nothing is predicted."""

SPECIAL_LETTERS = 2
"""`SEP` and `END`, which follow the alphabet's tokens in this order."""


def separator_id(network: NetworkConfig) -> int:
    """The token id of `SEP`."""
    return network.vocabulary_size - 2


def end_id(network: NetworkConfig) -> int:
    """The token id of `END`."""
    return network.vocabulary_size - 1


class TransductionKind:
    """Answers of transductions: strings."""

    reads: ClassVar[frozenset[str]] = frozenset(
        {"loss_on", "decoding", "beam_width", "stop_when_right", "tied_embeddings"}
    )
    sampler: ClassVar[str] = "uniform_inputs"
    defaults: ClassVar[Mapping[str, Any]] = {"attention_mask": "causal"}
    words: ClassVar[Words] = Words(
        "input",
        "get {} wrong",
        "gets {} wrong",
        "wrongly answered",
        "task",
        "target",
        "rightly answered",
    )
    answer_columns: ClassVar[tuple[ErrorColumn, ErrorColumn]] = (
        ErrorColumn("output", "Output", "The string that the model writes."),
        ErrorColumn("log_probability", "Log-probability", "Of the output, in nats."),
    )
    cells: ClassVar[tuple[str, ...]] = ()

    def num_outputs(self, task: Task) -> int:
        """Implements `Kind.num_outputs`, for every token: one for each token id."""
        return FIRST_LETTER + len(task.alphabet) + SPECIAL_LETTERS

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Implements `Kind.network`."""
        return {
            "num_letters": len(task.alphabet) + SPECIAL_LETTERS,
            "num_outputs": self.num_outputs(task),
            "head": fields["loss_on"],
        }

    def targets(self, task: Any, strings: TokenStrings) -> np.ndarray:
        """Implements `Kind.targets`: letters, `NO_LETTER` after each end."""
        targets: np.ndarray = task.targets(strings)
        return targets

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """Implements `Kind.reading`: the input, `SEP`, and the target without `END`."""
        inputs, targets = examples.strings, examples.targets
        before, after = inputs.lengths, target_lengths(targets)
        lengths = before + 1 + after
        letters = np.full((len(inputs), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
        rows, places = np.nonzero(inputs.letters != NO_LETTER)
        letters[rows, places] = inputs.letters[rows, places]
        letters[np.arange(len(inputs)), before] = len(task.alphabet)
        rows, places = np.nonzero(targets != NO_LETTER)
        letters[rows, before[rows] + 1 + places] = targets[rows, places]
        return TokenStrings(len(task.alphabet) + SPECIAL_LETTERS, lengths, letters)

    def longest_reading(self, task: Any, length: int) -> int:
        """Implements `Kind.longest_reading`."""
        longest: int = task.longest_target(length)
        return length + 1 + longest

    def encoded(
        self, task: Task, examples: Examples, network: NetworkConfig
    ) -> Int64[np.ndarray, "string place"]:
        """Implements `Kind.encoded`: token ids in the order in which they are predicted,
        `NO_TARGET` after.

        Of the head `output` those of target and `END`; of `all` those of the input and `SEP` too.
        """
        lengths, ids = target_lengths(examples.targets), _ids(examples.targets)
        if network.head == "all":
            read = self.reading(task, examples)
            lengths, ids = read.lengths, _ids(read.letters)
        ids = np.pad(ids, ((0, 0), (0, 1)), constant_values=NO_TARGET)
        ids[np.arange(len(ids)), lengths] = end_id(network)
        return ids

    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        """Implements `Kind.losses`: each string's cross entropies, summed over the tokens
        predicted.
        """
        del train_loss
        has_target = targets != NO_TARGET
        scores = outputs.log_softmax(dim=-1)
        chosen = targets[has_target].expand(scores.shape[:-1]).unsqueeze(-1)
        return -_per_string(scores.gather(-1, chosen).squeeze(-1), has_target)

    def units(self, targets: "Tensor") -> int:
        """Implements `Kind.units`: the tokens predicted."""
        return int((targets != NO_TARGET).sum())

    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """Implements `Kind.are_right`: every token of target and `END` has the highest output."""
        has_target = targets != NO_TARGET
        said = writable(outputs).argmax(dim=-1)
        missed = (said != targets[has_target]) & of_output(targets, outputs.shape[-1])
        return _per_string(missed.to(outputs.dtype), has_target) == 0

    def are_right_length_given(
        self, outputs: "Tensor", targets: "Tensor"
    ) -> "Bool[Tensor, '*member string']":
        """Implements `are_right`, where `END` is written after the target's length and never
        before.
        """
        has_target, end = targets != NO_TARGET, outputs.shape[-1] - 1
        wanted = targets[has_target]
        missed = (writable(outputs)[..., :end].argmax(dim=-1) != wanted) & (wanted != end)
        missed = missed & of_output(targets, outputs.shape[-1])
        return _per_string(missed.to(outputs.dtype), has_target) == 0

    def answers(self, outputs: np.ndarray) -> np.ndarray:
        """Implements `Kind.answers`; asked of `seqcls.decode`, which writes outputs."""
        raise NotImplementedError

    def cell(self, answers: np.ndarray, targets: np.ndarray) -> Int64[np.ndarray, " string"]:
        """Implements `Kind.cell`; never asked."""
        raise NotImplementedError

    def margins(self, outputs: np.ndarray, targets: np.ndarray) -> Float[np.ndarray, " string"]:
        """Implements `Kind.margins`; asked of `seqcls.decode`, which knows log-probabilities."""
        raise NotImplementedError

    def texts(self, task: Task, answers: np.ndarray) -> Sequence[str]:
        """Implements `Kind.texts`: in the notation of strings."""
        return output_texts(Tokenizer(task.alphabet), answers)

    def measures(self) -> tuple[Measure, ...]:
        """Implements `Kind.measures`."""
        return (
            Measure(
                "accuracy",
                "Exact match",
                "Share of a model's test strings whose output is the target, END included.",
            ),
            Measure(
                "right_length_given",
                "Exact match, length given",
                "Share whose output is the target where the target's length is imposed.",
            ),
            Measure(
                "token_error_rate",
                "Token error rate",
                "Edit distances between outputs and targets over the tokens of the targets.",
                is_error=True,
            ),
        )

    def error_columns(self) -> tuple[ErrorColumn, ...]:
        """Implements `Kind.error_columns`."""
        return (
            ErrorColumn("target", "Target", "The string that is right."),
            ErrorColumn("output", "Output", "The string that the model writes."),
            ErrorColumn("error_kind", "Error", "How output and target differ."),
            ErrorColumn("first_wrong", "Right tokens", "Tokens before the first that differs."),
            ErrorColumn(
                "logit", "Log-probability", "Of the target, in nats: 0 where the model is sure."
            ),
        )


def output_texts(tokenizer: Tokenizer, outputs: np.ndarray) -> list[str]:
    """Outputs, as targets are written, in the notation of strings."""
    rows = zip(_ids(outputs).tolist(), target_lengths(outputs).tolist(), strict=True)
    return [tokenizer.decode(ids[:length]) for ids, length in rows]


def writable(outputs: "Float[Tensor, '*token output']") -> "Float[Tensor, '*token output']":
    """The head's outputs, those of `CLS`, `PAD` and `SEP` the least: no output has such tokens."""
    outputs = outputs.clone()
    outputs[..., [CLS, PAD, outputs.shape[-1] - 2]] = -np.inf
    return outputs


def target_lengths(letters: np.ndarray) -> Int64[np.ndarray, " string"]:
    """Tokens of each target."""
    return np.asarray((letters != NO_LETTER).sum(axis=1), dtype=np.int64)


def of_output(targets: "Tensor", vocabulary: int) -> "Bool[Tensor, ' token']":
    """Which of the tokens predicted follow `SEP`: all, but with the head `all`."""
    has_target = targets != NO_TARGET
    separators = (targets == vocabulary - 2).int()
    # A token stands after SEP where no SEP stands at its place or after it.
    return (separators.flip(1).cumsum(1).flip(1) == 0)[has_target]


def _ids(letters: np.ndarray) -> Int64[np.ndarray, "string position"]:
    return np.where(letters == NO_LETTER, NO_TARGET, letters.astype(np.int64) + FIRST_LETTER)


def _per_string(
    values: "Float[Tensor, '*member token']", has_target: "Bool[Tensor, 'string place']"
) -> "Float[Tensor, '*member string']":
    """Sums over the tokens of each string, of values of all strings one after another."""
    rows = has_target.nonzero()[:, 0]
    sums = values.new_zeros(*values.shape[:-1], len(has_target))
    return sums.index_add(-1, rows, values)


LOOPS = 3
"""Times that the end of an output is repeated, to be called a loop."""


def edits(output: Sequence[int], target: Sequence[int]) -> int:
    """Insertions, deletions and substitutions from one to the other (Levenshtein 1966)."""
    # Loaded where outputs are compared, and not wherever a kind of task is named.
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(output, target))


def first_wrong(output: Sequence[int], target: Sequence[int]) -> int:
    """Tokens before the first in which they differ; of a prefix its length."""
    pairs = zip(output, target, strict=False)
    return next(
        (place for place, (said, right) in enumerate(pairs) if said != right),
        min(len(output), len(target)),
    )


def error_kind(output: Sequence[int], target: Sequence[int], *, ended: bool) -> ErrorKind:
    """The first of the kinds that holds of a wrong output.

    Args:
        output: its tokens.
        target: other ones, or the same where `END` did not come.
        ended: whether `END` came; a loop is cut off.
    """
    same = first_wrong(output, target)
    if same == len(output) < len(target):
        return "stopped early"
    if same == len(target):
        return "went on"
    return "repeats" if not ended and _loops(output) else "wrong token"


def _loops(output: Sequence[int]) -> bool:
    """Whether an output ends with the same tokens three times, or more."""
    for period in range(1, len(output) // LOOPS + 1):
        end = output[len(output) - LOOPS * period :]
        if all(end[place] == end[place % period] for place in range(len(end))):
            return True
    return False
