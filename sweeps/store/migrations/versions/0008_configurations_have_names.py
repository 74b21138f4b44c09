"""The first schema that this program reads, with named configurations and findings as JSON."""

from alembic import op
from sqlalchemy import insert

from sweeps.store.tables import Base, Revision
from sweeps.store.views import make_views

revision = "0008"
down_revision = None


def upgrade() -> None:
    # By the program's classes, until a second migration needs the tables of this one.
    connection = op.get_bind()
    Base.metadata.create_all(connection)
    make_views(connection)
    connection.execute(insert(Revision).values(id=1, configs=0, members=0, runs=0))
