"""The keys that a running service knows: looked up in memory, read anew in the background."""

import hmac
import threading
from collections.abc import Iterable

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope as Connection

from app.access import required
from app.errors import Forbidden, Unauthorized
from app.security import is_loopback
from core.exceptions import CredenceError
from core.keys import Keys, Scope, digest, read_key_file
from core.settings import Settings

REFRESH_SECONDS = 1.0  # how soon a new key counts, and a revoked one no longer does
TOUCH_EVERY = 60  # refreshes: `last_used_at` is for people, a minute is exact enough
INDEX_BYTES = 8  # of a hash: enough to find a key, the rest is compared in constant time

log = structlog.stdlib.get_logger(__name__)


class KeyRing:
    """Admits requests. No request waits for the database; while that is away, the keys that were
    known last go on working.

    Without any key, a service that only this machine can reach is open. Once there was one it stays
    locked: revoking the last key must not open the door.
    """

    def __init__(self, settings: Settings, host: str) -> None:
        """Raises `InvalidSetting` when `CREDENCE_ADMIN_KEY_FILE` holds no key."""
        path = settings.admin_key_file
        self._from_file = [] if path is None else [(digest(read_key_file(path)), Scope.ADMIN, "")]
        self._known = _indexed(self._from_file)
        self._off = settings.auth == "off"
        self._locked = bool(self._from_file) or not is_loopback(host)
        self._used: set[str] = set()
        self._stopped = threading.Event()

    def start(self, keys: Keys) -> None:
        """Read the keys, and go on doing so until `stop`. `Unavailable` without a database."""
        if self._off:
            return
        self._refresh(keys)
        threading.Thread(target=self._run, args=(keys,), name="keys", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()

    def admit(self, connection: Connection) -> None:
        """Let a request pass.

        Raises:
            Unauthorized: without a key that is known.
            Forbidden: with one whose scope is too narrow.
        """
        if self._off or not self._locked:
            return
        needed = required(connection["method"], connection["path"])
        if needed is None:
            return
        scope = self._scope_of(_bearer(connection["headers"]))
        if not scope.includes(needed):
            raise Forbidden(needed, scope)

    def _scope_of(self, text: bytes | None) -> Scope:
        if text is None:
            raise Unauthorized(
                "this needs a key: send it as `Authorization: Bearer KEY`; the command line sends "
                "what CREDENCE_KEY holds"
            )
        sha256 = digest(text)
        stored, scope, key_id = self._known.get(sha256[:INDEX_BYTES], (b"", Scope.PREDICT, ""))
        if not hmac.compare_digest(stored, sha256):
            raise Unauthorized("this key is not known here, or it was revoked", "invalid_token")
        self._used.add(key_id)
        return scope

    def _run(self, keys: Keys) -> None:
        beat, is_away = 0, False
        while not self._stopped.wait(REFRESH_SECONDS):
            beat += 1
            try:
                self._refresh(keys)
                if beat % TOUCH_EVERY == 0:
                    self._touch(keys)
                is_away = False
            except (SQLAlchemyError, CredenceError) as error:
                if not is_away:
                    log.warning("keys are not read: those known go on working", reason=str(error))
                is_away = True

    def _refresh(self, keys: Keys) -> None:
        rows = keys.list()
        valid = [row for row in rows if row.revoked_at is None]
        from_rows = [(bytes.fromhex(row.sha256), row.scope, row.id) for row in valid]
        self._known = _indexed([*self._from_file, *from_rows])
        self._locked = self._locked or bool(rows)

    def _touch(self, keys: Keys) -> None:
        used, self._used = self._used, set()
        used.discard("")
        if used:
            keys.touch(used)


Known = tuple[bytes, Scope, str]
"""The hash of a key, its scope, and its id in the table: none for the one from the file."""


def _indexed(known: Iterable[Known]) -> dict[bytes, Known]:
    return {entry[0][:INDEX_BYTES]: entry for entry in known}


def _bearer(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    for name, value in headers:
        if name == b"authorization":
            scheme, _, text = value.partition(b" ")
            return text.strip() if scheme.lower() == b"bearer" else None
    return None
