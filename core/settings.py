"""Settings from `CREDENCE_…` variables. A wrong one stops the process at its start."""

import difflib
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.access.claims import check_rules
from core.access.hosts import check_names
from core.access.proxies import check_proxies, check_root_path
from core.exceptions import InvalidSetting
from core.process.resources import available_bytes, available_cores
from core.sources.rules import read_folders, read_rules
from core.sources.secrets import read_secrets
from core.telemetry import otel_variables
from core.urls import (
    check_artifact_url,
    check_broker_url,
    check_database_url,
    check_docs_url,
    check_issuer,
    mask,
    to_bucket,
    to_directory,
    with_driver,
    with_password,
)
from core.webhooks import receivers

PREFIX = "CREDENCE_"
CLIENT_VARIABLES = {"CREDENCE_URL", "CREDENCE_KEY"}  # read by the command line, not by a server

GIBIBYTE = 2**30
Bytes = Annotated[int, Field(ge=1024, le=2**50)]
Work = Annotated[int, Field(ge=1, le=10**15)]


def _lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _most_memory() -> int:
    """90 % of the memory, so that the OOM killer does not choose a process."""
    return available_bytes() * 9 // 10


def _half_the_memory() -> int:
    return available_bytes() // 2


def _check_sources(text: str) -> str:
    read_rules(text)
    return text


def _check_webhooks(text: str) -> str:
    receivers.read_rules(text)
    return text


def _check_destinations(text: str) -> str:
    read_folders(text)
    return text


def _absolute(path: Path) -> Path:
    return path.expanduser().resolve()


