"""Rules from claims to scopes, and the settings that hold them."""

from typing import Any

import pytest

from core.access.claims import check_rules, read_rules, scope_of
from core.access.keys import Scope
from core.exceptions import InvalidSetting
from core.settings import load_settings

RULES = read_rules(
    "groups=data:train, groups=ops:admin, scope=read:predict, realm.roles=x:train, sub=*:predict"
)


@pytest.mark.parametrize(
    ("claims", "scope"),
    [
        ({"groups": ["data", "ops"]}, Scope.ADMIN),
        ({"groups": "data"}, Scope.TRAIN),
        ({"scope": "openid read"}, Scope.PREDICT),
        ({"scope": "openid reader"}, None),
        ({"realm": {"roles": ["x"]}}, Scope.TRAIN),
        ({"realm.roles": ["x"]}, Scope.TRAIN),
        ({"realm": ["roles"]}, None),
        ({"groups": {"data": True}}, None),
        ({"groups": [["data"], 7, None]}, None),
        ({"sub": "ada"}, Scope.PREDICT),  # a star is any value
        ({"sub": ""}, None),
        ({}, None),
    ],
)
def test_the_widest_scope_of_the_rules_that_apply_counts(
    claims: dict[str, Any], scope: Scope | None
) -> None:
    assert scope_of(claims, RULES) == scope


@pytest.mark.parametrize("text", ["groups=data", "groups=data:owner", "=a:train", "a=b c:train"])
def test_a_wrong_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="scope"):
        check_rules(text)


ISSUER = {"oidc_issuer": "https://login.example.com"}
WHOLE = ISSUER | {"oidc_audience": "credence", "oidc_scopes": "groups=data:train"}


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        (ISSUER, "CREDENCE_OIDC_AUDIENCE is missing"),
        (WHOLE | {"oidc_scopes": ""}, "CREDENCE_OIDC_SCOPES is missing"),
        ({"oidc_client_id": "a"}, "CREDENCE_OIDC_ISSUER is missing"),
        (WHOLE | {"oidc_issuer": "http://login.example.com"}, "CREDENCE_OIDC_ISSUER"),
        (WHOLE | {"oidc_issuer": "https://me:secret@login.example.com"}, "CREDENCE_OIDC_ISSUER"),
        (WHOLE | {"oidc_scopes": "groups=data"}, "CREDENCE_OIDC_SCOPES"),
    ],
)
def test_half_of_a_sign_on_stops_the_start(given: dict[str, str], setting: str) -> None:
    with pytest.raises(InvalidSetting, match=setting):
        load_settings(**given)


def test_a_provider_on_this_machine_needs_no_tls() -> None:
    settings = load_settings(**(WHOLE | {"oidc_issuer": "http://127.0.0.1:4000"}))
    assert settings.oidc_issuer == "http://127.0.0.1:4000"
