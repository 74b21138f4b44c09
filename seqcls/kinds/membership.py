"""Membership: is the string in the language? One bit, read off one logit.

`OneAnswer` is the base class of kinds whose models answer a string once, also in other packages.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from seqcls.kinds.base import (
    NO_TRANSDUCTION,
    Ability,
    Answers,
    Examples,
    Kind,
    Outputs,
    Questions,
    TrainedModels,
    are_unanswered,
)
from seqcls.network import NetworkConfig
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import Task
from seqcls.tasks.places import AnswersFields

if TYPE_CHECKING:
    from torch import Tensor


class OneAnswer(Kind):
    """Models read the string itself, and their head answers it once."""

    @abstractmethod
    def answers(self, outputs: Outputs) -> np.ndarray:
        """Decides the answer to each string, comparable with the targets."""

    def ask(self, models: TrainedModels, questions: Questions) -> Iterator[Answers]:
        """Implements `Kind.ask` by one pass over all strings, of all models together."""
        for outputs in models.outputs(questions.strings):
            yield self.judge(questions, outputs, models.places)

    def judge(self, questions: Questions, outputs: Outputs, places: float = math.inf) -> Answers:
        """Evaluates outputs; where no target is known, any answer is right.

        Args:
            places: number of tokens that the model has positions for.
        """
        readable = questions.strings.lengths <= places
        predicted, unanswered = self.answers(outputs), are_unanswered(outputs) & readable
        targets = questions.targets
        # The prediction replaces an unknown target, so that such a string is never wrong.
        if not questions.has_target.all():
            targets = predicted.copy()
            if questions.has_target.any():
                targets[questions.has_target] = questions.targets[questions.has_target]
        score = self.margins(outputs, targets)
        if predicted.dtype == np.bool_:
            # Without an answer a string is misclassified, whatever its label.
            predicted = np.where(unanswered, ~targets, predicted)
        return Answers(
            questions.strings, targets, predicted, score, readable & ~unanswered, unanswered
        )

    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """Implements `Kind.are_right`; NaN is wrong."""
        # Imported late: PyTorch takes a second or two, and answering by counts does without it.
        import torch

        given = outputs.detach().cpu().numpy()
        answers = self.answers(given)
        # A head has one output a string or several; one more axis makes both cases the same.
        is_nan = np.isnan(given).reshape(*answers.shape, -1).any(axis=-1)
        right = (answers == targets.cpu().numpy()) & ~is_nan
        return torch.from_numpy(right).to(targets.device)


class MembershipKind(OneAnswer):
    """Answers of languages; a positive logit means that the string is in it."""

    reads: ClassVar[frozenset[str]] = AnswersFields.reads
    shortcut_readers: ClassVar[tuple[str, ...]] = (
        *("length", "ends", "counts", "counts_trees", "bigrams", "trigrams"),
    )
    sampler: ClassVar[str] = "balanced_strings"
    score_name: ClassVar[str] = "logit"
    unjudged_score_name: ClassVar[str] = "logit"
    absent: ClassVar[Mapping[Ability, str]] = {"outputs": NO_TRANSDUCTION}
    cells: ClassVar[tuple[str, ...]] = ("tn", "fp", "fn", "tp")
    """Negative is the label 0; false is misclassified."""

    def num_outputs(self, task: Task) -> int:
        """Implements `Kind.num_outputs`: the logit."""
        return 1

    def targets(self, task: Any, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """Implements `Kind.targets`: True for strings in the language."""
        labels: np.ndarray = task.labels(strings.with_a_place())
        return labels

    def encoded(
        self, task: Task, examples: Examples, network: NetworkConfig
    ) -> Float[np.ndarray, " string"]:
        """Implements `Kind.encoded`: 0 and 1."""
        return examples.labels.astype(network.precision)

    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        """Implements `Kind.losses`: binary cross entropy, of scaled logits if `sigmoid_scaled`."""
        from torch.nn import functional

        if train_loss == "sigmoid_scaled":
            outputs = sigmoid_scaled(outputs)
        # Members share the strings of a batch, so targets have no axis of members.
        targets = targets.expand_as(outputs)
        losses: Tensor = functional.binary_cross_entropy_with_logits(
            outputs, targets, reduction="none"
        )
        return losses

    def answers(self, outputs: np.ndarray) -> Bool[np.ndarray, "*member string"]:
        """Implements `OneAnswer.answers`: True for strings predicted to be in the language."""
        return np.asarray(outputs > 0)

    def margins(self, outputs: np.ndarray, targets: np.ndarray) -> Float[np.ndarray, " string"]:
        """Implements `Kind.margins`: the logit, whatever the label."""
        return outputs

    def texts(self, task: Task, answers: np.ndarray) -> None:
        """Implements `Kind.texts`: none, since answers are bits."""
        del task, answers

    def error_columns(self) -> Mapping[str, str]:
        return {"label": "Label", "logit": "Logit"}


def sigmoid_scaled(logits: "Float[Tensor, '*batch']") -> "Float[Tensor, '*batch']":
    """Applies z <- -z / (1 + sigmoid(z)) twice, which shrinks confident logits of either sign."""
    for _ in range(2):
        logits = -logits / (1 + logits.sigmoid())
    return logits