class Settings(BaseSettings):
    """Every setting with its default and range; made by `load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    data_dir: Annotated[Path, AfterValidator(_absolute)] = Field(
        Path(".credence"),
        description="folder of database, queue and artifacts, unless their URLs are set",
    )
    database_url: Annotated[str, AfterValidator(check_database_url)] | None = Field(
        None, description="SQLite in the data directory, or PostgreSQL"
    )
    database_password_file: Path | None = Field(
        None, description="a file with the password that CREDENCE_DATABASE_URL leaves out"
    )
    broker_url: Annotated[str, AfterValidator(check_broker_url)] | None = Field(
        None, description="a folder in the data directory (filesystem://), or Redis"
    )
    broker_password_file: Path | None = Field(
        None, description="a file with the password that CREDENCE_BROKER_URL leaves out"
    )
    artifact_url: Annotated[str, AfterValidator(check_artifact_url)] | None = Field(
        None, description="a folder in the data directory, another (file:///…), or s3://bucket"
    )
    store_cache_bytes: Bytes = Field(
        10 * GIBIBYTE, description="size of the local cache of artifacts from a bucket"
    )
    device: Annotated[str, BeforeValidator(_lower_case)] = Field(
        "auto", pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$", description="auto, cpu, cuda or cuda:N"
    )
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(
        default_factory=available_cores, description="CPU threads of one process"
    )
    train_processes: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="processes that train one model together"
    )
    max_body_bytes: Bytes = Field(
        GIBIBYTE // 4, description="size of one upload, after decompression"
    )
    body_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        30, description="time to receive one body, plus a second per 8192 bytes of it"
    )
    max_dataset_bytes: Bytes = Field(2 * GIBIBYTE, description="size of one data set, decoded")
    training_memory_bytes: Bytes = Field(
        2 * GIBIBYTE, description="encoded columns of a training that are kept in memory"
    )
    sources: Annotated[str, AfterValidator(_check_sources)] = Field(
        "",
        description="what data sets may be read from: folders (s3://bucket/folder/, https://host/, "
        "file:///folder/), single files and names of databases, separated by commas; none by "
        "default",
    )
    source_secrets_file: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None, description="a TOML file with the credentials of buckets, hosts and databases"
    )
    source_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        240, description="time to read one source"
    )
    webhooks: Annotated[str, AfterValidator(_check_webhooks)] = Field(
        "",
        description="hosts that webhooks may reach (hooks.example.org, *.example.org, "
        "private+http://host:port), separated by commas; none by default",
    )
    destinations: Annotated[str, AfterValidator(_check_destinations)] = Field(
        "",
        description="where offline predictions may be written: folders (s3://bucket/folder/, "
        "file:///folder/), separated by commas; none by default",
    )
    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    max_work: Work = Field(10_000_000, description="rows × samples of one request")
    max_queued_work: Work = Field(
        40_000_000, description="rows × samples of the queued requests of a caller"
    )
    max_queued_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        2, description="estimated time of the queued predictions of a caller; of all, twice as long"
    )
    max_whole_seconds: Annotated[float, Field(gt=0, le=3600)] = Field(
        10,
        description="estimated time of a prediction that is computed in one piece: a forecast of a "
        "series, a text, draws of dependent rows",
    )
    max_answer_bytes: Bytes = Field(2**26, description="estimated size of one answer as text")
    max_stored_bytes: Bytes = Field(2**20, description="size of the rows of one stored prediction")
    stored_days: Annotated[float, Field(gt=0, le=3650)] = Field(
        30, description="how long a stored prediction is kept"
    )
    idempotency_hours: Annotated[float, Field(ge=1, le=8760)] = Field(
        48, description="how long the response to an Idempotency-Key is kept"
    )
    audit_days: Annotated[float, Field(ge=1, le=36_500)] = Field(
        365, description="how long lines of the audit log are kept"
    )
    feedback_rows: Annotated[int, Field(ge=100, le=100_000)] = Field(
        1000, description="newest labelled rows of a version that its rolling metrics cover"
    )
    model_cache_bytes: Bytes = Field(
        2 * GIBIBYTE,
        description="memory for loaded models, at most a quarter of CREDENCE_MEMORY_BYTES",
    )
    memory_bytes: Annotated[int, Field(ge=2**26, le=2**50)] = Field(
        default_factory=_half_the_memory,
        description="memory that uploads, imports, loaded models and results of one process may "
        "hold together",
    )
    allowed_hosts: Annotated[str, AfterValidator(check_names)] = Field(
        "",
        description="names by which clients may call the service, separated by commas; besides "
        "those of the address on which it listens",
    )
    trusted_proxies: Annotated[str, AfterValidator(check_proxies)] = Field(
        "127.0.0.1,::1",
        description="addresses and networks of proxies whose X-Forwarded-For, X-Forwarded-Proto "
        "and X-Forwarded-Prefix are believed, separated by commas",
    )
    root_path: Annotated[str, AfterValidator(check_root_path)] = Field(
        "",
        description="the path under which a proxy offers the service, such as /credence; none by "
        "default",
    )
    worker_metrics_host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1", description="address on which the worker's metrics are served"
    )
    worker_metrics_port: Annotated[int, Field(ge=0, le=65_535)] = 9101
    lease_seconds: Annotated[int, Field(ge=2, le=3600)] = Field(
        15, description="a job is given to another worker after this time without a renewal"
    )
    max_attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        3, description="a job fails after it has lost this many workers"
    )
    max_job_seconds: Annotated[float, Field(gt=0, le=10**9)] = Field(
        7 * 86_400, description="time limit of one attempt at a job"
    )
    max_job_bytes: Bytes = Field(
        default_factory=_most_memory, description="memory of a worker that runs a job"
    )
    checkpoint_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        300, description="longest time between two checkpoints of a training"
    )
    docs_url: Annotated[str, AfterValidator(check_docs_url)] | None = Field(
        None, description="where the pages of `make docs` are served, for links of the dashboard"
    )
    oidc_issuer: Annotated[str, AfterValidator(check_issuer)] | None = Field(
        None, description="URL of an OpenID Connect provider whose tokens are accepted beside keys"
    )
    oidc_audience: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None, description="what a token must be for: `aud`"
    )
    oidc_scopes: Annotated[str, AfterValidator(check_rules)] = Field(
        "",
        description="which claims give which scope: claim=value:scope, such as "
        "groups=data-science:train, separated by commas",
    )
    oidc_owner: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        "sub", description="the claim that names the owner of what a token's holder makes"
    )
    oidc_client_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None, description="the dashboard's client at the provider; without it people sign in by key"
    )
    oidc_client_secret_file: Annotated[Path, AfterValidator(_absolute)] | None = Field(
        None, description="a file with the secret of that client; none for a public client"
    )
    auth: Annotated[Literal["auto", "off"], BeforeValidator(_lower_case)] = "auto"
    admin_key_file: Path | None = None
    log_format: Annotated[Literal["text", "json"], BeforeValidator(_lower_case)] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower_case)
    ] = "info"

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if self.max_queued_work < self.max_work:
            raise ValueError(
                f"CREDENCE_MAX_QUEUED_WORK={self.max_queued_work} is less than "
                f"CREDENCE_MAX_WORK={self.max_work}: the largest request could never wait"
            )
        return self

    @model_validator(mode="after")
    def _passwords_found(self) -> "Settings":
        _ = self.sqlalchemy_url, self.resolved_broker_url  # raise `ValueError` without a password
        return self

    @model_validator(mode="after")
    def _sign_on_is_whole(self) -> "Settings":
        given = {
            name: value
            for name, value in self
            if name.startswith("oidc_") and value != type(self).model_fields[name].default
        }
        for name in ("oidc_issuer", "oidc_audience", "oidc_scopes") if given else ():
            if name not in given:
                raise ValueError(
                    f"CREDENCE_{name.upper()} is missing, which "
                    f"CREDENCE_{next(iter(given)).upper()} needs: give "
                    f"{type(self).model_fields[name].description}"
                )
        return self

    @model_validator(mode="after")
    def _sources_hold_no_secrets(self) -> "Settings":
        """No folder that may be read has the service's own data, or a secret."""
        for entry in read_rules(self.sources).uris:
            folder = Path("/", *entry.segments[: -1 if entry.is_folder else None]).resolve()
            for path in (self.data_dir, self.source_secrets_file, self.admin_key_file):
                if entry.scheme == "file" and path and path.resolve().is_relative_to(folder):
                    raise ValueError(
                        f"CREDENCE_SOURCES={entry}: has {path}, which no data set may be read "
                        "from: give a folder beside it"
                    )
        for entry in read_folders(self.destinations):
            folder = Path("/", *entry.segments[:-1]).resolve()
            for path in (self.data_dir, self.source_secrets_file, self.admin_key_file):
                if entry.scheme != "file" or path is None:
                    continue
                if path.resolve().is_relative_to(folder) or folder.is_relative_to(path.resolve()):
                    raise ValueError(
                        f"CREDENCE_DESTINATIONS={entry}: {path} is there, where no prediction may "
                        "be written: give a folder beside it"
                    )
        try:
            read_secrets(self.source_secrets_file)
        except ValueError as error:
            name = f"CREDENCE_SOURCE_SECRETS_FILE={self.source_secrets_file}"
            raise ValueError(f"{name}: {error}") from None
        return self

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL with driver and password; SQLite in the data directory by default."""
        url = self.database_url and with_driver(self.database_url)
        if self.database_password_file is not None:
            servers = ("postgresql+psycopg://",)
            return _completed("DATABASE", url, servers, self.database_password_file)
        return url or f"sqlite:///{self.data_dir / 'credence.db'}"

    @property
    def resolved_broker_url(self) -> str:
        """The broker's URL with the password; `filesystem://` by default."""
        if self.broker_password_file is not None:
            servers = ("redis://", "rediss://")
            return _completed("BROKER", self.broker_url, servers, self.broker_password_file)
        return self.broker_url or "filesystem://"

    @property
    def bucket(self) -> tuple[str, str] | None:
        """Bucket and prefix of the artifact store; None if the store is a directory."""
        is_bucket = self.artifact_url is not None and self.artifact_url.startswith("s3:")
        return to_bucket(self.artifact_url) if self.artifact_url and is_bucket else None

    @property
    def artifact_root(self) -> Path:
        """The directory of the artifact store.

        Raises:
            ValueError: when the store is a bucket.
        """
        if self.bucket is not None:
            raise ValueError(f"the artifact store is in a bucket: {self.artifact_url}")
        if self.artifact_url is None:
            return self.data_dir / "artifacts"
        return to_directory(self.artifact_url)

    def prepare_data_dir(self) -> None:
        """Create the data directory with mode 700.

        Raises:
            InvalidSetting: when it cannot be created or written.
        """
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            writable = os.access(self.data_dir, os.W_OK | os.X_OK)
        except OSError:
            writable = False
        if not writable:
            raise InvalidSetting(
                f"CREDENCE_DATA_DIR={self.data_dir}: cannot be created or written: give a "
                "directory that this process may write"
            )


