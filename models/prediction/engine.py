"""The prediction engine computes predictive mixtures of encoded rows, in chunks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.device import CACHE_BYTES, DEFAULT_MEMORY_BYTES
from models.evaluation import metrics
from models.evaluation.calibration import (
    Calibration,
    LabelledMixture,
    fit_calibration,
)
from models.evaluation.conformal_rank import MAX_RESIDUALS
from models.features.expansion import Expansion
from models.features.rows import Rows, evenly_spread
from models.features.targets import ClassTarget, NumberTarget, Target
from models.features.unseen_values import Copies, Imputation
from models.inference.gaussian_process import GaussianProcess, Offsets, spread_normals
from models.inference.method import State
from models.inference.noise import NoiseCache, NoiseSource, RequestNoise
from models.likelihoods import (
    Bernoulli,
    Categorical,
    ClassLikelihood,
    GaussianLikelihood,
    HeteroscedasticGaussian,
    NumberLikelihood,
    ShapedLikelihood,
    expected_noise,
)
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import Integrated, NumberMixture
from models.networks import LocallyDrawn, Network, Stack
from models.prediction.compiled.backend import Backend
from models.prediction.fitted import Fitted, Sampled, moved, output_nodes
from models.prediction.options import ResolvedOptions, Sampler, Sampling
from models.prediction.pauses import Pause, go_on
from models.prediction.picks import LEAST, Picks
from models.prediction.prediction import summarise
from models.prediction.summary import Summary
from models.prediction.threads import divided, in_threads
from models.prediction.whole_draws import FittedDraws
from models.randomness import derive_seed

Ready = Fitted | FittedDraws
"""A state prepared for prediction."""

_BUFFERS = 4  # float32 buffers, each as wide as the widest layer
_WORKING_COPIES = 6  # float64 copies of the outputs that a summary needs
_MIN_SAMPLES = 16  # in a chunk, so that enough samples share the first layer's products
_MOMENTS = 4  # the propagation of moments relative to a sample
_SEED_VALUES = 2**17  # outputs of seeds that are summarised together: 1 MiB in float64
_FILLED_VALUES = 2**22  # outputs of filled rows at a time: 32 MiB of moments
PAUSE_PAIRS = 2**17  # rows × samples between two pauses
_FIT_VALUES = 2**24  # values in the mixtures that `calibrate` fits a scale to: 128 MiB


@dataclass(frozen=True)
class Engine:
    """A network with its likelihood and target. It holds no weights.

    `expand` makes network inputs of the rows that the methods take; without it, they are the rows.

    Its only state is a cache of noise, which the requests' seeds determine.
    """

    network: Network
    likelihood: NumberLikelihood | ClassLikelihood
    target: Target
    whole_draws: bool = False  # whether a sample must be a whole weight draw
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    cache_bytes: int = CACHE_BYTES
    noise_cache: NoiseCache = field(default_factory=NoiseCache)
    expand: Expansion | None = None
    group_column: int | None = None  # of encoded rows: the number of the row's group
    imputation: Imputation | None = None  # of values that no training row had
    process: GaussianProcess | None = None  # below the network, on its device
    compiles: bool = False  # whether to use compiled kernels once they are ready: not in training

    @cached_property
    def noise(self) -> Mapping[tuple[int, ...], NoiseSource]:
        """The noise of all units of a network, by the widths of its layers.

        Raises:
            TypeError: if the network's units cannot be drawn.
        """
        network = self.network
        if not isinstance(network, LocallyDrawn):
            raise TypeError(f"units of a {type(network).__name__} cannot be drawn")
        members = network.networks if isinstance(network, Stack) else (network,)
        widths = {tuple(member.noise_widths()) for member in members}
        return {each: NoiseSource(each) for each in widths}

    @cached_property
    def nodes(self) -> Float[Tensor, "nodes outputs"]:
        return output_nodes(self.likelihood.num_outputs, self.network.layout.members)

    @cached_property
    def compiled(self) -> Backend | None:
        """The compiled loops, if this engine may use them; they answer once they are ready."""
        return Backend(self.likelihood, self.target) if self.compiles else None

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """The samplers of this network, the best first."""
        if self.whole_draws:
            return ("monte_carlo",)
        always: tuple[Sampler, ...] = ("monte_carlo", "moments")
        has_sobol = all(source.has_sobol for source in self.noise.values())
        return ("sobol", *always) if has_sobol else always

    def best_sampling(self, seed: int, samples: int) -> Sampling:
        """So many samples by the best sampler."""
        return Sampling(self.samplers[0], seed, samples)

    def mixtures(
        self,
        fitted: Ready,
        x: Float[Tensor, "rows inputs"],
        sampling: Sampling,
        offsets: Offsets | None = None,
    ) -> Iterator[tuple[slice, Mixture]]:
        """The predictive mixture of each chunk of rows, in the target's units.

        Args:
            offsets: of the process, for rows that it was fitted to; by default those it computes.
        """
        for rows, sampled in self._passes(fitted, x, sampling, offsets):
            with torch.inference_mode():
                mixture = self._mixture(sampled, sampling.sampler)
            yield rows, mixture

    def summaries(
        self,
        fitted: Ready,
        x: Float[Tensor, "rows inputs"],
        options: ResolvedOptions,
        score: str | None,
        calibration: Calibration | None,
        *,
        threads: int = 1,
        pause: Pause = go_on,
    ) -> Iterator[Summary]:
        """`summarise` of each chunk of rows, by compiled kernels where they can.

        Args:
            threads: that may compute by kernels at once. A row's result does not depend on them.
            pause: called before each chunk of rows, and of samples, if one thread computes.
        """
        parts, compiled = [slice(0, len(x))], self.compiled
        if compiled is not None and isinstance(fitted, Fitted) and compiled.takes(fitted):
            passed = _MOMENTS * fitted.members if options.sampler == "moments" else options.samples
            parts = divided(len(x), fitted.operations * len(x) * passed, threads)

        between = pause if len(parts) == 1 else go_on  # no other thread may run what waits

        def of_part(part: slice) -> list[Summary]:
            found = list[Summary]()
            passes = self._passes(fitted, x[part], options.sampling, pause=between)
            for rows, sampled in passes:
                groups, summary = self.groups(x[part][rows]), None
                with torch.inference_mode():
                    if compiled is not None:
                        summary = compiled.summary(sampled, options, score, calibration, groups)
                    if summary is None:
                        mixture = self._mixture(sampled, options.sampler)
                        summary = summarise(mixture, options, score, calibration, groups)
                found.append(summary)
            return found

        for found in in_threads(of_part, parts):
            yield from found

    @torch.inference_mode()
    def summaries_of_seeds(
        self,
        fitted: Fitted,
        x: Float[Tensor, "rows inputs"],
        options: ResolvedOptions,
        seeds: Sequence[int],
        calibration: Calibration | None,
    ) -> list[Summary]:
        """The summary of a few rows by each seed: of those that fit in the cache at once.

        A summary of so few rows takes as long for ten times as many.
        """
        found, sampling = list[Summary](), options.sampling
        width = sampling.samples * self.likelihood.num_outputs
        at_once = max(1, _SEED_VALUES // (len(x) * width))
        groups = self.groups(x)
        for start in range(0, len(seeds), at_once):
            some = seeds[start : start + at_once]
            ways = [sampling._replace(seed=seed) for seed in some]
            passed = [list(self._passes(fitted, x, way)) for way in ways]
            drawn = [Sampled.beside([part for _, part in own]) for own in passed]
            mixture = self._mixture(Sampled.beside(drawn), sampling.sampler)
            of_rows = None if groups is None else groups.repeat(len(some))
            summary = summarise(mixture, options, None, calibration, of_rows)
            cut = summary.each(partial(np.split, indices_or_sections=len(some)))
            found += [cut.each(itemgetter(i)) for i in range(len(some))]
        return found

    def whole(self, state: State) -> FittedDraws:
        """The state, ready to predict by whole weight draws."""
        return FittedDraws.of(self.network, state)

    @torch.inference_mode()
    def outputs(
        self,
        fitted: Ready,
        x: Float[Tensor, "rows inputs"],
        seed: int,
        samples: int,
        offsets: Offsets | None = None,
    ) -> tuple[Float[Tensor, "draws rows outputs"], dict[str, Tensor]]:
        """Network outputs by plain Monte Carlo, and the likelihood's point parameters.

        `offsets` are as of `mixtures`.
        """
        passed = self._passes(fitted, x, Sampling("monte_carlo", seed, samples), offsets)
        parts = [sampled for _, sampled in passed]
        return torch.cat([sampled.drawn() for sampled in parts], dim=1), parts[0].point

    @torch.inference_mode()
    def draws(
        self,
        fitted: Ready,
        x: Float[Tensor, "rows inputs"],
        seed: int,
        samples: int,
        calibration: Calibration | None = None,
        *,
        pause: Pause = go_on,
    ) -> np.ndarray:
        """Predicted means of whole weight draws: samples × rows (× classes).

        With a calibration their variance is the calibrated epistemic variance.

        Args:
            pause: called before each chunk of draws, and of rows.
        """
        if not isinstance(fitted, FittedDraws):
            fitted = replace(self.whole(fitted.state), widening=fitted.widening)
        parts = []
        for run, copies in self._runs(x):
            filled = x[run] if copies is None else copies.fill(x[run])
            outputs, point = self._outputs_of_draws(fitted, filled, seed, samples, pause)
            if copies is not None:
                picks = Picks.draw(len(outputs), copies, seed, widening=fitted.widening)
                outputs = picks.of_outputs(outputs, self._num_locations)
            parts.append((outputs, point))
        outputs, point = torch.cat([outputs for outputs, _ in parts], 1), parts[0][1]
        drawn = []
        for some in outputs.split(max(1, PAUSE_PAIRS // samples), dim=1):
            pause()
            mixture = self.whole_mixture(some.double(), point)
            if calibration is not None:
                mixture = calibration.apply(mixture)
            if isinstance(mixture, CategoricalMixture):
                drawn.append(mixture.probs)
            else:
                drawn.append(mixture.predicted_means())
        return torch.cat(drawn, dim=1).cpu().numpy()

    def calibrate(
        self, fitted: Ready, rows: Rows, seed: int, samples: int, groups: int = 0
    ) -> Calibration:
        """The calibration fitted to rows that no weight was fitted to.

        The scale is fitted to as many rows as `_FIT_VALUES` allows. The residuals are of all rows;
        sets of classes are of `MAX_RESIDUALS` at most, whose probabilities are in memory together.

        Args:
            groups: the number of groups; 0 without them.
        """
        sampling, width = self.best_sampling(seed, samples), samples * self.likelihood.num_outputs
        if isinstance(self.target, ClassTarget):
            rows = rows[evenly_spread(len(rows), MAX_RESIDUALS)]
        some = rows[evenly_spread(len(rows), max(1, _FIT_VALUES // width))]
        fitting = list(self.labelled(fitted, some, sampling))
        ranking = self.labelled(fitted, rows, sampling)
        return fit_calibration(
            fitting,
            fitting if len(some) == len(rows) else ranking,
            shaped=isinstance(self.likelihood, ShapedLikelihood),
            groups=groups,
        )

    def row_scores(
        self,
        fitted: Ready,
        rows: Rows,
        sampling: Sampling,
        calibration: Calibration | None = None,
        *,
        by_class: bool = False,
    ) -> metrics.PerRowScores:
        """The scores of each labelled row (`models.evaluation.metrics`), in the target's units."""
        labelled = self.labelled(fitted, rows, sampling)
        parts = [metrics.row_scores(one, calibration, by_class=by_class) for one in labelled]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def labelled(self, fitted: Ready, rows: Rows, sampling: Sampling) -> Iterator[LabelledMixture]:
        """The mixture of each chunk of rows with the rows' targets and weights."""
        targets = rows.targets
        if isinstance(self.target, NumberTarget):
            targets = self.target.decode(targets)
        for part, mixture in self.mixtures(fitted, rows.inputs, sampling, rows.offsets):
            weights = None if rows.weights is None else rows.weights[part]
            groups = self.groups(rows.inputs[part])
            yield LabelledMixture(mixture, targets[part], weights, part.start, groups)

    def groups(self, x: Float[Tensor, "rows inputs"]) -> Int[Tensor, "rows"] | None:
        """The number of each encoded row's group; None if the model has no groups."""
        return None if self.group_column is None else x[:, self.group_column].long()

    def _passes(
        self,
        fitted: Ready,
        x: Tensor,
        sampling: Sampling,
        offsets: Offsets | None = None,
        pause: Pause = go_on,
    ) -> Iterator[tuple[slice, Sampled]]:
        """The outputs of each chunk of rows; rows that lack what training rows had are filled."""
        sampler, seed, samples = sampling
        for run, copies in self._runs(x):
            if copies is None:
                own = offsets if offsets is None else offsets[run]
                for rows, sampled in self._of_known(fitted, x[run], sampling, own, pause):
                    yield slice(run.start + rows.start, run.start + rows.stop), sampled
                continue
            # Few fixed samples would have few of the values.
            fixed = fitted.num_draws is not None if isinstance(fitted, FittedDraws) else False
            least = LEAST if fixed or sampler == "moments" else 1
            step = max(1, _FILLED_VALUES // (len(copies) * samples * self.likelihood.num_outputs))
            for start in range(run.start, run.stop, step):
                rows = slice(start, min(start + step, run.stop))
                filled = copies.fill(x[rows])
                parts = [p for _, p in self._of_known(fitted, filled, sampling, pause=pause)]
                picks = Picks.draw(
                    parts[0].num_samples, copies, seed, least=least, widening=fitted.widening
                )
                with torch.inference_mode():
                    yield rows, picks.of_sampled(parts, self._num_locations)

    def _runs(self, x: Tensor) -> Iterator[tuple[slice, Copies | None]]:
        """Rows that follow each other and lack the same, with what fills them: as a rule all."""
        if self.imputation is None or not bool(x.isnan().any()):
            yield slice(0, len(x)), None
        else:
            yield from self.imputation.runs(x)

    def _of_known(
        self,
        fitted: Ready,
        x: Tensor,
        sampling: Sampling,
        offsets: Offsets | None = None,
        pause: Pause = go_on,
    ) -> Iterator[tuple[slice, Sampled]]:
        """The outputs of each chunk of rows that lack nothing.

        Of whole weight draws if these were kept; else by compiled kernels if they take the network,
        else by torch.
        """
        sampler, seed, samples = sampling
        if isinstance(fitted, FittedDraws):
            step = fitted.rows_at_once(samples, self.memory_bytes)
            for start in range(0, len(x), step):
                rows = slice(start, min(start + step, len(x)))
                with torch.inference_mode():
                    outputs, point = self._outputs_of_draws(fitted, x[rows], seed, samples, pause)
                counts, owners = (len(outputs),), fitted.owners(len(outputs), x.device)
                yield rows, Sampled(outputs.unsqueeze(0), None, counts, point=point, owners=owners)
            return
        widths = (fitted.max_width, self.likelihood.num_outputs)
        chunks = Chunks.plan(widths, len(x), samples, self.memory_bytes, self.cache_bytes)
        # A Gaussian's mean is an output, which weights can be integrated over.
        is_gaussian = isinstance(self.likelihood, GaussianLikelihood)
        integrate = is_gaussian and not _is_drawn_whole(sampler, samples)
        noise = RequestNoise(self.noise, self.noise_cache, sampler, seed, x.device)
        nodes = self.nodes[: fitted.nodes].to(x.device) if sampler == "moments" else None
        for start in range(0, len(x), chunks.rows):
            rows, sampled = slice(start, min(start + chunks.rows, len(x))), None
            pause()
            with torch.inference_mode():
                inputs = self._inputs(x[rows])
                if self.compiled is not None:
                    sampled = self.compiled.outputs(
                        fitted, inputs, noise, samples=samples, nodes=nodes, integrate=integrate
                    )
                if sampled is None and nodes is not None:
                    sampled = fitted.propagate(inputs, nodes)
                if sampled is None:
                    sampled = fitted.sample(
                        inputs, samples, noise, chunks.samples, integrate=integrate, pause=pause
                    )
                if self.process is not None:
                    own = self._offsets(inputs) if offsets is None else offsets[rows]
                    moves = self._moves(own, seed, sampled.num_samples)
                    sampled = sampled.moved(moves, self._num_locations)
            yield rows, sampled

    def _outputs_of_draws(
        self, fitted: FittedDraws, x: Tensor, seed: int, samples: int, pause: Pause = go_on
    ) -> tuple[Float[Tensor, "draws rows outputs"], dict[str, Tensor]]:
        """Outputs of whole draws, for so many rows at once that their network inputs fit."""
        width = x.shape[1] if self.expand is None else self.expand.width
        step = max(1, self.memory_bytes // (2 * 4 * width) if width > x.shape[1] else len(x))
        parts = []
        for part in x.split(step):
            inputs = self._inputs(part)
            outputs, point = fitted.outputs(inputs, seed, samples, self.memory_bytes, pause)
            parts.append((self.move(outputs, inputs, seed), point))
        return torch.cat([outputs for outputs, _ in parts], dim=1), parts[0][1]

    def move(
        self, outputs: Float[Tensor, "samples rows outputs"], x: Tensor, seed: int | None
    ) -> Float[Tensor, "samples rows outputs"]:
        """Outputs of networks above the process, with their locations moved by draws of it.

        Args:
            x: network inputs.
            seed: None for the process's mean instead.
        """
        if self.process is None:
            return outputs
        offsets = self._offsets(x)
        moves = offsets[:, 0] if seed is None else self._moves(offsets, seed, len(outputs))
        return moved(outputs, moves, self._num_locations)

    def _offsets(self, x: Float[Tensor, "rows inputs"]) -> Offsets:
        """What the process says of rows, which are network inputs."""
        assert self.process is not None
        return self.process(x[:, : len(self.process.lengths)])

    @staticmethod
    def _moves(offsets: Offsets, seed: int, samples: int) -> Float[Tensor, "samples rows"]:
        """m(x) + s(x) ε for each sample: the same evenly spread ε for all rows."""
        normals = spread_normals(derive_seed(seed, "process"), samples).to(offsets)
        return torch.addcmul(offsets[:, 0], normals.unsqueeze(1), offsets[:, 1])

    @property
    def _num_locations(self) -> int:
        """Outputs that are locations, the first ones; all logits are."""
        match self.likelihood:
            case ShapedLikelihood():
                return self.likelihood.components
            case Bernoulli() | Categorical():
                return self.likelihood.num_outputs
        return 1

    def _inputs(self, x: Float[Tensor, "rows compact"]) -> Float[Tensor, "rows inputs"]:
        return x if self.expand is None else self.expand(x)

    def whole_mixture(self, outputs: Tensor, point: dict[str, Tensor]) -> Mixture:
        """The mixture of float64 outputs whose weights were all drawn, none integrated."""
        if isinstance(self.likelihood, Categorical | Bernoulli):
            return CategoricalMixture(self.likelihood.logits(outputs))
        target = self._number_target()
        if isinstance(self.likelihood, ShapedLikelihood):
            return NumberMixture.of(target, self.likelihood.parts(outputs))
        return NumberMixture.gaussian(*self._in_units(*self.likelihood.moments(outputs, point)))

    def _mixture(self, sampled: Sampled, sampler: str) -> Mixture:
        """The mixture of sampled outputs.

        A Gaussian's mean and expected noise are integrated over the last layer, except by plain
        Monte Carlo. A single sample is a draw of the whole network, without epistemic variance.
        """
        sampled = sampled.double()  # summaries subtract nearly equal samples
        drawn_whole = sampled.noise is None or _is_drawn_whole(sampler, sampled.num_samples)
        if drawn_whole or not isinstance(self.likelihood, GaussianLikelihood):
            mixture = self.whole_mixture(sampled.drawn(), sampled.point)
            return mixture.of_members(sampled.member)
        target = self._number_target()
        outputs = sampled.drawn(keep_mean=True)
        means, noise = self._in_units(*self.likelihood.moments(outputs, sampled.point))
        spread, moments, expected = sampled.outputs[1][..., 0] * target.std**2, None, noise
        if sampled.integrated is not None:
            moments = self._in_units(*(part[..., 0] for part in sampled.integrated))
        if isinstance(self.likelihood, HeteroscedasticGaussian):
            log_noise = (part[..., 1] for part in sampled.outputs)
            expected = expected_noise(*log_noise) * target.std**2
        integrated = Integrated(spread, expected, moments)
        return NumberMixture.gaussian(means, noise, integrated, sampled.member)

    def _in_units(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of encoded numbers, in the target's units."""
        target = self._number_target()
        return mean * target.std + target.mean, variance * target.std**2

    def _number_target(self) -> NumberTarget:
        if not isinstance(self.target, NumberTarget):
            raise TypeError(f"a likelihood of numbers cannot predict {type(self.target).__name__}")
        return self.target


def _is_drawn_whole(sampler: str, samples: int) -> bool:
    """Whether all weights are drawn, none integrated: also for a single sample of any sampler."""
    return sampler == "monte_carlo" or samples == 1


@dataclass(frozen=True)
class Chunks:
    """How many rows and samples go through the network at once."""

    rows: int
    samples: int

    @classmethod
    def plan(
        cls,
        widths: tuple[int, ...],
        num_rows: int,
        num_samples: int,
        memory_bytes: int,
        cache_bytes: int = CACHE_BYTES,
    ) -> "Chunks":
        """Chunks whose buffers fit into the cache, of at least one row and one sample.

        A row keeps the outputs of all its samples until it is summarised, so memory bounds the
        number of rows first.
        """
        kept = num_samples * widths[-1] * 8 * _WORKING_COPIES
        pairs = max(1, min(cache_bytes, memory_bytes // 2) // (4 * _BUFFERS * max(widths)))
        rows = min(num_rows, (memory_bytes // 2) // kept, pairs // min(_MIN_SAMPLES, num_samples))
        rows = max(1, rows)
        return cls(rows, min(num_samples, max(1, pairs // rows)))
