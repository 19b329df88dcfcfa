"""Signs a person in by the authorization code flow with PKCE.

What the browser carries from the start to the end is in a cookie of ten minutes, which no script
can read: `state` ties the answer to this browser, `nonce` the token to this sign-in, and only the
holder of `verifier` can change the code into a token. Sources: RFC 6749 §4.1, RFC 7636, RFC 9207;
OpenID Connect Core 1.0, §3.1.
"""

import base64
import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import httpx
from pydantic import TypeAdapter, ValidationError

from app.access.oidc.provider import TIMEOUT_SECONDS, Provider
from app.access.oidc.tokens import Tokens, refused
from app.errors import Unauthorized
from core.exceptions import Invalid, Unavailable

RANDOM_BYTES = 32
SCOPES = "openid profile email"


@dataclass(frozen=True)
class Attempt:
    """A sign-in that has begun.

    Args:
        next: the page of this service that follows.
    """

    state: str
    nonce: str
    verifier: str
    next: str

    @classmethod
    def begun(cls, next_page: str) -> "Attempt":
        state, nonce, verifier = (secrets.token_urlsafe(RANDOM_BYTES) for _ in range(3))
        return cls(state, nonce, verifier, next_page)

    def to_cookie(self) -> str:
        return base64.urlsafe_b64encode(_ATTEMPT.dump_json(self)).decode()

    @classmethod
    def of_cookie(cls, text: str | None) -> "Attempt":
        """Raises `Invalid` if the cookie is missing or something else."""
        try:
            return _ATTEMPT.validate_json(base64.urlsafe_b64decode(text or ""))
        except (ValidationError, ValueError):
            message = "this browser has begun no sign-in within ten minutes: begin again"
            raise Invalid([("/state", message)]) from None


_ATTEMPT = TypeAdapter(Attempt)


class CodeFlow:
    """The dashboard as a client of the provider.

    Args:
        client_id, client_secret: as registered there; without a secret a public client.
    """

    def __init__(
        self, provider: Provider, tokens: Tokens, client_id: str, client_secret: str | None
    ) -> None:
        self._provider, self._tokens = provider, tokens
        self._client_id, self._client_secret = client_id, client_secret

    def address(self, attempt: Attempt, redirect_uri: str) -> str:
        """Where the provider signs people in. Raises `Unavailable` if it is not known yet."""
        challenge = sha256(attempt.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPES,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = self._provider.published.endpoints.authorization
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    def finish(self, attempt: Attempt, answer: dict[str, str], redirect_uri: str) -> str:
        """The ID token for the provider's answer. Waits for the provider.

        Raises:
            Invalid: the answer is not one to this attempt, the provider refused it, or its token is
                not accepted here.
            Unavailable: the provider does not answer.
        """
        self._check(attempt, answer)
        token = self._exchange(answer["code"], attempt.verifier, redirect_uri)
        try:
            self._check_token(token.encode(), attempt.nonce)
        except Unauthorized as error:
            raise Invalid([("/code", str(error))]) from None
        return token

    def _check_token(self, token: bytes, nonce: str) -> None:
        found = self._tokens.claims(token).get("nonce")
        if not hmac.compare_digest(str(found).encode(), nonce.encode()):
            raise refused("it is not for this sign-in (nonce)")
        self._tokens.identify(token)

    def _check(self, attempt: Attempt, answer: dict[str, str]) -> None:
        if not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise Invalid([("/state", "is not that of this browser's sign-in: begin again")])
        if answer.get("iss", self._provider.issuer) != self._provider.issuer:
            raise Invalid([("/iss", f"another provider answers than {self._provider.issuer}")])
        if "error" in answer:
            reason = answer.get("error_description") or answer["error"]
            raise Invalid([("/error", f"the provider refused the sign-in: {reason[:200]}")])
        if "code" not in answer:
            raise Invalid([("/code", "is missing from the provider's answer: begin again")])

    def _exchange(self, code: str, verifier: str, redirect_uri: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self._client_id,
        }
        if self._client_secret is not None:
            form["client_secret"] = self._client_secret
        endpoint = self._provider.published.endpoints.token
        try:
            response = httpx.post(endpoint, data=form, timeout=TIMEOUT_SECONDS, trust_env=False)
            found: dict[str, Any] = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise Unavailable(f"the sign-on provider does not answer: {error}", 5) from None
        if not isinstance(found.get("id_token"), str):
            reason = str(found.get("error_description") or found.get("error") or "no ID token")
            raise Invalid([("/code", f"the provider gives no token for it: {reason[:200]}")])
        return str(found["id_token"])
