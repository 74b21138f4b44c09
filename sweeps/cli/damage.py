"""Commands on a damaged database show what of it can be trusted, and name what cannot."""

import sys
from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from seqcls.errors import SeqclsError, StoreDamagedError


class ShownWithoutDamage(TyperGroup):
    """All commands: one that fails on what nobody could have written is tried without that."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **how: Any) -> Any:
        """Runs the command, at most twice."""
        given = list(sys.argv[1:] if args is None else args)
        _forget_opened()
        try:
            return super().main(given, *others, **how)
        except Exception as error:
            if not _can_be_tried_without(error):
                raise
        return super().main(given, *others, **how)


def _forget_opened() -> None:
    # Where no command has opened a database yet, nothing is loaded for it.
    if (trust := sys.modules.get("sweeps.store.integrity.trust")) is not None:
        trust.forget_opened()


def _can_be_tried_without(error: Exception) -> bool:
    """Whether damage that was not known is to blame.

    Raises:
        StoreDamagedError: damage is, that is known and left out already.
    """
    expected = isinstance(error, SeqclsError | OSError | UnicodeError)
    if "sweeps.store.databases.engine" not in sys.modules:
        return False
    if expected and not isinstance(error, StoreDamagedError):
        return False
    from sweeps.store.integrity import trust

    if trust.learns_of_damage():
        return True
    if not expected and (known := trust.known_damage()) is not None:
        raise StoreDamagedError(known) from error
    return False
