"""Owners, shares, limits of keys, the audit log and the answers to requests that come twice.

Revision: 0005, after 0004.

What there is already becomes everybody's. A key that exists is its own owner, as its name says; one
of scope `predict` goes on seeing all models, as `credence keys create` makes them.

The way back is refused by the database, and changes nothing, once two owners have the same bytes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

OWNED = ("datasets", "jobs", "models", "predictions", "keys")
LIMITS = (
    ("max_requests_per_minute", sa.Integer()),
    ("max_stored_bytes", sa.BigInteger()),
    ("max_queued_jobs", sa.Integer()),
)


def upgrade() -> None:
    for table in OWNED:
        op.add_column(table, _owner())
    op.add_column("predictions", _bytes("bytes"))
    op.add_column(
        "predictions", sa.Column("key", sa.String(length=64), server_default="", nullable=False)
    )
    op.add_column("datasets", _bytes("stored_bytes"))
    op.execute("UPDATE datasets SET stored_bytes = bytes")
    for name, kind in LIMITS:
        op.add_column("keys", sa.Column(name, kind, nullable=True))
    op.execute("UPDATE keys SET owner = name WHERE scope <> 'predict'")
    op.execute("UPDATE predictions SET bytes = length(inputs) + coalesce(length(future), 0)")
    _found_by(["owner", "sha256", "format"], "uq_datasets_sha256", "uq_datasets_owner")
    op.create_index("ix_jobs_owner_status", "jobs", ["owner", "status"])
    op.create_index("ix_predictions_owner", "predictions", ["owner", "key", "bytes"])
    op.create_table(
        "installation",
        sa.Column("only", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=12), nullable=False),
        sa.PrimaryKeyConstraint("only", name=op.f("pk_installation")),
    )
    _create_shares()
    _create_audit()
    _create_answers()


def downgrade() -> None:
    for table in ("answers", "audit", "shares", "installation"):
        op.drop_table(table)
    op.drop_index("ix_predictions_owner", "predictions")
    op.drop_index("ix_jobs_owner_status", "jobs")
    _found_by(["sha256", "format"], "uq_datasets_owner", "uq_datasets_sha256")
    for name, _ in LIMITS:
        op.drop_column("keys", name)
    op.drop_column("datasets", "stored_bytes")
    op.drop_column("predictions", "key")
    op.drop_column("predictions", "bytes")
    for table in OWNED:
        op.drop_column(table, "owner")


def _owner() -> sa.Column[str]:
    return sa.Column("owner", sa.String(length=256), server_default="", nullable=False)


def _bytes(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)


def _found_by(columns: list[str], old: str, new: str) -> None:
    """The same bytes are one data set of each owner.

    SQLite copies the table, to which none refers.
    """
    with op.batch_alter_table("datasets") as table:
        table.drop_constraint(op.f(old), type_="unique")
        table.create_unique_constraint(op.f(new), columns)


def _create_shares() -> None:
    op.create_table(
        "shares",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("object", sa.String(length=64), nullable=False),
        sa.Column("reader", sa.String(length=256), nullable=False),
        sa.PrimaryKeyConstraint("kind", "object", "reader", name=op.f("pk_shares")),
    )


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(length=256), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=True),
        _owner(),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("object", sa.String(length=256), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_time"), "audit", ["time"])


def _create_answers() -> None:
    op.create_table(
        "answers",
        sa.Column("caller", sa.String(length=64), nullable=False),
        sa.Column("route", sa.String(length=256), nullable=False),
        sa.Column("idempotency_key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("resource", sa.String(length=64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("caller", "route", "idempotency_key", name=op.f("pk_answers")),
    )
    op.create_index(op.f("ix_answers_created_at"), "answers", ["created_at"])
