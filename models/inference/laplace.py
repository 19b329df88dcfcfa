"""Laplace approximations: a Gaussian around a MAP fit, with the curvature there as its precision.

    P(w | D) ≈ N(ŵ, (H + δI)⁻¹),  H = Σ_i c_i J_iᵀ F_i J_i,  δ = 1/σ²

H is the generalised Gauss–Newton matrix (`models.inference.curvature`), c_i the weight of row i.
The prior's σ maximises the marginal likelihood

    log P(D) ≈ log P(D | ŵ) + Σ_b ½ [n_b log δ_b − δ_b ‖ŵ_b‖² − Σ_j log(λ_bj + δ_b)]

over the blocks b of n_b weights ŵ_b, with λ the eigenvalues of H. Each term is concave in log δ:
its derivative ½ [Σ_j λ_j/(λ_j + δ) − δ ‖ŵ‖²] + … falls. So the maximum is found by bisection.
Source: MacKay 1992 (a practical Bayesian framework for backpropagation networks), §2; Daxberger et
al. 2021 (arXiv 2106.14806); Immer et al. 2021 (arXiv 2008.08217, 2104.04975).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json, LaplaceConfig
from models.exceptions import CorruptArtifact, InvalidData, Stopped
from models.features.rows import Rows
from models.inference.curvature import (
    MOST,
    Block,
    Curvature,
    Member,
    Place,
    Spectrum,
    count_roots,
    fisher_roots,
    is_exact,
    run,
    split,
)
from models.inference.method import Finished, Fit, Stages, State, check_tensor
from models.inference.point import DrawsState, PointEstimates
from models.likelihoods import Likelihood
from models.networks import MLP, Network
from models.older_versions import LAST_RELEASE
from models.posteriors.priors import DiagonalPrior, GaussianPrior
from models.randomness import generator

MAX_FULL = 3_000  # weights: 72 MB as a matrix of float64, and seconds for its eigenvectors
MAX_SIDE = 4_096  # of a Kronecker factor: 134 MB, and half a minute
FIRST_SIGMA = 1.0  # of the prior, until the marginal likelihood chooses it
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-4, 1e3
_STEPS = 60  # halvings of the interval of log σ: to the last digit
_SHARE = 0.25  # epochs under the prior of the marginal likelihood, as a share of the fit's
_CHUNK_BYTES = 2**26

Chunks = Callable[[int], Iterable[Rows]]
"""The rows in chunks of this many."""
Stop = Callable[[], bool]


@dataclass(frozen=True)
class LaplaceState(State):
    """A fit, and the Gaussian around it. Weights outside of all blocks are as fitted.

    Args:
        blocks: by the names of their layers, in the order of the weight vector.
        linearised: whether the network is linear in the weights around the fit when it predicts.
    """

    kind = "laplace"
    purpose = "laplace"

    estimate: DrawsState
    blocks: dict[str, Block]
    linearised: bool = False

    @property
    def num_weights(self) -> int:
        return self.estimate.num_weights

    @property
    def point(self) -> dict[str, Tensor]:
        return self.estimate.point

    @property
    def centre(self) -> Float[Tensor, "weights"] | None:
        return self.estimate.weights[0] if self.linearised else None

    def parameters(self) -> list[Tensor]:
        return self.estimate.parameters()

    def named(self) -> dict[str, Tensor]:
        of_blocks = {
            f"block.{name}.{side}": tensor
            for name, block in self.blocks.items()
            for side, tensor in block.named().items()
        }
        return self.estimate.named() | of_blocks

    def at_mean(self) -> DrawsState:
        return self.estimate.detach()

    def pack(self) -> dict[str, Tensor]:
        packed = super().pack() | self.estimate.pack()
        packed["linearised"] = torch.tensor(int(self.linearised))
        for name, block in self.blocks.items():
            packed[f"block.{name}.start"] = torch.tensor(block.start)
            packed[f"block.{name}.biased"] = torch.tensor(int(block.biased))
        return packed

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "LaplaceState":
        blocks: dict[str, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("block."):
                name, field = key.removeprefix("block.").rsplit(".", 1)
                blocks.setdefault(name, {})[field] = value
        estimate = DrawsState.unpack(tensors, num_weights)
        read = [(name, Block.unpack(packed)) for name, packed in blocks.items()]
        in_order = sorted(read, key=lambda item: item[1].start)  # of the noise that they take
        return cls(estimate, dict(in_order), bool(tensors["linearised"]))

    def check(self, network: Network, likelihood: Likelihood) -> None:
        self.estimate.check(network, likelihood)
        if len(self.estimate.weights) != 1 or not self.blocks:
            raise CorruptArtifact("a Laplace approximation has one weight vector and blocks")
        for name, block in self.blocks.items():
            _check_block(f"block.{name}", block, network.layout.num_weights)

    @property
    def num_noise(self) -> int:
        return sum(block.scales.numel() for block in self.blocks.values())

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Return weight vectors from standard normals; point parameters are those of the fit."""
        fitted, count = self.estimate, len(noise)
        weights = fitted.weights.detach().expand(count, -1).clone()
        blocks = list(self.blocks.values())
        parts = noise.to(weights).split([block.scales.numel() for block in blocks], dim=1)
        for block, part in zip(blocks, parts, strict=True):
            weights[:, block.start : block.stop] += block.deviations(part)
        point = {k: v.detach().expand(count, *v.shape[1:]) for k, v in fitted.point.items()}
        return replace(fitted, weights=weights, point=point)


