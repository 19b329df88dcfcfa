"""Specifications of jobs: what the service stores as JSON and the worker reads."""

from typing import Annotated, Any, ClassVar, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from core.exceptions import Invalid
from core.names import check_alias, check_model_name
from core.offline.destination import Destination
from models.config import Json, MethodConfig, StoredConfig
from models.evaluation.adaptive import Adapted
from models.evaluation.gate import GateConfig
from models.prediction.options import BatchOptions, Prune, Sampler, Samples, Seed

MAX_METADATA_BYTES = 16_384

JobKind = Literal["train", "evaluate", "acquire", "predict", "chunk", "compare"]
Reason = Literal["cron", "refresh", "manual"]
"""Why a run of a schedule was started."""
MAX_ACQUIRED = 1000  # rows of one batch: choosing them takes time in proportion to their number

MAX_CHUNKS = 1000  # of one job: their rows are counted whenever a chunk ends
_NOT_REQUESTED = {"config", "notes"}
_IF_GIVEN = ("keep", "destination")  # of an offline prediction
_PER_TARGET = ("likelihood", "features")  # settings that the recipe may choose for each target
CHUNK_WORK = 5_000_000  # rows × samples: some seconds, lost if the worker is lost
MOST_AT_ONCE = 40_000_000  # the same, of rows that are needed together: about 1 GB
CHUNK_ROWS = 50_000  # the limit with few samples, where each row has a cost of its own


def _named(check: Any) -> AfterValidator:
    """A check of `core.names` as a pydantic validator."""

    def validate(value: str) -> str:
        try:
            return str(check(value))
        except Invalid as error:
            raise ValueError(error.errors[0][1]) from error

    return AfterValidator(validate)


def _small_json(value: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(value))
    except TypeError as error:  # integers beyond 64 bits, half surrogate pairs
        raise ValueError(f"cannot be stored as JSON: {error}") from error
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"has {size} bytes as JSON: give at most {MAX_METADATA_BYTES}")
    return value


ModelName = Annotated[str, _named(check_model_name)]
Alias = Annotated[str, _named(check_alias)]
Metadata = Annotated[dict[str, Any], AfterValidator(_small_json)]
Identifier = Annotated[str, Field(min_length=1, max_length=64)]


class Spec(BaseModel, frozen=True):
    """The specification of a job. `public_request` shows it to callers."""

    kind: ClassVar[JobKind]

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    model: ModelName
    dataset: Identifier


class Scheduled(BaseModel, frozen=True):
    """What a run of a schedule adds to a training.

    Args:
        reason: why this run was started.
        configs: the configuration of each target as the request has it. The recipe fills in the
            rest for the rows of each run.
        refreshes: whether this run reads the source of its data set again.
        is_prepared: whether data set and configuration are those of this run already.
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    schedule: Identifier
    gate: GateConfig
    configs: tuple[StoredConfig, ...]
    reason: Reason = "manual"
    refreshes: bool = False
    is_prepared: bool = False


class TrainSpec(Spec, frozen=True):
    """Fit `config` on `dataset`, publish the result under `model`, and let `alias` point at it.

    Args:
        others: of several targets, the configuration of each but the first.
        scheduled: of a run of a schedule: then its gate decides whether the alias is moved.
    """

    kind: ClassVar[JobKind] = "train"

    config: StoredConfig
    others: tuple[StoredConfig, ...] = ()
    alias: Alias | None = None
    metadata: Metadata = Field(default_factory=dict)
    given: tuple[str, ...] | None = None  # dotted paths of the settings in the request
    notes: tuple[str, ...] = ()  # what was decided at submission
    scheduled: Scheduled | None = None


class CompareSpec(Spec, frozen=True):
    """Train several methods on the same rows, each as a part with a `MethodSpec`.

    Args:
        config: the first method's configuration; it has the settings that all methods share.
        pruning: fractions to prune, for methods that can be pruned.
        out_of_distribution: a data set with rows unlike those of training.
    """

    kind: ClassVar[JobKind] = "compare"

    config: StoredConfig
    methods: tuple[MethodConfig, ...]
    pruning: tuple[float, ...] = ()
    out_of_distribution: Identifier | None = None
    metadata: Metadata = Field(default_factory=dict)
    notes: tuple[str, ...] = ()


class MethodSpec(TrainSpec, frozen=True):
    """One method of a comparison: a training and measurements of its result.

    Args:
        name: unique within the comparison.
        out_of_distribution: a data set with rows unlike those of training.
    """

    name: Annotated[str, Field(min_length=1)]
    out_of_distribution: Identifier | None = None


class EvaluateSpec(Spec, frozen=True):
    """Compute the metrics of a stored version on labelled rows."""

    kind: ClassVar[JobKind] = "evaluate"

    version: Annotated[int, Field(ge=1)]
    prune: Prune = 0.0


class AcquireSpec(Spec, frozen=True):
    """Choose the `k` rows of a data set whose labels would teach a stored version most.

    Args:
        batch: whether rows are chosen for what their labels tell together.
    """

    kind: ClassVar[JobKind] = "acquire"

    version: Annotated[int, Field(ge=1)]
    k: Annotated[int, Field(ge=1, le=MAX_ACQUIRED)]
    batch: bool = True
    prune: Prune = 0.0


class PredictSpec(Spec, BatchOptions, frozen=True):
    """Predict all rows with a stored version. The options are resolved.

    Args:
        adapted: the levels of adaptive intervals, for all rows.
        keep: columns of the data set, beside the predictions.
        destination: None for the store, from which `GET /jobs/{id}/result` reads.
        rows: of the data set, or series of a forecaster; 0 in jobs of earlier releases.
    """

    kind: ClassVar[JobKind] = "predict"

    version: Annotated[int, Field(ge=1)]
    samples: Samples = Field()
    seed: Seed = Field()
    sampler: Sampler = Field()
    chunk_rows: Annotated[int, Field(ge=1)]
    adapted: tuple[Adapted, ...] = ()
    keep: tuple[str, ...] = ()
    destination: Destination | None = None
    rows: Annotated[int, Field(ge=0)] = 0


class ChunkSpec(PredictSpec, frozen=True):
    """Predict the rows start … stop for the job `job`; its `chunks` chunks count from 0."""

    kind: ClassVar[JobKind] = "chunk"

    job: Identifier
    chunk: Annotated[int, Field(ge=0)]
    start: Annotated[int, Field(ge=0)]
    stop: Annotated[int, Field(ge=1)]
    chunks: Annotated[int, Field(ge=0)] = 0  # of the job; 0 in those of earlier releases


def public_request(kind: str, spec: Json) -> Json:
    """The request of a stored job, with all defaults. The caller can send it again.

    The configuration's settings are at the top level, as in `POST /train`.
    """
    match kind:
        case "train":
            of_job = {name: spec[name] for name in ("model", "dataset", "alias", "metadata")}
            return _public_config(spec["config"]) | public_targets(spec) | of_job
        case "compare":
            config = _public_config(spec["config"])
            shared = {name: value for name, value in config.items() if name != "method"}
            own = {name: value for name, value in spec.items() if name not in _NOT_REQUESTED}
            return shared | own
        case "predict":
            hidden = {"adapted", "rows", *(name for name in _IF_GIVEN if not spec.get(name))}
            return {name: value for name, value in spec.items() if name not in hidden}
        case "chunk":
            return {}
    return spec


def _public_config(config: Json) -> Json:
    """The configuration with the target's bounds beside its name, as in a request."""
    settings = {name: value for name, value in config.items() if name != "support"}
    return settings | {"target": _public_target(config)}


