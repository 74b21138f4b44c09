"""Failures that count, workers that have ended, and digests of verdicts."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("run", sa.Column("failures", sa.Integer(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE run SET failures = (SELECT count(*) FROM failure WHERE failure.run_id = run.id)"
    )
    op.add_column("worker", sa.Column("ended_at", sa.Text(), nullable=True))
    op.add_column("verdict", sa.Column("digest", sa.Text(), nullable=False, server_default=""))
    _digest_verdicts()


def _digest_verdicts() -> None:
    # Written out here: what this migration computes must not change with the program.
    rows = op.get_bind().execute(
        sa.text(
            "SELECT key, model_seed, run_id, max_length, multisets, false_positives, "
            "false_negatives, shortest_error FROM verdict JOIN run ON run.id = run_id "
            "JOIN config ON config.id = config_id"
        )
    )
    for key, model_seed, run_id, *verdict in rows.fetchall():
        names = ("max_length", "multisets", "false_positives", "false_negatives", "shortest_error")
        content = {
            "config": key,
            "model_seed": model_seed,
            "verdict": dict(zip(names, verdict, strict=True)),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        op.get_bind().execute(
            sa.text("UPDATE verdict SET digest = :digest WHERE run_id = :run_id"),
            {"digest": hashlib.sha256(text.encode()).hexdigest(), "run_id": run_id},
        )
