"""Keys, and what the claims of a token allow."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from core.access.claims import check_rules, read_rules, scope_of
from core.access.keys import Keys, Scope, digest, read_key_file
from core.database.database import Database
from core.database.schema import KeyRow
from core.exceptions import Conflict, InvalidSetting, NotFound
from core.settings import load_settings


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_a_key_is_random_and_only_its_hash_is_stored(keys: Keys, database: Database) -> None:
    key, text = keys.create("laptop", Scope.PREDICT)
    assert text.startswith("cred_")
    assert len(text) == len("cred_") + 43  # 32 bytes in base64 without padding
    assert keys.create("laptop", Scope.PREDICT)[1] != text
    with database.read() as session:
        row = session.execute(sa.select(KeyRow.__table__).where(KeyRow.id == key.id)).one()
    assert row.sha256 == hashlib.sha256(text.encode()).hexdigest() == digest(text).hex()
    assert text not in str(row)
    assert (row.name, row.scope, row.revoked_at) == ("laptop", "predict", None)


def test_a_revoked_key_stays_in_the_list_alone(keys: Keys) -> None:
    first, second = (keys.create(name, Scope.TRAIN)[0] for name in ("first", "second"))
    assert keys.revoke(first.id).revoked_at is not None
    assert [key.id for key in keys.valid()] == [second.id]
    assert [key.id for key in keys.list()] == [first.id, second.id]
    with pytest.raises(Conflict):
        keys.revoke(first.id)
    with pytest.raises(NotFound):
        keys.revoke("key_none")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0123456789abcdefghi\n",  # 19 characters
        b"correct horse battery staple",
        "schlüssel-schlüssel-schlüssel".encode(),
        b"\xff" * 30,
        None,
    ],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidSetting) as refused:
        read_key_file(path)
    assert str(refused.value).startswith(f"CREDENCE_ADMIN_KEY_FILE={path}: ")
    assert "horse" not in str(refused.value)
    path.write_text("  0123456789abcdefghij\n")
    assert read_key_file(path) == "0123456789abcdefghij"


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
def test_the_widest_scope_counts(claims: dict[str, Any], scope: Scope | None) -> None:
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
