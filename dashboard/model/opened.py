"""One model of the database as the page has opened it: at an epoch, with a string, and a second."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from dashboard import data
from dashboard.server.opened_models import MODELS
from dashboard.server.visitors import ask
from seqcls.config import RunConfig
from seqcls.errors import UnknownRunError
from seqcls.interpretability.trained_model import Letters
from seqcls.problem import Problem, resolve
from seqcls.questions import RunModel
from seqcls.tasks import InputTask, LanguageTask
from sweeps.api import names_of, run_config
from sweeps.api.reading import Selection, check_done, stored_epochs, why_no_weights

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

LONGEST_EXAMPLE = 200
"""Longest example string, in tokens."""

_names, _config = data.cached(names_of), data.cached(run_config)
_epochs, _done = data.cached(stored_epochs), data.cached(check_done)


@dataclass(frozen=True, eq=False)
class Opened:
    """A run's model at one epoch, read from the database lazily."""

    run: int
    at_epoch: int | None = None
    """None for the tested epoch."""
    string: str = ""
    """The bar's string, in the usual notation."""
    second: "Opened | None" = None
    judged: Selection = field(default_factory=Selection)
    """From which accuracies on a model has learned, and fails."""

    @cached_property
    def config(self) -> RunConfig:
        """Its configuration."""
        return _config(self.run)

    @cached_property
    def problem(self) -> Problem:
        """The problem that it was trained for.

        Raises:
            PluginMissingError: it needs a package that is not installed.
        """
        return resolve(self.config)

    @cached_property
    def row(self) -> dict[str, Any]:
        """Its results, as of `data.model`.

        Raises:
            UnknownRunError: it is not finished.
        """
        _done(self.run, "has no model to look into")
        rows = data.model(self.run, self.judged)
        # As objects: in a row of numbers of one type a large seed would be rounded.
        return {str(name): value for name, value in rows.astype(object).iloc[0].items()}

    @property
    def fails(self) -> bool:
        """True if it misclassifies any test string."""
        return bool(self.row["errors"])

    @cached_property
    def name(self) -> str:
        """Its configuration and its seed, as `LSTM, seed 3`."""
        config_id = int(self.row["config_id"])
        return f"{_names((config_id,))[config_id]}, seed {self.row['model_seed']}"

    @property
    def title(self) -> str:
        """Its name, with the epoch unless that is the tested one."""
        return self.name if self.at_epoch is None else f"{self.name}, epoch {self.epoch}"

    @cached_property
    def lacks_weights(self) -> str | None:
        """The reason why the model itself cannot be evaluated; None if it can."""
        if (reason := why_no_weights(self.config)) is not None:
            return reason
        try:
            _epochs(self.run)
        except UnknownRunError as error:
            return str(error)
        return None

    @cached_property
    def epochs(self) -> tuple[int, ...]:
        """The epochs whose weights are stored, in order."""
        return () if self.lacks_weights else tuple(sorted(_epochs(self.run)))

    @cached_property
    def kept_epoch(self) -> int:
        """The epoch whose weights were stored and tested.

        Raises:
            UnknownRunError: no weights are stored.
        """
        # The tested one is the last, whatever its number.
        return _epochs(self.run)[-1]

    @property
    def epoch(self) -> int:
        """The epoch that is looked at; 0 is before training."""
        return self.kept_epoch if self.at_epoch is None else self.at_epoch

    @cached_property
    def model(self) -> RunModel:
        """The model at that epoch.

        Raises:
            UnknownRunError: its weights are not stored.
        """
        key = ("model", *self._key)
        model: RunModel = MODELS.answer(key, lambda: data.trained_model(self.run, self.at_epoch))
        return model

    @property
    def letters(self) -> Letters:
        """The letters of the bar's string.

        Raises:
            InvalidStringError: it is not of this alphabet, or too long to be worked on by letters.
        """
        return self.model.letters(self.string)

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The test strings that it gets wrong, the shortest first."""
        return data.string_errors(self.run)

    @cached_property
    def examples(self) -> list[str]:
        """A shortest string of either label, or a shortest input; none of them empty."""
        # A fixed seed, so that a page that is drawn again offers the same strings.
        task, rng = self.problem.task, np.random.default_rng(0)
        lengths = range(1, LONGEST_EXAMPLE + 1)
        if isinstance(task, LanguageTask):
            some = {x: next((n for n in lengths if task.has(n, x)), 0) for x in (True, False)}
            rows = [task.draw(rng, length, x) for x, length in some.items() if length]
        else:
            assert isinstance(task, InputTask)
            rows = [task.draw_input(rng, x) for x in islice(filter(task.has_input, lengths), 1)]
        return [self.problem.tokenizer.spell(row.tolist()) for row in rows]

    def display(self, string: str) -> str:
        """A string as it is written; the empty one by its name."""
        return self.problem.tokenizer.display(string) or "the empty string"

    @property
    def key(self) -> str:
        """Prefix of its widgets' keys."""
        beside = f" beside {self.second.key}" if self.second else ""
        return f"{self.run} {self.at_epoch} {self.string}{beside}"

    @property
    def _key(self) -> tuple[Hashable, ...]:
        # In another state of the database a run of this number may be another model.
        return (*data.state_shown(), self.run, self.at_epoch)

    def ask(
        self,
        question: Callable[Concatenate[RunModel, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """The answer to a question, computed once for the model, its epoch and the arguments.

        Args:
            question: a function of a module, or a method of the model; what it returns is shared
                between sessions and may not be changed.
            *args: hashable.
            **kwargs: likewise.

        Raises:
            VisitorError: the server is busy, or it takes longer than a visitor's question may.
        """
        name = f"{question.__module__}.{question.__qualname__}"
        key = (name, *self._key, args, tuple(kwargs.items()))
        return ask(key, lambda: question(self.model, *args, **kwargs))
