"""The provider's description and its keys, in memory and read again in the background.

No request waits for the provider. While it does not answer, the keys that were read last stay
valid. Source: OpenID Connect Discovery 1.0, §4.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from core.exceptions import Unavailable
from core.process.periodic import Periodic
from core.urls import check_issuer

REFRESH_SECONDS = 300.0  # how soon a key that the provider withdrew no longer counts
UNKNOWN_KEY_SECONDS = 10.0  # the least time between two reads that unknown keys cause
TIMEOUT_SECONDS = 5.0
MAX_BYTES = 2**20  # of a document; real ones have a few kilobytes

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Endpoints:
    """Where the provider signs people in, and where it gives tokens for codes."""

    authorization: str
    token: str


@dataclass(frozen=True)
class Published:
    """What the provider has published."""

    endpoints: Endpoints
    keys: KeySet = field(repr=False)
    key_ids: frozenset[str]


class Provider:
    """An OpenID Connect provider.

    Args:
        issuer: the URL by which it calls itself.
    """

    def __init__(self, issuer: str, clock: Callable[[], float] = monotonic) -> None:
        self.issuer = issuer
        self._clock = clock
        self._published: Published | None = None
        self._read_at = -float("inf")
        self._wanted = False
        self._is_failing = False
        self._periodic = Periodic("reading the provider's keys", 1.0, self._tick)

    def start(self) -> None:
        """Read the keys now, and again every `REFRESH_SECONDS`."""
        self._read()
        self._periodic.start()

    def stop(self) -> None:
        self._periodic.stop(wait=False)

    @property
    def published(self) -> Published:
        """What was read last.

        Raises:
            Unavailable: nothing could be read yet.
        """
        if self._published is None:
            raise Unavailable(f"the sign-on provider {self.issuer} does not answer", 5)
        return self._published

    def expect_key(self, key_id: str | None) -> None:
        """Have the keys read again if they lack this one, but not all the time.

        Raises:
            Unavailable: they will be read within a second.
        """
        known = self.published.key_ids
        if key_id is None or key_id in known:
            return
        if self._clock() - self._read_at > UNKNOWN_KEY_SECONDS:
            self._wanted = True
            raise Unavailable("the token's key is new: the provider's keys are read again", 1)

    def _tick(self) -> None:
        if self._wanted or self._clock() - self._read_at > REFRESH_SECONDS:
            self._read()

    def _read(self) -> None:
        """Read description and keys. Log the first of several failures."""
        self._wanted, self._read_at = False, self._clock()
        try:
            self._published = read(self.issuer)
            self._is_failing = False
        except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
            if not self._is_failing:
                reason = str(error) or type(error).__name__
                log.warning("the sign-on provider cannot be read", reason=reason)
            self._is_failing = True


def read(issuer: str) -> Published:
    """Description and keys of a provider.

    Raises:
        httpx.HTTPError: it cannot be reached, or refuses.
        ValueError, KeyError, TypeError, JoseError: it publishes something else.
    """
    with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False) as client:
        description = _document(client, f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if description["issuer"] != issuer:
            raise ValueError(f"it calls itself {description['issuer']!r}, not {issuer!r}")
        keys = _document(client, check_issuer(description["jwks_uri"]))
    signing = [key for key in keys["keys"] if key.get("use", "sig") == "sig"]
    return Published(
        Endpoints(
            check_issuer(description["authorization_endpoint"]),
            check_issuer(description["token_endpoint"]),
        ),
        KeySet.import_key_set({"keys": signing}),
        frozenset(key["kid"] for key in signing if "kid" in key),
    )


def _document(client: httpx.Client, url: str) -> Any:
    """The JSON document at a URL, of at most `MAX_BYTES`."""
    body = bytearray()
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as response:
        if not response.is_success:
            raise ValueError(f"{url} answers {response.status_code}")
        for piece in response.iter_raw():
            body += piece
            if len(body) > MAX_BYTES:
                raise ValueError(f"{url} answers with more than {MAX_BYTES} bytes")
    return httpx.Response(200, content=bytes(body)).json()
