"""The recommended settings for rows of a table or windows of series."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, get_args

from models.config import (
    BBBConfig,
    FeatureConfig,
    LikelihoodConfig,
    LikelihoodName,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
    OutOfDistributionConfig,
    PartConfig,
    SplitBy,
    SplitTime,
    SupportConfig,
    Task,
    TrainingConfig,
)
from models.config.model import ShapedKind
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Load, check_features, column_of
from models.features.row_groups import check_groups
from models.features.row_weights import MIN_ROWS
from models.features.target_shapes import check_support
from models.features.targets import present
from models.features.texts import WIDTH as TEXT_WIDTH
from models.inference.method_recipe import (
    FitPlan,
    choose_prior,
    choose_pruning,
    no_local_estimator,
    plan_fit,
)
from models.inference.registry import method_of
from models.networks import (
    Inputs,
    LocallyDrawn,
    Network,
    TensorSlot,
    build_network,
    num_inner_weights,
)
from models.tabular.race_recipe import is_race, resolve_race

# Chosen on held-out rows of the training sides of the standard regression sets (docs/quality.md).
# After a third of these steps σ still grows on small tables, and the intervals are too wide.
_STEPS = 15_000
_SGD_RATE = 1e-2
_ADAM_RATE, _ADAM_RATE_WIDTH = 1e-2, 0.5  # the smaller of the first and the second ÷ width
_STOPPING = 0.1  # of the rows choose the epoch: a point estimate needs this, the ELBO does not
_CALIBRATION = 0.1
_REFIT_ROWS = 20_000  # below that, a second fit also learns from the rows that chose the epoch
SHAPES: tuple[ShapedKind, ...] = get_args(ShapedKind)
_COMPONENTS = {"gaussian": 1, "mixture": 3, "count": 3}
_CLIP = 10.0  # far above the norms of a healthy run, in nats per row


def resolve_rows(
    config: ModelConfig,
    columns: Mapping[str, ColumnProfile],
    task: Task,
    num_rows: int,
    load: Load | None,
    *,
    once: bool = False,
) -> ModelConfig:
    """The configuration of a regression, classification or forecast with every None replaced.

    Raises:
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    target = columns[config.target]
    if num_rows < MIN_ROWS:
        raise InvalidData(f"{num_rows} rows are too few: give at least {MIN_ROWS}", "/dataset")
    _check_no_text(config)
    _check_target(target, task)
    _check_split(config, columns, task, num_rows)
    _check_support(config.support, target, load)
    if config.has_open_shape:  # as without a likelihood
        config = replace(config, likelihood=None)
    if is_race(config, task, columns, once=once):
        return _resolve_race(config, columns, task, num_rows)
    if config.forecast is not None and task != "forecasting":
        raise InvalidData(f"a {task} has no series: leave forecast out", "/forecast")
    steps = _STEPS
    match task:
        case "forecasting":
            from models.forecasting import series_recipe  # noqa: PLC0415 - tables do without

            series = series_recipe.plan_series(config, columns, load)
            config, inputs, num_rows = series.config, series.inputs, series.num_windows
            config = replace(config, network=series_recipe.series_network(config.network, num_rows))
            steps = series_recipe.series_steps(num_rows)
        case _:
            config = replace(config, features=_features(config, columns))
            inputs = _inputs(config.features or (), columns)
    config = replace(config, network=_network(config.network, num_rows))
    config = with_members(config, task)
    network = config.network
    built = build_network(network, inputs, num_outputs=max(2, len(target.levels or ())))
    method_of(config.method).check(config.method, built)
    reads_images = any(f.type == "tensor" for f in config.features or ())
    plan = plan_fit(
        config, task, built, num_inner_weights(built), num_rows, reads_images=reads_images
    )
    training = _fractions(config, task)
    training = _training(training, network, num_rows, steps, plan, task=task)
    return replace(
        config,
        task=task,
        likelihood=_likelihood(config, task, target),
        network=network,
        method=_method(config.method, built, training, plan),
        training=training,
        pruning=choose_pruning(config),
        out_of_distribution=config.out_of_distribution or OutOfDistributionConfig(),
    )


