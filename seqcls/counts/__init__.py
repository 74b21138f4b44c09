"""Models as functions of letter counts (`seqcls.counts.forward`), and where that is exact."""

from seqcls.config import NetworkConfig


def counts_suffice(config: NetworkConfig, *, training: bool) -> str | None:
    """Why letter counts do not determine the model's answers; None where they do.

    Without positions, with every token attending to every other and a readout that does not depend
    on a place, equal tokens have equal states in every block, so a string is only its counts.

    Args:
        config: the model's network.
        training: whether the answers in training are meant, where dropout acts.
    """
    # What `seqcls.counts.forward` computes is the Transformer's function, and no subclass's.
    if config.architecture != "transformer":
        return f"architecture={config.architecture!r} may tell strings of equal letter counts apart"
    if config.positions != "none":
        return f"positions={config.positions!r} makes equal tokens differ by their place"
    if config.attention_mask != "full":
        return f"attention_mask={config.attention_mask!r} makes equal tokens differ by their place"
    if config.readout == "last_letter":
        return "readout='last_letter' makes the last letter differ"
    if training and config.dropout_rate > 0:
        return f"dropout_rate={config.dropout_rate} makes equal letters differ"
    return None
