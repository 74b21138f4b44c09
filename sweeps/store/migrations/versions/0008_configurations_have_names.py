"""The first tables that this program can read: runs, what was found out about them, as JSON, and
configurations with their names.
"""

from alembic import op
from sqlalchemy import insert

from sweeps.store.tables import Base, Revision
from sweeps.store.views import make_views

revision = "0008"
down_revision = None


def upgrade() -> None:
    # As the program's classes have them, until a second migration needs what this one made.
    connection = op.get_bind()
    Base.metadata.create_all(connection)
    make_views(connection)
    connection.execute(insert(Revision).values(id=1, configs=0, members=0, runs=0))
