"""Logits of wrong strings as they are stored: infinite ones too, and none where there is NaN."""

from alembic import op

from sweeps.store.migrations.packed_views import views

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _make_views_anew()


def _make_views_anew() -> None:
    connection = op.get_bind()
    made = views(connection.dialect.name, finite_alone=False)
    for name in reversed(made):
        connection.exec_driver_sql(f"DROP VIEW {name}")
    for view in made.values():
        connection.exec_driver_sql(view)
