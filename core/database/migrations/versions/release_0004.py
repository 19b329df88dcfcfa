"""Webhooks and their deliveries.

Revision: 0004, after 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.String(64)
NAME = sa.String(256)
TIME = sa.DateTime(timezone=True)
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", NAME, server_default="", nullable=False),
        sa.Column("url", sa.String(2048), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("secret", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("disabled_at", TIME, nullable=True),
        sa.Column("disabled_reason", sa.String(512), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_webhooks"),
        sa.UniqueConstraint("id", name="uq_webhooks_id"),
    )
    op.create_index("ix_webhooks_owner", "webhooks", ["owner"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("webhook", ID, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("subject", NAME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("log", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["webhook"], ["webhooks.id"], name="fk_webhook_deliveries_webhook", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("id", name="uq_webhook_deliveries_id"),
    )
    for name, columns in (
        ("status_due_at", ["status", "due_at"]),
        ("webhook", ["webhook", "number"]),
        ("created_at", ["created_at"]),
    ):
        op.create_index(f"ix_webhook_deliveries_{name}", "webhook_deliveries", columns)
