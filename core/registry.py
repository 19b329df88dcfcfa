"""Model versions: immutable, numbered from 1, published whole, with aliases that move."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, exists, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.database import Database
from core.exceptions import Conflict, LostClaim, NotFound
from core.names import check_alias, check_identifier, check_model_name, now
from core.paging import Page, check_limit, decode_cursor, page_of
from core.schema import AliasRow, Json, ModelRow, VersionRow
from core.storage import ArtifactStore
from core.transitions import Claim, JobStatus, complete, hold


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a model; `description` is what the artifact says of itself."""

    model: str
    version: int
    aliases: tuple[str, ...]
    description: dict[str, Any]
    dataset: str
    job: str
    created_at: datetime
    artifact_key: str


class Registry:
    """Names, versions and aliases in the database, artifacts in the store."""

    def __init__(self, database: Database, store: ArtifactStore) -> None:
        self._database = database
        self._store = store

    def publish(
        self,
        claim: Claim,
        model: str,
        directory: Path,
        description: Json,
        dataset: str,
        alias: str | None = None,
    ) -> Version:
        """Store the artifact, then give it a number and end the job, in one transaction.

        The key belongs to this attempt alone: whatever fails in between leaves a directory that
        nothing refers to, never half of a version.

        Raises:
            LostClaim: the job is not ours any more, or was cancelled meanwhile: nothing is published.
        """
        check_model_name(model)
        key = f"models/{model}/{claim.job_id}-{claim.attempt}"
        self._store.delete(key)  # left by a crash of this very attempt
        self._store.put_directory(key, directory)
        try:
            with self._database.begin() as session:
                held = hold(session, claim)
                if held is JobStatus.CANCELLING:
                    complete(session, claim, JobStatus.CANCELLED)
                    number = None
                else:
                    number = _insert(session, claim, model, key, description, dataset, alias)
        except BaseException:
            self._store.delete(key)
            raise
        if number is None:
            self._store.delete(key)
            raise LostClaim(f"job {claim.job_id} was cancelled before its model was published")
        return self.get(model, number)

    def get(self, model: str, version: int | str | None = None) -> Version:
        """A version by number, by alias, or the newest; raises `NotFound`."""
        with self._database.read() as session:
            row = session.get(VersionRow, (model, _resolve(session, model, version)))
            if row is None:
                raise NotFound("version", f"{model}/{version}")
            return _version(session, row)

    def list(self, limit: int = 20, cursor: str | None = None) -> Page[Version]:
        """The newest version of each model, by name."""
        query = (
            select(VersionRow)
            .join(_newest := _newest_versions(), _newest.c.model == VersionRow.model)
            .where(VersionRow.version == _newest.c.version)
            .order_by(VersionRow.model)
            .limit(check_limit(limit) + 1)
        )
        if cursor is not None:
            query = query.where(VersionRow.model > decode_cursor("models", cursor))
        with self._database.read() as session:
            found = [_version(session, row) for row in session.scalars(query)]
        return page_of("models", found, [version.model for version in found], limit)

    def versions(self, model: str) -> Sequence[Version]:
        """All versions of a model, newest first; raises `NotFound`."""
        query = select(VersionRow).where(VersionRow.model == model)
        with self._database.read() as session:
            rows = session.scalars(query.order_by(VersionRow.version.desc())).all()
            if not rows:
                raise NotFound("model", model)
            return [_version(session, row) for row in rows]

    def set_alias(self, model: str, alias: str, version: int) -> Version:
        """Point the alias at a version, wherever it pointed before."""
        check_alias(alias, "alias")
        with self._database.begin() as session:
            _lock_model(session, model)
            row = session.get(VersionRow, (model, version))
            if row is None:
                raise NotFound("version", f"{model}/{version}")
            _point(session, model, alias, version)
            return _version(session, row)

    def delete_alias(self, model: str, alias: str) -> None:
        """Remove the alias; raises `NotFound`."""
        with self._database.begin() as session:
            _delete_one(session, AliasRow, "alias", model, AliasRow.alias == alias, alias)

    def delete_version(self, model: str, version: int) -> None:
        """Remove a version and its artifact; its number is never given again.

        Raises:
            Conflict: while an alias points at it, because somebody predicts by that name.
        """
        with self._database.begin() as session:
            _lock_model(session, model)
            row = session.get(VersionRow, (model, version))
            if row is None:
                raise NotFound("version", f"{model}/{version}")
            if aliases := _aliases(session, row):
                raise Conflict(
                    f"version {version} of {model} is what the alias {aliases[0]!r} means: "
                    "move or delete the alias first"
                )
            session.delete(row)
        self._store.delete(row.artifact_key)

    def delete_model(self, model: str) -> None:
        """Remove all versions and aliases of a model, and their artifacts."""
        with self._database.begin() as session:
            _lock_model(session, model)
            query = select(VersionRow.artifact_key).where(VersionRow.model == model)
            keys = session.scalars(query).all()
            if not keys:
                raise NotFound("model", model)
            session.execute(delete(AliasRow).where(AliasRow.model == model))
            session.execute(delete(VersionRow).where(VersionRow.model == model))
        for key in keys:
            self._store.delete(key)

    def path(self, version: Version) -> Path:
        """Where the artifact can be read on this machine."""
        return self._store.local_path(version.artifact_key)


