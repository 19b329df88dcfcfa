"""Tokens of a real provider in front of a real service: what they open, and which are refused."""

import base64
import hmac
import json
import time
from typing import Any

from joserfc import jwt

from core.access.keys import Keys, Scope
from tests.app.running import Service, answered
from tests.oidc.conftest import bearer
from tests.oidc.running import RunningProvider, new_key


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
