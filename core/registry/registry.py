"""The registry of models: immutable versions, numbered from 1, and movable aliases."""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Row, delete, func, select
from sqlalchemy.orm import Session

from core.access import audit, quotas, shares
from core.access.callers import MODEL, SERVICE, Caller, check_change, owner_of
from core.access.idempotency import AlreadyCompleted
from core.clock import now
from core.database.database import Database
from core.database.schema import AliasRow, Json, ModelRow, VersionRow
from core.database.statements import installation_id
from core.database.stored_bytes import stored_bytes
from core.exceptions import Conflict, LostClaim, NotFound, NotOwner, QuotaExceeded
from core.jobs import parts
from core.jobs.transitions import Claim, JobStatus, complete, lock_claimed
from core.names import check_alias, check_identifier, check_model_name
from core.paging import Page, decode_cursor, encode_cursor, extent
from core.registry import versions
from core.storage import ArtifactStore

AlsoPublished = Callable[[Session, VersionRow], None]
"""What else is done in the transaction that publishes a version."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a model; `description` is the content of the artifact's `model.json`."""

    model: str
    owner: str
    version: int
    aliases: tuple[str, ...]
    description: dict[str, Any]
    dataset: str
    job: str
    created_at: datetime
    artifact_key: str


class Registry:
    """Models in the database, their artifacts in the store.

    Models that the caller may not see raise `NotFound`.
    """

    def __init__(self, database: Database, store: ArtifactStore, caller: Caller = SERVICE) -> None:
        self._database = database
        self._store = store
        self._caller = caller

    def publish(  # noqa: PLR0917
        self,
        claim: Claim,
        model: str,
        directory: Path,
        description: Json,
        dataset: str,
        alias: str | None = None,
        then: AlsoPublished | None = None,
    ) -> Version:
        """Store the artifact; then number the version and end the job, in one transaction.

        Only this attempt uses the artifact's key. A crash between the two steps leaves files
        without a row, which the next attempt deletes.

        Args:
            then: moves an alias if a gate lets it, for example.

        Raises:
            LostClaim: another attempt has the job, or it was cancelled: nothing is published.
        """
        check_model_name(model)
        if alias is not None:
            check_alias(alias)
        for attempt in range(1, claim.attempt + 1):
            self._store.delete(_key(model, claim, attempt))
        key = _key(model, claim, claim.attempt)
        self._store.put_directory(key, directory)
        row = VersionRow(
            model=model,
            description=description,
            dataset=dataset,
            job=claim.job_id,
            artifact_key=key,
            created_at=now(),
        )
        try:
            self._publish(claim, row, alias, then)
        except LostClaim:  # after other errors it may be published: a sweep checks it
            self._store.delete(key)
            raise
        return self.get(model, row.version)

    def _publish(
        self,
        claim: Claim,
        row: VersionRow,
        alias: str | None,
        then: AlsoPublished | None,
    ) -> None:
        with self._database.begin() as session, parts.updating_parent(session, claim.job_id):
            is_cancelled = lock_claimed(session, claim) is JobStatus.CANCELLING
            if is_cancelled:
                complete(session, claim, JobStatus.CANCELLED)
            else:
                versions.insert(session, row, alias)
                if then is not None:
                    then(session, row)
                metrics = row.description.get("metrics") or {}
                complete(session, claim, JobStatus.SUCCEEDED, metrics=metrics, version=row.version)
        if is_cancelled:
            raise LostClaim(f"job {claim.job_id} was cancelled before its model was published")

    def add(
        self, model: str, directory: Path, description: Json, alias: str | None = None
    ) -> Version:
        """Publish an imported version (`core.registry.imports`).

        The artifact's key contains this database's name, so that a sweep can attribute files that a
        crash left without a row.

        Raises:
            NotOwner: the model is another owner's.
            QuotaExceeded: the caller would store more than its quota.
        """
        imported = description["imported"]
        origin = imported["origin"] or {}
        with self._database.begin() as session:
            key = f"models/{model}/{import_prefix(session)}{secrets.token_hex(12)}"
        row = VersionRow(
            model=model,
            description=description,
            dataset=origin.get("dataset", ""),
            job=origin.get("job", ""),
            artifact_key=key,
            created_at=now(),
        )
        self._store.put_directory(key, directory)
        try:
            with self._database.begin() as session:
                free = self._store.free_bytes()
                quotas.check_bytes(session, self._caller, imported["bytes"], free)
                versions.reserve(session, model, self._caller, self._caller.owner)
                versions.insert(session, row, alias)
                what = f"{model}/{row.version}"
                audit.record(session, self._caller, "version.import", what, alias=alias)
                made = _version(session, row, owner_of(session, self._caller, MODEL, model))
                self._caller.record(session, what, made)
        except (QuotaExceeded, AlreadyCompleted, NotOwner):
            self._store.delete(key)
            raise
        return made

    def get(self, model: str, version: int | str | None = None) -> Version:
        """A version by number or alias, or the newest. Raises `NotFound`."""
        check_identifier("model", model)
        with self._database.read() as session:
            owner = owner_of(session, self._caller, MODEL, model)
            return _version(session, versions.find(session, model, version), owner)

    def list(self, limit: int = 20, cursor: str | None = None) -> Page[Version]:
        """The newest version of each model, in the order of names."""
        query = (
            select(VersionRow, ModelRow.owner)
            .join(ModelRow, VersionRow.model == ModelRow.name)
            .where(VersionRow.version == versions.newest(), self._caller.view.of(MODEL))
            .order_by(ModelRow.name)
        )
        if cursor is not None:
            query = query.where(ModelRow.name > decode_cursor("models", cursor))
        size, hold = stored_bytes([VersionRow.description]), self._caller.hold
        with self._database.read() as session:
            found = extent(session, query, ModelRow.name, size, limit, hold)
            names = ModelRow.name.in_(found.positions)
            data = _versions(session, session.execute(query.where(names)).all())
        return Page(data, encode_cursor("models", found.positions[-1]) if found.more else None)

    def versions(self, model: str) -> Sequence[Version]:
        """All versions of a model, newest first. Raises `NotFound`."""
        check_identifier("model", model)
        query = select(VersionRow).where(VersionRow.model == model)
        with self._database.read() as session:
            owner = owner_of(session, self._caller, MODEL, model)
            size = func.sum(stored_bytes([VersionRow.description]))
            self._caller.hold(session.scalar(query.with_only_columns(size)) or 0)
            rows = session.scalars(query.order_by(VersionRow.version.desc())).all()
            if not rows:
                raise NotFound("model", model)
            return _versions(session, [(row, owner) for row in rows])

    def stored(self, artifact_keys: Sequence[str]) -> frozenset[str]:
        """Those of the artifacts that belong to a version, whoever may see it."""
        query = select(VersionRow.artifact_key).where(VersionRow.artifact_key.in_(artifact_keys))
        with self._database.read() as session:
            return frozenset(session.scalars(query))

    def set_alias(self, model: str, alias: str, version: int) -> Version:
        """Create an alias of a version, or move it there."""
        check_identifier("model", model)
        check_alias(alias, "alias")
        with self._changed(model, "alias.set", f"{model}/{alias}", version=version) as session:
            row = versions.find(session, model, version)
            versions.set_alias(session, row, alias)
            return _version(session, row, owner_of(session, self._caller, MODEL, model))

    def delete_alias(self, model: str, alias: str) -> None:
        """Delete an alias. Raises `NotFound`."""
        check_identifier("model", model)
        check_identifier("alias", alias)
        with self._changed(model, "alias.delete", f"{model}/{alias}") as session:
            row = session.get(AliasRow, (model, alias))
            if row is None:
                raise NotFound("alias", f"{model}/{alias}")
            versions.remove_alias(session, row)

    def delete_version(self, model: str, version: int) -> None:
        """Delete a version and its artifact. Its number is never used again.

        Raises:
            Conflict: it has an alias, which requests may use.
        """
        check_identifier("model", model)
        with self._changed(model, "version.delete", f"{model}/{version}") as session:
            row = versions.find(session, model, version)
            if aliases := versions.aliases(session, row):
                raise Conflict(
                    f"version {version} of {model} has the alias {aliases[0]!r}: "
                    "move or delete the alias first"
                )
            session.delete(row)
        self._store.delete(row.artifact_key)

    def delete_model(self, model: str) -> None:
        """Delete a model: its versions, aliases and artifacts."""
        check_identifier("model", model)
        with self._changed(model, "model.delete", model) as session:
            shares.forget(session, MODEL, model)
            for row in session.scalars(select(AliasRow).where(AliasRow.model == model)):
                versions.remove_alias(session, row)
            session.flush()
            keys = session.scalars(
                delete(VersionRow)
                .where(VersionRow.model == model)
                .returning(VersionRow.artifact_key)
            ).all()
            if not keys:
                raise NotFound("model", model)
        for key in keys:
            self._store.delete(key)

    @contextmanager
    def _changed(self, model: str, action: str, what: str, **details: Any) -> Iterator[Session]:
        """A transaction that changes one of the caller's models. It locks the model."""
        with self._database.begin() as session:
            check_change(session, self._caller, MODEL, model)
            audit.record(session, self._caller, action, what, **details)
            yield session

    def exported(self, version: Version) -> None:
        """Write into the audit log that the caller exports a version."""
        what = f"{version.model}/{version.version}"
        with self._database.begin() as session:
            audit.record(session, self._caller, "version.export", what)

    def existing(self, names: Collection[str]) -> set[tuple[str, int]]:
        """Name and number of each version of the models with these names."""
        query = select(VersionRow.model, VersionRow.version).where(VersionRow.model.in_(names))
        with self._database.read() as session:
            return {(model, version) for model, version in session.execute(query)}

    def visible(self, names: Collection[str]) -> set[str]:
        """The models with these names that the caller may see."""
        query = select(ModelRow.name).where(ModelRow.name.in_(names), self._caller.view.of(MODEL))
        with self._database.read() as session:
            return set(session.scalars(query))

    def path(self, version: Version) -> Path:
        """The folder of the artifact on this machine."""
        return self._store.local_path(version.artifact_key)


def import_prefix(session: Session) -> str:
    """The first part of the names of this database's imported artifacts."""
    return f"import-{installation_id(session)}-"


def _key(model: str, claim: Claim, attempt: int) -> str:
    return f"models/{model}/{claim.job_id}-{attempt}"


def _version(session: Session, row: VersionRow, owner: str) -> Version:
    return row.to(Version, owner=owner, aliases=versions.aliases(session, row))


def _versions(
    session: Session, rows: Sequence[Row[VersionRow, str] | tuple[VersionRow, str]]
) -> list[Version]:
    """The versions of rows with their owners. The aliases of all are read at once."""
    named = versions.aliases_of(session, {row.model for row, _ in rows})
    return [
        row.to(Version, owner=owner, aliases=named.get((row.model, row.version), ()))
        for row, owner in rows
    ]
