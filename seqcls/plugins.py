"""Registries of parts such as languages and architectures, those of other packages among them.

A package that declares, for instance, `[project.entry-points."seqcls.tasks"]` with
`my_task = "my_package:MyTask"` adds the task `my_task`. It is imported when it is first used.
"""

import importlib
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast
from uuid import uuid4

from pydantic.fields import FieldInfo

from seqcls import cancellation
from seqcls.cancellation import Cancelled
from seqcls.declarations import FOREIGN, KNOWN, Fields, about_of, declared_by
from seqcls.errors import PluginError, PluginMissingError, SeqclsError, describe_error

Part = TypeVar("Part")


def load_path(path: str) -> Any:
    """Imports the object at `package.module:Name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


class Loadable(Fields):
    """Description of a part before it is loaded; one from outside is the class itself."""

    path: ClassVar[str] = ""
    """Import path of its class for `load_path`; empty if the description is the class."""

    @classmethod
    def load(cls) -> Any:
        """Imports its class."""
        return load_path(cls.path) if cls.path else cls


class UnfitError(Exception):
    """A part from outside that does not do what it has to."""


class Registry(Mapping[str, Part], Generic[Part]):
    """The parts of one kind by name: the built-in ones, then those of plug-ins.

    An entry point names a subclass of `base`. A plug-in cannot take a built-in name.
    """

    def __init__(self, group: str, built_in: Mapping[str, Part], base: type = object) -> None:
        self._group = group
        self._own = built_in
        self._base = base
        self._loaded: dict[str, Part] = {}
        self._codes: dict[type, str] = {}

    @cached_property
    def _plugins(self) -> dict[str, list[EntryPoint]]:
        points: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self._group):
            if point.name not in self._own:
                points.setdefault(point.name, []).append(point)
            else:
                warnings.warn(
                    f"{_package(point) or 'a package'}: its {self._group} entry point "
                    f"{point.name!r} is not used, since seqcls has its own; rename it",
                    stacklevel=2,
                )
        return points

    def __getitem__(self, name: str) -> Part:
        """Returns the part of that name.

        Raises:
            KeyError: there is none.
            PluginError: its package cannot be imported, or brings something else.
        """
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(self._point(name))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        # The order of entry points depends on that of packages, so it is sorted.
        yield from sorted(self._plugins)

    def __len__(self) -> int:
        return len(self._own) + len(self._plugins)

    def __contains__(self, name: object) -> bool:
        # The method of `Mapping` would load the part.
        return name in self._own or name in self._plugins

    def is_own(self, name: str) -> bool:
        """True if a part is built in."""
        return name in self._own

    def parts(self) -> list[Part]:
        """Returns the built-in parts; if packages declare fields, all parts."""
        return [self[name] for name in (self.usable() if FOREIGN else self._own)]

    def usable(self, names: Iterable[str] | None = None) -> list[str]:
        """Returns the names, of these or of all, whose parts exist and can be imported."""
        return [name for name in (self if names is None else names) if self._is_usable(name)]

    def _is_usable(self, name: str) -> bool:
        try:
            return name in self and self[name] is not None
        except PluginError:
            return False

    def package(self, name: str) -> str | None:
        """Returns the package that brings a part, `name==1.0`; None for a built-in part."""
        return _package(self._point(name)) if name in self and not self.is_own(name) else None

    def code_of(self, part: type) -> str:
        """Returns an identifier of a plug-in class's code; empty for built-in classes.

        It has the class's module and name, its package's version, and a digest of its files if
        they may change under one version. A class of no package gets a new one every time.
        """
        if part.__module__.partition(".")[0] == __package__:
            return ""
        return self._codes.get(part) or uuid4().hex

    @contextmanager
    def wrap_errors(self, name: str) -> Iterator[None]:
        """Turns any exception of a part from outside into one line that names its package.

        Raises:
            PluginError: the part raised an exception.
        """
        try:
            yield
        # Messages for users are passed on, and so are requests to end the program.
        except (SeqclsError, KeyboardInterrupt, Cancelled):
            raise
        # A part from outside may even call `sys.exit`.
        except BaseException as error:
            if self.is_own(name):
                raise
            ended = (
                str(error) if isinstance(error, UnfitError) else f"ended in {describe_error(error)}"
            )
            point = self._point(name)
            raise PluginError(
                f"{_package(point) or 'a package'} cannot be used: its {self._group} entry point "
                f"{name!r} ({point.value}) {ended}; mend or reinstall it"
            ) from None

    def _point(self, name: str) -> EntryPoint:
        first, *others = self._plugins[name]
        if others:
            packages = " and ".join(str(_package(point)) for point in self._plugins[name])
            raise PluginError(
                f"{packages} both bring a {self._group} entry point {name!r}; uninstall one"
            )
        return first

    def _load(self, point: EntryPoint) -> Part:
        if cancellation.before_loading is not None:
            cancellation.before_loading()
        with self.wrap_errors(point.name):
            part: Any = point.load()
            if not isinstance(part, type):
                raise UnfitError(f"is not a class but {part!r:.100}")
            if not issubclass(part, self._base):
                raise UnfitError(f"is no {self._base.__name__}, as its base classes say")
            reads = getattr(part, "reads", None)
            if not isinstance(reads, Collection) or set(reads) - KNOWN:
                raise UnfitError(f"has reads={reads!r:.100}, expected names of fields")
            # Computed now, while the files are those that were imported.
            qualified = f"{part.__module__}:{part.__qualname__}"
            self._codes[part] = f"{qualified} {_package(point)} {_digest(part, point)}"
            return cast("Part", part)


def foreign_fields(taken: Mapping[str, FieldInfo]) -> dict[str, FieldInfo]:
    """Loads the fields that other packages declare by entry points of `seqcls.fields`.

    A class that cannot be loaded, or declares no new field, is left out with a warning.

    Args:
        taken: the existing fields.
    """
    found: dict[str, FieldInfo] = {}
    for point in entry_points(group="seqcls.fields"):
        try:
            # A command has not yet redirected its output.
            with redirect_stdout(sys.stderr):
                declaring = point.load()
            found |= _fields_in(declaring, {**taken, **found})
        except Exception as error:
            reason = str(error) if isinstance(error, UnfitError) else describe_error(error)
            warnings.warn(
                f"{_package(point) or 'a package'}: its seqcls.fields entry point {point.name!r} "
                f"({point.value}) is not used: {reason}",
                stacklevel=2,
            )
    return found


def _fields_in(declaring: type, taken: Mapping[str, FieldInfo]) -> dict[str, FieldInfo]:
    """Returns the fields of a class that are not inherited from ours."""
    found = {}
    for name, annotation in declared_by(declaring).items():
        if name in taken and about_of(taken[name]) in annotation.__metadata__:
            continue
        if name in taken or not hasattr(declaring, name):
            reason = "which is there" if name in taken else "without a default"
            raise UnfitError(f"declares {name}, {reason}")
        found[name] = FieldInfo.from_annotated_attribute(annotation, getattr(declaring, name))
    if not found:
        raise UnfitError("declares no field: expected an annotation with About, not as a string")
    return found


def _package(point: EntryPoint) -> str | None:
    return f"{point.dist.name}=={point.dist.version}" if point.dist else None


def _digest(part: type, point: EntryPoint) -> str:
    """Hashes the files of a package that is used in place, such as an editable installation."""
    import hashlib

    source = Path(str(sys.modules[part.__module__].__file__)).resolve()
    installed = (point.dist and point.dist.files) or ()
    # In a copied installation the package's version determines its code.
    if any(Path(str(file.locate())).resolve() == source for file in installed):
        return ""
    # The outermost folder with an `__init__.py` is the package; else it is the file's folder.
    top, pattern = source.parent, "*.py"
    while (top / "__init__.py").exists():
        top, pattern = top.parent, f"{top.name}/**/*"
    files = [x for x in sorted(top.glob(pattern)) if x.is_file() and "__pycache__" not in x.parts]
    hasher = hashlib.sha256()
    for path in files:
        hasher.update(f"{path.relative_to(top)} {path.stat().st_size} ".encode())
        hasher.update(path.read_bytes())
    return hasher.hexdigest()


def packages_of(parts: Mapping[str, tuple[Registry[Any], str]]) -> str:
    """Returns the packages that bring these parts, by name and version, separated by commas."""
    packages = {registry.package(name) for registry, name in parts.values()}
    return ", ".join(sorted(package for package in packages if package))


def check_packages(
    recorded: str, installed: str, parts: Mapping[str, tuple[Registry[Any], str]]
) -> None:
    """Refuses other packages than those that a configuration names.

    Args:
        installed: the packages that bring its parts here, from `packages_of`.
        parts: those of the configuration, by the fields that name them.

    Raises:
        PluginMissingError: one is missing, or installed in another version.
    """
    if not recorded or recorded == installed:
        return
    lost = [f"{field}={name!r}" for field, (there, name) in parts.items() if name not in there]
    needs = f", which {' and '.join(lost)} need{'s' * (len(lost) == 1)}" if lost else ""
    versions = dict(package.partition("==")[::2] for package in installed.split(", ") if package)
    for package in recorded.split(", "):
        name, _, version = package.partition("==")
        if versions.get(name) != version:
            there = f"{versions[name]} is" if name in versions else "it is not"
            raise PluginMissingError(
                f"plugins={recorded!r}: {there} installed; install {package}{needs}, or ask anew "
                "without plugins, as another configuration"
            )
    raise PluginMissingError(f"plugins={recorded!r}: expected {installed!r}; leave it out")
