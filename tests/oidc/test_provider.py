"""A provider's keys, and tokens that it signs."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt

from app.access.oidc.provider import REFRESH_SECONDS, UNKNOWN_KEY_SECONDS, Provider, read
from app.access.oidc.tokens import Tokens
from app.errors import Unauthorized
from core.access.claims import read_rules
from core.access.keys import Keys, Scope
from core.exceptions import Unavailable
from tests.app.running import Service, answered, serving
from tests.app.test_keys import bearer
from tests.http_server import Answer, http_server
from tests.oidc.running import AUDIENCE, RULES, RunningProvider, new_key, running_provider


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_new_key_is_read_once_it_is_used_and_the_old_one_forgotten() -> None:
    clock = Clock()
    with running_provider(new_key("first")) as first:
        provider = Provider(first.issuer, clock)
        tokens = Tokens(provider, [AUDIENCE], read_rules(RULES), "sub")
        provider._read()
        old = first.signed()
        assert tokens.identify(old.encode()).caller.owner == "ada"
    port = int(first.issuer.rpartition(":")[2])
    with running_provider(new_key("second"), port) as second:
        new = second.signed()
        with pytest.raises(Unauthorized):
            tokens.identify(new.encode())  # it was read just now
        clock.now += UNKNOWN_KEY_SECONDS + 1
        with pytest.raises(Unavailable, match="read again"):
            tokens.identify(new.encode())
        provider._tick()
        assert tokens.identify(new.encode()).caller.owner == "ada"
        with pytest.raises(Unauthorized):
            tokens.identify(old.encode())


def test_keys_that_were_read_last_stay_valid_while_the_provider_is_away() -> None:
    clock = Clock()
    with running_provider(new_key("first")) as running:
        provider = Provider(running.issuer, clock)
        provider._read()
        token = running.signed()
    clock.now += REFRESH_SECONDS + 1
    provider._tick()
    tokens = Tokens(provider, [AUDIENCE], read_rules(RULES), "sub")
    assert tokens.identify(token.encode()).caller.owner == "ada"


def test_a_service_starts_without_its_provider(tmp_path: Path, provider: RunningProvider) -> None:
    away = provider.settings | {"oidc_issuer": "http://127.0.0.1:9"}
    with serving(tmp_path, **away) as service:
        answer = service.http.get("/models", headers=bearer(provider.signed()))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert service.http.get("/health/live").status_code == 200
        assert service.http.get("/models").status_code == 401


Publish = Callable[[dict[str, object]], str]


@pytest.fixture
def publish() -> Iterator[Publish]:
    """A server that publishes a description: the URL of it."""
    documents: dict[str, object] = {"/jwks_uri": {"keys": []}}

    def answer(path: str, _: bytes) -> Answer:
        body = json.dumps(documents.get(path, {})).encode()
        return Answer(body, 302 if path == "/redirect" else 200, {"Location": "/jwks_uri"})

    with http_server(answer) as url:

        def put(changes: dict[str, object]) -> str:
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            documents["/.well-known/openid-configuration"] = (
                {"issuer": url} | {name: f"{url}/{name}" for name in names} | changes
            )
            return url

        yield put


def test_a_description_of_somebody_else_is_refused(publish: Publish) -> None:
    with pytest.raises(ValueError, match="other"):
        read(publish({"issuer": "https://other.example"}))


def test_keys_come_over_tls_or_from_this_machine(publish: Publish) -> None:
    for uri in ("http://10.0.0.1/keys", "file:///etc/passwd", "ftp://a/b"):
        with pytest.raises(ValueError, match="https://"):
            read(publish({"jwks_uri": uri}))


def test_redirects_are_not_followed(publish: Publish) -> None:
    url = publish({})
    with pytest.raises(ValueError, match="302"):
        read(publish({"jwks_uri": f"{url}/redirect"}))


def test_an_endless_document_is_not_read(publish: Publish) -> None:
    with pytest.raises(ValueError, match="1048576"):
        read(publish({"filler": "x" * 2**20}))


def answers(service: Service, token: str, path: str) -> int:
    return service.http.get(path, headers=bearer(token)).status_code


def detail(service: Service, token: str, path: str = "/models") -> str:
    """Of the refusal."""
    response = answered(service.http.get(path, headers=bearer(token)), 401)
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
    return str(response.json()["detail"])


def test_claims_give_a_scope(service: Service, provider: RunningProvider) -> None:
    paths = ("/models", "/datasets", "/audit")
    for client, expected in (
        ("viewers", [200, 403, 403]),
        ("data-science", [200, 200, 403]),
        ("operations", [200, 200, 200]),
    ):
        token = provider.token(client)
        assert [answers(service, token, path) for path in paths] == expected
    assert "CREDENCE_OIDC_SCOPES" in detail(service, provider.token("strangers"))  # no rule
    assert "aud" in detail(service, provider.token("operations", audience="payroll"))


def test_subjects_are_owners(service: Service, provider: RunningProvider) -> None:
    """What one made, another does not find; lines of the audit log name the subject."""
    ada, ben = (provider.signed(sub=name) for name in ("ada", "ben"))
    made = service.http.post(
        "/datasets?name=rows",
        content=b"x,y\n1,2\n3,4\n",
        headers=bearer(ada) | {"Content-Type": "text/csv"},
    )
    assert made.status_code == 201
    path = f"/datasets/{made.json()['id']}"
    assert [answers(service, token, path) for token in (ada, ben)] == [200, 404]
    lines = service.http.get("/audit", headers=bearer(provider.token("operations"))).json()["data"]
    assert "ada" in {line["actor"] for line in lines}


def test_wrong_claims_are_refused(service: Service, provider: RunningProvider) -> None:
    now = int(time.time())
    for claims, reason in (
        ({"exp": now - 120}, "exp"),
        ({"exp": None}, "exp"),
        ({"nbf": now + 600}, "not yet valid"),
        ({"iss": "https://other.example"}, "iss"),
        ({"aud": "payroll"}, "aud"),
        ({"sub": ""}, "owner"),
        ({"sub": "*"}, "owner"),
        ({"sub": "a\nb"}, "owner"),
        ({"sub": 7}, "sub"),
    ):
        assert reason in detail(service, provider.signed(**claims))


def test_clocks_may_differ_by_a_minute(service: Service, provider: RunningProvider) -> None:
    now = int(time.time())
    assert answers(service, provider.signed(exp=now - 5, nbf=now + 55), "/models") == 200


def _part(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def forged(provider: RunningProvider) -> dict[str, str]:
    """Tokens that the provider did not sign, with claims that it could sign."""
    header, _, signature = provider.signed().split(".")
    usual = {"iss": provider.issuer, "aud": "credence", "exp": int(time.time()) + 600}
    claims = usual | {"sub": "eve", "groups": ["operations"]}
    admin, other = _part(claims), new_key("first")
    public = provider.key.as_pem(private=False)
    symmetric = f"{_part({'alg': 'HS256', 'kid': 'first'})}.{admin}"
    mac = hmac.digest(public, symmetric.encode(), "sha256")
    own = {"alg": "RS256", "jwk": other.as_dict(private=False)}
    return {
        "changed claims": f"{header}.{admin}.{signature}",
        "no signature": f"{_part({'alg': 'none', 'kid': 'first'})}.{admin}.",
        "the public key as a secret": f"{symmetric}.{_base64(mac)}",
        "a key of the same name": jwt.encode({"alg": "RS256", "kid": "first"}, claims, other),
        "a key that it brings itself": jwt.encode(own, claims, other),
        "half a token": f"{header}.{admin}",
        "no JSON": f"ey.{admin}.{signature}",
        "too long": f"{header}.{'A' * 20_000}.{signature}",
    }


def test_forged_tokens_are_refused(service: Service, provider: RunningProvider) -> None:
    for name, token in forged(provider).items():
        status = service.http.get("/models", headers=bearer(token)).status_code
        assert status == 401, name


def test_keys_are_accepted_beside_tokens(service: Service) -> None:
    _, text = Keys(service.context.database).create("robot", Scope.TRAIN)
    service.app.state.key_ring._read(Keys(service.context.database))
    assert answers(service, text, "/datasets") == 200
    assert service.http.get("/models").status_code == 401
