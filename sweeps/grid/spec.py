"""Sweep specifications: TOML files, read as data only, and their expansion into runs."""

import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seqcls.cancellation import check_each
from seqcls.config import RunConfig
from seqcls.errors import ConfigError, Parameter, PluginError, SpecError
from seqcls.problem import configuration, resolve
from seqcls.text import canonical_json, in_one_line, nearest
from sweeps.grid.seeds import Until
from sweeps.grid.written_spec import (
    MAX_RUNS,
    Seeds,
    WrittenSpec,
    check_keys,
    on_base,
    refuse_unfit,
    with_digests,
)

MAX_BYTES = 1_000_000
"""Maximum size of a file; a larger one is refused before it is read to its end."""

_TOO_DEEP = "its lists or tables are nested too deep; a field has one value, an axis a list of them"

_KEY = r"""(?:"[^"\n]*"|'[^'\n]*'|[\w-]+)[ \t]*"""
_DEEP = re.compile(rf"(?<![\w-]){_KEY}(?:\.[ \t]*{_KEY}){{200}}")
"""A dotted key of over 200 parts, each a nested table; a specification needs three at most."""

SHIPPED = Path(__file__).with_name("specs")


class SweepSpec(WrittenSpec):
    """A named grid of configurations, each with every model seed.

    The configurations are every combination of one value per axis, added to the fixed fields; with
    `configurations`, every such combination is added to each of those, which may have their own
    model seeds. They are expanded once and cached.
    """

    submitted: str
    """The specification before expansion, as JSON."""

    @property
    def every_epoch(self) -> bool:
        """True if the weights of every epoch are stored instead of the best one's."""
        return self.checkpoints == "every_epoch"

    def num_runs(self, least: int = 0) -> int:
        """Counts the runs of the grid without expanding it.

        Args:
            least: minimum number of seeds of each configuration.
        """
        combinations = math.prod(map(len, self.axes.values()))
        return combinations * sum(max(len(self.seeds_of(x)), least) for x in self.configurations)

    def most_runs(self) -> int:
        """Counts the runs that the grid may grow to; as `num_runs` where no seeds are added."""
        return self.num_runs(self.most_seeds if self.until else 0)

    def configs(self) -> Iterator[RunConfig]:
        """Yields every configuration of the grid. Raises as `members`."""
        return (config for config, _ in self.members())

    def seeds_of(self, entry: Mapping[str, Any]) -> Seeds:
        """Returns the model seeds of one of the `configurations`."""
        seeds: Seeds = entry.get("model_seeds", self.model_seeds)
        return seeds

    def all_it_may_train(self) -> Iterator[tuple[RunConfig, Seeds]]:
        """Yields every configuration with all seeds that it has or may get. Raises as `members`."""
        for config, seeds in self.members():
            # New seeds follow the greatest one, as in `_extend`.
            more = range(max(seeds) + 1, max(seeds) + 1 + self.most_seeds - len(seeds))
            yield config, (*seeds, *more) if self.until else seeds

    def with_seeds(self, numbers: Sequence[int]) -> "SweepSpec":
        """Returns the specification with more seeds: the present ones and those after them.

        Args:
            numbers: the number of seeds of each of the members, in their order.
        """
        entries = list(self._combinations())
        more = [
            _extend(self.seeds_of(entry), number)
            for entry, number in zip(entries, numbers, strict=True)
        ]
        data = {**json.loads(self.submitted), "model_seeds": more[0]}
        if any(own != more[0] for own in more) or any("model_seeds" in x for x in entries):
            # Values of axes have no seeds, so every combination becomes an entry.
            data.pop("axes", None)
            data["configurations"] = [
                {**entry, "model_seeds": own} for entry, own in zip(entries, more, strict=True)
            ]
        return spec_as_written(data)

    def members(self) -> Iterator[tuple[RunConfig, Seeds]]:
        """Yields every configuration of the grid, with its model seeds.

        Raises:
            SpecError: a combination cannot be trained, or is in the grid twice.
        """
        return check_each(self._members)

    @cached_property
    def _members(self) -> list[tuple[RunConfig, Seeds]]:
        members: dict[str, tuple[RunConfig, Seeds]] = {}
        for entry in check_each(self._combinations()):
            fields = {**self.fixed, **entry}
            fields.pop("model_seeds", None)
            try:
                config = configuration(on_base(self.base, fields))
            # A missing package is no fault of the specification.
            except PluginError:
                raise
            except ConfigError as error:
                raise SpecError(f"sweep {self.name!r}: {error}") from None
            if config.key in members:
                raise SpecError(
                    f"sweep {self.name!r}: the configuration {canonical_json(config.changed)} is "
                    "in it twice; remove one"
                )
            members[config.key] = config, self.seeds_of(entry)
        return list(members.values())

    def _combinations(self) -> Iterator[dict[str, Any]]:
        """Yields each of the `configurations` with each combination of values of the axes."""
        for entry in self.configurations:
            for values in itertools.product(*self.axes.values()):
                yield {**entry, **dict(zip(self.axes, values, strict=True))}