def _check_block(name: str, block: Block, num_weights: int) -> None:
    rows, columns = block.scales.shape if block.scales.ndim == 2 else (0, 0)
    if not rows * columns or block.start < 0 or block.stop > num_weights:
        raise CorruptArtifact(
            f"{name} covers weights {block.start} to {block.stop}; the network has {num_weights}"
        )
    check_tensor(f"{name}.scales", block.scales, (rows, columns))
    if bool((block.scales < 0).any()):
        raise CorruptArtifact(f"{name}.scales has negative values")
    for side, matrix, size in (("left", block.left, rows), ("right", block.right, columns)):
        if matrix is not None:
            check_tensor(f"{name}.{side}", matrix, (size, size))


def log_evidence(values: Float[Tensor, "*shape"], square: float, precision: float) -> float:
    """The term of a block, in nats.

    Args:
        values: the eigenvalues λ of H.
        square: ‖ŵ‖².
        precision: δ.
    """
    log_det = float((values + precision).log().sum())
    return 0.5 * (values.numel() * math.log(precision) - precision * square - log_det)


def best_sigma(values: Float[Tensor, "*shape"], square: float) -> float:
    """Return the σ = 1/√δ with the largest marginal likelihood, within the bounds."""
    low, high = math.log(SMALLEST_SIGMA), math.log(LARGEST_SIGMA)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        precision = math.exp(-2 * middle)
        determined = float((values / (values + precision)).sum())  # MacKay's γ
        if determined < precision * square:  # the weights are larger than σ allows
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