def _completed(name: str, url: str | None, servers: tuple[str, ...], file: Path) -> str:
    """The URL with the password from the file. Raises `ValueError` that names the setting."""
    if url is None or not url.startswith(servers):
        raise ValueError(
            f"CREDENCE_{name}_PASSWORD_FILE={file}: CREDENCE_{name}_URL names no server that has "
            f"a password: give one that begins with {' or '.join(servers)}"
        )
    try:
        password = read_secret(file)
    except ValueError as error:
        raise ValueError(f"CREDENCE_{name}_PASSWORD_FILE={file}: {error}") from error
    try:
        return with_password(url, password)
    except ValueError as error:
        raise ValueError(f"CREDENCE_{name}_URL={mask(url)} {error}") from error


def read_secret(path: Path) -> str:
    """The content of a file that holds a secret, without white space around it.

    Raises:
        ValueError: the file cannot be read, or is empty.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ValueError(f"cannot be read ({reason}): give a file that holds the secret") from error
    if not secret:
        raise ValueError("is empty: give a file that holds the secret")
    return secret


def load_settings(**overrides: Any) -> Settings:
    """The settings from the environment.

    Args:
        overrides: values by field name, in place of the environment's.

    Raises:
        InvalidSetting: for each wrong variable a line with its name, value, and what is right.
    """
    problems = [_unknown(name) for name in sorted(_given() - _known() - CLIENT_VARIABLES)]
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        problems += [_describe(details) for details in error.errors()]
    problems += otel_variables.problems(os.environ)
    if problems:
        raise InvalidSetting("\n".join(problems))
    return settings


def traces_wanted() -> bool:
    """Whether OpenTelemetry's variables name a collector for traces."""
    return otel_variables.wants_traces(os.environ)


def _given() -> set[str]:
    return {name.upper() for name in os.environ if name.upper().startswith(PREFIX)}


def _known() -> set[str]:
    return {PREFIX + name.upper() for name in Settings.model_fields}


def _unknown(name: str) -> str:
    closest = difflib.get_close_matches(name, sorted(_known()), n=1, cutoff=0.0)
    return f"{name} is not a setting: did you mean {closest[0]}?"


def _describe(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ")
    if not details["loc"]:  # an error of several settings, whose message names them
        return message
    name = PREFIX + str(details["loc"][0]).upper()
    if details["type"] == "extra_forbidden":
        return _unknown(name)
    if details["type"] == "string_pattern_mismatch":
        message = f"give {Settings.model_fields[str(details['loc'][0])].description}"
    return f"{name}={mask(str(details['input']))}: {message}"
