"""Training of a model: its losses, the tested epoch, and whether rounding decides the outcome."""

import pandas as pd

from dashboard.figures.whole_model import draw_losses, losses_by_part
from dashboard.section import Panel, Section
from dashboard.words.sentences import add_sentences, say
from seqcls.problem import obstacle_of
from sweeps.api import Store, reading, run_config

add_sentences(
    {
        "trained": "Trained for {epochs:,} {epochs:epoch|epochs} of at most {most:,}; epoch "
        "{kept:,} has the lowest validation loss and was kept.",
        "trained_right": "Training ended after {epochs:,} {epochs:epoch|epochs} of at most "
        "{most:,}, since every validation string was right.",
        "trained_imported": "Trained elsewhere for {epochs:,} {epochs:epoch|epochs}; epoch "
        "{kept:,} has the lowest validation loss.",
        "trained_elsewhere": "It was trained elsewhere; its losses are not known.",
        "rounding_decides": "Its outcome hangs on rounding: trained again {times:,} times with "
        "other rounding (initial values moved by one unit in the last place, or double precision), "
        "it gets {least:,} to {most:,} test strings wrong.",
        "rounding_does_not": "Trained again {times:,} times with other rounding (initial values "
        "moved by one unit in the last place, or double precision), it has the same confusion "
        "matrix each time.",
    }
)


def losses(store: Store, run_id: int) -> Section:
    """Its losses by epoch, and why training ended."""
    config, stored = run_config(store, run_id), reading.epochs(store, run_id)
    status = reading.run_status(store, run_id)
    reason = status.engine_reason or ""
    more = [f"Its training {reason}."] if reason.startswith("diverged") else []
    more += _rounding(store, run_id)
    if stored.empty:
        return Section("", (say("trained_elsewhere"), *more))
    kept_epoch = status.best_epoch
    values = {"epochs": len(stored), "most": config.max_num_epochs}
    # With all the epochs that it may have, it ended without being right.
    early = config.stop_when_right and len(stored) < config.max_num_epochs
    key = "trained_imported" if config.is_imported else "trained_right" if early else "trained"
    says = [say(key, kept=kept_epoch or 0, **values)]
    if config.is_imported:
        # Over how many strings an imported loss was summed, nobody knows.
        frame = losses_by_part(config, stored).drop(columns="loss")
        caption = "Loss of all strings of each epoch, as it was imported."
        panel = Panel.of(draw_losses(frame, kept_epoch, column="sum"))
        return Section("", (*says, *more), None, (panel,), caption)
    frame = losses_by_part(config, stored) if obstacle_of(config) is None else pd.DataFrame()
    if frame.empty:
        return Section("", (*says, *more))
    caption = "Loss per string after each epoch, in nats; the epoch that was kept is marked."
    panel = Panel.of(draw_losses(frame, kept_epoch))
    return Section("", (*says, *more), None, (panel,), caption)


def _rounding(store: Store, run_id: int) -> list[str]:
    """Reports whether the outcome depends on rounding, if the model was trained again."""
    again = reading.sensitivity(store, [run_id])
    if again.empty:
        return []
    row = again.astype(object).iloc[0]
    key = "rounding_decides" if row["sensitive"] else "rounding_does_not"
    return [say(key, times=int(row["times"]), least=int(row["least"]), most=int(row["most"]))]