def _extend(seeds: Seeds, number: int) -> str | list[int]:
    """Writes `number` seeds: these, and the next ones after the greatest."""
    first = max(seeds) + 1
    every = [*seeds, *range(first, first + number - len(seeds))]
    is_range = every == list(range(every[0], every[0] + len(every)))
    return f"{every[0]}..{every[-1]}" if is_range else every


def load_specs(reference: str) -> list[SweepSpec]:
    """Reads the specifications of a TOML file, a folder of them, or the name of a shipped one.

    Raises:
        SpecError: there is none, or one cannot be read or is refused.
    """
    # The user's files take precedence over shipped ones.
    for path in (Path(reference), SHIPPED / reference, SHIPPED / f"{reference}.toml"):
        if path.is_dir():
            files = sorted(file for file in path.glob("*.toml") if file.is_file())
            if files:
                return [read_spec(file) for file in files]
        elif path.is_file():
            return [read_spec(path)]
    hint = nearest(reference, shipped_names())
    if not hint.endswith("?"):
        hint += "; expected a TOML file, a folder of them, or the name of a shipped one"
    raise SpecError(f"no sweep specification {reference!r}: {hint}")


def at_precision(spec: SweepSpec, precision: str) -> SweepSpec:
    """Returns a specification of the same runs at another precision, with its own name.

    Raises:
        SpecError: the precision is unknown, or varies in the specification already.
    """
    data = json.loads(spec.submitted)
    varied = (data.get("axes", {}), *data.get("configurations", []))
    if any("precision" in fields for fields in varied):
        raise SpecError(
            f"sweep {spec.name!r} varies precision itself; leave ",
            Parameter("precision", precision),
            " out",
        )
    data["name"] = f"{spec.name}-{precision}"
    data["fixed"] = {**data.get("fixed", {}), "precision": precision}
    return parse_spec(data)


def shipped_names() -> list[str]:
    """Returns the names of shipped specifications, each folder before its files."""
    files = [path.relative_to(SHIPPED) for path in SHIPPED.rglob("*.toml")]
    names = {str(file.with_suffix("")) for file in files} | {str(file.parent) for file in files}
    # The report's first: they are the best known, and trained in a minute.
    return sorted(names - {"."}, key=lambda name: (name.partition("/")[0] != "report", name))


def parse_toml(text: str) -> dict[str, Any]:
    """Parses TOML.

    Raises:
        SpecError: a key of too many parts, for which the parser makes tables within tables.
        ValueError, RecursionError: it is no TOML, or nested too deeply.
    """
    if deep := _DEEP.search(text):
        raise SpecError(f"the key {deep[0][:40]!r}… has more than 200 parts")
    return tomllib.loads(text)


