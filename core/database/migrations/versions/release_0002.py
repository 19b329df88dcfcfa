"""Jobs in chunks.

Revision: 0002, after 0001.

The column refers to the table that it is in, but is no foreign key: SQLite would add one by copying
the table, and drop the old one with all events.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("parent", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_jobs_parent"), "jobs", ["parent"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_jobs_parent"), "jobs")
    op.drop_column("jobs", "parent")
