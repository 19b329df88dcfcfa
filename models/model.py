"""A trained model: encoders, network, likelihood and one posterior per pruned variant."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from torch import Tensor

from models.config import FeatureConfig, Json, ModelConfig
from models.exceptions import InvalidInput, UnknownVariant
from models.features import Columns, FeatureEncoder, InputColumn
from models.inference.bbb import BBBState
from models.likelihoods import ClassLikelihood, GaussianLikelihood, build_likelihood
from models.networks import MLP
from models.prediction.engine import Engine, Fitted
from models.prediction.prediction import (
    Arrays,
    ClassName,
    Prediction,
    PredictOptions,
    concatenate,
    epistemic_share,
    intervals,
    summarise,
)
from models.targets import ClassTarget, NumberTarget, Target

SAMPLERS = ("monte_carlo",)


@dataclass(frozen=True)
class Variant:
    """One posterior of a version: the full one (prune 0) or a pruned one."""

    prune: float
    state: BBBState
    metrics: Json = field(default_factory=dict)
    num_bytes: int = 0

    @cached_property
    def fitted(self) -> Fitted:
        return Fitted.of(self.state)

    def describe(self) -> Json:
        return {
            "prune": self.prune,
            "num_weights": self.state.posterior.num_weights,
            "bytes": self.num_bytes,
            "metrics": self.metrics,
        }


@dataclass(frozen=True)
class BayesianModel:
    """Everything needed to predict. Frozen: any number of threads may use one instance."""

    config: ModelConfig
    encoder: FeatureEncoder
    target: Target
    variants_by_prune: Mapping[float, Variant]
    default_seed: int
    ood_threshold: float
    history: tuple[Json, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[FeatureConfig, ...]:
        return self.encoder.features

    @property
    def inputs(self) -> tuple[InputColumn, ...]:
        """What `predict` takes: one column per feature, as it is stored in a data set."""
        return self.encoder.inputs

    @property
    def task(self) -> str:
        return "regression" if isinstance(self.target, NumberTarget) else "classification"

    @property
    def classes(self) -> tuple[ClassName, ...] | None:
        return self.target.classes if isinstance(self.target, ClassTarget) else None

    @property
    def variants(self) -> tuple[float, ...]:
        """Stored pruning fractions, 0.0 (the full posterior) first."""
        return tuple(sorted(self.variants_by_prune))

    @property
    def num_weights(self) -> int:
        return self.network.layout.num_weights

    @property
    def num_bytes(self) -> int:
        """Memory that the posteriors hold."""
        posteriors = [v.state.posterior for v in self.variants_by_prune.values()]
        return sum(
            8 * q.loc.numel() + (0 if q.mask is None else q.mask.numel()) for q in posteriors
        )

    @cached_property
    def likelihood(self) -> GaussianLikelihood | ClassLikelihood:
        num_classes = None if self.classes is None else len(self.classes)
        return build_likelihood(str(self.config.likelihood), num_classes)

    @cached_property
    def network(self) -> MLP:
        return MLP.build(self.config.network, self.encoder.width, self.likelihood.num_outputs)

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.network, self.likelihood, self.target)

    @property
    def description(self) -> Json:
        """What the registry and the API say about a version."""
        config = asdict(self.config)
        return {
            "task": self.task,
            "features": [
                asdict(f) | ({"shape": list(column.shape)} if column.shape else {})
                for f, column in zip(self.features, self.inputs, strict=True)
            ],
            "target": self.config.target,
            "classes": None if self.classes is None else list(self.classes),
            **{key: config[key] for key in ("likelihood", "network", "method", "training")},
            "num_weights": self.num_weights,
            "metrics": self.variant(0.0).metrics,
            "variants": [self.variant(prune).describe() for prune in self.variants],
            "out_of_distribution_threshold": self.ood_threshold,
            "notes": list(self.notes),
        }

    def predict(self, columns: Columns, options: PredictOptions) -> Prediction:
        """Predicts by Monte-Carlo sampling. Blocking, stateless, bounded in memory.

        Raises:
            InvalidInput: for a sampler this model does not have, or missing columns.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        return self.predict_rows(self.encode(columns), options)

    def settle(self, options: PredictOptions) -> PredictOptions:
        """The same options with seed and sampler filled in, once they are known to be possible.

        Raises:
            InvalidInput: for a sampler this model does not have.
            UnknownVariant: for a pruning fraction that is not stored.
        """
        self._check_sampler(options)
        self.variant(options.prune)
        seed = self.default_seed if options.seed is None else options.seed
        return replace(options, seed=seed, sampler="monte_carlo")

    def predict_rows(self, x: Float[Tensor, "rows inputs"], options: PredictOptions) -> Prediction:
        """`predict` of rows that `encode` made.

        A row's answer does not depend on the rows around it: requests may be joined and cut.
        """
        options = self.settle(options)
        fitted, seed = self.variant(options.prune).fitted, int(options.seed or 0)
        summary = self._summary(fitted, x, seed, options.samples, options.intervals)
        answer = self._prediction(summary, options, seed)
        if options.return_draws:
            answer = replace(answer, draws=self.engine.draws(fitted, x, seed, options.samples))
        return answer

    def evaluate(self, columns: Columns, *, prune: float = 0.0, samples: int = 100) -> Json:
        """Scores on labelled rows.

        Raises:
            InvalidInput: for missing columns, or classes never seen in training.
        """
        targets = self.target.encode(columns[self.config.target])
        fitted = self.variant(prune).fitted
        x = self.encode(columns)
        return self.engine.score(fitted, x, targets.to(x.device), self.default_seed, samples)

    def strangeness(
        self, fitted: Fitted, x: Float[Tensor, "rows inputs"], samples: int
    ) -> np.ndarray:
        """Per row: epistemic variance (squared target units) or mutual information (nats)."""
        return self._summary(fitted, x, self.default_seed, samples, ())["strangeness"]

    def variant(self, prune: float) -> Variant:
        """
        Raises:
            UnknownVariant: naming the fractions that exist.
        """
        if prune not in self.variants_by_prune:
            known = ", ".join(f"{fraction:g}" for fraction in self.variants)
            raise UnknownVariant(f"no variant with prune {prune:g}; stored are {known}", "/prune")
        return self.variants_by_prune[prune]

    def encode(self, columns: Columns) -> Float[Tensor, "rows inputs"]:
        """Feature columns as network inputs, on the device of the posteriors."""
        missing = [f.name for f in self.features if f.name not in columns]
        if missing:
            raise InvalidInput(f"missing features: {', '.join(missing)}", "/inputs")
        return self.encoder.encode(columns).to(self.variant(0.0).state.posterior.loc.device)

    def _check_sampler(self, options: PredictOptions) -> None:
        if options.sampler is not None and options.sampler not in SAMPLERS:
            raise InvalidInput(
                f"this model has no sampler {options.sampler!r}; it has {', '.join(SAMPLERS)}",
                "/sampler",
            )

    def _summary(
        self, fitted: Fitted, x: Tensor, seed: int, samples: int, levels: tuple[float, ...]
    ) -> Arrays:
        chunks = self.engine.mixtures(fitted, x, seed, samples)
        return concatenate([summarise(mixture, levels) for _, mixture in chunks])

    def _prediction(self, summary: Arrays, options: PredictOptions, seed: int) -> Prediction:
        aleatoric, epistemic = summary["aleatoric"], summary["epistemic"]
        answer = Prediction(
            samples=options.samples,
            seed=seed,
            sampler="monte_carlo",
            prune=options.prune,
            mean=summary["mean"],
            variance={
                "aleatoric": aleatoric,
                "epistemic": epistemic,
                "total": aleatoric + epistemic,
            },
            epistemic_share=epistemic_share(summary),
            out_of_distribution=summary["strangeness"] > self.ood_threshold,
            mc_error=summary.get("mc_error"),
        )
        if self.classes is None:
            return replace(answer, intervals=intervals(summary, options.intervals))
        return self._with_classes(answer, summary, self.classes)

    def _with_classes(
        self, answer: Prediction, summary: Arrays, classes: tuple[ClassName, ...]
    ) -> Prediction:
        expected, mutual = summary["expected_entropy"], summary["mutual_information"]
        return replace(
            answer,
            classes=classes,
            labels=[classes[index] for index in summary["mean"].argmax(1).tolist()],
            entropy={
                "total": expected + mutual,
                "aleatoric": expected,
                "epistemic": mutual,
            },
        )