def read_spec(path: Path) -> SweepSpec:
    """Reads the specification in a TOML file.

    Raises:
        SpecError: as `parse_spec`, with the file named.
    """
    try:
        return parse_spec(with_digests(parse_toml(_read(path)), path.parent))
    except RecursionError:
        raise SpecError(f"cannot read {str(path)!r}: {_TOO_DEEP}") from None
    except (ValueError, OSError) as error:
        reason = str(error)
        if "string conversion" in reason:
            reason = "a number has too many digits; no field takes more than 19"
        raise SpecError(f"cannot read {str(path)!r}: {reason}") from None
    except SpecError as error:
        raise SpecError(f"{str(path)!r}: {error}") from None


def _read(path: Path) -> str:
    with path.open("rb") as file:
        # One more byte than allowed, to detect a larger file.
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise SpecError(f"it has more than {MAX_BYTES:,} bytes; split it into several files")
    # Some editors put a byte order mark first.
    return content.decode("utf-8-sig")


def parse_spec(data: Mapping[str, Any]) -> SweepSpec:
    """Parses and checks the specification in a table.

    Raises:
        SpecError: an unknown key, a value of the wrong kind, too many runs, or a configuration
            that cannot be trained.
    """
    spec = spec_as_written(data)
    spec.members()
    _check_until(spec)
    return spec


def spec_as_written(data: Mapping[str, Any]) -> SweepSpec:
    """Parses like `parse_spec`, but without checking configurations, which may need a plug-in.

    Raises:
        SpecError: as `parse_spec`, but for a configuration.
    """
    data = with_digests(data)
    try:
        refuse_unfit(data)
    except RecursionError:
        raise SpecError(_TOO_DEEP) from None
    check_keys(data)
    values = {"name": None, "model_seeds": None, **data, "submitted": canonical_json(data)}
    try:
        spec = SweepSpec.model_validate(values)
    except ValidationError as error:
        raise SpecError(in_one_line(SweepSpec, error)) from None
    if len(spec.submitted) > MAX_BYTES:
        raise SpecError(f"as JSON it has more than {MAX_BYTES:,} characters; make several of it")
    _refuse_twice_given(spec)
    if spec.num_runs() > MAX_RUNS:
        raise SpecError(
            f"sweep {spec.name!r} asks for {spec.num_runs():,} runs, expected at most "
            f"{MAX_RUNS:,}; take fewer seeds or values"
        )
    return spec


def _check_until(spec: SweepSpec) -> None:
    """Refuses a rule that no number of seeds can fulfill."""
    if not spec.until:
        if "most_seeds" in spec.model_fields_set:
            raise SpecError(
                f"sweep {spec.name!r}: most_seeds={spec.most_seeds}: it limits the seeds that "
                "'until' asks for, and there is no 'until'; write until = 'share ± 10 %', or leave "
                "most_seeds out"
            )
        return
    until, prefix = Until.parse(spec.until), f"sweep {spec.name!r}: until={spec.until!r}: "
    configs = list(spec.configs())
    if until.within is None and len(configs) != 2:
        raise SpecError(
            f"{prefix}two configurations are told apart, and it has {len(configs):,}; give it two, "
            "or write how well each share is to be known, as 'share ± 10 %'"
        )
    for problem in map(resolve, configs) if until.share == "generalizes" else ():
        if problem.longest_tested <= problem.trained_lengths[-1]:
            raise SpecError(
                f"{prefix}no test string is longer than those of training, so that whether a seed "
                "generalizes is never known; write 'learned' as the share"
            )


def _refuse_twice_given(spec: SweepSpec) -> None:
    tables = {
        "[fixed]": set(spec.fixed),
        "[axes]": set(spec.axes),
        "[[configurations]]": set().union(*spec.configurations),
    }
    for (table, names), (other, others) in itertools.combinations(tables.items(), 2):
        if twice := sorted(names & others):
            raise SpecError(f"{twice[0]!r} is both in {table} and in {other}; remove one")
