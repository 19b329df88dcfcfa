"""Predictions that were stored, labels that came back, and what they say of each version.

Revision: 0004, after 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "predictions",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.LargeBinary(), nullable=False),
        sa.Column("future", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        _of_a_version("predictions"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_predictions")),
    )
    op.create_index(op.f("ix_predictions_created_at"), "predictions", ["created_at"])
    op.create_index(op.f("ix_predictions_model"), "predictions", ["model", "version"])
    op.create_table(
        "feedback_windows",
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        _of_a_version("feedback_windows"),
        sa.PrimaryKeyConstraint("model", "version", name=op.f("pk_feedback_windows")),
    )
    op.create_index(op.f("ix_feedback_windows_updated_at"), "feedback_windows", ["updated_at"])
    op.create_table(
        "feedback",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("prediction", sa.String(length=64), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("scores", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        _of_a_version("feedback"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_feedback")),
        sa.UniqueConstraint("id", name=op.f("uq_feedback_id")),
        sa.UniqueConstraint("prediction", name=op.f("uq_feedback_prediction")),
    )
    op.create_index(op.f("ix_feedback_model"), "feedback", ["model", "version"])


def downgrade() -> None:
    for table in ("feedback", "feedback_windows", "predictions"):
        op.drop_table(table)


def _of_a_version(table: str) -> sa.ForeignKeyConstraint:
    """They go with the version, in the same transaction."""
    return sa.ForeignKeyConstraint(
        ["model", "version"],
        ["versions.model", "versions.version"],
        name=op.f(f"fk_{table}_model"),
        ondelete="CASCADE",
    )
