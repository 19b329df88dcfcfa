"""A model of several targets: a network for each, and the dependence between them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig, Json, ModelConfig
from models.evaluation.calibration import Calibration, LabelledMixture
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnReading, Columns, InputColumn
from models.features.rows import Rows
from models.features.targets import present
from models.joint.answer import JointPrediction, joint_name
from models.joint.dependence import Dependence, Transforms, draw_levels, draw_ranks
from models.likelihoods import NumberLikelihood
from models.likelihoods.number_mixture import NumberMixture
from models.model import TrainedModel
from models.networks import Network
from models.prediction.declared_outputs import P
from models.prediction.options import BatchOptions, ResolvedOptions, Sampler
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.tabular.row_problem import SCORE_SAMPLES
from models.variant import Variant

COVERAGE_LEVELS = (0.5, 0.9)
_ONE_UNIT = "is in units of one target, and this model has several: train the target alone"
_OPTIONS_IN_UNITS = ("exceeds", "costs", "abstain_above", "target_mc_error")


@dataclass(frozen=True, kw_only=True)
class JointModel(TrainedModel):
    """Models of numbers that read the same rows, one per target.

    The fields that every model has are those of the first member.

    Args:
        members: the model of each target, as if it had been trained alone.
        dependence: of the targets, by variant.
    """

    members: tuple[TabularModel, ...]
    dependence: Mapping[float, Dependence]

    @classmethod
    def of(
        cls, members: Sequence[TabularModel], dependence: Mapping[float, Dependence]
    ) -> "JointModel":
        """The model of these members."""
        shared = {f.name: getattr(members[0], f.name) for f in fields(TrainedModel) if f.init}
        return cls(**shared, members=tuple(members), dependence=dependence)

    def with_members(self, members: Iterable[TabularModel]) -> "JointModel":
        """A copy with other members, such as these with their baselines."""
        return JointModel.of(tuple(members), self.dependence)

    def without_records(self) -> "JointModel":
        return self.with_members(member.without_records() for member in self.members)

    # What the model is

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(member.config.target for member in self.members)

    @property
    def task(self) -> str:
        return self.members[0].task

    @cached_property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns that any target needs."""
        return _by_name(column for member in self.members for column in member.inputs)

    @property
    def labels(self) -> tuple[InputColumn, ...]:
        return tuple(member.label for member in self.members)

    @property
    def features(self) -> tuple[FeatureConfig, ...]:
        return _by_name(feature for member in self.members for feature in member.features)

    @property
    def columns_read(self) -> tuple[ColumnReading, ...]:
        return _by_name(one for member in self.members for one in member.columns_read)

    @cached_property
    def unread(self) -> frozenset[str]:
        """The columns that no member reads."""
        needed = {*self.targets, *(column.name for column in self.inputs)}
        return frozenset().union(*(member.unread for member in self.members)) - needed

    @cached_property
    def network(self) -> Network:
        return self.members[0].network

    @cached_property
    def likelihood(self) -> NumberLikelihood:
        likelihood = self.members[0].likelihood
        assert isinstance(likelihood, NumberLikelihood), "several targets are numbers"
        return likelihood

    @property
    def num_weights(self) -> int:
        return sum(member.num_weights for member in self.members)

    @property
    def num_bytes(self) -> int:
        return sum(member.num_bytes for member in self.members)

    @property
    def description(self) -> Json:
        """That of the first target, with the features and weights of all, and each target's own."""
        own = ("target", "likelihood", "network", "metrics", "variants", "baselines", "notes")
        each = [member.description for member in self.members]
        dependence = self.dependence[0.0]
        notes = [
            note if number == 0 else f"{one['target']}: {note}"
            for number, one in enumerate(each)
            for note in one["notes"]
            if number == 0 or note not in each[0]["notes"]
        ]
        return each[0] | {
            "features": [asdict(feature) for feature in self.features],
            "num_weights": self.num_weights,
            "notes": notes,
            "joint": {
                "targets": [{name: one[name] for name in own} for one in each],
                "correlation": [list(row) for row in dependence.correlation],
                "rows": dependence.rows,
            },
        }

    def to_json(self) -> Json:
        raise TypeError("a model of several targets is stored member by member")

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        raise TypeError("a model of several targets is read member by member")

    # What it can do

    @property
    def no_labels(self) -> str:
        return "labels are of one target, and this model has several: train the target alone"

    @property
    def bytes_per_row(self) -> int:
        return sum(member.bytes_per_row for member in self.members)

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """Those that all members have."""
        first, *others = self.members
        return tuple(s for s in first.samplers if all(s in one.samplers for one in others))

    @property
    def unknown_options(self) -> Mapping[str, str]:
        return {**self.members[0].unknown_options, **dict.fromkeys(_OPTIONS_IN_UNITS, _ONE_UNIT)}

    def _check(self, options: BatchOptions) -> None:
        super()._check(options)
        if "adaptive" in options.interval_kinds:
            message = f"adaptive intervals follow labels, but {self.no_labels}"
            raise InvalidInput(message, "/interval_kinds")
        for member in self.members:
            member.resolve(options)

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """Joint intervals and draws are quantiles of each target (`_with_quantiles`)."""
        more = 2 * len(options.intervals) + (options.samples if options.return_draws else 0)
        asked = replace(options, quantiles=(*options.quantiles, *(0.5,) * more))
        return sum(member.values_per_sample(asked) for member in self.members)

    def values_per_row(self, options: ResolvedOptions) -> int:
        """Those of the first target stand twice; joint bounds and draws come with each."""
        each = [member.values_per_row(options) for member in self.members]
        joint = 2 * len(options.intervals) + (options.samples if options.return_draws else 0)
        return each[0] + sum(each) + joint * len(each)

    # Inputs

    def encode(self, columns: Columns) -> Float[Tensor, "rows inputs"]:
        """The encoded rows of all members, side by side."""
        return torch.cat([member.encode(columns) for member in self.members], dim=1)

    def blank(self, size: int) -> Float[Tensor, "rows inputs"]:
        return torch.cat([member.blank(size) for member in self.members], dim=1)

    def example(self, columns: Columns) -> Float[Tensor, "rows inputs"]:
        return torch.cat([member.example(columns) for member in self.members], dim=1)

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        return tuple(member.blank(1).shape[1] for member in self.members)

    # Predictions

    def predict_rows(
        self, x: Float[Tensor, "rows inputs"], options: BatchOptions
    ) -> JointPrediction:
        """The prediction of each target, joint intervals, and joint draws if draws are asked."""
        options = self.resolve(options)
        dependence = self.dependence[options.prune]
        tails = [0.5 * (1 - dependence.score(level)) for level in options.intervals]
        levels = [*tails, *(1 - tail for tail in tails)]
        drawn = np.empty((len(self.members), 0))
        if options.return_draws:
            drawn = draw_levels(len(self.members), options.samples, options.seed)
        each, found = [], []
        parts = zip(self.members, x.split(self._widths, dim=1), drawn, strict=True)
        for member, part, own in parts:
            answer, values = _with_quantiles(member, part, options, (*levels, *own.tolist()))
            each.append(answer)
            found.append(values)
        values = np.stack(found, axis=1)  # rows × targets × levels
        first, kept = each[0], len(options.intervals)
        ends = {"lower": slice(0, kept), "upper": slice(kept, len(levels))}
        joint = {
            joint_name(target, end): values[:, k, places]
            for k, target in enumerate(self.targets)
            for end, places in ends.items()
        }
        if options.return_draws:
            ranks = draw_ranks(
                np.array(dependence.correlation), len(x), options.samples, options.seed
            )
            order = ranks.permute(2, 0, 1).numpy()
            draws = np.take_along_axis(values[..., len(levels) :], order, axis=-1)
            joint |= {joint_name(t, "draws"): draws[:, k] for k, t in enumerate(self.targets)}
        shared = {f.name: getattr(first, f.name) for f in fields(RowPrediction)}
        targets = dict(zip(self.targets, each, strict=True))
        return JointPrediction(**shared, targets=targets).with_values(**joint)

    def with_reasons(self, prediction: JointPrediction, columns: Columns) -> JointPrediction:
        each = {
            name: member.with_reasons(prediction.targets[name], columns)
            for name, member in zip(self.targets, self.members, strict=True)
        }
        reasons = each[self.targets[0]].get("reasons")
        found = prediction if reasons is None else prediction.with_values(reasons=reasons)
        return replace(found, targets=each)

    def predict(self, columns: Columns, options: BatchOptions) -> JointPrediction:
        """As `TabularModel.predict`, of every target."""
        return self.with_reasons(self.predict_rows(self.encode(columns), options), columns)

    def evaluate(self, columns: Columns, *, prune: float = 0.0) -> Json:
        """The metrics of the first target, those of each in `targets`, and `joint_coverage`.

        Raises:
            InvalidData: if no row has all targets.
        """
        known = complete(columns, self.targets)
        weight = self.config.weight if self.config.weight in known else None
        metrics = [member.evaluate(known, prune=prune) for member in self.members]
        rows = [_rows(member, known, weight) for member in self.members]
        each = dict(zip(self.targets, metrics, strict=True))
        return metrics[0] | {"targets": each, "joint_coverage": self.coverage(prune, rows)}

    def coverage(self, prune: float, rows: Sequence[Rows]) -> Json:
        """By level, the share of rows whose targets all lie in their joint intervals.

        Args:
            rows: the same rows, encoded for each member.
        """
        found = [
            transforms_of(labelled(member, prune, some), member.calibration_of(prune))
            for member, some in zip(self.members, rows, strict=True)
        ]
        dependence = self.dependence[prune]
        return {f"{level:g}": dependence.coverage(found, level) for level in COVERAGE_LEVELS}

    def scored(self, prune: float, rows: Sequence[Rows]) -> "JointModel":
        """A copy with the joint coverage of these rows among the first target's metrics."""
        first, *others = self.members
        variant = first.variant(prune)
        metrics = variant.metrics | {"joint_coverage": self.coverage(prune, rows)}
        variants: dict[float, Variant] = dict(first.variants_by_prune)
        variants[prune] = replace(variant, metrics=metrics)
        return self.with_members([first.with_variants(variants), *others])