def _resolve_race(
    config: ModelConfig, columns: Mapping[str, ColumnProfile], task: Task, num_rows: int
) -> ModelConfig:
    raced = resolve_race(replace(config, features=_features(config, columns)), num_rows)
    is_open = task == "regression" and config.likelihood is None
    return replace(
        raced,
        task=task,
        likelihood="auto" if is_open else _likelihood(config, task, columns[config.target]),
        out_of_distribution=config.out_of_distribution or OutOfDistributionConfig(),
    )


def _check_no_text(config: ModelConfig) -> None:
    """Refuse the settings of language models."""
    if config.language is not None:
        message = "only the task language_model has this setting: leave it out"
        raise InvalidData(message, "/language")


def _check_target(target: ColumnProfile, task: Task) -> None:
    allowed = ("number", "category", "boolean") if task == "classification" else ("number",)
    if target.type not in allowed:
        raise InvalidData(
            f"column {target.name!r} is of type {target.type}; "
            f"the target of a {task} is of type {' or '.join(allowed)}",
            "/target",
        )
    if target.type == "number" and target.min is not None and target.min == target.max:
        raise InvalidData(f"the target {target.name!r} is {target.min:g} in every row", "/target")


def _check_split(
    config: ModelConfig, columns: Mapping[str, ColumnProfile], task: Task, num_rows: int
) -> None:
    match config.training.split:
        case SplitBy(by=name):
            column_of(columns, name, "/training/split/by")
        case SplitTime(time=name):
            profile = column_of(columns, name, "/training/split/time")
            if profile.type not in ("datetime", "number"):
                raise InvalidData(
                    f"column {name!r} is of type {profile.type}; a time is a datetime or number",
                    "/training/split/time",
                )
    check_groups(config.training.groups, config.target, columns, num_rows)
    if config.training.groups is not None and task != "regression":
        raise InvalidData(
            f"groups have conformal intervals of their own, which a {task} has not: leave it out",
            "/training/groups",
        )
    if config.weight is not None:
        weight = column_of(columns, config.weight, "/weight")
        if weight.type != "number" or weight.missing or (weight.min or 0) < 0:
            raise InvalidData(
                f"column {config.weight!r} cannot weigh rows: "
                "it needs numbers of 0 or more and no missing values",
                "/weight",
            )


def _features(
    config: ModelConfig, columns: Mapping[str, ColumnProfile]
) -> tuple[FeatureConfig, ...]:
    """The given features; else all columns of use but target, weights and groups of a split."""
    if config.features is not None:
        check_features(config, columns)
        return config.features
    split = config.training.split
    groups = split.by if isinstance(split, SplitBy) else None
    features = tuple(
        FeatureConfig(name=p.name, type=p.type)  # type: ignore[arg-type]
        for p in columns.values()
        if p.use and p.name not in {config.target, config.weight, groups}
    )
    if not features:
        raise InvalidData("no column except the target is left to learn from", "/features")
    return features


def _likelihood(
    config: ModelConfig, task: Task, target: ColumnProfile
) -> LikelihoodName | LikelihoodConfig:
    """Bernoulli for two known classes. The classes of a number are known only in training.

    Raises:
        InvalidData: if the likelihood does not fit the task or the target.
    """
    binary = target.type == "boolean" or (target.levels is not None and len(target.levels) == 2)
    allowed: tuple[LikelihoodName, ...]
    match task:
        case "regression":
            allowed = ("heteroscedastic", "homoscedastic", *SHAPES)
        case "forecasting":
            allowed = ("heteroscedastic", "homoscedastic")
        case _:
            allowed = ("bernoulli", "categorical") if binary else ("categorical",)
    given = config.likelihood
    name = given.kind if isinstance(given, LikelihoodConfig) else given
    if name not in (None, *allowed):
        raise InvalidData(
            f"likelihood {name!r} does not fit this {task}; it takes {' or '.join(allowed)}",
            "/likelihood",
        )
    if task != "regression":
        if config.support is not None and task != "forecasting":
            raise InvalidData(
                f"a {task} has no bounds: give the target by its name alone", "/target"
            )
        return name or allowed[0]
    return _number_likelihood(given, config.support, target)


