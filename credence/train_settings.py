"""The settings of a training, as the body of `POST /train` has them; `docs/api.md` explains each.

For type checkers and editors, and for the command line, which checks names before an upload. The
service has the ranges: `models.config`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

Task = Literal["regression", "classification", "forecasting", "language_model"]
Effort = Literal["quick", "standard", "thorough"]
MethodName = Literal[
    "bbb",
    "map",
    "mle",
    "ensemble",
    "mc_dropout",
    "swag",
    "laplace",
    "sgld",
    "csgld",
    "metropolis",
]
LikelihoodName = Literal[
    "auto",
    "heteroscedastic",
    "homoscedastic",
    "gaussian",
    "mixture",
    "count",
    "categorical",
    "bernoulli",
]


class TargetSettings(TypedDict, total=False):
    """A column to predict, and the possible values of a number."""

    name: Required[str]
    lower: float | None
    upper: float | None
    integer: bool | None


class FeatureSettings(TypedDict):
    """An input column and the type that it is read as."""

    name: str
    type: Literal["number", "category", "boolean", "datetime", "tensor", "text"]


class LikelihoodSettings(TypedDict, total=False):
    """A distribution of numbers, on a scale of the target."""

    kind: Required[Literal["gaussian", "mixture", "count"]]
    components: int | None
    scale: Literal["identity", "log", "power", "logit"] | None


class PriorSettings(TypedDict, total=False):
    """The prior of the weights of `bbb`."""

    kind: Literal["gaussian", "scale_mixture"]
    sigma: float | Literal["auto", "per_input", "per_weight"] | None
    pi: float
    sigma1: float
    sigma2: float


class KLSettings(TypedDict, total=False):
    """Direction and weight of the KL divergence of `bbb`."""

    direction: Literal["reverse", "forward"]
    weight: float | Literal["uniform", "blundell", "parameters"] | None
    warmup_epochs: int | None


class MethodSettings(TypedDict, total=False):
    """A method of inference; which of the other fields it has depends on its kind."""

    kind: MethodName
    estimator: Literal["local", "weight"] | None
    prior: PriorSettings
    kl: KLSettings
    initial_sigma: float | Literal["auto"]
    prior_sigma: float | Literal["auto"]
    members: int
    rate: float
    epochs: int
    learning_rate: float | None
    rank: int
    over: Literal["last_layer", "all"]
    hessian: Literal["kron", "diagonal", "full"]
    chains: int
    draws: int
    burn_in: int
    thinning: int
    step_size: float | None
    decay: float
    cycles: int
    cycle_steps: int


class PartSettings(TypedDict, total=False):
    """Members of equal shape of a mixture of networks."""

    members: int
    hidden: Sequence[int]
    inputs: Literal["plain", "piecewise", "none"]
    boosted: bool
    noise_path: bool
    kl_weight: float | None


class InputsSettings(TypedDict, total=False):
    """What the networks of a table read beside its columns."""

    boosted: bool | None


class NetworkSettings(TypedDict, total=False):
    """A network; which of the other fields it has depends on its kind."""

    kind: Literal["mlp", "cnn", "rnn", "lstm", "gru"]
    hidden: Sequence[int] | None
    activation: Literal["relu", "tanh", "silu", "gelu"]
    parts: Sequence[PartSettings] | None
    channels: Sequence[int]
    kernel: int
    pool: int


class SplitSettings(TypedDict, total=False):
    """Rows with equal values of `by` stay together, or the latest in `time` are held out."""

    by: str
    time: str


class TrainingSettings(TypedDict, total=False):
    """The optimiser's settings and the rows that are held out."""

    effort: Effort | None
    folds: int | None
    epochs: int | None
    batch_size: int | None
    optimizer: Literal["adam", "sgd"] | None
    learning_rate: float | None
    schedule: Literal["cosine", "constant"] | None
    momentum: float
    warmup_steps: int
    averaging_steps: int | None
    gradient_clip: float | None
    validation_fraction: float
    calibration_fraction: float | None
    stopping_fraction: float | None
    split: SplitSettings | Literal["random", "last"]
    groups: str | None
    class_weight: Literal["none", "balanced"]
    patience: int | None
    fine_tune_epochs: int | None
    refit: bool | None
    seed: int
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    background: int


class LanguageSettings(TypedDict, total=False):
    """How text is cut into tokens and windows."""

    level: Literal["word", "character"]
    max_vocabulary: int
    min_count: int
    steps: int | None


class ZonedTime(TypedDict, total=False):
    """A time column whose days follow the clock of a time zone, such as "Europe/Berlin"."""

    column: Required[str]
    zone: Required[str]
    utc: bool | None


class ForecastSettings(TypedDict, total=False):
    """The columns of time and key, the steps ahead and back, and what is known of series."""

    time: str | ZonedTime | None
    key: str | None
    horizon: int | None
    context: int | None
    season: int | Sequence[int] | None
    transform: Literal["none", "log", "sqrt", "logit", "counts"] | None
    classics: bool
    identity: Literal["one_hot", "embedding", "none"] | None
    static: Sequence[str] | None
    past: Sequence[str]
    holidays: str | None


class OutOfDistributionSettings(TypedDict, total=False):
    """How often a row like those of training may be flagged."""

    false_alarm_rate: float


class TrainSettings(TypedDict, total=False):
    """All but the model's name, the target and the data."""

    features: Sequence[str | FeatureSettings] | None
    task: Task | None
    likelihood: LikelihoodSettings | LikelihoodName | None
    weight: str | None
    inputs: InputsSettings
    network: NetworkSettings
    members: int | None
    training: TrainingSettings
    pruning: Sequence[float] | None
    language: LanguageSettings | None
    forecast: ForecastSettings | None
    metadata: Mapping[str, Any]
    method: MethodSettings
    alias: str | None
    out_of_distribution: OutOfDistributionSettings | None


class TrainBody(TrainSettings, total=False):
    """The whole body."""

    model: str
    dataset: str | None
    data: Mapping[str, Any] | None
    target: str | TargetSettings | Sequence[str | TargetSettings]


class CompareBody(TrainBody, total=False):
    """The whole body of `POST /compare`."""

    methods: Sequence[MethodName | MethodSettings]
    out_of_distribution: str | None  # type: ignore[misc] # a data set here