def complete(columns: Columns, targets: Iterable[str]) -> Columns:
    """The rows that have every target.

    Raises:
        InvalidData: if there are none.
    """
    known = np.logical_and.reduce([present(columns[target]) for target in targets])
    if not known.any():
        raise InvalidData(f"no row has all of {', '.join(map(repr, targets))}", "/target")
    return {name: values[known] for name, values in columns.items()}


def labelled(member: TabularModel, prune: float, rows: Rows) -> Iterator[LabelledMixture]:
    """The raw predictions of a target for rows that no weight was fitted to."""
    sampling = member.engine.best_sampling(member.default_seed, SCORE_SAMPLES)
    return member.engine.labelled(member.fitted(prune), rows, sampling)


def transforms_of(parts: Iterable[LabelledMixture], calibration: Calibration | None) -> Transforms:
    """The distribution functions of one calibrated target at its true values."""
    found = []
    for one in parts:
        if one.only_groups:
            continue
        mixture = one.mixture if calibration is None else calibration.apply(one.mixture)
        assert isinstance(mixture, NumberMixture), "several targets are numbers"
        y = one.targets.double()
        weights = torch.ones_like(y) if one.weights is None else one.weights
        middle = 0.5 * (mixture.cdf_before(y) + mixture.cdf(y))
        found.append((mixture.pit(y, one.start), middle, weights))
    columns = (torch.cat(each).double().cpu().numpy() for each in zip(*found, strict=True))
    return Transforms(*columns)


