"""Keys of callers, and what each permits.

Only the SHA-256 of a key is stored, so a copy of the database gives no access. The hash needs no
salt, because 256 random bits cannot be guessed.
"""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select, update

from core.access import audit
from core.access.callers import ANYBODY, EVERYBODY, Caller, Quota, View
from core.access.scopes import Scope as Scope  # noqa: PLC0414 – a part of what a key is
from core.clock import now
from core.database.database import Database
from core.database.schema import KeyRow
from core.exceptions import Conflict, Invalid, InvalidSetting, NotFound
from core.names import check_identifier, check_name, new_id
from core.settings import read_secret

PREFIX = "cred_"  # scanners for leaked secrets recognise a key by it
RANDOM_BYTES = 32
MIN_CHARACTERS = 20  # of a key that was not made here


@dataclass(frozen=True, kw_only=True)
class Limits(Quota):
    """The limits of one key; None is no limit. Each API process counts requests on its own."""

    requests_per_minute: int | None = None

    def check(self) -> None:
        """Raise `Invalid` for a limit below 1. To block a key, revoke it."""
        limits = [(name, value) for name, value in asdict(self).items() if value is not None]
        if wrong := [(name, f"{value}: give at least 1") for name, value in limits if value < 1]:
            raise Invalid(wrong)


NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key without its text, which is not stored.

    A key without an owner sees the models of all owners: it is for applications that only predict.
    """

    id: str
    name: str
    owner: str
    scope: Scope
    limits: Limits
    sha256: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def caller(self) -> Caller:
        """The caller with this key."""
        sees_all = self.scope is Scope.ADMIN or self.owner == EVERYBODY
        return Caller(
            view=View(self.owner, sees_all),
            actor=self.name,
            key=self.id,
            quota=self.limits,
        )


class Keys:
    """The table of keys.

    Args:
        actor: who changes the keys, for the audit log.
    """

    def __init__(self, database: Database, actor: str = "service") -> None:
        self._database = database
        self._caller = Caller(actor=actor)

    def create(
        self,
        name: str,
        scope: Scope,
        owner: str | None = None,
        limits: Limits = NO_LIMITS,
    ) -> tuple[Key, str]:
        """Create a key. Returns it and its text, which is not stored.

        Args:
            owner: by default the key's name. With the scope `predict` by default none, so that the
                key sees the models of all owners.

        Raises:
            Invalid: a name is empty, too long or not printable, or a limit is below 1.
        """
        limits.check()
        if owner is None:
            owner = EVERYBODY if scope is Scope.PREDICT else name
        elif owner == ANYBODY:
            raise Invalid([("owner", f"{owner!r} means everybody: give a name")])
        else:
            check_name(owner, "owner")
        text = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        row = KeyRow(
            id=new_id("key"),
            name=check_name(name),
            owner=owner,
            scope=scope,
            max_requests_per_minute=limits.requests_per_minute,
            max_stored_bytes=limits.stored_bytes,
            max_queued_jobs=limits.queued_jobs,
            sha256=digest(text).hex(),
            created_at=now(),
        )
        with self._database.begin() as session:
            session.add(row)
            audit.record(session, self._caller, "key.create", row.id, name=name, scope=scope)
        return _key(row), text

    def list(self) -> Sequence[Key]:
        """All keys, revoked ones too, oldest first."""
        with self._database.read() as session:
            return [_key(row) for row in session.scalars(select(KeyRow).order_by(KeyRow.number))]

    def valid(self) -> Sequence[Key]:
        """The keys that have not been revoked."""
        query = select(KeyRow).where(KeyRow.revoked_at.is_(None)).order_by(KeyRow.number)
        with self._database.read() as session:
            return [_key(row) for row in session.scalars(query)]

    def revoke(self, key_id: str) -> Key:
        """Revoke a key. Running services notice within seconds.

        Raises:
            NotFound: there is no such key.
            Conflict: it was revoked before.
        """
        check_identifier("key", key_id)
        with self._database.begin() as session:
            query = select(KeyRow).where(KeyRow.id == key_id).with_for_update()
            row = session.scalars(query).one_or_none()
            if row is None:
                raise NotFound("key", key_id)
            if row.revoked_at is not None:
                raise Conflict(f"key {key_id} was revoked at {row.revoked_at:%Y-%m-%d %H:%M} UTC")
            row.revoked_at = now()
            audit.record(session, self._caller, "key.revoke", key_id, name=row.name)
            return _key(row)

    def touch(self, key_ids: Collection[str]) -> None:
        """Set the time of last use of these keys to now."""
        used = update(KeyRow).where(KeyRow.id.in_(key_ids))
        with self._database.begin() as session:
            session.execute(used.values(last_used_at=now()))


def digest(text: str | bytes) -> bytes:
    """The SHA-256 of a key."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).digest()


def read_key_file(path: Path) -> str:
    """The key in a file, such as a container's secret.

    Raises:
        InvalidSetting: the file cannot be read, or holds no key.
    """
    variable = f"CREDENCE_ADMIN_KEY_FILE={path}"
    try:
        text = read_secret(path)
    except ValueError as error:
        raise InvalidSetting(f"{variable}: {error}") from None
    if len(text) < MIN_CHARACTERS:
        raise InvalidSetting(
            f"{variable}: holds {len(text)} characters: a key has at least {MIN_CHARACTERS}, "
            "such as from `openssl rand -hex 32`"
        )
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise InvalidSetting(
            f"{variable}: holds a space, a line break or a character beyond ASCII: a key has none, "
            "because it is sent in an HTTP header"
        )
    return text


def _key(row: KeyRow) -> Key:
    limits = Limits(
        requests_per_minute=row.max_requests_per_minute,
        stored_bytes=row.max_stored_bytes,
        queued_jobs=row.max_queued_jobs,
    )
    return row.to(Key, scope=Scope(row.scope), limits=limits)
