"""The operator's named secrets: one TOML file, of which nothing is ever shown but the names.

[lake]
kind = "s3"
access_key = "…"
secret_key = "…"
endpoint = "http://minio:9000"
"""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, TypeAdapter
from pydantic import ValidationError as PydanticError

from core.exceptions import Invalid
from core.sources.rules import covers, read_uris
from core.sources.uris import Uri

SETTING = "CREDENCE_SOURCE_SECRETS_FILE"


def _uris(value: object) -> tuple[Uri, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError('give a list such as ["s3://bucket/folder/"]')
    return read_uris(value)


Uris = Annotated[tuple[Uri, ...], BeforeValidator(_uris)]


class _Secret(BaseModel, frozen=True):
    """What all secrets have: `owners` whose callers may use it; None is everybody."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    owners: tuple[str, ...] | None = None


class S3Secret(_Secret, frozen=True):
    """Keys of a bucket. The endpoint is the operator's own, and may have a private address."""

    kind: Literal["s3"]
    access_key: SecretStr
    secret_key: SecretStr
    session_token: SecretStr | None = None
    endpoint: str | None = None
    region: str = "us-east-1"
    uris: Uris | None = None  # where it may be used; None is everywhere


class HttpsSecret(_Secret, frozen=True):
    """A bearer token, an authority, or the leave to use a private address, for some URIs only."""

    kind: Literal["https"]
    uris: Uris
    token: SecretStr | None = None
    ca_file: Path | None = None
    private_address: bool = False


class ServerSecret(_Secret, frozen=True):
    """A database server, with user and password in its URL."""

    kind: Literal["postgresql", "mysql"]
    url: SecretStr


class FileSecret(_Secret, frozen=True):
    """A database in a file."""

    kind: Literal["sqlite", "duckdb"]
    path: Path


Secret: TypeAlias = S3Secret | HttpsSecret | ServerSecret | FileSecret
Secrets: TypeAlias = dict[str, Secret]

_SECRETS = TypeAdapter[Secrets](dict[str, Annotated[Secret, Field(discriminator="kind")]])


def read_secrets(path: Path | None) -> Secrets:
    """The secrets of a file; none without a file. It is read each time, so that keys can change.

    Raises:
        ValueError: it cannot be read; the message has the place of the error, and no value.
    """
    if path is None:
        return {}
    try:
        return _SECRETS.validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise ValueError("is not TOML: see the guide on sources") from None  # it would quote a line
    except PydanticError as error:
        first = error.errors(include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg']}") from None


def find(secrets: Secrets, name: str, owner: str, pointer: str) -> Secret:
    """The secret with this name.

    Raises:
        Invalid: there is none, or this owner may not use it; the message does not tell which.
    """
    secret = secrets.get(name)
    if secret is None or (secret.owners is not None and owner not in secret.owners):
        reason = f"there is no secret {name!r} for you in the operator's file ({SETTING})"
        raise Invalid([(pointer, reason)])
    return secret


def find_for(
    uri: Uri, name: str, secrets: Secrets, owner: str, pointer: str
) -> S3Secret | HttpsSecret:
    """The secret with this name, of the URI's scheme and made for this URI.

    Raises:
        Invalid: it is not, or as `find`.
    """
    secret = find(secrets, name, owner, pointer)
    if (
        isinstance(secret, S3Secret | HttpsSecret)
        and secret.kind == uri.scheme
        and (secret.uris is None or any(covers(one, uri) for one in secret.uris))
    ):
        return secret
    raise Invalid([(pointer, f"the secret {name!r} is not for {uri}")])
