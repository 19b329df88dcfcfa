"""The keys that a running service knows: looked up in memory, read anew in the background."""

import hmac
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope as Connection

from app.access.binding import is_loopback
from app.access.rate_limit import RateLimit
from app.access.required_scopes import required
from app.access.session import check_origin, presented_key
from app.errors import Forbidden, Unauthorized
from core.access.callers import Caller, View
from core.access.keys import Keys, Scope, digest, read_key_file
from core.exceptions import CredenceError
from core.settings import Settings

REFRESH_SECONDS = 1.0  # how soon a new key counts, and a revoked one no longer does
TOUCH_EVERY = 60  # refreshes: `last_used_at` is for people, a minute is exact enough
INDEX_BYTES = 8  # of a hash: enough to find a key, the rest is compared in constant time

ADMIN = Caller(view=View("admin"), actor="admin")  # who holds the key of the file
OPEN = Caller()  # who calls a service that asks for no key
STRANGER = Caller(view=View(sees_all=False))  # who calls what is open to everybody

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Known:
    """A key: its hash, what it opens, and for whom."""

    sha256: bytes
    scope: Scope
    caller: Caller
    per_minute: int | None = None


NO_KEY = Known(b"", Scope.PREDICT, STRANGER)
ANY_KEY = Known(b"", Scope.ADMIN, OPEN)


class KeyRing:
    """Admits requests. No request waits for the database; while that is away, the keys that were
    known last go on working.

    Without any key, a service that only this machine can reach is open. Once there was one it stays
    locked: revoking the last key must not open the door.
    """

    def __init__(self, settings: Settings, host: str) -> None:
        """Raises `InvalidSetting` when `CREDENCE_ADMIN_KEY_FILE` holds no key."""
        path = settings.admin_key_file
        text = None if path is None else read_key_file(path)
        self._from_file = [] if text is None else [Known(digest(text), Scope.ADMIN, ADMIN)]
        self._known = _indexed(self._from_file)
        self._rates = RateLimit()
        self._off = settings.auth == "off"
        self._locked = bool(self._from_file) or not is_loopback(host)
        self._used: set[str] = set()
        self._stopped = threading.Event()

    @property
    def asks(self) -> bool:
        """Whether requests need a key."""
        return self._locked and not self._off

    def start(self, keys: Keys) -> None:
        """Read the keys, and go on doing so until `stop`. `Unavailable` without a database."""
        if self._off:
            return
        self._refresh(keys)
        threading.Thread(target=self._run, args=(keys,), name="keys", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()

    def admit(self, connection: Connection) -> Caller:
        """Let a request pass; who makes it.

        Raises:
            ForeignOrigin: from a page of somebody else, if it changes something.
            Unauthorized, Forbidden: as `identify`.
            LimitReached: with a key that has made as many as it may.
        """
        check_origin(connection)
        key = self._key_of(connection)
        if key.per_minute is not None:
            self._rates.take(str(key.caller.key), key.per_minute)
        return key.caller

    def identify(self, connection: Connection) -> Caller:
        """Who makes a request, or still does: of a stream it is asked more than once.

        Raises:
            Unauthorized: without a key that is known.
            Forbidden: with one whose scope is too narrow.
        """
        return self._key_of(connection).caller

    def _key_of(self, connection: Connection) -> Known:
        if not self.asks:
            return ANY_KEY
        needed = required(connection["method"], connection["path"])
        if needed is None:
            return NO_KEY
        key = self.find(presented_key(connection))
        if not key.scope.includes(needed):
            raise Forbidden(needed, key.scope)
        return key

    def opens(self, connection: Connection, scope: Scope) -> bool:
        """Whether the key of a request is good for `scope` too; one not known is for none."""
        if not self.asks:
            return True
        try:
            return self.find(presented_key(connection)).scope.includes(scope)
        except Unauthorized:
            return False

    def find(self, text: bytes | None) -> Known:
        """What is known of a key; `Unauthorized` if it is none of ours, or there is none."""
        if text is None:
            raise Unauthorized(
                "this needs a key: send it as `Authorization: Bearer KEY`; the command line sends "
                "what CREDENCE_KEY holds"
            )
        sha256 = digest(text)
        known = self._known.get(sha256[:INDEX_BYTES], NO_KEY)
        if not hmac.compare_digest(known.sha256, sha256):
            raise Unauthorized("this key is not known here, or it was revoked", "invalid_token")
        if known.caller.key is not None:
            self._used.add(known.caller.key)
        return known

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
        from_rows = [
            Known(bytes.fromhex(row.sha256), row.scope, row.caller, row.limits.requests_per_minute)
            for row in valid
        ]
        self._known = _indexed([*self._from_file, *from_rows])
        self._locked = self._locked or bool(rows)

    def _touch(self, keys: Keys) -> None:
        used, self._used = self._used, set()
        if used:
            keys.touch(used)


def _indexed(known: Iterable[Known]) -> dict[bytes, Known]:
    return {entry.sha256[:INDEX_BYTES]: entry for entry in known}
