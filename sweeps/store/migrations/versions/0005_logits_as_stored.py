"""Logits of wrong strings as they are stored: infinite ones too, and none where there is NaN."""

from alembic import op

from sweeps.store.migrations.packed_views import views

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _make_views_anew()


def _make_views_anew() -> None:
    connection = op.get_bind()
    is_server = connection.dialect.name == "postgresql"
    for name, view in views(connection.dialect.name, finite_alone=False).items():
        if is_server:
            # Replaced, they keep who may read them, and other views may read them.
            connection.exec_driver_sql(view.replace("CREATE", "CREATE OR REPLACE", 1))
        else:
            connection.exec_driver_sql(f"DROP VIEW IF EXISTS {name}")
            connection.exec_driver_sql(view)
