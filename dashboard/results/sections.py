"""The table of configurations, every row against a baseline."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dashboard.results.lengths import by_length as by_length
from dashboard.results.maps import heat_map as heat_map
from dashboard.results.maps import settings as settings
from dashboard.results.pairs import pair as pair
from dashboard.results.words import DEFAULT, MEASURED, SACRIFICED, difference_text
from dashboard.section import Section
from dashboard.words.columns import column_of
from dashboard.words.sentences import say
from seqcls.interpretability.wording import percent, percents
from seqcls.shortcuts import READERS
from sweeps.api import Store, baselines, outcomes
from sweeps.api.by_length import trained_lengths
from sweeps.api.by_settings import MOST_READ, longer_lengths
from sweeps.api.outcomes import deciding
from sweeps.api.selecting import Selection
from sweeps.naming import say_setting
from sweeps.results import describe_counts

DECIDED = 0.05
"""The corrected p-value up to which a difference is more than chance."""

MOST_COLUMNS, WIDEST = 9, 1_040
"""Pixels: a page has 1,076 where a window has 1,440, of which boxes to select rows take 34."""


def configurations(
    store: Store,
    selection: Selection,
    baseline: int | None = None,
    measure: str | None = None,
    columns: Sequence[str] = (),
) -> Section:
    """The configurations that a selection has models of, the best first.

    Args:
        baseline: the id of the one that every other row is compared with; none if it is not there.
        measure: of the comparison, one of `by_settings.MEASURES`; by default the one in which
            most rows differ. The sentence covers all of them.
        columns: more of the table's that are shown.

    Returns:
        Its table has counts, shares and ends of intervals as numbers, too, and the settings.
    """
    table = outcomes.configurations_of(store, selection)
    if table.empty:
        return Section("Configurations", (say("no_models"),))
    ids = table["config_id"].tolist()
    counts = outcomes.count_outcomes(store, selection)
    says = [say("headline", counts=describe_counts(counts)), *_begins(store, table)]
    decided, reached = _shortcut(store, table)
    # A reader that decides a task is no shortcut, whatever it reaches.
    if decided:
        table = table.drop(columns=["shortcut_within", "shortcut_beyond"])
    table = _in_words(table)
    if baseline in ids and len(ids) > 1:
        found = baselines.differences(store, selection, int(baseline or 0), ids)
        by_measure = _by_measure(found)
        if by_measure:
            name = table.loc[table["config_id"] == baseline, "configuration"].item()
            says.append(say("baseline", baseline=name, told="; ".join(by_measure.values())))
            # By what most rows differ in; of ties, by the share that generalizes.
            usual = max(by_measure, key=lambda x: (_count_decided(found, x), x == "generalizes"))
            table = _against(
                table, found, measure if measure in by_measure else usual, int(baseline or 0)
            )
        says.append(_left_out(table, found, int(baseline or 0)))
    lengths = "" if longer_lengths(store, ids) is None else say("own_lengths")
    says += [decided or reached, lengths, _theory(table)]
    drawn = outcomes.accuracies_by_drawn(store, selection)
    drawn = drawn.rename(columns=lambda x: x if x == "config_id" or "_" in x else f"right_{x}")
    table = table.merge(drawn, on="config_id", how="left")
    read = outcomes.settings_read(store, ids)
    # pandas refuses a join where both sides have a column of one name.
    table = table.join(read[[x for x in read if x not in table]], on="config_id")
    shown = (*_columns_that_fit(table), *(x for x in columns if x in table))
    told_first = tuple(sentence for sentence in says if sentence)[:5]
    return Section(
        "Configurations", told_first, table, opens="config_id", shown=tuple(dict.fromkeys(shown))
    )


def _left_out(table: pd.DataFrame, found: pd.DataFrame, baseline: int) -> str:
    """States that rows are not compared, since there are too many models."""
    if table["seeds"].sum() <= MOST_READ:
        return ""
    able = set(table.loc[table["judged_beyond"] > 1, "config_id"])
    compared = set(found.loc[found["question"] == "beyond", "config_id"])
    left = able - compared - {baseline}
    return say("not_all", n=len(left)) if left and baseline in able else ""


def _begins(store: Store, table: pd.DataFrame) -> list[str]:
    """Lengths at which those that fail beyond begin to err."""
    number = int((table["judged_beyond"] - table["generalize"]).sum())
    known = table[["fails_from", "fails_to"]].dropna().astype(int)
    if not number or known.empty:
        return []
    first, last = known["fails_from"].min(), known["fails_to"].max()
    lengths = f"length {first}" if first == last else f"lengths from {first} to {last}"
    known_ends = trained_lengths(store, table["config_id"].tolist()).values()
    ends = sorted({x[-1] for x in known_ends})
    trained = f" (trained up to {' or '.join(map(str, ends))})" if 0 < len(ends) <= 3 else ""
    return [say("begins", n=number, lengths=lengths, trained=trained)]


def _shortcut(store: Store, table: pd.DataFrame) -> tuple[str, str]:
    """Sentences on a task that a shortcut reader solves; else on the best reader, if that is the
    same for all rows.
    """
    read = table.dropna(subset=["shortcut_beyond"])
    if read.empty:
        return "", ""
    by = set(deciding(store, read["config_id"].tolist()).values())
    readers = read["shortcut_reader"].map(lambda x: READERS.get(x, x)).unique().tolist()
    if len(by) == 1 and (decided := by.pop()) is not None:
        return say("decided", by=decided), ""
    if (read[["shortcut_within", "shortcut_beyond"]] == 1).all(axis=None):
        return say("reads_all", reader=" or ".join(readers)), ""
    if len(read) < len(table) or read["shortcut_beyond"].nunique() > 1:
        return "", ""
    share = percent(read["shortcut_beyond"].iloc[0], 1)
    return "", say("shortcut", reader=" or ".join(readers), share=share)


def _theory(table: pd.DataFrame) -> str:
    verdicts = set(table["theory"])
    key = f"theory_{verdicts.pop()}" if len(verdicts) == 1 else ""
    return say(key, n=len(table)) if key in ("theory_can", "theory_cannot") else ""


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """With the columns that are read, not summed: `7 of 8`, `3 of 7 (16% to 75%)`."""
    rows = table.to_dict("records")
    named = table.rename(columns={"name": "configuration"})
    return named.assign(
        learned_of=[f"{x['learned']} of {x['judged']}" if x["judged"] else "" for x in rows],
        generalize_of=[generalize_of(x) for x in rows],
        # Where none learned there is no share.
        share=table["generalize"] / table["judged_beyond"].where(table["judged_beyond"] > 0),
        fails=[_span(x["fails_from"], x["fails_to"]) for x in rows],
        every_length=pd.Series([_proofs(x) for x in rows], table.index, dtype=object),
    )


def generalize_of(row: Any, low: str = "generalize_low", high: str = "generalize_high") -> str:
    """Share of those that learned that generalizes, with its interval; empty if none learned."""
    if not row["judged_beyond"]:
        return ""
    ends = percents(row[low], row[high], 0)
    return f"{row['generalize']} of {row['judged_beyond']} ({ends})"


def _span(first: Any, last: Any) -> str:
    if pd.isna(first):
        return ""
    return f"{first}" if first == last else f"{first} to {last}"


def _proofs(row: Any) -> str | None:
    """Outcomes of stored proofs, as `1 proved, 2 refuted`; None without proofs."""
    words = {"proved": "proved", "refuted": "refuted", "undecided": "not decided"}
    return ", ".join(f"{row[x]:,} {word}" for x, word in words.items() if row[x]) or None


def _answers_about(found: pd.DataFrame, question: str) -> pd.DataFrame:
    return found[found["question"] == question].set_index("config_id")


def _count_decided(found: pd.DataFrame, question: str) -> int:
    return int((_answers_about(found, question)["holm"] <= DECIDED).sum())


def _by_measure(found: pd.DataFrame) -> dict[str, str]:
    """By each measure how many rows differ from the baseline by more than chance."""
    sentences = {}
    for name, what in MEASURED.items():
        rows = _answers_about(found, name)
        if len(rows):
            sentences[name] = say(
                "told", some=_count_decided(found, name) or "none", of=len(rows), what=what
            )
    return {name: sentence[:1].lower() + sentence[1:] for name, sentence in sentences.items()}


def _against(table: pd.DataFrame, found: pd.DataFrame, name: str, baseline: int) -> pd.DataFrame:
    """With every row's difference from the baseline, in words and as numbers."""
    rows = _answers_about(found, name).reindex(table["config_id"]).reset_index(drop=True)
    ends = rows[["value", "low", "high"]].to_dict("records")
    texts = ["" if pd.isna(x["value"]) else difference_text(*x.values()) for x in ends]
    is_base = (table["config_id"] == baseline).tolist()
    p = zip(rows["p_value"], rows["holm"], strict=True)
    return table.assign(
        **{
            f"difference {name}": [
                "baseline" if x else y for x, y in zip(is_base, texts, strict=True)
            ]
        },
        p_of=["" if pd.isna(x) else f"{p_text(x)} ({p_text(y)})" for x, y in p],
        compared_by=name,
        difference=rows["value"],
        difference_low=rows["low"],
        difference_high=rows["high"],
        p_value=rows["p_value"],
        p_holm=rows["holm"],
        test=rows["method"],
    )


