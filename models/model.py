"""The interface of all trained models, which predict rows, forecasts or texts.

Training makes a `TrainedModel`, `models.artifact` stores it, and the service predicts with it.
`models.tabular`, `models.forecasting` and `models.language` implement it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig, Json, ModelConfig
from models.evaluation.baseline import Baseline
from models.evaluation.metrics import PerRowScores
from models.exceptions import InvalidInput, UnknownVariant
from models.features.columns import (
    ColumnReading,
    Columns,
    InputColumn,
    join_rows,
    names_unread,
    with_readings,
)
from models.likelihoods import ClassLikelihood, NumberLikelihood
from models.networks import Network
from models.prediction.options import (
    DEFAULT_SAMPLES,
    BatchOptions,
    PredictOptions,
    ResolvedOptions,
    Sampler,
)
from models.prediction.outputs import questions
from models.prediction.prediction import ClassName
from models.prediction.sampler_measurement.record import Candidate
from models.prediction.whole_draws import FittedDraws
from models.prediction.work import values_per_row
from models.variant import Variant

Encoded = Any
"""Encoded inputs of a kind of model; a tensor of rows if rows are independent."""

DEFAULT_TOP = 10  # next tokens that a language model returns

M = TypeVar("M", bound="TrainedModel")


@dataclass(frozen=True, kw_only=True)
class TrainedModel(ABC):
    """Everything needed to predict. Frozen: any number of threads may use one instance.

    Args:
        variants_by_prune: the full posterior under 0.0, a pruned one under its fraction.
        default_seed: the seed of predictions that give none.
        history: one record per epoch of training.
        card: training's part of the model card (`models.card`); empty until it has ended.
        baselines: simple methods on the same rows; empty if none was fitted.
        recommended_variant: the pruned fraction whose held-out rows have a clearly better score
            than those of the full model (`models.evaluation.weighting`); else 0.0.
        selection: what training compared to choose the recipe, as
            `models.artifact.schema.SelectionDocument`; empty if nothing was compared.
        readings: how the columns of the training data were read, those that were left out by
            default included; empty if they came from no file.
        background: encoded training rows, which explanations compare rows with; None without.
    """

    config: ModelConfig
    variants_by_prune: Mapping[float, Variant]
    default_seed: int
    history: tuple[Json, ...] = ()
    notes: tuple[str, ...] = ()
    card: Json = field(default_factory=dict)
    baselines: tuple[Baseline, ...] = ()
    recommended_variant: float = 0.0
    selection: Json = field(default_factory=dict)
    readings: tuple[ColumnReading, ...] = ()
    background: Float[Tensor, "background compact"] | None = None
    _fitted: dict[float, Any] = field(default_factory=dict, init=False, repr=False)

    # What the model is

    described: ClassVar[tuple[str, ...]] = ("likelihood", "network", "method", "training")

    @property
    @abstractmethod
    def task(self) -> str: ...

    @property
    @abstractmethod
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns that a prediction needs, as a data set stores them."""

    @property
    def future_inputs(self) -> tuple[InputColumn, ...]:
        """The columns that a prediction needs of the steps ahead."""
        return ()

    @property
    def columns_read(self) -> tuple[ColumnReading, ...]:
        """How files with the columns of the training data are read."""
        return self.readings or tuple(column.reading_or_plain for column in self.inputs)

    @cached_property
    def unread(self) -> frozenset[str]:
        """The columns of the training data that were left out by default."""
        return names_unread(
            self.readings, {self.config.target, *(column.name for column in self.inputs)}
        )

    @cached_property
    def label(self) -> InputColumn:
        """The target, as labels give it: a number, or a category of the classes."""
        classes = self.classes
        type_ = "number" if classes is None else "category"
        levels = [name for name in classes or () if isinstance(name, str)]
        plain = InputColumn(name=self.config.target, type=type_, missing=True)
        readings = [one for one in self.readings if one.name == self.config.target]
        if levels:  # words of a boolean, too, are its labels
            readings = [replace(one, type=type_) for one in readings]
        (label,) = with_readings([plain], readings, {self.config.target: levels})
        return label

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of what is predicted: one, but of a model of several targets."""
        return (self.config.target,)

    @property
    def labels(self) -> tuple[InputColumn, ...]:
        """`label` of each target."""
        return (self.label,)

    @property
    def features(self) -> tuple[FeatureConfig, ...]:
        return ()

    @property
    def classes(self) -> tuple[ClassName, ...] | None:
        return None

    @cached_property
    @abstractmethod
    def network(self) -> Network: ...

    @cached_property
    @abstractmethod
    def likelihood(self) -> NumberLikelihood | ClassLikelihood: ...

    @property
    def num_weights(self) -> int:
        return self.network.layout.num_weights

    @property
    def description(self) -> Json:
        """The description of a version in the registry and the API."""
        config = asdict(self.config)
        return {
            "task": self.task,
            "features": [asdict(feature) for feature in self.features],
            "target": self.config.target,
            "classes": None if self.classes is None else list(self.classes),
            **{key: config[key] for key in self.described},
            "num_weights": self.num_weights,
            "metrics": self.variant(0.0).metrics,
            "variants": [self.variant(prune).describe() for prune in self.variants],
            "baselines": [asdict(baseline) for baseline in self.baselines],
            "recommended_variant": self.recommended_variant,
            "selection": self.selection,
            "importance": self.card.get("importance", {}),
            "notes": list(self.notes),
        }

    @abstractmethod
    def to_json(self) -> Json:
        """The fields of an artifact that only this kind of model has."""

    @classmethod
    @abstractmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        """The arguments that only this class has, from a `models.artifact.schema.ModelDocument`."""

    @classmethod
    def from_json(cls: type[M], config: ModelConfig, data: Json, card: Json) -> M:
        """The model that an artifact describes, without posteriors yet."""
        return cls(
            config=config,
            variants_by_prune={},
            default_seed=data["default_seed"],
            history=tuple(data["history"]),
            notes=tuple(data["notes"]),
            card=card,
            baselines=tuple(data.get("baselines", ())),
            recommended_variant=data.get("recommended_variant", 0.0),
            selection=data.get("selection", {}),
            readings=tuple(data.get("readings", ())),
            **cls.own_fields(config, data),
        )

    def own_tensors(self) -> dict[str, Tensor]:
        """The tensors of an artifact that are no posterior's, by name."""
        return {}

    def with_own_tensors(self: M, tensors: Mapping[str, Tensor]) -> M:
        """A copy with the tensors that were stored.

        Raises:
            ValueError: if they do not fit.
        """
        return self

    # Its posteriors

    @property
    def variants(self) -> tuple[float, ...]:
        """Stored pruning fractions, 0.0 (the full posterior) first."""
        return tuple(sorted(self.variants_by_prune))

    @property
    def num_bytes(self) -> int:
        """Memory that the posteriors take."""
        states = [variant.state for variant in self.variants_by_prune.values()]
        return sum(tensor.nbytes for state in states for tensor in state.tensors())

    @property
    def device(self) -> torch.device:
        """The device of the posteriors."""
        return next(iter(self.variants_by_prune.values())).state.tensors()[0].device

    def variant(self, prune: float) -> Variant:
        """
        Raises:
            UnknownVariant: naming the fractions that exist.
        """
        if prune not in self.variants_by_prune:
            known = ", ".join(f"{fraction:g}" for fraction in self.variants)
            raise UnknownVariant(f"no variant with prune {prune:g}; stored are {known}", "/prune")
        return self.variants_by_prune[prune]

    def fitted(self, prune: float) -> Any:
        """A variant ready for prediction, prepared at its first use.

        Raises:
            UnknownVariant: naming the fractions that exist.
        """
        if prune not in self._fitted:  # if two threads prepare it, the first result is kept
            self._fitted.setdefault(prune, self._prepared(prune))
        return self._fitted[prune]

    def _prepared(self, prune: float) -> Any:
        """What `fitted` keeps; by default for predictions by whole weight draws."""
        return FittedDraws.of(self.network, self.variant(prune).state)

    def with_variants(self: M, variants: Mapping[float, Variant]) -> M:
        """The same model with other posteriors."""
        return replace(self, variants_by_prune=variants)

    def without_records(self: M) -> M:
        """The same model without what only its files and its card need."""
        return replace(self, history=(), card={}, selection={})

    # What it can do

    @property
    def has_independent_rows(self) -> bool:
        """Whether rows are predicted independently, so that requests may be joined and cut."""
        return True

    @property
    def series_column(self) -> str | None:
        """The column that tells several series apart; None without one."""
        return None

    @property
    def group_columns(self) -> tuple[str, ...] | None:
        """The columns that tell which rows of a data set are predicted together: `row_groups`.

        None if rows are independent, or if the model predicts no data sets.
        """
        return None

    def row_groups(self, columns: Columns) -> list[np.ndarray]:
        """The numbers of the rows that are predicted together, in the order that `read` needs.

        Args:
            columns: `group_columns` of a data set.

        Raises:
            InvalidInput: if a row belongs to no group.
        """
        raise NotImplementedError

    @property
    def no_labels(self) -> str:
        """Why the model takes no labels; empty if it does."""
        return ""

    @property
    def num_explained(self) -> int:
        """How many columns of an encoded row explanations read; 0 if it explains nothing."""
        return 0

    @property
    @abstractmethod
    def bytes_per_row(self) -> int:
        """About the memory that an encoded row and its prediction take."""

    @property
    @abstractmethod
    def samplers(self) -> tuple[Sampler, ...]:
        """The samplers of its posteriors, the best first."""

    @property
    @abstractmethod
    def unknown_options(self) -> Mapping[str, str]:
        """Options that this model does not have, each with its error message."""

    @property
    def horizon(self) -> int:
        """The default number of predicted steps ahead."""
        return 1

    def resolve(self, options: BatchOptions) -> ResolvedOptions:
        """The options with every default filled in.

        Methods that keep draws use each of them once: `samples` is at most their number.

        Raises:
            InvalidInput: for an option that this model does not have.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        if isinstance(options, ResolvedOptions):
            return options
        self._check(options)
        defaults = {"seed": self.default_seed, "top": DEFAULT_TOP, "horizon": self.horizon}
        missing = {k: v for k, v in defaults.items() if getattr(options, k, None) is None}
        whole = ResolvedOptions.of(options, **missing, **self._sampling(options))
        kept = self.variant(options.prune).state.num_draws
        return whole if kept is None else replace(whole, samples=min(whole.samples, kept))

    def _sampling(self, options: BatchOptions) -> Json:
        """The sampler and its number of samples: what is asked for, or else the cheapest."""
        is_open = options.sampler in {None, "auto"}
        found = self.cheapest(options) if is_open and options.samples is None else None
        if found is not None:
            return {"sampler": found.sampler, "samples": found.samples or DEFAULT_SAMPLES}
        sampler = self.samplers[0] if is_open else options.sampler
        return {"sampler": sampler, "samples": options.samples or DEFAULT_SAMPLES}

    def cheapest(self, options: BatchOptions) -> Candidate | None:
        """The way that costs least of those that are as exact as 100 independent samples.

        None if none was measured, or if the options need draws of the default sampler.
        """
        return None

    def _check(self, options: BatchOptions) -> None:
        if options.sampler not in {None, "auto", *self.samplers}:
            message = f"no sampler {options.sampler!r}; it has {', '.join(self.samplers)}"
            raise InvalidInput(f"this model has {message}", "/sampler")
        for name, message in self.unknown_options.items():
            value = getattr(options, name, None)
            if value is not None and value is not False and value != ():
                raise InvalidInput(message, f"/{name}")
        questions.check(options, self.classes)

    def _check_intervals(self, options: BatchOptions) -> None:
        """Refuse adaptive intervals, and conformal ones alone, if the version has none."""
        kinds, calibration = set(options.interval_kinds), self.variant(options.prune).calibration
        has_intervals = calibration is not None and calibration.has_intervals
        needed = "adaptive" if "adaptive" in kinds else "conformal"
        is_needed = needed in kinds and (needed == "adaptive" or len(kinds) == 1)
        if options.intervals and is_needed and not has_intervals:
            raise InvalidInput(
                f"this version has no {needed} intervals: only calibrated regressions and "
                "forecasts have them; request credible ones",
                "/interval_kinds",
            )

    # Inputs

    @abstractmethod
    def encode(self, columns: Columns) -> Encoded:
        """Columns as network inputs, on the device of the posteriors."""

    def read(self, columns: Columns, future: Columns | None, options: ResolvedOptions) -> Encoded:
        """Encode a request for `predict_rows`.

        Args:
            columns: the columns of `inputs`.
            future: the columns of `future_inputs`, with a value for each step ahead.

        Raises:
            InvalidInput: naming what is missing or wrong.
        """
        return self.encode(columns)

    @abstractmethod
    def blank(self, size: int) -> Encoded:
        """Inputs of about this size without data, for a first prediction."""

    @abstractmethod
    def example(self, columns: Columns) -> Encoded:
        """A small, typical input from training data, to time a prediction."""

    # How much work they are

    def num_rows(self, given: int, options: ResolvedOptions) -> int:
        """How many rows a prediction from `given` input rows has."""
        return given

    def num_steps(self, columns: Columns) -> int:
        """How often the network runs for each row."""
        return 1

    def num_predicted(self, columns: Columns, options: ResolvedOptions) -> int:
        """`num_rows` of decoded rows, which tell how many series they are."""
        return self.num_rows(len(next(iter(columns.values()))), options)

    def unit(self, options: ResolvedOptions) -> int | None:
        """How many rows of a prediction must be computed together; None if all of them."""
        return 1 if self.has_independent_rows else None

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """How many numbers each sample of a row takes in memory or in the answer.

        Quantiles, thresholds and densities count by their work (`models.prediction.work`).
        """
        return 1

    def values_per_row(self, options: ResolvedOptions) -> int:
        """How many numbers the answer has for a row (`models.prediction.work`)."""
        explained = len(self.inputs) if options.explain else 0
        return values_per_row(options, len(self.classes or ()), explained)

    def size(self, x: Encoded) -> int:
        """The amount of work of encoded inputs, by which prediction times are estimated."""
        return len(x)

    # Predictions

    @abstractmethod
    def predict_rows(self, x: Encoded, options: BatchOptions) -> Any:
        """The prediction for encoded inputs. Blocking, stateless, bounded in memory."""

    def with_reasons(self, prediction: Any, columns: Columns) -> Any:
        """A prediction that says why rows are unlike those of training, where the model knows it.

        Args:
            columns: what was given to `read`, with all rows.
        """
        return prediction

    @abstractmethod
    def evaluate(self, columns: Columns, *, prune: float = 0.0) -> Json:
        """Metrics of labelled data.

        Raises:
            InvalidData: if there is nothing to compare with.
        """

    def evaluate_blocks(self, blocks: Iterable[Columns], *, prune: float = 0.0) -> Json:
        """`evaluate` for the blocks of a table; by default all of them are joined in memory."""
        return self.evaluate(join_rows(list(blocks)), prune=prune)

    def row_scores(
        self, x: Encoded, truth: np.ndarray, options: PredictOptions, *, by_class: bool = False
    ) -> PerRowScores:
        """The scores of each row whose truth is known, in the order of the rows.

        Args:
            truth: a target per row in the caller's units; NaN or None where it is unknown.
            by_class: whether to add those of sets of classes.

        Raises:
            InvalidInput: for a model that does not take labels.
        """
        raise InvalidInput(f"a {self.task} takes no labels", "/model")
