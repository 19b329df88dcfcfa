"""Models, versions and aliases as HTTP tells them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from app.schemas.common import DatasetId, Json, Owner, Reference, Request, Response, is_none
from core.registry.registry import Version

Label = str | bool | int | float


class FeatureResponse(Response):
    """An input column and how it is read."""

    name: str
    type: str


class DetectorResponse(Response):
    """What flags a variant's rows: a score above the threshold, so often for a usual row."""

    score: str
    threshold: float
    false_alarm_rate: float


class VariantResponse(Response):
    """A version with a fraction `prune` of its weights removed."""

    prune: float
    num_weights: int
    bytes: int
    calibration: Json | None = Field(
        None, description="variance_scale or temperature, and the rows that told it"
    )
    metrics: Json
    out_of_distribution: DetectorResponse | None = Field(None, exclude_if=is_none)


class OriginResponse(Response):
    """Where a version was exported: what its archive says, which nobody has verified."""

    model: str
    version: int
    dataset: str
    job: str
    created_at: str


class ImportedResponse(Response):
    """That a version was not trained here; `origin` is null if it was trained without a service."""

    origin: OriginResponse | None
    bytes: int


class VersionResponse(Response):
    """One immutable version; `metrics` are on held-out rows."""

    model: str
    version: int
    aliases: tuple[str, ...]
    task: str
    features: list[FeatureResponse]
    target: str
    classes: list[Label] | None = Field(None, exclude_if=is_none)
    likelihood: str | None = None
    network: Json
    method: Json
    training: Json
    language: Json | None = Field(None, exclude_if=is_none)
    vocabulary_size: int | None = Field(None, exclude_if=is_none)
    forecast: Json | None = Field(None, exclude_if=is_none)
    num_weights: int
    metrics: Json
    variants: list[VariantResponse]
    notes: list[str]
    imported: ImportedResponse | None = Field(None, exclude_if=is_none)
    dataset: str
    job: str
    created_at: datetime

    @classmethod
    def of(cls, version: Version) -> "VersionResponse":
        """What the artifact says of itself, and what the registry adds."""
        return cls.model_validate(version.description | _registered(version))


class VersionSummary(Response):
    """A version in the list of its model."""

    version: int
    aliases: tuple[str, ...]
    task: str
    num_weights: int
    metrics: Json
    dataset: str
    job: str
    created_at: datetime

    @classmethod
    def of(cls, version: Version) -> "VersionSummary":
        """The short form of `VersionResponse`."""
        return cls.model_validate(version.description | _registered(version))


class ModelSummary(Response):
    """A model in the list of models: what its newest version is."""

    name: str
    owner: Owner = Field(None, exclude_if=is_none, description="whose it is, if not everybody's")
    version: int = Field(description="the newest")
    task: str
    target: str
    num_weights: int
    created_at: datetime

    @classmethod
    def of(cls, newest: Version) -> "ModelSummary":
        """A model is known by its newest version."""
        return cls.model_validate(newest.description | _registered(newest) | {"name": newest.model})


class ModelResponse(Response):
    """A model: its versions, newest first, and what its aliases mean."""

    name: str
    owner: Owner = Field(None, exclude_if=is_none, description="whose it is, if not everybody's")
    aliases: dict[str, int]
    versions: list[VersionSummary]

    @classmethod
    def of(cls, name: str, versions: Sequence[Version]) -> "ModelResponse":
        """All that is known of a model."""
        return cls(
            name=name,
            owner=versions[0].owner,
            aliases={alias: v.version for v in versions for alias in v.aliases},
            versions=[VersionSummary.of(version) for version in versions],
        )


class AliasRequest(Request):
    """Which version an alias is to mean."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]


class EvaluateRequest(Request):
    """Labelled data on which a version is to be scored; the newest version by default."""

    version: Reference | None = None
    dataset: DatasetId
    prune: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0


def _registered(version: Version) -> Json:
    names = ("model", "owner", "version", "aliases", "dataset", "job", "created_at")
    return {name: getattr(version, name) for name in names}
