"""Fits the Gaussian around a MAP fit: one pass over the rows, then the scale of the prior."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from models.config import Json, LaplaceConfig
from models.exceptions import Stopped
from models.features.rows import Rows
from models.inference.laplace.curvature import Curvature, Diagonal, Full, Kronecker, Spectrum
from models.inference.laplace.evidence import best_sigma, log_evidence
from models.inference.laplace.fisher import MOST, count_roots, fisher_roots, is_exact
from models.inference.laplace.layers import Member, Place, run, split
from models.inference.laplace.state import LaplaceState
from models.inference.point import DrawsState
from models.likelihoods import Likelihood
from models.networks import Network
from models.randomness import generator

_CHUNK_BYTES = 2**26

Chunks = Callable[[int], Iterable[Rows]]
"""The rows in chunks of this many."""


@dataclass(frozen=True)
class LaplaceFit:
    """The Gaussian, and how it was found.

    Args:
        sigmas: the prior's scale of each block, by name.
        log_marginal_likelihood: of the encoded targets, in nats.
    """

    state: LaplaceState
    sigmas: Mapping[str, float]
    log_marginal_likelihood: float
    notes: tuple[str, ...] = ()

    @property
    def metrics(self) -> Json:
        return {
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "prior_sigma": dict(self.sigmas),
        }

    def prior_sigmas(self, elsewhere: float) -> Tensor:
        """The prior's scale of each weight; `elsewhere` for those outside of all blocks."""
        sigmas = torch.full_like(self.state.estimate.weights[0], elsewhere)
        for name, block in self.state.blocks.items():
            sigmas[block.start : block.stop] = self.sigmas[name]
        return sigmas


@dataclass(frozen=True)
class Approximation:
    """The Laplace approximation of a network's posterior.

    Rows must be a method's rows with all network inputs (`models.tabular.task`).
    """

    network: Network
    likelihood: Likelihood
    config: LaplaceConfig
    seed: int = 0
    should_stop: Callable[[], bool] = field(default=lambda: False)

    @torch.no_grad()
    def fit(self, estimate: DrawsState, chunks: Chunks) -> LaplaceFit:
        """Fit the Gaussian around the weight vector of `estimate`.

        Raises:
            Stopped: between two chunks of rows, once `should_stop` returns True.
        """
        estimate = estimate.detach()
        spectra: dict[str, Spectrum] = {}
        total = 0.0
        for member in split(self.network):
            found, log_likelihood = self._curvature(member, estimate, chunks)
            prefix = f"member{member.number}." if estimate.members > 1 else ""
            spectra |= {f"{prefix}{name}": spectrum for name, spectrum in found.items()}
            total += log_likelihood
        sigmas, blocks = {}, {}
        for name, spectrum in spectra.items():
            square = float(
                estimate.weights[0, spectrum.start : spectrum.stop].double().square().sum()
            )
            sigmas[name] = sigma = self._sigma(spectrum, square)
            blocks[name] = spectrum.block(sigma**-2)
            total += log_evidence(spectrum.values, square, sigma**-2)
        state = LaplaceState(estimate, blocks, linearised=self.config.over == "all")
        return LaplaceFit(state, sigmas, total, self._notes())

    def _sigma(self, spectrum: Spectrum, square: float) -> float:
        given = self.config.prior_sigma
        return best_sigma(spectrum.values, square) if given == "auto" else given

    def _curvature(
        self, member: Member, estimate: DrawsState, chunks: Chunks
    ) -> tuple[dict[str, Spectrum], float]:
        """The spectra of a network, and its log likelihood."""
        vector, number, places = estimate.weights[0], member.number, member.places(self.config.over)
        point = {k: v[0].reshape(-1)[number].double() for k, v in estimate.point.items()}
        noise = generator(self.seed, "fisher", number, device=vector.device)
        weights, log_likelihood = member.weights(vector), 0.0
        curvature = _build(self.config.hessian, places)
        for rows in chunks(self._rows_at_once(places)):
            if self.should_stop():
                raise Stopped
            counts = _weights(rows, number).to(vector).double()
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

    def _notes(self) -> tuple[str, ...]:
        if is_exact(self.likelihood):
            return ()
        note = (
            f"the curvature of laplace is a mean over {MOST} targets per row, drawn from the "
            "model, because this likelihood has no short closed form for it"
        )
        return (note,)


def _build(hessian: str, places: Mapping[str, Place]) -> Curvature:
    match hessian:
        case "full":
            return Full(places)
        case "diagonal":
            return Diagonal(places)
    return Kronecker(places)


def _weights(rows: Rows, member: int) -> Tensor:
    if rows.weights is None:
        return rows.inputs.new_ones(len(rows))
    return rows.weights if rows.weights.ndim == 1 else rows.weights[:, member]
