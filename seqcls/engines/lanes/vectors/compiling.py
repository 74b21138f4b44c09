"""How the functions of this engine are compiled.

As `seqcls.engines.compiled.compiling`, but each function is one of its own: inlined all into one,
they would compile for minutes. What may not be done to sums here says
`seqcls.engines.lanes.vectors.vector.MAY`.
"""

from typing import Any

from numba import njit

from seqcls.engines.compiled.compiling import INLINED

_OPTIONS: dict[str, Any] = {**INLINED, "fastmath": {"contract", "nsz", "arcp"}}

kernel = njit(**{**_OPTIONS, "forceinline": False})
inlined = njit(**_OPTIONS)