def _insert(
    session: Session,
    claim: Claim,
    model: str,
    key: str,
    description: Json,
    dataset: str,
    alias: str | None,
) -> int:
    """Write the version, its alias and the end of the job; the new number."""
    number = _next_number(session, model)
    session.add(
        VersionRow(
            model=model,
            version=number,
            description=description,
            dataset=dataset,
            job=claim.job_id,
            artifact_key=key,
            created_at=now(),
        )
    )
    session.flush()
    if alias is not None:
        _point(session, model, check_alias(alias), number)
    metrics = description.get("metrics") or {}
    complete(session, claim, JobStatus.SUCCEEDED, metrics=metrics, version=number)
    return number


def _next_number(session: Session, model: str) -> int:
    """Count up; the model's row stays locked until the transaction ends."""
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    statement = (
        dialect.insert(ModelRow)
        .values(name=model, last_version=1)
        .on_conflict_do_update(
            index_elements=[ModelRow.name], set_={"last_version": ModelRow.last_version + 1}
        )
        .returning(ModelRow.last_version)
    )
    return session.execute(statement).scalar_one()


def _lock_model(session: Session, model: str) -> None:
    """Aliases and versions of one model change one transaction at a time."""
    query = select(ModelRow).where(ModelRow.name == model).with_for_update()
    if session.scalars(query).one_or_none() is None:
        raise NotFound("model", model)


def _point(session: Session, model: str, alias: str, version: int) -> None:
    session.merge(AliasRow(model=model, alias=alias, version=version))
    session.flush()


def _delete_one(
    session: Session, table: Any, kind: str, model: str, condition: Any, name: str
) -> None:
    statement = delete(table).where(table.model == model, condition).returning(table.model)
    if session.execute(statement).scalar_one_or_none() is None:
        raise NotFound(kind, f"{model}/{name}")


def _resolve(session: Session, model: str, version: int | str | None) -> int:
    """The number behind a number, a string of digits, an alias, or None."""
    newest = select(func.max(VersionRow.version)).where(VersionRow.model == model)
    if version is None:
        number = session.execute(newest).scalar_one()
        if number is None:
            raise NotFound("model", model)
        return int(number)
    if isinstance(version, int):
        return version
    if version.isascii() and version.isdecimal() and len(version) < 10:
        return int(version)
    row = session.get(AliasRow, (model, version))
    if row is None:
        kind = "alias" if _exists(session, model) else "model"
        raise NotFound(kind, f"{model}/{version}" if kind == "alias" else model)
    return row.version


def _exists(session: Session, model: str) -> bool:
    return bool(session.execute(select(exists().where(VersionRow.model == model))).scalar_one())


def _newest_versions() -> Any:
    return (
        select(VersionRow.model, func.max(VersionRow.version).label("version"))
        .group_by(VersionRow.model)
        .subquery()
    )


def _aliases(session: Session, row: VersionRow) -> tuple[str, ...]:
    query = select(AliasRow.alias).where(
        AliasRow.model == row.model, AliasRow.version == row.version
    )
    return tuple(session.scalars(query.order_by(AliasRow.alias)))


def _version(session: Session, row: VersionRow) -> Version:
    return Version(
        model=row.model,
        version=row.version,
        aliases=_aliases(session, row),
        description=row.description,
        dataset=row.dataset,
        job=row.job,
        created_at=row.created_at,
        artifact_key=row.artifact_key,
    )
