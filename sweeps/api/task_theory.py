"""What theory says of a task and networks, without any run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from seqcls.config import NetworkConfig, RunConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.problem import language
from seqcls.strings.tokenizer import Tokenizer
from seqcls.subregular.classes import CLASSES
from seqcls.tasks import TASKS
from seqcls.text import nearest
from seqcls.theory.classes import RegularClass, Undecided
from seqcls.theory.predictions import NETWORK_FIELDS, TheoryPrediction, theory_of
from sweeps.grid.written_spec import with_digests

READOUTS = ("first", "last", "mean")

_CAUSAL = {"attention_mask": "causal", "readout": "last"}


@dataclass(frozen=True)
class PredictedNetwork:
    """What is predicted of one network."""

    network: dict[str, Any]
    """The settings in which it differs from the defaults, as far as theory reads them."""
    predictions: tuple[TheoryPrediction, ...]
    """What applies; the first decides."""


@dataclass(frozen=True)
class ClassOfTask:
    """A class that holds a task's language, and none that is smaller does."""

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
    """Strings that show that a language is not in a class, of width k."""

    name: str
    k: int
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class TheoryOfTask:
    """A task's class and what follows from it."""

    task: str
    """In a sentence."""
    language: str
    """Its class, in a sentence."""
    classes: tuple[ClassOfTask, ...]
    """The smallest classes of a regular language that are known to hold it."""
    witnesses: tuple[WitnessOfTask, ...]
    """Why it is in none of the next smaller ones."""
    networks: tuple[PredictedNetwork, ...]

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return asdict(self)

    def describe(self) -> Iterator[str]:
        """The class, why it is no smaller one, and what holds of each network, line by line."""
        yield from (self.task, self.language)
        for each in self.classes:
            yield from ("", f"{each.words}: {each.definition}")
            yield from (f"  decided by: {each.test}", f"  {each.source}")
        if self.witnesses:
            yield from ("", *(each.because for each in self.witnesses))
        for network in self.networks:
            named = ", ".join(f"{name}={value}" for name, value in network.network.items())
            yield from ("", f"{named}: {network.predictions[0].verdict}")
            for prediction in network.predictions:
                holds = f"holds {prediction.condition}" if prediction.condition else ""
                lines = prediction.because, holds, prediction.source
                yield from (f"  {line}" for line in lines if line)


def theory(task: str, **fields: Any) -> TheoryOfTask:
    """The class of a task's language, and whether networks can recognize it at all.

    Args:
        task: its name.
        **fields: of the task, and of the network; where none of a network's is named, of several.
            A file is named as in specifications, by `path`.

    Raises:
        ConfigError: there is no such task, field or value, or the field changes nothing here.
    """
    fields = dict(with_digests({"fixed": fields})["fixed"])
    settings = {"task": task, **fields}
    if task not in TASKS:
        raise ConfigError(f"task={task!r:.60}: {nearest(str(task), list(TASKS))}")
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
    described = language(task, dict(config)).describe()
    chosen: dict[str, Any] = {x: fields[x] for x in fields if x in NETWORK_FIELDS}
    decided = theory_of(settings).language
    networks = _networks_by_readout(chosen) if chosen else []
    if not chosen and not isinstance(decided, Undecided):
        networks = _networks()
    said = [PredictedNetwork(x, theory_of(settings | x).predictions) for x in networks]
    classes, witnesses = _classes(decided) if isinstance(decided, RegularClass) else ((), ())
    return TheoryOfTask(described, decided.describe(), classes, witnesses, tuple(said))


def _classes(
    decided: RegularClass,
) -> tuple[tuple[ClassOfTask, ...], tuple[WitnessOfTask, ...]]:
    """Tokens and strings spelled out."""
    alphabet, spell = decided.alphabet, Tokenizer(decided.alphabet).spell
    classes = []
    for found in decided.smallest:
        tier = None if found.tier is None else tuple(alphabet[x] for x in found.tier)
        known = CLASSES[found.name]
        told = (known.definition, known.test, known.source)
        named = (found.name, found.describe(alphabet), found.k, found.t, tier)
        classes.append(ClassOfTask(*named, *told))
    witnesses = [
        WitnessOfTask(
            *(x.name, x.k, tuple(map(spell, x.inside)), tuple(map(spell, x.outside))),
            because=x.describe(alphabet),
        )
        for x in decided.witnesses()
    ]
    return tuple(classes), tuple(witnesses)


def _networks_by_readout(network: dict[str, Any]) -> list[dict[str, Any]]:
    """A network with the readout that is named, or with each that it can have if `CLS` is none.

    Raises:
        ConfigError: it cannot have the one that is named.
    """
    readouts = {x: _no_readout({**network, "readout": x}) for x in READOUTS}
    if None not in readouts.values():
        # It is something else that it lacks, such as heads; no readout changes that.
        return [network]
    if (reason := readouts[network.get("readout", READOUTS[0])]) is None:
        return [network]
    if "readout" in network:
        raise ConfigError(reason)
    return [{**network, "readout": x} for x, reason in readouts.items() if reason is None]


def _no_readout(network: dict[str, Any]) -> str | None:
    made = NetworkConfig(**network)
    return MODELS[made.architecture].obstacle(made)


def _networks() -> list[dict[str, Any]]:
    """One network of each kind that recognizes languages."""
    # Those that read at the end or all, and have no positions: of a Transformer there are variants.
    recurrent = [x for x in MODELS if {"readout", "positions"} & MODELS[x].reads == {"readout"}]
    return [
        {"architecture": "transformer"},
        {"architecture": "transformer", "positions": "sinusoidal"},
        {"architecture": "transformer", **_CAUSAL},
        {"architecture": "transformer", "positions": "sinusoidal", **_CAUSAL},
        {"architecture": "transformer", "attention_mask": "causal", "readout": "mean"},
        *({"architecture": x, "readout": y} for x in recurrent for y in ("last", "mean")),
    ]