def _rows(member: TabularModel, columns: Columns, weight: str | None) -> Rows:
    targets = member.target.encode(columns[member.config.target])
    weights = None if weight is None else torch.from_numpy(columns[weight].astype(np.float32))
    return Rows(member.encode(columns), targets.to(member.device), weights)


def _with_quantiles(
    member: TabularModel, x: Tensor, options: ResolvedOptions, levels: Sequence[float]
) -> tuple[RowPrediction, Float[np.ndarray, "rows levels"]]:
    """A member's prediction, and quantiles beside those that the options ask for."""
    inside = [level for level in levels if 0 < level < 1]
    asked = (*options.quantiles, *inside)
    answer = member.predict_rows(x, replace(options, quantiles=asked))
    values = np.repeat(np.where(np.array(levels) < 0.5, -np.inf, np.inf)[None], len(x), axis=0)
    if not asked:
        return answer, values
    own = len(options.quantiles)
    values[:, [0 < level < 1 for level in levels]] = answer["quantile"][:, own:]
    if not own:
        return answer.without("quantile"), values
    errors = dict(answer.errors)
    if "quantile" in errors:
        errors["quantile"] = errors["quantile"][:, :own]
    answer = replace(answer, errors=errors).with_values(quantile=answer["quantile"][:, :own])
    return answer.with_coordinates(P, options.quantiles), values


def _by_name(values: Iterable[Any]) -> tuple[Any, ...]:
    """The first of each name."""
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(value.name, value)
    return tuple(found.values())
