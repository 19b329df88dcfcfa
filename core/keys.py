"""Keys: who may call, and how far. Only the SHA-256 of a key is kept, so a copy of the database
opens nothing; a hash without salt does, because nobody guesses 256 random bits.
"""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from sqlalchemy import select, update

from core.database import Database
from core.exceptions import Conflict, InvalidSetting, NotFound
from core.names import check_identifier, check_name, new_id, now
from core.passwords import read_secret
from core.schema import KeyRow

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
class Key:
    """A key as its row says; the key itself is nowhere."""

    id: str
    name: str
    scope: Scope
    sha256: str
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class Keys:
    """The table of keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, scope: Scope) -> tuple[Key, str]:
        """A new key, and its text, which cannot be had again.

        Raises:
            Invalid: when the name is empty, too long or not printable.
        """
        text = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
        row = KeyRow(
            id=new_id("key"),
            name=check_name(name),
            scope=scope,
            sha256=digest(text).hex(),
            created_at=now(),
        )
        with self._database.begin() as session:
            session.add(row)
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
    return Key(
        id=row.id,
        name=row.name,
        scope=Scope(row.scope),
        sha256=row.sha256,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
