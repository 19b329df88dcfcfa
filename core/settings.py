"""What an operator chooses, from `CREDENCE_…` variables; wrong values are refused at start."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.exceptions import InvalidSetting

PREFIX = "CREDENCE_"
CLIENT_VARIABLES = {"CREDENCE_URL", "CREDENCE_KEY"}  # read by the command line, not by a server

GIBIBYTE = 2**30
Bytes = Annotated[int, Field(ge=1024, le=2**50)]
Work = Annotated[int, Field(ge=1, le=10**15)]


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Settings(BaseSettings):
    """Every setting with its default and range; `load_settings` is the way to get one."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    data_dir: Path = Field(Path(".credence"), description="everything that is kept, if not below")
    database_url: str | None = Field(None, description="SQLite in the data directory by default")
    broker_url: str | None = Field(None, description="a folder in the data directory by default")
    artifact_url: str | None = Field(None, description="the data directory by default")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(default_factory=_available_cores)
    max_body_bytes: Bytes = GIBIBYTE // 4
    max_dataset_bytes: Bytes = Field(2 * GIBIBYTE, description="of one data set once decoded")
    max_samples: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    max_work: Work = Field(10_000_000, description="rows × samples of one request")
    max_queued_work: Work = Field(40_000_000, description="rows × samples of all that wait")
    model_cache_bytes: Bytes = 2 * GIBIBYTE
    worker_metrics_port: Annotated[int, Field(ge=0, le=65_535)] = 9101
    lease_seconds: Annotated[int, Field(ge=2, le=3600)] = 60
    max_attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        3, description="workers a job may lose before it fails"
    )
    auth: Literal["auto", "off"] = "auto"
    admin_key_file: Path | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error", "critical"] = "info"

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @field_validator("log_level", "log_format", "auth", "device", mode="before")
    @classmethod
    def _lower_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("device")
    @classmethod
    def _known_device(cls, value: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", value):
            raise ValueError("give auto, cpu, cuda or cuda:N, such as cuda:1")
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str | None) -> str | None:
        _check_scheme(
            value,
            ("sqlite", "postgresql", "postgres", "postgresql+psycopg"),
            "sqlite:////path/to/file.db or postgresql://user:password@host/name",
        )
        return value

    @field_validator("broker_url")
    @classmethod
    def _known_broker(cls, value: str | None) -> str | None:
        _check_scheme(
            value,
            ("filesystem", "redis", "rediss", "redis+socket"),
            "filesystem:// or redis://host:6379/0",
        )
        return value

    @field_validator("artifact_url")
    @classmethod
    def _known_store(cls, value: str | None) -> str | None:
        if value and urlsplit(value).scheme == "s3":
            raise ValueError("s3:// comes with the compose stack; until then give a file:/// URL")
        _check_scheme(value, ("file", ""), "a directory or file:///path/to/directory")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if self.max_queued_work < self.max_work:
            raise ValueError(
                f"CREDENCE_MAX_QUEUED_WORK={self.max_queued_work} is less than "
                f"CREDENCE_MAX_WORK={self.max_work}: the largest request could never wait"
            )
        return self

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL with the driver that this project installs."""
        if self.database_url is None:
            return f"sqlite:///{self.data_dir / 'credence.db'}"
        scheme, rest = self.database_url.split("://", 1)
        return self.database_url if scheme == "sqlite" else f"postgresql+psycopg://{rest}"

    @property
    def resolved_broker_url(self) -> str:
        """The broker's URL, `filesystem://` when none is given."""
        return self.broker_url or "filesystem://"

    @property
    def artifact_root(self) -> Path:
        """The directory of the artifact store."""
        if self.artifact_url is None:
            return self.data_dir / "artifacts"
        return Path(unquote(urlsplit(self.artifact_url).path)).expanduser().resolve()

    def prepare_data_dir(self) -> None:
        """Create the data directory, for its owner alone; `InvalidSetting` when that is refused."""
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSetting(
                f"CREDENCE_DATA_DIR={self.data_dir}: {error.strerror}: give a directory that "
                "this process may write"
            ) from error


def load_settings(**overrides: Any) -> Settings:
    """Read the environment; `overrides` (by field name) win over it.

    Raises:
        InvalidSetting: naming each variable, its value, and what would be right.
    """
    problems = _unknown_variables()
    try:
        settings = Settings(**overrides)
    except ValidationError as error:
        problems += [_describe(details) for details in error.errors()]
    if problems:
        raise InvalidSetting("\n".join(problems))
    return settings


def _unknown_variables() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    given = {name for name in os.environ if name.upper().startswith(PREFIX)}
    return [_unknown(name, known) for name in sorted(given - known - CLIENT_VARIABLES)]


def _unknown(name: str, known: set[str]) -> str:
    closest = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.0)
    return f"{name} is not a setting: did you mean {closest[0]}?"


def _describe(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ")
    if not details["loc"]:  # about several settings at once, named in the message
        return message
    field = str(details["loc"][0])
    if details["type"] == "extra_forbidden":
        return _unknown(PREFIX + field.upper(), {PREFIX + f.upper() for f in Settings.model_fields})
    return f"{PREFIX}{field.upper()}={_mask(str(details['input']))}: {message}"


def _mask(value: str) -> str:
    """Hide a password in a URL."""
    return re.sub(r"(://[^/@]*:)[^@]*@", r"\1***@", value)


def _check_scheme(value: str | None, schemes: tuple[str, ...], example: str) -> None:
    if value is None:
        return
    scheme = urlsplit(value).scheme
    if scheme not in schemes or (scheme and "://" not in value):
        raise ValueError(f"give {example}")