def _public_target(config: Json) -> Any:
    support = config.get("support") or {}
    given = {name: value for name, value in support.items() if value is not None}
    return {"name": config["target"], **given} if config.get("support") else config["target"]


def public_targets(spec: Json) -> Json:
    """What a training of several targets shows of them; settings that differ are left open."""
    others = spec.get("others") or ()
    if not others:
        return {}
    configs = [spec["config"], *others]
    targets = [_public_target(config) for config in configs]
    differ = {k: None for k in _PER_TARGET if any(c[k] != configs[0][k] for c in others)}
    return {"target": targets} | differ


def plan_chunk_rows(
    rows: int, work: int, wanted: int | None = None, *, together: bool = False
) -> int:
    """The number of rows of a chunk.

    Args:
        work: of a row, as `TrainedModel.values_per_sample` counts it for each of its samples.
        wanted: the caller's number; chosen from rows and samples if None.
        together: whether the answer needs all rows at once, such as sums over series.

    Raises:
        Invalid: `wanted` would make more than `MAX_CHUNKS` chunks, or cut what is needed at once;
            or that is too much for the memory.
    """
    if together:
        return _at_once(rows, work, wanted)
    least = -(-rows // MAX_CHUNKS)
    if wanted is None:
        return max(least, min(CHUNK_WORK // work, CHUNK_ROWS), 1)
    if wanted < least:
        message = f"{rows} rows may have {MAX_CHUNKS} chunks: give at least {least}"
        raise Invalid([("/chunk_rows", message)])
    return wanted


def _at_once(rows: int, work: int, wanted: int | None) -> int:
    """All rows, if their paths fit into memory."""
    if wanted is not None and wanted < rows:
        message = f"sums over series need all {rows} series in one chunk: leave it out"
        raise Invalid([("/chunk_rows", message)])
    if rows * work > MOST_AT_ONCE:
        message = (
            f"sums over {rows} series need all paths at once: {rows * work} values, and at most "
            f"{MOST_AT_ONCE} fit: ask for fewer samples, fewer steps or fewer series"
        )
        raise Invalid([("/totals", message)])
    return rows


def split(spec: PredictSpec, job_id: str, rows: int) -> list[ChunkSpec]:
    """The chunks of a data set with `rows` rows, in order."""
    return [
        ChunkSpec(
            **spec.model_dump(),
            job=job_id,
            chunk=chunk,
            start=start,
            stop=min(start + spec.chunk_rows, rows),
            chunks=-(-rows // spec.chunk_rows),
        )
        for chunk, start in enumerate(range(0, rows, spec.chunk_rows))
    ]
