"""Languages, position schemes and architectures that other packages bring, by entry point.

A package that declares, for instance, `[project.entry-points."seqcls.tasks"]` with
`my_task = "my_package:MyTask"` adds the task `my_task`. It is imported when it is first used.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from seqcls.errors import ConfigError, PluginError

Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """The parts of one kind by name: this package's own, and then those of others.

    `adapt` makes a part of what an entry point names. A name of this package's own cannot be taken.
    """

    def __init__(
        self, group: str, own: Mapping[str, Part], adapt: Callable[[Any], Part] = lambda part: part
    ) -> None:
        self._group = group
        self._own = own
        self._adapt = adapt
        self._loaded: dict[str, Part] = {}

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        found = entry_points(group=self._group)
        return {point.name: point for point in found if point.name not in self._own}

    def __getitem__(self, name: str) -> Part:
        """The part of that name.

        Raises:
            KeyError: there is none.
            PluginError: its package cannot be imported.
        """
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(self._plugins[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from sorted(self._plugins)

    def __len__(self) -> int:
        return len(self._own) + len(self._plugins)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._plugins

    def package(self, name: str) -> str | None:
        """Name and version of the package that brings a part, `name==1.0`; None for our own."""
        point = None if name in self._own else self._plugins.get(name)
        if point is None or point.dist is None:
            return None
        return f"{point.dist.name}=={point.dist.version}"

    def _load(self, point: EntryPoint) -> Part:
        try:
            return self._adapt(point.load())
        # Whatever another's module raises is one line here, that says whose it is.
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            package = self.package(point.name) or "a package"
            raise PluginError(
                f"{package} cannot be used: its {self._group} entry point {point.name!r} "
                f"({point.value}) ended in {reason[:300]}; mend or reinstall it"
            ) from None


def packages_of(parts: Mapping[str, tuple[Registry[Any], str]]) -> str:
    """The packages that bring these parts, by name and version, with commas between."""
    found = {registry.package(name) for registry, name in parts.values()}
    return ", ".join(sorted(package for package in found if package))


def check_packages(recorded: str, installed: str) -> None:
    """Refuses to go on with other packages than those that a configuration names.

    Raises:
        ConfigError: one is missing, or there in another version.
    """
    if not recorded or recorded == installed:
        return
    versions = dict(package.partition("==")[::2] for package in installed.split(", ") if package)
    for package in recorded.split(", "):
        name, _, version = package.partition("==")
        if versions.get(name) != version:
            there = f"{versions[name]} is" if name in versions else "it is not"
            raise ConfigError(
                f"plugins={recorded!r}: {there} installed; install {package}, or ask anew without "
                "plugins, as another configuration"
            )
    raise ConfigError(f"plugins={recorded!r}: expected {installed!r}; leave it out")
