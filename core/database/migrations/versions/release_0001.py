"""All tables of the first release.

Revision: 0001, after None.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.String(64)
NAME = sa.String(256)
TIME = sa.DateTime(timezone=True)
JSON_OR_NULL = sa.JSON(none_as_null=True)


def upgrade() -> None:
    _create_datasets()
    _create_jobs()
    _create_models()
    _create_predictions()
    _create_keys()
    _create_requests()
    op.create_table(
        "workers",
        sa.Column("id", NAME, nullable=False),
        sa.Column("device", NAME, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("heartbeat_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_table(
        "installation",
        sa.Column("only", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(12), nullable=False),
        sa.PrimaryKeyConstraint("only", name="pk_installation"),
    )


def _create_datasets() -> None:
    op.create_table(
        "datasets",
        _number(),
        sa.Column("id", ID, nullable=False),
        _owner(),
        sa.Column("name", NAME, nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("stored_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sha256", ID, nullable=False),
        sa.Column("artifact_key", sa.String(512), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_datasets"),
        sa.UniqueConstraint("id", name="uq_datasets_id"),
        sa.UniqueConstraint("owner", "sha256", "format", name="uq_datasets_owner"),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        _number(),
        sa.Column("id", ID, nullable=False),
        sa.Column("parent", ID, nullable=True),
        _owner(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("model", ID, nullable=False),
        sa.Column("dataset", ID, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("worker", NAME, nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("progress", JSON_OR_NULL, nullable=True),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("error", JSON_OR_NULL, nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=True),
        sa.Column("traceparent", ID, nullable=True),
        sa.Column("last_event", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("queued_at", TIME, nullable=False),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
    )
    op.create_index("ix_jobs_dataset", "jobs", ["dataset"])
    op.create_index("ix_jobs_model", "jobs", ["model"])
    op.create_index("ix_jobs_status_queued_at", "jobs", ["status", "queued_at"])
    op.create_index("ix_jobs_parent_status", "jobs", ["parent", "status"])
    op.create_index("ix_jobs_owner_status", "jobs", ["owner", "status"])
    op.create_table(
        "events",
        sa.Column("job_id", ID, nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("time", TIME, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name="fk_events_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "id", name="pk_events"),
    )


def _create_models() -> None:
    op.create_table(
        "models",
        sa.Column("name", ID, nullable=False),
        _owner(),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_models"),
    )
    op.create_table(
        "versions",
        sa.Column("model", ID, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("dataset", ID, nullable=False),
        sa.Column("job", ID, nullable=False),
        sa.Column("artifact_key", sa.String(512), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["model"], ["models.name"], name="fk_versions_model"),
        sa.PrimaryKeyConstraint("model", "version", name="pk_versions"),
        sa.UniqueConstraint("artifact_key", name="uq_versions_artifact_key"),
    )
    op.create_table(
        "aliases",
        sa.Column("model", ID, nullable=False),
        sa.Column("alias", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        _of_version("aliases", ondelete=None),
        sa.PrimaryKeyConstraint("model", "alias", name="pk_aliases"),
    )


def _create_predictions() -> None:
    op.create_table(
        "predictions",
        sa.Column("id", ID, nullable=False),
        _owner(),
        sa.Column("model", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("inputs", sa.LargeBinary(), nullable=False),
        sa.Column("future", sa.LargeBinary(), nullable=True),
        sa.Column("key", ID, server_default="", nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        _of_version("predictions"),
        sa.PrimaryKeyConstraint("id", name="pk_predictions"),
    )
    op.create_index("ix_predictions_created_at", "predictions", ["created_at"])
    op.create_index("ix_predictions_model", "predictions", ["model", "version"])
    op.create_index("ix_predictions_owner", "predictions", ["owner", "key", "bytes"])
    op.create_table(
        "feedback",
        _number(),
        sa.Column("id", ID, nullable=False),
        sa.Column("model", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("prediction", ID, nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("scores", sa.JSON(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        _of_version("feedback"),
        sa.PrimaryKeyConstraint("number", name="pk_feedback"),
        sa.UniqueConstraint("id", name="uq_feedback_id"),
        sa.UniqueConstraint("prediction", name="uq_feedback_prediction"),
    )
    op.create_index("ix_feedback_model", "feedback", ["model", "version"])
    op.create_table(
        "feedback_windows",
        sa.Column("model", ID, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        _of_version("feedback_windows"),
        sa.PrimaryKeyConstraint("model", "version", name="pk_feedback_windows"),
    )
    op.create_index("ix_feedback_windows_updated_at", "feedback_windows", ["updated_at"])


def _create_keys() -> None:
    op.create_table(
        "keys",
        _number(),
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        _owner(),
        sa.Column("max_requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("max_stored_bytes", sa.BigInteger(), nullable=True),
        sa.Column("max_queued_jobs", sa.Integer(), nullable=True),
        sa.Column("sha256", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_keys"),
        sa.UniqueConstraint("id", name="uq_keys_id"),
        sa.UniqueConstraint("sha256", name="uq_keys_sha256"),
    )
    op.create_table(
        "shares",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("object", ID, nullable=False),
        sa.Column("reader", NAME, nullable=False),
        sa.PrimaryKeyConstraint("kind", "object", "reader", name="pk_shares"),
    )


def _create_requests() -> None:
    op.create_table(
        "audit",
        _number(),
        sa.Column("time", TIME, nullable=False),
        sa.Column("actor", NAME, nullable=False),
        sa.Column("key", ID, nullable=True),
        _owner(),
        sa.Column("request_id", sa.String(128), nullable=True),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("object", NAME, nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_time", "audit", ["time"])
    op.create_table(
        "replies",
        sa.Column("caller", ID, nullable=False),
        sa.Column("route", NAME, nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=False),
        sa.Column("fingerprint", ID, nullable=False),
        sa.Column("resource", ID, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("caller", "route", "idempotency_key", name="pk_replies"),
    )
    op.create_index("ix_replies_created_at", "replies", ["created_at"])


def _number() -> sa.Column[int]:
    """A key that counts up. SQLite needs the type INTEGER for that."""
    type_ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("number", type_, autoincrement=True, nullable=False)


def _owner() -> sa.Column[str]:
    return sa.Column("owner", NAME, server_default="", nullable=False)


def _of_version(table: str, ondelete: str | None = "CASCADE") -> sa.ForeignKeyConstraint:
    columns = ["versions.model", "versions.version"]
    return sa.ForeignKeyConstraint(
        ["model", "version"], columns, name=f"fk_{table}_model", ondelete=ondelete
    )
