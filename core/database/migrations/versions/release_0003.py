"""Schedules and their runs.

Revision: 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.String(64)
NAME = sa.String(256)
TIME = sa.DateTime(timezone=True)
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up INTEGER alone


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("name", ID, nullable=False),
        sa.Column("owner", NAME, server_default="", nullable=False),
        sa.Column("actor", NAME, nullable=False),
        sa.Column("key", ID, nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("gate", sa.JSON(), nullable=False),
        sa.Column("dataset", ID, nullable=False),
        sa.Column("variant", ID, nullable=False),
        sa.Column("cron", sa.String(128), nullable=True),
        sa.Column("time_zone", ID, nullable=False),
        sa.Column("next_due", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_schedules"),
        sa.UniqueConstraint("name", name="uq_schedules_name"),
    )
    op.create_index("ix_schedules_variant", "schedules", ["variant"])
    op.create_index("ix_schedules_next_due", "schedules", ["next_due"])
    op.create_table(
        "schedule_runs",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("schedule", NUMBER, nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("missed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("job", ID, nullable=True),
        sa.Column("outcome", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_schedule_runs"),
        sa.ForeignKeyConstraint(
            ["schedule"],
            ["schedules.number"],
            name="fk_schedule_runs_schedule",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_schedule_runs_schedule", "schedule_runs", ["schedule"])
    op.create_index("ix_schedule_runs_job", "schedule_runs", ["job"])