def _network(config: NetworkConfig, num_rows: int) -> NetworkConfig:
    if not isinstance(config, MLPConfig) or config.hidden is not None or config.parts:
        return config
    hidden = (50,) if num_rows < 2_000 else (100, 100) if num_rows < 50_000 else (400, 400)
    return replace(config, hidden=hidden)


def _widths(network: NetworkConfig) -> tuple[int, ...]:
    """The widths of all hidden layers."""
    if isinstance(network, MLPConfig) and network.parts:
        return tuple(width for part in network.parts for width in part.hidden)
    return network.hidden or ()


def _inputs(features: tuple[FeatureConfig, ...], columns: Mapping[str, ColumnProfile]) -> Inputs:
    """An estimate of the inputs that the columns will be encoded as."""
    profiles = [columns[f.name] for f in features]
    widths = [
        TEXT_WIDTH if f.type == "text" else math.prod(p.shape or ()) * len(p.levels or ("",))
        for f, p in zip(features, profiles, strict=True)
    ]
    starts = accumulate(widths, initial=0)
    slots = [
        TensorSlot(start, p.shape) for start, p in zip(starts, profiles, strict=False) if p.shape
    ]
    return Inputs(sum(widths), slots[0] if len(slots) == 1 else None)


def _fractions(config: ModelConfig, task: Task) -> TrainingConfig:
    """The shares of rows to hold out.

    Raises:
        InvalidData: if patience or a refit is given and no rows choose the epoch.
    """
    given, calibration = config.training, config.training.calibration_fraction
    stopping = given.stopping_fraction
    if stopping is None:  # none for `bbb`, whose KL prevents overfitting
        stops = method_of(config.method).is_stopped_early or given.patience is not None
        stopping = _STOPPING if stops else 0.0
    if not stopping:
        if given.patience is not None:
            raise InvalidData(
                f"patience {given.patience} needs rows that choose the epoch, and "
                "stopping_fraction 0 leaves none: leave one of the two out",
                "/training/patience",
            )
        if given.refit and task != "forecasting":  # a forecast's refit learns from calibration
            raise InvalidData(
                "no rows choose the epoch: give patience or stopping_fraction", "/training/refit"
            )
    return replace(
        given,
        stopping_fraction=stopping,
        calibration_fraction=_CALIBRATION if calibration is None else calibration,
    )


