"""Keys: who may call, and how far. Only the SHA-256 of a key is kept, so a copy of the database
opens nothing; a hash without salt does, because nobody guesses 256 random bits.
"""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import select, update

from core.access import audit
from core.access.callers import ANYBODY, EVERYBODY, Caller, Quota, View
from core.clock import now
from core.database.database import Database
from core.database.schema import KeyRow
from core.exceptions import Conflict, Invalid, InvalidSetting, NotFound
from core.names import check_identifier, check_name, new_id
from core.settings import read_secret

PREFIX = "cred_"  # so that scanners for leaked secrets can know one
RANDOM_BYTES = 32
MIN_CHARACTERS = 20  # of a key that somebody else has made up


class Scope(StrEnum):
    """What a key is good for; each includes those before it."""

    PREDICT = "predict"
    TRAIN = "train"
    ADMIN = "admin"

    def includes(self, other: "Scope") -> bool:
        """Whether a key of this scope may do what asks for the other."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one key may take; None is no limit. Requests are counted by each process of the API."""

    requests_per_minute: int | None = None
    stored_bytes: int | None = None
    queued_jobs: int | None = None

    def check(self) -> None:
        """Raise `Invalid` for a limit below 1: a key that may do nothing is better revoked."""
        below = [(name, value) for name, value in asdict(self).items() if value is not None]
        if wrong := [(name, f"{value}: give at least 1") for name, value in below if value < 1]:
            raise Invalid(wrong)


NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key as its row says; the key itself is nowhere.

    Without an `owner` it sees the models of all: an application's, which predicts with any.
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
        """Whoever holds the key."""
        sees_all = self.scope is Scope.ADMIN or self.owner == EVERYBODY
        return Caller(
            view=View(self.owner, sees_all),
            actor=self.name,
            key=self.id,
            quota=Quota(self.limits.stored_bytes, self.limits.queued_jobs),
        )


class Keys:
    """The table of keys; `actor` is who changes it."""

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
        """A new key, and its text, which cannot be had again.

        Left out, the owner is called as the key is; but a key of scope `predict`, with which
        nothing can be made, sees the models of all owners then.

        Raises:
            Invalid: when a name is empty, too long or not printable, or a limit below 1.
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
        """Let a key open nothing from now on; running services notice within seconds.

        Raises:
            NotFound: without such a key.
            Conflict: when it was revoked before.
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
        """Note that these keys were used just now."""
        used = update(KeyRow).where(KeyRow.id.in_(key_ids))
        with self._database.begin() as session:
            session.execute(used.values(last_used_at=now()))


def digest(text: str | bytes) -> bytes:
    """The SHA-256 of a key."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).digest()


def read_key_file(path: Path) -> str:
    """The key in a file, such as a container's secret.

    Raises:
        InvalidSetting: when it cannot be read, or what it holds can be no key.
    """
    variable = f"CREDENCE_ADMIN_KEY_FILE={path}"
    try:
        text = read_secret(path)
    except ValueError as error:
        raise InvalidSetting(f"{variable}: {error}") from None
    if len(text) < MIN_CHARACTERS:
        raise InvalidSetting(
            f"{variable}: holds {len(text)} characters: a key has at least {MIN_CHARACTERS}, "
            "such as `openssl rand -hex 32` prints"
        )
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise InvalidSetting(
            f"{variable}: holds a space, a line break or a character beyond ASCII: a key has none, "
            "because it stands in an HTTP header"
        )
    return text


def _key(row: KeyRow) -> Key:
    limits = Limits(
        requests_per_minute=row.max_requests_per_minute,
        stored_bytes=row.max_stored_bytes,
        queued_jobs=row.max_queued_jobs,
    )
    return row.to(Key, scope=Scope(row.scope), limits=limits)
