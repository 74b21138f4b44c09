"""What the commands that look inside one model do, and how they show it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sweeps import api
from sweeps.cli.commands.families import family_record
from sweeps.cli.commands.opening import opened
from sweeps.cli.commands.printing import print_table, show

if TYPE_CHECKING:
    import pandas as pd

    from seqcls.interpretability.explanations.explanation import Explanation
    from seqcls.interpretability.families.output_family import OutputFamily
    from seqcls.interpretability.verdicts.certification import Certification, SupportProof


def explain_string(
    db: str | None, reference: str, string: str, epoch: int | None, as_json: bool
) -> None:
    """Prints the cause of a model's answer."""
    from seqcls.interpretability.explanations.text import explanation_text

    store, run_id = opened(db, reference)
    explanation = api.explain(store, run_id, string, epoch)
    said = explanation_text(explanation)
    show(as_json, said, {"run": run_id, **_explanation_record(explanation), "sentences": said})


def show_family(
    db: str | None, reference: str, text: str, epoch: int | None, as_json: bool
) -> None:
    """Prints where a model's answer for a family of strings changes."""
    from seqcls.interpretability.families.output_family import OutputFamily, output_family_text
    from seqcls.interpretability.families.text import family_text
    from sweeps.analysis.answer_sentences import displayed

    store, run_id = opened(db, reference)
    tried = api.family(store, run_id, text, epoch)
    record = {"run": run_id, **family_record(tried)}
    if not isinstance(tried, OutputFamily):
        show(as_json, family_text(tried), record)
        return
    show(as_json, output_family_text(tried), record)
    if not as_json:
        table = displayed(_outputs_table(tried), api.config(store, run_id))
        print_table(table, f"outputs of run {run_id}")


def _outputs_table(written: "OutputFamily") -> "pd.DataFrame":
    """Counts, whether the output is right, how many tokens of it are, target and output."""
    import pandas as pd

    rows = [
        {
            **dict(zip(written.family.names, each.values, strict=True)),
            "output is": each.error_kind or "right",
            "right tokens": f"{each.right_tokens} of {each.target_tokens}",
            "target": each.target or '""',
            "output": each.output or '""',
        }
        for each in written.outputs
    ]
    return pd.DataFrame(rows)


def show_certification(db: str | None, reference: str, as_json: bool) -> None:
    """Prints what is proved of a model's answers for strings of every length."""
    from seqcls.interpretability.verdicts.text import certification_text

    store, run_id = opened(db, reference)
    proved = api.proofs(store, run_id)
    show(as_json, certification_text(proved), {"run": run_id, **_certification_record(proved)})


def _explanation_record(explanation: "Explanation") -> dict[str, Any]:
    record = asdict(explanation)
    for head in record["heads"]:
        # Programs read this name.
        head["seen"] = [{"kind": entry.pop("token_type"), **entry} for entry in head["seen"]]
    return record


def _certification_record(certification: "Certification") -> dict[str, Any]:
    return {
        "least_length": certification.least_length,
        "supports": [_proof_record(proof) for proof in certification.supports],
        "left_out": certification.left_out,
    }


def _proof_record(proof: "SupportProof") -> dict[str, Any]:
    record = {name: value for name, value in vars(proof).items() if name != "cells"}
    return {**record, "intervals": [asdict(interval) for interval in proof.intervals]}