def _training(
    config: TrainingConfig,
    network: NetworkConfig,
    num_rows: int,
    steps: int,
    plan: FitPlan,
    *,
    task: Task,
) -> TrainingConfig:
    stopping, calibration = config.stopping_fraction or 0.0, config.calibration_fraction or 0.0
    held_out = config.validation_fraction + calibration + stopping
    if held_out >= 1:
        raise InvalidData(
            "validation_fraction, calibration_fraction and stopping_fraction add up to "
            f"{held_out:g}, which leaves no rows to learn from: lower them",
            "/training/validation_fraction",
        )
    share = 1.0 if task == "forecasting" else 1 - held_out  # windows are of the learned steps
    rows = max(1, round(num_rows * share))
    batch = config.batch_size or (256 if num_rows < 20_000 else 128)
    epochs = config.epochs or min(10_000, max(plan.epochs, steps * min(batch, rows) // rows))
    adam = min(_ADAM_RATE, _ADAM_RATE_WIDTH / max(_widths(network) or (50,)))
    optimizer = config.optimizer or "adam"
    rate = config.learning_rate or (adam if optimizer == "adam" else _SGD_RATE)
    tune = config.fine_tune_epochs
    return replace(
        config,
        batch_size=batch,
        optimizer=optimizer,
        schedule=config.schedule or "cosine",
        epochs=epochs,
        learning_rate=rate,
        gradient_clip=config.gradient_clip or _CLIP,
        patience=(config.patience or max(1, epochs // 2)) if stopping else None,
        refit=stopping > 0 and num_rows < _REFIT_ROWS if config.refit is None else config.refit,
        fine_tune_epochs=min(10_000, math.ceil(plan.fine_tune * epochs)) if tune is None else tune,
    )


def _method(
    method: MethodConfig, network: Network, training: TrainingConfig, plan: FitPlan
) -> MethodConfig:
    """The method; `bbb` with its prior, KL and estimator.

    That is the local one, except for networks whose steps share their weights.

    Raises:
        InvalidData: if it is given for such a network.
    """
    if not isinstance(method, BBBConfig):
        return method
    can_be_local = isinstance(network, LocallyDrawn)
    if method.estimator == "local" and not can_be_local:
        raise no_local_estimator()
    weight, epochs = method.kl.weight, method.kl.warmup_epochs
    return replace(
        method,
        estimator=method.estimator or ("local" if can_be_local else "weight"),
        prior=choose_prior(method, plan.prior),
        kl=replace(
            method.kl,
            weight=plan.kl_weight if weight is None else weight,
            warmup_epochs=round(plan.warmup * (training.epochs or 0)) if epochs is None else epochs,
        ),
    )


def with_members(config: ModelConfig, task: Task) -> ModelConfig:
    """Return the configuration with `members` in the method or in the network.

    Chains and the fits of an ensemble are members by themselves. Other methods fit all members in
    one network with a member axis.

    Raises:
        InvalidData: if the network has other parts already, or no member axis.
    """
    method, network, members = config.method, config.network, config.members
    if members is None:
        return config
    if name := method_of(method).counts_members:
        if members == 1 and method.kind == "ensemble":
            raise InvalidData("an ensemble needs at least 2 members; 1 is 'map'", "/members")
        count: dict[str, Any] = {name: members}
        return replace(config, method=replace(method, **count))
    if members == 1 and not getattr(network, "parts", None):
        return config
    if task == "forecasting" or not isinstance(network, MLPConfig):
        found = "forecasters have" if task == "forecasting" else f"a {network.kind} has"
        raise InvalidData(
            f"{found} no members: use method 'ensemble', or leave members out", "/members"
        )
    if network.parts and (given := sum(part.members for part in network.parts)) != members:
        raise InvalidData(
            f"network.parts have {given} members together, and members is {members}: "
            "leave one of them out",
            "/members",
        )
    parts = network.parts or (PartConfig(members=members, hidden=network.hidden or ()),)
    return replace(config, network=replace(network, parts=parts))


def _number_likelihood(
    given: LikelihoodName | LikelihoodConfig | None,
    support: SupportConfig | None,
    target: ColumnProfile,
) -> LikelihoodName | LikelihoodConfig:
    """A Gaussian by default; a mixture if the target has a given support.

    Raises:
        InvalidData: if likelihood, support and target do not fit together.
    """
    if given is None:
        given = "heteroscedastic" if support is None else "mixture"
    if not isinstance(given, LikelihoodConfig):
        if given not in SHAPES:
            if support is not None:
                raise InvalidData(
                    f"likelihood {given!r} has no bounds: leave the target's bounds out, or take "
                    f"one of {', '.join(SHAPES)}",
                    "/likelihood",
                )
            assert given is not None
            return given
        given = LikelihoodConfig(kind=given)
    components = given.components or _COMPONENTS[given.kind]
    if given.kind == "mixture" and components < 2:
        raise InvalidData(
            "a mixture has 2 to 5 components; for 1 take 'gaussian'", "/likelihood/components"
        )
    lower = None if support is None else support.lower
    if given.scale == "log" and lower is None and (target.min or 0) < 0:
        message = f"the scale log needs a lower bound, as the smallest value is {target.min:g}"
        raise InvalidData(f"{message}: give target.lower", "/likelihood/scale")
    return replace(given, components=components)


def _check_support(support: SupportConfig | None, target: ColumnProfile, load: Load | None) -> None:
    """Refuse bounds that leave nothing, and targets outside.

    Args:
        load: reads the column, to count its rows outside; without it training refuses them.

    Raises:
        InvalidData: with the bounds, or the number of rows outside.
    """
    if support is None:
        return
    lower, upper = support.lower, support.upper
    if lower is not None and upper is not None and lower >= upper:
        message = f"the bounds {lower:g} and {upper:g} leave no values between them"
        raise InvalidData(message, "/target/upper")
    if load is not None and target.type == "number":
        values = load([target.name])[target.name]
        check_support(values[present(values)], support)
