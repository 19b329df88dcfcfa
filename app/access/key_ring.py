"""The keys that a running service accepts, in memory and refreshed from the database.

No request waits for the database. While it does not answer, the keys that were read last stay
valid.
"""

import hmac
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import Scope as Connection

from app.access.bind_address import is_loopback
from app.access.oidc.sign_on import SignOn
from app.access.oidc.tokens import is_token
from app.access.required_scopes import required
from app.access.session import check_origin, presented_key
from app.errors import Forbidden, Unauthorized
from core.access.callers import Caller, View
from core.access.hosts import AllowedHosts, split
from core.access.keys import Keys, Scope, digest, read_key_file
from core.exceptions import CredenceError, LimitReached, Unavailable
from core.process.periodic import Periodic
from core.settings import Settings

REFRESH_SECONDS = 1.0  # how soon a new key works, and a revoked one no longer does
TOUCH_EVERY = 60  # refreshes: `last_used_at` is for people, and a minute is exact enough
PROBES = ("/health", "/metrics", "/v2/health")  # by monitoring and platforms, which know no names
INDEX_BYTES = 8  # of a hash, to find a key; the whole hash is then compared in constant time

ADMIN = Caller(view=View("admin"), actor="admin")  # has the key in CREDENCE_ADMIN_KEY_FILE
OPEN = Caller()  # any caller of a service that needs no keys
ANONYMOUS = Caller(view=View(sees_all=False))  # any caller of a route that needs no key

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class KnownKey:
    """The hash of a key, its scope, its caller and its limit of requests per minute."""

    sha256: bytes
    scope: Scope
    caller: Caller
    per_minute: int | None = None


NO_KEY = KnownKey(b"", Scope.PREDICT, ANONYMOUS)
ANY_KEY = KnownKey(b"", Scope.ADMIN, OPEN)


