"""A trained model: encoders, network, likelihood and one posterior per pruned variant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from models.config import FeatureConfig, Json, ModelConfig
from models.device import Budget, to_device
from models.evaluation.abstention import selective_metrics
from models.evaluation.calibration import Calibration, ClassCalibration
from models.evaluation.class_scores import class_metrics, set_coverage_by_class, set_metrics
from models.evaluation.detector import DEFAULT_SCORES, SURPRISE, Detector
from models.evaluation.group_coverage import coverage_by_group, coverage_by_thirds
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores
from models.evaluation.metrics import summarise as summarise_scores
from models.evaluation.path_calibration import PathCalibration
from models.evaluation.weighting import WEIGHT
from models.exceptions import InvalidData, InvalidInput
from models.explanation.explainer import Estimate, Explainer, can_be_explained
from models.features.boosted import BoostedTrees
from models.features.columns import Columns, InputColumn, with_readings
from models.features.feature_encoder import FeatureEncoder
from models.features.row_groups import Groups
from models.features.row_weights import UsableRows
from models.features.rows import Rows
from models.features.targets import (
    ClassTarget,
    NumberTarget,
    Target,
    present,
)
from models.inference.bbb import BBBState
from models.inference.gaussian_process import GaussianProcess
from models.inference.method import State
from models.inference.registry import method_of
from models.likelihoods import ClassLikelihood, NumberLikelihood, build_likelihood
from models.likelihoods.class_mixture import Mixture
from models.model import Encoded, TrainedModel
from models.networks import MLP, Network, Stack, build_network
from models.out_of_distribution.row_reasons import find_reasons
from models.out_of_distribution.surprise import Surprise
from models.prediction.declared_outputs import ENTROPIES, FEATURE
from models.prediction.engine import PAUSE_PAIRS, Engine, Ready
from models.prediction.error_factors import factor_at, until_accurate
from models.prediction.fitted import Fitted
from models.prediction.monte_carlo_error import VARIANCES, even_error, standard_error
from models.prediction.options import (
    BatchOptions,
    PredictOptions,
    ResolvedOptions,
    Sampler,
)
from models.prediction.outputs import contributions
from models.prediction.outputs.questions import not_answered
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import (
    ClassName,
    RowPrediction,
    moments,
    moments_with_influence,
    to_prediction,
)
from models.prediction.sampler_measurement.errors import with_bias
from models.prediction.sampler_measurement.record import Candidate
from models.prediction.summary import Summary
from models.prediction.threads import threads_for
from models.prediction.whole_draws import FittedDraws
from models.prediction.work import values_per_sample


@dataclass(frozen=True, kw_only=True)
class TabularModel(TrainedModel):
    """Everything needed to predict. Frozen: any number of threads may use one instance."""

    encoder: FeatureEncoder
    target: Target
    groups: Groups | None = None
    surprise: Surprise | None = None  # None: of an earlier release
    process: GaussianProcess | None = None  # below the networks
    tuned: bool = False  # whether products fit the machine: not in training, which repeats exactly

    @property
    def features(self) -> tuple[FeatureConfig, ...]:
        return self.encoder.features

    @cached_property
    def inputs(self) -> tuple[InputColumn, ...]:
        """The columns that `predict` takes: the features and the groups', typed as in the data set.

        A missing group is allowed.
        """
        return self._as_read((*self.encoder.inputs, *self._group_inputs))

    @property
    def _group_inputs(self) -> tuple[InputColumn, ...]:
        """The column of groups, if it is no feature."""
        groups, names = self.groups, {feature.name for feature in self.features}
        if groups is None or groups.column in names:
            return ()
        return (InputColumn(name=groups.column, type=groups.type, missing=True),)

    def _as_read(self, inputs: Sequence[InputColumn]) -> tuple[InputColumn, ...]:
        groups = self.groups
        levels = {groups.column: groups.names} if groups and groups.type == "category" else {}
        return with_readings(inputs, self.readings, levels | self.encoder.levels)

    @property
    def task(self) -> str:
        return "regression" if isinstance(self.target, NumberTarget) else "classification"

    @property
    def classes(self) -> tuple[ClassName, ...] | None:
        return self.target.classes if isinstance(self.target, ClassTarget) else None

    @cached_property
    def likelihood(self) -> NumberLikelihood | ClassLikelihood:
        num_classes = None if self.classes is None else len(self.classes)
        target = self.target if isinstance(self.target, NumberTarget) else None
        return build_likelihood(self.config.first_likelihood, num_classes, target)

    @cached_property
    def network(self) -> Network:
        likelihood = self.likelihood
        return build_network(
            self.config.network,
            self.encoder.layout,
            likelihood.num_outputs,
            of_noise=len(likelihood.noise_outputs),
        )

    @cached_property
    def engine(self) -> Engine:
        dense = isinstance(self.network, MLP | Stack)
        local = method_of(self.config.method).is_mean_field and dense
        # A model without variants is being trained, where its process is.
        device = self.device if self.variants_by_prune else None
        process = self.process if device is None else self.process and self.process.to(device)
        # In training chunks do not depend on a card's free memory: it repeats bit for bit.
        budget = Budget.of(device if device and self.tuned else torch.device("cpu"))
        return Engine(
            self.network,
            self.likelihood,
            self.target,
            whole_draws=not local,
            expand=self.encoder.expand,
            group_column=None if self.groups is None else self.encoder.compact_width,
            imputation=self.encoder.imputation,
            process=process,
            compiles=self.tuned,
            memory_bytes=budget.memory,
            cache_bytes=budget.cache,
        )

    def _prepared(self, prune: float) -> Ready:
        fitted = make_ready(self.network, self.variant(prune).state)
        if self.encoder.imputation is not None:
            fitted = replace(fitted, widening=_widening(self.calibration_of(prune)))
        if not isinstance(fitted, FittedDraws):
            if (measured := self.variant(prune).samplers) is not None:
                fitted = replace(fitted, nodes=measured.nodes)
            if self.tuned:
                fitted = fitted.tuned(self.variant(prune).rounded)
        return fitted

    def with_nodes(self, prune: float, nodes: int) -> "TabularModel":
        """The model whose `moments` of a variant have at most so many nodes for each member."""
        fitted, other = self.fitted(prune), replace(self)
        if not isinstance(fitted, FittedDraws):
            members = self.network.layout.members
            most = min(nodes * members, fitted.nodes or len(self.engine.nodes))
            other._fitted[prune] = replace(fitted, nodes=most)  # noqa: SLF001 - of the same class
        return other

    @property
    def description(self) -> Json:
        features = [
            asdict(feature) | ({"shape": list(column.shape)} if column.shape else {})
            for feature, column in zip(self.features, self.encoder.inputs, strict=True)
        ]
        return super().description | {"features": features}

    def to_json(self) -> Json:
        return {
            "stored": list(self.encoder.stored),
            "encoders": [asdict(encoder) for encoder in self.encoder.encoders],
            "seen": None if self.encoder.seen is None else asdict(self.encoder.seen),
            "imputed": self.encoder.imputed
            and [one and asdict(one) for one in self.encoder.imputed],
            "target": asdict(self.target),
            **({} if self.groups is None else {"groups": asdict(self.groups)}),
        }

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        stored, encoders = tuple(data["stored"]), tuple(data["encoders"])
        known = data.get("seen"), data.get("imputed")
        encoder = FeatureEncoder(config.features or (), stored, encoders, *known)
        groups = data.get("groups")
        return {"encoder": encoder, "target": data["target"], "groups": groups, "tuned": True}

    def own_tensors(self) -> dict[str, Tensor]:
        every = self.surprise, self.process, self.encoder.boosted
        parts = [part for part in every if part is not None]
        return {name: tensor for part in parts for name, tensor in part.pack().items()}

    def with_own_tensors(self, tensors: Mapping[str, Tensor]) -> "TabularModel":
        if not tensors:
            return self
        encoder = replace(self.encoder, boosted=BoostedTrees.unpack(tensors, self.num_explained))
        surprise = Surprise.unpack(tensors, encoder)
        process = GaussianProcess.unpack(tensors, len(encoder.plain_columns))
        return replace(self, encoder=encoder, surprise=surprise, process=process)

    def predict(self, columns: Columns, options: BatchOptions) -> RowPrediction:
        """Predict by Monte-Carlo sampling. Blocking, stateless, bounded in memory.

        Raises:
            InvalidInput: for a sampler this model does not have, or missing columns.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        return self.with_reasons(self.predict_rows(self.encode(columns), options), columns)

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        return self.engine.samplers

    def cheapest(self, options: BatchOptions) -> Candidate | None:
        """None also for what moments and few samples cannot do: draws, and a wanted error."""
        asked = options if isinstance(options, PredictOptions) else None
        measured = self.variant(options.prune).samplers
        if measured is None or (asked and (asked.return_draws or asked.target_mc_error)):
            return None
        return measured.cheapest(drawing=options.return_mc_errors)

    @property
    def unknown_options(self) -> Mapping[str, str]:
        return {
            "top": "only language models have next tokens",
            "horizon": f"this {self.task} predicts rows and has no horizon",
            **not_answered(self.task),
        }

    def predict_rows(self, x: Float[Tensor, "rows inputs"], options: BatchOptions) -> RowPrediction:
        """`predict` for rows that `encode` has encoded.

        A row's prediction does not depend on the other rows: requests may be joined and cut.
        """
        return self.predict_pausing(x, options, go_on)

    def predict_pausing(
        self, x: Float[Tensor, "rows inputs"], options: BatchOptions, pause: Pause
    ) -> RowPrediction:
        """With pauses within passes and draws, and between the blocks of `target_mc_error`."""
        options = self.resolve(options)
        fitted = self.fitted(options.prune)

        def summarise_with(samples: int) -> Summary:
            return self._paused(fitted, x, options.with_samples(samples), pause)

        if options.target_mc_error is None or options.sampler == "moments":
            summary, samples = self.summary(fitted, x, options, pause=pause), options.samples
        else:
            target = options.target_mc_error
            summary, samples = until_accurate(summarise_with, target, options.samples)
        used, detector = options.with_samples(samples), self.detector(options.prune)
        if detector.score == SURPRISE:
            summary = summary.with_values(ood_score=self.surprises(x))
        found = to_prediction(summary, used, detector, self.task, self.classes)
        answer = self._compared(found, x)
        if options.return_draws:
            answer = answer.with_draws(self.draws_of(x, used, pause))
        return self._explain(fitted, x, used, answer) if options.explain else answer

    def draws_of(
        self, x: Float[Tensor, "rows inputs"], options: ResolvedOptions, pause: Pause = go_on
    ) -> np.ndarray:
        """What `predict_rows` returns as `draws`: all rows of each function."""
        calibration = self.calibration_of(options.prune)
        fitted = self.fitted(options.prune)
        return self.engine.draws(fitted, x, options.seed, options.samples, calibration, pause=pause)

    @property
    def num_explained(self) -> int:
        return len(self.encoder.feature_of_compact)

    @cached_property
    def explainer(self) -> Explainer | None:
        """Explains predictions in terms of features; None without background rows."""
        if self.background is None:
            return None
        columns = torch.from_numpy(self.encoder.feature_of_compact)
        return Explainer(self.background, columns, len(self.features))

    def _explain(
        self, fitted: Ready, x: Tensor, options: ResolvedOptions, answer: RowPrediction
    ) -> RowPrediction:
        """The answers with the contributions of the features to them, by the same noise."""
        explainer, calibration = self.explainer, self.calibration_of(options.prune)
        assert explainer is not None, "resolve refuses it"

        def mixtures(rows: Tensor) -> Iterator[Mixture]:
            rows = self.encoder.with_trees(rows)
            rows = pad(rows, (0, x.shape[1] - rows.shape[1]))  # columns that no input is made of
            found = self.engine.mixtures(fitted, rows, options.sampling)
            return (mixture for _, mixture in found)

        known = next(mixtures(explainer.background[:1].to(x)))  # a row that is not filled
        is_drawn = known.num_samples > 1 and self.has_errors(options.sampler)
        quantities = (
            partial(moments_with_influence, count=known.num_samples) if is_drawn else moments
        )

        def of(rows: Tensor) -> Tensor:
            return torch.cat([quantities(mixture, calibration) for mixture in mixtures(rows)])

        with threads_for(fitted.operations * explainer.evaluations * len(x) * options.samples):
            end = torch.from_numpy(answer.moments).to(x.device)
            if is_drawn:
                own = of(self.encoder.without_trees(x))
                end = torch.cat([end, own[:, end.shape[1] :]], 1)
            found, mean = explainer.explain(x, of, end, options.seed)
        if is_drawn:
            found, mean = (
                self._with_sampling(found, known, options),
                mean[: answer.moments.shape[1]],
            )
        label = None if self.classes is None else answer.mean.argmax(1)
        names = tuple(feature.name for feature in self.features)
        values, errors, base = (part.cpu().numpy() for part in (found.values, found.errors, mean))
        of_mean = base[0] if label is None else base[:-2]
        places = (of_mean.tolist(), float(base[-2]), float(base[-1]))
        answer = answer.with_values(**contributions.contributions(values, errors, label))
        return answer.with_coordinates(FEATURE, names).with_constants(
            features=names, base=dict(zip(contributions.PARTS, places, strict=True))
        )

    def _with_sampling(
        self, found: Estimate, mixture: Mixture, options: ResolvedOptions
    ) -> Estimate:
        """Contributions to moments, whose errors contain that of finite samples, too.

        Contributions are linear: what a sample adds to one is the contribution to what it adds to
        the predictions.

        Args:
            found: contributions to `moments_with_influence`.
            mixture: of any row that is not filled.
        """
        width = found.values.shape[-1] // (mixture.num_samples + 1)
        parts = found.values[..., width:].unflatten(-1, (-1, width)).movedim(2, 0)
        error = even_error if options.sampler == "sobol" else standard_error
        own = ("mean",) * (width - 2)
        names = (*own, *(VARIANCES[:2] if self.classes is None else ENTROPIES[1:]))
        common, by_output = self._error_factors(options)
        factors = parts.new_tensor([by_output.get(name, common) for name in names])
        sampling = factors * error(parts, member=mixture.member)
        walks = found.errors[..., :width]
        return Estimate(found.values[..., :width], torch.hypot(walks, sampling))

    def _error_factors(self, options: ResolvedOptions) -> tuple[float, Mapping[str, float]]:
        """The measured factor on all Monte-Carlo errors, and those of outputs with an own one."""
        variant, samples = self.variant(options.prune), options.samples
        if self.engine.whole_draws:
            return factor_at(variant.error_factors, samples), {}
        if options.sampler != "sobol":
            return 1.0, {}
        own = {name: factor_at(each, samples) for name, each in variant.output_factors.items()}
        return factor_at(variant.sobol_factors, samples), own

    def evaluate(self, columns: Columns, *, prune: float = 0.0, samples: int = 100) -> Json:
        """Metrics of the rows that have a target, weighted if the columns have the weight's.

        Raises:
            InvalidData: if no row has one, or the weights of all are 0.
            InvalidInput: for missing columns, or classes never seen in training.
        """
        return self.evaluate_blocks([columns], prune=prune, samples=samples)

    def evaluate_blocks(
        self, blocks: Iterable[Columns], *, prune: float = 0.0, samples: int = 100
    ) -> Json:
        """Of each block nothing but the scores of its rows stays in memory."""
        options = PredictOptions(prune=prune, samples=samples)
        parts, weighed = [], False
        for columns in blocks:
            weight = self.config.weight if self.config.weight in columns else None
            weighed = weight is not None
            labelled = UsableRows.of(columns, self.config.target, weight).index
            if not labelled.size:
                continue
            side = {name: values[labelled] for name, values in columns.items()}
            truth = side[self.config.target]
            scores = self.row_scores(self.encode(side), truth, options, by_class=True)
            if weight is not None:
                scores |= {WEIGHT: torch.from_numpy(side[weight].astype(np.float64))}
            parts.append(scores)
        if not parts:
            also = " and a weight above 0" if weighed else ""
            raise InvalidData(
                f"no row has a {self.config.target!r} to compare with{also}", "/dataset"
            )
        names = list(parts[0])  # the blocks of a score are freed once they are joined
        scores = {name: torch.cat([part.pop(name) for part in parts]) for name in names}
        return summarise(scores, self.classes, self.groups)

    def row_scores(
        self,
        x: Float[Tensor, "rows inputs"],
        truth: np.ndarray,
        options: PredictOptions,
        *,
        by_class: bool = False,
    ) -> PerRowScores:
        """The scores of each row whose truth is known (`models.evaluation.metrics`), in row order.

        Args:
            truth: a target per row in the caller's units; NaN or None if it is unknown.
            by_class: see `models.evaluation.metrics.row_scores`.

        Raises:
            InvalidInput: for classes never seen in training.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        options, known = self.resolve(options), np.flatnonzero(present(truth))
        fitted, targets = self.fitted(options.prune), self.target.encode(truth[known])
        rows = Rows(x[torch.from_numpy(known).to(x.device)], targets.to(x.device))
        calibration = self.calibration_of(options.prune)
        with threads_for(fitted.operations * len(rows) * options.samples):
            scored = self.engine.row_scores(
                fitted, rows, options.sampling, calibration, by_class=by_class
            )
        return {name: values.cpu() for name, values in scored.items()}

    def detector(self, prune: float) -> Detector:
        """The detector of a variant. Before the variant is scored, it flags no row."""
        name = DEFAULT_SCORES[self.task] if self.surprise is None else SURPRISE
        return self.variant(prune).detector or Detector(name)

    def surprises(self, x: Float[Tensor, "rows inputs"]) -> Float[np.ndarray, "rows"]:
        """−log₁₀ of the probability of a row as strange as each (`models.out_of_distribution`)."""
        if self.surprise is None:
            raise ValueError("this version does not know what its training rows had in common")
        with torch.inference_mode(), threads_for(len(x)):
            return self.surprise(x, self.encoder.column_score(x)).cpu().numpy()

    def _compared(self, answer: RowPrediction, x: Float[Tensor, "rows inputs"]) -> RowPrediction:
        """Flag new levels whatever the score, in versions whose score does not see them."""
        if self.surprise is not None:
            return answer
        is_new = self.encoder.column_score(x).cpu().numpy() > 0
        return answer.with_values(out_of_distribution=answer.out_of_distribution | is_new)

    def with_reasons(self, prediction: RowPrediction, columns: Columns) -> RowPrediction:
        """Say of each flagged row which of its values are unlike those of training.

        Versions of releases that did not keep what training saw give no reasons.
        """
        if self.encoder.seen is None:
            return prediction
        flagged = prediction.out_of_distribution
        reasons = find_reasons(self.encoder, columns, flagged, self.surprise)
        return prediction.with_values(reasons=reasons)

    @property
    def bytes_per_row(self) -> int:
        """The encoded row and some arrays per class, in float64."""
        return 8 * (2 * self.encoder.width + 10 * len(self.classes or (1,)))

    def values_per_sample(self, options: ResolvedOptions) -> int:
        """Values of a row's draws or answers, and the rows that explain it."""
        explained = self.explainer.evaluations if options.explain and self.explainer else 0
        return values_per_sample(options, len(self.classes or ())) + explained

    def blank(self, size: int) -> Encoded:
        """Rows that lack all values and rows that lack none, in turn."""
        rows = [
            self.encode({c.name: _blank_value(c, missing=missing) for c in self.inputs})
            for missing in (True, False)
        ]
        return torch.cat(rows * size)[:size].nan_to_num_()  # rows to be filled would take longer

    def example(self, columns: Columns) -> Encoded:
        """The first row."""
        return self.encode({column.name: columns[column.name][:1] for column in self.inputs})

    def encode(self, columns: Columns) -> Float[Tensor, "rows inputs"]:
        """Feature columns as compact rows, on the device of the posteriors."""
        needed = [*(f.name for f in self.features), *(c.name for c in self._group_inputs)]
        if missing := [name for name in needed if name not in columns]:
            raise InvalidInput(f"missing features: {', '.join(missing)}", "/inputs")
        return to_device(self.with_groups(self.encoder.encode(columns), columns), self.device)

    def with_groups(
        self, x: Float[Tensor, "rows compact"], columns: Columns
    ) -> Float[Tensor, "rows inputs"]:
        """Encoded rows with the number of each row's group as last column, if there are groups."""
        if self.groups is None:
            return x
        missing = self.encoder.compact_width - x.shape[1]  # 1 of learned rows, which have no score
        x = torch.nn.functional.pad(x, (0, missing))
        return torch.cat([x, self.groups.numbers(columns).unsqueeze(1)], dim=1)

    @property
    def num_groups(self) -> int:
        """The number of groups; 0 without them."""
        return 0 if self.groups is None else len(self.groups.names)

    def _check(self, options: BatchOptions) -> None:
        """Also refuse adaptive intervals, and conformal answers alone, if the version has none."""
        super()._check(options)
        if options.explain and self.explainer is None:
            raise InvalidInput(
                "this version has no background rows to compare rows with: train it again, with "
                "`training.background` above 0 and at most 4,096 encoded values per row"
                if can_be_explained(self.encoder)
                else "this version reads a tensor: only columns of a table are explained",
                "/explain",
            )
        kinds, calibration = set(options.interval_kinds), self.variant(options.prune).calibration
        if kinds == {"conformal"} and options.set_level is not None:
            if not isinstance(calibration, ClassCalibration) or calibration.sets is None:
                raise InvalidInput(
                    "this version has no conformal sets: no rows were held out for its "
                    "calibration, or it is older than they are; request credible ones",
                    "/interval_kinds",
                )
            return
        self._check_intervals(options)

    def calibration_of(self, prune: float) -> Calibration | None:
        """The calibration of a variant; None if it is not calibrated."""
        found = self.variant(prune).calibration
        assert not isinstance(found, PathCalibration), "only forecasts have one of paths"
        return found

    def _paused(self, fitted: Ready, x: Tensor, options: ResolvedOptions, pause: Pause) -> Summary:
        """`summary`, with a pause before each block of rows."""
        parts = []
        for block in x.split(max(1, PAUSE_PAIRS // options.samples)):
            pause()
            parts.append(self.summary(fitted, block, options, pause=pause))
        return Summary.joined(parts)

    def summary(
        self,
        fitted: Ready,
        x: Tensor,
        options: ResolvedOptions,
        score: str | None = None,
        pause: Pause = go_on,
    ) -> Summary:
        """The arrays of all rows; errors are corrected by the variant's measured factor.

        Args:
            score: the out-of-distribution score; None for the detector's, if it is a mixture's.
            pause: called within what takes long.
        """
        sampler, calibration = options.sampler, self.calibration_of(options.prune)
        if score is None and self.detector(options.prune).score != SURPRISE:
            score = self.detector(options.prune).score
        threads = torch.get_num_threads()
        with threads_for(fitted.operations * len(x) * options.samples):
            found = self.engine.summaries(
                fitted, x, options, score, calibration, threads=threads, pause=pause
            )
            parts = list(found)
        has_errors = self.has_errors(sampler)
        factors = self._error_factors(options) if has_errors else (None,)
        summary = Summary.joined(parts).with_errors(*factors)
        if has_errors and self.engine.whole_draws:
            return summary
        measured = self.variant(options.prune).samplers
        bias = {} if measured is None else measured.bias_of(sampler, options.samples)
        return with_bias(summary, bias, options.intervals)

    def summaries(
        self,
        fitted: Fitted,
        x: Tensor,
        options: ResolvedOptions,
        seeds: Sequence[int],
    ) -> list[Summary]:
        """The summaries of a few rows by each seed, with errors as they are estimated."""
        calibration = self.calibration_of(options.prune)
        with threads_for(fitted.operations * len(x) * options.samples):
            return self.engine.summaries_of_seeds(fitted, x, options, seeds, calibration)

    def has_errors(self, sampler: Sampler) -> bool:
        """Whether samples are drawn from a known distribution; fixed members are not."""
        method = method_of(self.config.method)
        return sampler != "moments" and not method.has_fixed_members(self.network.layout.members)


def _widening(calibration: Calibration | None) -> float:
    """The factor that a calibration's scale undoes: it is of errors, not of how levels differ."""
    if calibration is None:
        return 1.0
    if isinstance(calibration, ClassCalibration):
        return calibration.temperature
    return float(calibration.variance_scale**-0.5)


def make_ready(network: Network, state: State) -> Ready:
    """Prepare a state for prediction, in its fastest form.

    The local estimator is exact only for dense layers. If positions or steps share weights, whole
    weight vectors are drawn.
    """
    if isinstance(state, BBBState) and isinstance(network, MLP | Stack):
        return Fitted.of(network, state)
    return FittedDraws.of(network, state)


def _blank_value(column: InputColumn, *, missing: bool) -> np.ndarray:
    match column.type:
        case "category":
            return np.array([None if missing else "?"], object)
        case "text":
            return np.array(["" if missing else "?"], object)
        case "datetime":
            return np.array(["NaT" if missing else "2026-01-01"], "datetime64[us]")
        case "tensor":
            return np.zeros((1, *(column.shape or ())), np.float32)
    return np.array([np.nan if missing else 1.0])


def summarise(
    scores: PerRowScores, classes: Sequence[ClassName] | None, groups: Groups | None
) -> Json:
    """The metrics of scored rows, with those by class if they have what these need."""
    metrics = summarise_scores(scores) | selective_metrics(scores) | coverage_by_thirds(scores)
    if groups is not None:
        metrics |= coverage_by_group(scores, groups.column, groups.names)
    by_class, errors = class_metrics(scores, classes or ())
    sets, of_sets = set_metrics(scores, COVERAGE_LEVELS)
    covered = set_coverage_by_class(scores, COVERAGE_LEVELS, len(classes or ()))
    for scored, coverage in zip(by_class.get("by_class", ()), covered, strict=False):
        scored.update(coverage)
    errors = metrics["standard_errors"] | errors | of_sets
    return metrics | by_class | sets | {"standard_errors": errors}