@dataclass(frozen=True)
class Laplace(PointEstimates):
    """A `map` fit, and the Gaussian around it, or around one under the prior that it chose.

    Raises:
        InvalidData: as `check`.
    """

    settings = LaplaceConfig
    stored = LaplaceState

    chosen: DiagonalPrior | None = None

    def __post_init__(self) -> None:
        self.check(self.config, self.network)  # the recipe has only an estimate of the inputs

    @classmethod
    def check(cls, config: LaplaceConfig, network: Network) -> None:
        if config.over == "all" and config.hessian == "full":
            raise InvalidData(
                f"the full curvature of all layers was taken out after release {LAST_RELEASE}: "
                "take hessian 'kron' or 'diagonal', or over 'last_layer'",
                "/method/hessian",
            )
        for member in split(network):
            if config.over == "all" and not isinstance(member.network, MLP):
                raise InvalidData(
                    "a Laplace approximation over all layers is for mlps alone: "
                    "take over 'last_layer'",
                    "/method/over",
                )
            _check_size(config, member.places(config.over))

    @cached_property
    def prior(self) -> GaussianPrior | DiagonalPrior:
        if self.chosen is not None:
            return self.chosen
        given = self.config.prior_sigma
        return GaussianPrior(FIRST_SIGMA if given == "auto" else given)

    @classmethod
    def epochs(cls, config: LaplaceConfig, fitted: int) -> int:
        """A share of those that the fit took: held-out rows may have ended it early.

        Here none do.
        """
        return math.ceil(_SHARE * fitted) if config.prior_sigma == "auto" else 0

    def finish(self, fit: Fit, stages: Stages) -> Finished:
        config, of_rows = self.config, (stages.problem.task.chunks, stages.config.training.seed)
        approximation = self.approximate(fit.state, *of_rows, stages.should_stop)
        if epochs := self.epochs(config, fit.best_epoch):
            sigmas = torch.full_like(approximation.state.estimate.weights[0], FIRST_SIGMA)
            for name, block in approximation.state.blocks.items():
                sigmas[block.start : block.stop] = approximation.metrics["prior_sigma"][name]
            chosen = replace(self, chosen=DiagonalPrior(sigmas))
            lower = replace(stages.lower(epochs, "laplace"), patience=None)
            again = stages.go_on(chosen, lower, fit.state, "laplace")
            return self.approximate(again, *of_rows, stages.should_stop)
        return approximation

    @torch.no_grad()
    def approximate(
        self,
        estimate: DrawsState,
        chunks: Chunks,
        seed: int = 0,
        should_stop: Stop = lambda: False,
    ) -> Finished:
        """Fit the Gaussian around the weight vector of `estimate`.

        `log_marginal_likelihood` of its metrics is of the encoded targets, in nats, `prior_sigma`
        the prior's scale of each block, by name.

        Args:
            chunks: the method's rows, with all network inputs.

        Raises:
            Stopped: between two chunks of rows, once `should_stop` returns True.
        """
        estimate = estimate.detach()
        spectra: dict[str, Spectrum] = {}
        total = 0.0
        for member in split(self.network):
            of_member, log_likelihood = self._curvature(member, estimate, chunks, seed, should_stop)
            prefix = f"member{member.number}." if estimate.members > 1 else ""
            spectra |= {f"{prefix}{name}": spectrum for name, spectrum in of_member.items()}
            total += log_likelihood
        sigmas, blocks = {}, {}
        for name, spectrum in spectra.items():
            square = float(
                estimate.weights[0, spectrum.start : spectrum.stop].double().square().sum()
            )
            given = self.config.prior_sigma
            sigmas[name] = sigma = best_sigma(spectrum.values, square) if given == "auto" else given
            blocks[name] = spectrum.block(sigma**-2)
            total += log_evidence(spectrum.values, square, sigma**-2)
        state = LaplaceState(estimate, blocks, linearised=self.config.over == "all")
        note = (
            f"the curvature of laplace is a mean over {MOST} targets per row, drawn from the "
            "model, because this likelihood has no short closed form for it"
        )
        metrics: Json = {"log_marginal_likelihood": total, "prior_sigma": sigmas}
        return Finished(state, metrics, () if is_exact(self.likelihood) else (note,))

    def _curvature(
        self,
        member: Member,
        estimate: DrawsState,
        chunks: Chunks,
        seed: int,
        should_stop: Callable[[], bool],
    ) -> tuple[dict[str, Spectrum], float]:
        """The spectra of a network, and its log likelihood."""
        vector, number, places = estimate.weights[0], member.number, member.places(self.config.over)
        point = {k: v[0].reshape(-1)[number].double() for k, v in estimate.point.items()}
        noise = generator(seed, "fisher", number, device=vector.device)
        weights, log_likelihood = member.weights(vector), 0.0
        curvature = Curvature(self.config.hessian, places)
        for rows in chunks(self._rows_at_once(places)):
            if should_stop():
                raise Stopped
            counts = rows.inputs.new_ones(len(rows)) if rows.weights is None else rows.weights
            counts = (counts if counts.ndim == 1 else counts[:, number]).to(vector).double()
            read = run(member.network, weights, member.read(rows.inputs), self.config.over)
            roots = fisher_roots(self.likelihood, read.outputs, point, noise)
            curvature.add(read, roots.double(), counts)
            log_prob = self.likelihood.log_prob(read.outputs, rows.targets, point)
            log_likelihood += float((log_prob * counts).sum())
        return curvature.spectra(), log_likelihood

    def _rows_at_once(self, places: Mapping[str, Place]) -> int:
        roots, shapes = count_roots(self.likelihood), [place.shape for place in places.values()]
        if self.config.hessian == "full":
            numbers = roots * sum(map(math.prod, shapes))
        else:
            numbers = sum(roots * outputs + columns for outputs, columns in shapes)
        return max(1, _CHUNK_BYTES // (8 * numbers))


def _check_size(config: LaplaceConfig, places: Mapping[str, Place]) -> None:
    total = sum(place.stop - place.start for place in places.values())  # of one layer if full
    if config.hessian == "full" and total > MAX_FULL:
        raise InvalidData(
            f"the full curvature of {total} weights is too large: at most {MAX_FULL} are allowed; "
            "take hessian 'kron'",
            "/method/hessian",
        )
    side, name = max((max(place.shape), name) for name, place in places.items())
    if config.hessian == "kron" and side > MAX_SIDE:
        raise InvalidData(
            f"layer {name} has {side} inputs or outputs, and a Kronecker factor at most "
            f"{MAX_SIDE}: take hessian 'diagonal'"
            + (", or over 'last_layer'" if config.over == "all" else ""),
            "/method/hessian",
        )
