"""Keys, where a job came from, and an index to count jobs by.

Revision: 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_keys")),
        sa.UniqueConstraint("id", name=op.f("uq_keys_id")),
        sa.UniqueConstraint("sha256", name=op.f("uq_keys_sha256")),
    )
    op.add_column("jobs", sa.Column("request_id", sa.String(length=128), nullable=True))
    op.add_column("jobs", sa.Column("traceparent", sa.String(length=64), nullable=True))
    op.create_index("ix_jobs_parent_status", "jobs", ["parent", "status"], unique=False)
    op.drop_index(op.f("ix_jobs_parent"), "jobs")  # the new one begins with the same column


def downgrade() -> None:
    op.create_index(op.f("ix_jobs_parent"), "jobs", ["parent"], unique=False)
    op.drop_index("ix_jobs_parent_status", "jobs")
    op.drop_column("jobs", "traceparent")
    op.drop_column("jobs", "request_id")
    op.drop_table("keys")
