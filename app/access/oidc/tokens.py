"""Checks bearer tokens against the provider's keys, and maps their claims to a scope and an owner.

A token that was checked is remembered until it expires or the keys change: a signature takes a
tenth of a millisecond, a prediction a few. Source: RFC 9068, §4; OpenID Connect Core 1.0, §3.1.3.7.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from app.access.oidc.provider import Provider
from app.errors import Unauthorized
from core.access.callers import ANYBODY, EVERYBODY, Caller, View
from core.access.claims import Rule, find_claim, scope_of
from core.access.keys import Scope, digest
from core.exceptions import Invalid
from core.names import check_name

# Asymmetric ones only: with HS256 the provider's public key would be the secret.
ALGORITHMS = tuple(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
EDWARDS = ("EdDSA", "Ed25519")
LEEWAY_SECONDS = 60  # between the provider's clock and ours
MAX_BYTES = 16_384
MAX_KNOWN = 10_000


@dataclass(frozen=True)
class Identity:
    """Who has a token, and until when (seconds since 1970)."""

    scope: Scope
    caller: Caller
    expires_at: float


class Tokens:
    """The tokens that are accepted.

    Args:
        audiences: a token must be for one of them.
        owner_claim: the claim that names the owner.
    """

    def __init__(
        self,
        provider: Provider,
        audiences: Sequence[str],
        rules: Sequence[Rule],
        owner_claim: str,
        clock: Callable[[], float] = time,
    ) -> None:
        self._provider, self._audiences = provider, list(audiences)
        self._rules, self._owner_claim = rules, owner_claim
        self._clock = clock
        self._known: OrderedDict[bytes, Identity] = OrderedDict()
        self._keys: KeySet | None = None

    def identify(self, text: bytes) -> Identity:
        """Who has this token.

        Raises:
            Unauthorized: it is not valid here; the message says why.
            Unavailable: the provider's keys are not known yet.
        """
        keys = self._provider.published.keys
        if keys is not self._keys:
            self._keys = keys
            self._known.clear()
        name = digest(text)
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._identity(self.claims(text))
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        if self._clock() > known.expires_at + LEEWAY_SECONDS:
            raise refused("it has expired: get a new one")
        return known

    def claims(self, text: bytes) -> Mapping[str, Any]:
        """The claims of a token that the provider signed, for us, and that is valid now.

        Raises:
            Unauthorized, Unavailable: as `identify`.
        """
        if len(text) > MAX_BYTES:
            raise refused(f"it has {len(text)} bytes; at most {MAX_BYTES} are read")
        try:
            self._provider.expect_key(jws.extract_compact(text).headers().get("kid"))
            token = jwt.decode(text, self._provider.published.keys, [*ALGORITHMS, *EDWARDS])
            self._registry().validate(token.claims)
        except (JoseError, ValueError, TypeError) as error:
            raise refused(str(error) or type(error).__name__) from None
        return token.claims

    def _registry(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self._provider.issuer},
            aud={"essential": True, "values": self._audiences},
            exp={"essential": True},
        )

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        scope = scope_of(claims, self._rules)
        if scope is None:
            raise refused("no rule of CREDENCE_OIDC_SCOPES gives its holder a scope")
        owner = _owner(find_claim(claims, self._owner_claim))
        if owner is None:
            raise refused(f"its claim {self._owner_claim!r} names no owner")
        view = View(owner, sees_all=scope is Scope.ADMIN)
        return Identity(scope, Caller(view=view, actor=owner), float(claims["exp"]))


def _owner(name: object) -> str | None:
    """The owner of this name; None if it is no name that an owner can have."""
    if not isinstance(name, str) or name in (EVERYBODY, ANYBODY):
        return None
    try:
        return check_name(name, "owner")
    except Invalid:
        return None


def is_token(text: bytes) -> bool:
    """Whether this has the form of a signed token: three parts, the first a JSON object."""
    return text.startswith(b"ey") and text.count(b".") == 2


def refused(reason: str) -> Unauthorized:
    """The error for a token that is not accepted."""
    return Unauthorized(f"this token is not accepted: {reason}", "invalid_token")