def p_text(p: float) -> str:
    """A p-value of four digits, so that texts sort as numbers do."""
    # The space sorts before digits, where `<` alone would sort behind them.
    return f"{p:.4f}" if p >= 0.0001 else " <0.0001"


def _columns_that_fit(table: pd.DataFrame) -> list[str]:
    """The columns that differ, as many as fit."""
    known = [x for x in DEFAULT if x in table and table[x].replace("", None).notna().any()]
    # Where none learned, that none did is the answer.
    answer = "generalize_of" if "generalize_of" in known else "learned_of"
    always = ("configuration", answer) if len(table) > 1 else known
    shown = [x for x in known if x in always or table[x].nunique(dropna=False) > 1]
    for name in SACRIFICED:
        wide = sum(column_of(x).width or 0 for x in shown) > WIDEST
        if name in shown and (wide or len(shown) > MOST_COLUMNS):
            shown.remove(name)
    return shown


def groups(
    store: Store, selection: Selection, by: str, config_ids: tuple[int, ...] | None = None
) -> Section:
    """Configurations summed up by a setting, or by the class of their languages.

    Args:
        by: the setting.
        config_ids: those that are summed up; all in scope where it is None.
    """
    table = outcomes.groups(store, selection, by, config_ids)
    if table.empty:
        return Section("Configurations", (say("no_models"),))
    rows = table.to_dict("records")
    counts = outcomes.count_outcomes(store, selection)
    table = table.assign(
        group=[say_setting(by, x["value"]) for x in rows],
        learned_of=[f"{x['learned']} of {x['judged']}" for x in rows],
        generalize_of=[generalize_of(x) for x in rows],
        share=table["generalize_share"],
    )
    members = "languages" if "languages" in table else "members"
    shown = ("group", members, "seeds", "learned_of", "generalize_of", "share", "accuracy_beyond")
    says = (say("headline", counts=describe_counts(counts)),)
    return Section("Configurations", says, table, shown=shown)
