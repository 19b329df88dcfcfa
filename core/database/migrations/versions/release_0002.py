"""Data sets keep the uploaded file and how it was read; labels the time of their prediction.

Revision: 0002, after 0001.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEYS = ["owner", "sha256", "format"]


def upgrade() -> None:
    with op.batch_alter_table("datasets") as table:
        table.add_column(sa.Column("variant", sa.String(64), server_default="", nullable=False))
        table.add_column(sa.Column("source_key", sa.String(512), nullable=True))
        table.add_column(sa.Column("about", sa.JSON(none_as_null=True), nullable=True))
        table.drop_constraint("uq_datasets_owner", type_="unique")
        table.create_unique_constraint("uq_datasets_owner", [*KEYS, "variant"])
        table.create_index("ix_datasets_source_key", ["source_key"])
    with op.batch_alter_table("feedback") as table:
        table.add_column(sa.Column("predicted_at", sa.DateTime(timezone=True), nullable=True))
    with op.batch_alter_table("feedback_windows") as table:
        table.add_column(sa.Column("labels", sa.JSON(none_as_null=True), nullable=True))
