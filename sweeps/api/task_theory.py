"""Predictions of theory for a task and networks, without any run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from seqcls.config import NetworkConfig, RunConfig
from seqcls.errors import ConfigError
from seqcls.lookup import language
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.strings.tokenizer import Tokenizer
from seqcls.subregular.classes import CLASSES
from seqcls.tasks import TASKS
from seqcls.text import count, nearest
from seqcls.theory.classes import RegularClass, Undecided
from seqcls.theory.predictions import NETWORK_FIELDS, TheoryPrediction, theory_of
from sweeps.api import typed
from sweeps.grid.written_spec import with_digests

READOUTS = ("first", "last", "mean")


@dataclass(frozen=True)
class PredictedNetwork:
    """Predictions for one network."""

    network: dict[str, Any]
    """The settings in which it differs from the defaults, as far as theory reads them."""
    predictions: tuple[TheoryPrediction, ...]
    """Those that apply; the first decides."""


@dataclass(frozen=True)
class ClassOfTask:
    """A smallest class that contains a task's language."""

    name: str
    words: str
    k: int | None
    t: int | None
    tier: tuple[str, ...] | None
    definition: str
    test: str
    source: str


@dataclass(frozen=True)
class WitnessOfTask:
    """Strings that prove that a language is not in a class, of width k."""

    name: str
    k: int
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class TheoryOfTask:
    """A task's class and its consequences."""

    task: str
    """A description of the task."""
    language: str
    """A description of its class."""
    classes: tuple[ClassOfTask, ...]
    """The smallest classes of a regular language that are known to contain it."""
    witnesses: tuple[WitnessOfTask, ...]
    """Proofs that it is in none of the next smaller ones."""
    counting: dict[str, Any] | None
    """The level at which the state of a regular language is a function of counts: `level` (None
    where it is none), `program`, `witness`, and `words`, a description."""
    networks: tuple[PredictedNetwork, ...]

    def record(self) -> dict[str, Any]:
        """Returns the theory as JSON data."""
        return asdict(self)

    def describe(self) -> Iterator[str]:
        """Describes the class, the witnesses and the predictions for each network, in lines."""
        yield from (self.task, self.language)
        for smallest in self.classes:
            yield from ("", f"{smallest.words}: {smallest.definition}")
            yield from (f"  decided by: {smallest.test}", f"  {smallest.source}")
        if self.witnesses:
            yield from ("", *(witness.because for witness in self.witnesses))
        if self.counting is not None:
            yield from ("", *self.counting["words"])
        for network in self.networks:
            named = ", ".join(f"{name}={value}" for name, value in network.network.items())
            verdicts = dict.fromkeys(x.verdict for x in network.predictions)
            yield from ("", f"{named}: {' · '.join(verdicts)}")
            for prediction in network.predictions:
                holds = f"holds {prediction.condition}" if prediction.condition else ""
                if len(verdicts) > 1:
                    holds = f"{prediction.verdict}: {holds}"
                read = f"reading: {prediction.reading}" if prediction.reading else ""
                lines = prediction.because, holds, read, prediction.source
                yield from (f"  {line}" for line in lines if line)


def theory(task: str, **fields: Any) -> TheoryOfTask:
    """Decides the class of a task's language, and predicts whether networks can recognize it.

    Args:
        task: one as it is typed, such as `parity`, `(ab|ba)*` or `a > b`.
        **fields: fields of the task and of the network; without any of a network, several networks
            are predicted. A file is named as in specifications, by `path`.

    Raises:
        ConfigError: there is no such task, field or value, or the field changes nothing here.
    """
    fields = dict(with_digests({"fixed": fields})["fixed"])
    if task not in TASKS:
        entries = typed.tasks_of(str(task))
        if len(entries) != 1:
            raise ConfigError(f"task={task!r:.60}: {count(len(entries), 'task')}; name one")
        fields = {**entries[0].fields, **fields}
        task = fields.pop("task")
    settings = {"task": task, **fields}
    reads = TASKS[task].reads
    for name in fields:
        if name not in reads and name not in NETWORK_FIELDS:
            known = ", ".join([*sorted(reads), *NETWORK_FIELDS])
            raise ConfigError(
                f"{name}={fields[name]!r}: theory does not read it for task={task!r}; it reads "
                f"{known}"
            )
    config = RunConfig.from_mapping(settings)
    for field, registry in (("architecture", MODELS), ("positions", POSITIONS)):
        if (value := getattr(config, field)) not in registry:
            raise ConfigError(f"{field}={value!r}: {nearest(value, list(registry))}")
    decided = theory_of(settings).language
    classes: list[ClassOfTask] = []
    witnesses: list[WitnessOfTask] = []
    if isinstance(decided, RegularClass):
        # Tokens and strings are spelled out.
        alphabet, spell = decided.alphabet, Tokenizer(decided.alphabet).spell
        for regular in decided.smallest:
            tier = None if regular.tier is None else tuple(alphabet[x] for x in regular.tier)
            named = regular.name, regular.describe(alphabet), regular.k, regular.t, tier
            about = CLASSES[regular.name]
            classes.append(ClassOfTask(*named, about.definition, about.test, about.source))
        for shown in decided.witnesses():
            inside, outside = (tuple(map(spell, x)) for x in (shown.inside, shown.outside))
            because = shown.describe(alphabet)
            witnesses.append(WitnessOfTask(shown.name, shown.k, inside, outside, because))
    chosen: dict[str, Any] = {x: fields[x] for x in fields if x in NETWORK_FIELDS}
    # Without a class or a network nothing can be predicted.
    networks = _networks(chosen) if chosen or not isinstance(decided, Undecided) else []
    return TheoryOfTask(
        task=language(task, dict(config)).describe(),
        language=decided.describe(),
        classes=tuple(classes),
        witnesses=tuple(witnesses),
        counting=None if decided.counting is None else decided.counting.record(),
        networks=tuple(PredictedNetwork(x, theory_of(settings | x).predictions) for x in networks),
    )


def _networks(network: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a network with its readout, or with each that it can have if it has no `CLS`; without
    any settings, one of each kind that recognizes languages.

    Raises:
        ConfigError: it cannot have the given readout.
    """
    if not network:
        # Architectures with a readout and without positions.
        ends = [x for x in MODELS if {"readout", "positions"} & MODELS[x].reads == {"readout"}]
        causal: dict[str, Any] = {"architecture": "transformer", "attention_mask": "causal"}
        sinusoidal = {"positions": "sinusoidal"}
        return [
            {"architecture": "transformer"},
            {"architecture": "transformer", **sinusoidal},
            {**causal, "readout": "last"},
            {"architecture": "transformer", **sinusoidal, **causal, "readout": "last"},
            {**causal, "readout": "mean"},
            *({"architecture": x, "readout": y} for x in ends for y in ("last", "mean")),
        ]
    given = network.get("readout", READOUTS[0])
    of_each = [
        (x, NetworkConfig(**{**network, "readout": x})) for x in dict.fromkeys((*READOUTS, given))
    ]
    reasons = {x: MODELS[made.architecture].obstacle(made) for x, made in of_each}
    reason = reasons[given]
    # Where every readout is refused, the reason is another setting, such as the heads.
    if reason is None or None not in reasons.values():
        return [network]
    if "readout" in network:
        raise ConfigError(reason)
    return [{**network, "readout": x} for x, reason in reasons.items() if reason is None]