class KeyRing:
    """Identifies the caller of a request and checks its scope.

    A service that only this machine can reach needs no keys until the first key is created. From
    then on it needs keys, even after the last key is revoked.
    """

    def __init__(self, settings: Settings, host: str) -> None:
        """Raises `InvalidSetting` when `CREDENCE_ADMIN_KEY_FILE` holds no key."""
        path = settings.admin_key_file
        text = None if path is None else read_key_file(path)
        self._from_file = [] if text is None else [KnownKey(digest(text), Scope.ADMIN, ADMIN)]
        self._known = _indexed(self._from_file)
        self._hosts = AllowedHosts(split(settings.allowed_hosts), host)
        self._rates = RateLimit()
        self._off = settings.auth == "off"
        self.sign_on = SignOn.of(settings)
        self._locked = bool(self._from_file or self.sign_on) or not is_loopback(host)
        self._used: set[str] = set()
        self._refreshes, self._is_failing = 0, False
        self._periodic: Periodic | None = None

    @property
    def needs_key(self) -> bool:
        return self._locked and not self._off

    def start(self, keys: Keys) -> None:
        """Read the keys, now and every `REFRESH_SECONDS`.

        Raises:
            Unavailable: the database does not answer now.
        """
        if self._off:
            return
        self._read(keys)
        if self.sign_on is not None:
            self.sign_on.provider.start()
        self._periodic = Periodic("reading keys", REFRESH_SECONDS, lambda: self._refresh(keys))
        self._periodic.start()

    def stop(self) -> None:
        if self.sign_on is not None:
            self.sign_on.provider.stop()
        if self._periodic is not None:
            self._periodic.stop(wait=False)

    def admit(self, connection: Connection) -> Caller:
        """Count a request and return its caller.

        Raises:
            NotParseable, WrongHost: the request calls the service by no name, or a wrong one.
            ForeignOrigin: the request changes something and comes from another site's page.
            Unauthorized, Forbidden: as `identify`.
            LimitReached: the key has reached its requests per minute.
        """
        self._check_host(connection)
        check_origin(connection, self._hosts)
        key = self._key_of(connection)
        if key.per_minute is not None:
            self._rates.take(str(key.caller.key), key.per_minute)
        return key.caller

    def identify(self, connection: Connection) -> Caller:
        """The caller of a request. An open stream calls this repeatedly.

        Raises:
            Unauthorized: the request has no key or an unknown one.
            Forbidden: the scope of its key is too narrow.
        """
        return self._key_of(connection).caller

    def _check_host(self, connection: Connection) -> None:
        given = [value for name, value in connection["headers"] if name == b"host"]
        is_probe = connection["path"].startswith(PROBES)
        self._hosts.check(given, (connection.get("server") or (None,))[0], is_probe=is_probe)

    def _key_of(self, connection: Connection) -> KnownKey:
        if not self.needs_key:
            return ANY_KEY
        needed = required(connection["method"], connection["path"])
        if needed is None:
            return NO_KEY
        key = self.find(presented_key(connection))
        if not key.scope.includes(needed):
            raise Forbidden(needed, key.scope)
        return key

    def permits(self, connection: Connection, scope: Scope) -> bool:
        """Whether the key of a request includes `scope`; an unknown key includes none."""
        if not self.needs_key:
            return True
        try:
            return self.find(presented_key(connection)).scope.includes(scope)
        except (Unauthorized, Unavailable):
            return False

    def find(self, text: bytes | None) -> KnownKey:
        """The known key with this text; with a sign-on provider also the holder of a token.

        Raises:
            Unauthorized: `text` is None, or not a valid key or token.
            Unavailable: the keys of the provider are not known yet.
        """
        if text is None:
            raise Unauthorized(
                "this needs a key: send it as `Authorization: Bearer KEY`; the command line sends "
                "the key in CREDENCE_KEY"
            )
        if self.sign_on is not None and is_token(text):
            found = self.sign_on.tokens.identify(text)
            return KnownKey(b"", found.scope, found.caller)
        sha256 = digest(text)
        known = self._known.get(sha256[:INDEX_BYTES], NO_KEY)
        if not hmac.compare_digest(known.sha256, sha256):
            raise Unauthorized("this key is not known here, or it was revoked", "invalid_token")
        if known.caller.key is not None:
            self._used.add(known.caller.key)
        return known

    def _refresh(self, keys: Keys) -> None:
        """Read the keys, and sometimes store which were used. Log the first of several failures."""
        self._refreshes += 1
        try:
            self._read(keys)
            if self._refreshes % TOUCH_EVERY == 0:
                self._touch(keys)
            self._is_failing = False
        except (SQLAlchemyError, CredenceError) as error:
            if not self._is_failing:
                log.warning("keys cannot be read: known ones stay valid", reason=str(error))
            self._is_failing = True

    def _read(self, keys: Keys) -> None:
        rows = keys.list()
        from_rows = [
            KnownKey(
                bytes.fromhex(row.sha256), row.scope, row.caller, row.limits.requests_per_minute
            )
            for row in rows
            if row.revoked_at is None
        ]
        self._known = _indexed([*self._from_file, *from_rows])
        self._locked = self._locked or bool(rows)

    def _touch(self, keys: Keys) -> None:
        used, self._used = self._used, set()
        if used:
            keys.touch(used)


class RateLimit:
    """Limits the requests per minute of each key in this process, with token buckets.

    A bucket holds the tokens of one second, at least one. A request takes a token; tokens are
    refilled at a constant rate. Processes do not share the buckets: otherwise every prediction
    would first read a shared store.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # by key: tokens, and when counted

    def take(self, key: str, per_minute: int) -> None:
        """Take a token.

        Raises:
            LimitReached: the bucket is empty; the error has the seconds until the next token.
        """
        rate = per_minute / 60.0
        most, now = max(1.0, rate), self._clock()
        tokens, then = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + rate * (now - then))
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            raise LimitReached(
                f"this key may make {per_minute} requests a minute", math.ceil((1 - tokens) / rate)
            )
        self._buckets[key] = (tokens - 1, now)


def _indexed(known: Iterable[KnownKey]) -> dict[bytes, KnownKey]:
    return {entry.sha256[:INDEX_BYTES]: entry for entry in known}
