"""Settings without which an architecture or a position scheme that is chosen cannot be trained."""

from collections.abc import Container, Mapping
from typing import Any

from seqcls.config import default_fields
from seqcls.problem import obstacle_of


def settings_needed(fields: Mapping[str, Any], chosen: Container[str]) -> dict[str, Any]:
    """Values of other settings with which a configuration can be trained.

    Args:
        fields: names and values, as for `configuration`.
        chosen: names whose values stay as they are.

    Returns:
        The values that remove what is in the way; none where nothing is, or they do not help.
    """
    known = default_fields()
    tried = dict(fields)
    needed: dict[str, Any] = {}
    reason = obstacle_of(tried)
    while reason is not None:
        alternatives = _alternatives(known | tried)
        name = next((x for x in alternatives if f"{x}=" in reason and x not in chosen), None)
        if name is None or name in needed:
            break
        needed[name] = tried[name] = alternatives[name]
        reason = obstacle_of(tried)
    return needed if reason is None else {}


def _alternatives(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What each of these settings becomes where its value is in the way."""
    size = fields["attention_head_size"]
    return {"readout": "last", "attention_head_size": size + size % 2, "num_attention_heads": 1}
