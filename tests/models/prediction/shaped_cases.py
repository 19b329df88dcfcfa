"""Mixtures with a shape, and their distribution on a fine grid by plain formulas."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from models.features.scales import IdentityScale, LogitScale, LogScale, PowerScale, Scale
from models.features.targets import NumberTarget
from models.likelihoods import ShapedLikelihood
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.shaped import FamilyName

SAMPLES, ROWS = 4, 3

SCALES: dict[str, tuple[Scale, dict[str, float]]] = {
    "identity": (IdentityScale(), {}),
    "bounded": (IdentityScale(), {"lower": 0.0}),
    "log": (LogScale(0.0, 0.1), {"lower": 0.0}),
    "power": (PowerScale(2.0, 1.5, 0.3), {"lower": 0.0}),
    "logit": (LogitScale(0.0, 30.0, 0.05), {"lower": 0.0, "upper": 30.0}),
}
FAMILIES: tuple[FamilyName, ...] = ("normal", "logistic")


def values(*, integer: bool = False) -> np.ndarray:
    """Skewed positive numbers below 30."""
    drawn = np.random.default_rng(0).gamma(2.0, 2.0, 400).clip(0.01, 29)
    return np.round(drawn) if integer else drawn


@dataclass(frozen=True)
class Case:
    """One kind of target and likelihood, with random outputs."""

    scale: str
    family: FamilyName
    components: int
    atoms: tuple[float, ...] = ()
    integer: bool = False

    def __str__(self) -> str:
        kind = "-integer" if self.integer else ""
        return f"{self.scale}-{self.family}-{self.components}-{len(self.atoms)}{kind}"

    @cached_property
    def target(self) -> NumberTarget:
        scale, bounds = SCALES[self.scale]
        return NumberTarget.shaped(
            values(integer=self.integer), scale, integer=self.integer, atoms=self.atoms, **bounds
        )

    @cached_property
    def likelihood(self) -> ShapedLikelihood:
        return ShapedLikelihood(self.target, self.family, self.components)

    @cached_property
    def outputs(self) -> Tensor:
        random = torch.Generator().manual_seed(1)
        shape = (SAMPLES, ROWS, self.likelihood.num_outputs)
        return 0.6 * torch.randn(shape, generator=random, dtype=torch.float64) - 0.2

    @cached_property
    def mixture(self) -> NumberMixture:
        parts = self.likelihood.parts(self.outputs)
        return NumberMixture.of(self.target, parts)

    @property
    def reference(self) -> stats.rv_continuous:
        return stats.norm if self.family == "normal" else stats.logistic

    def sample_cdf(self, y: np.ndarray, sample: int, row: int) -> np.ndarray:
        """P(Y ≤ y | w_s) by scipy: components cut off at the support, or rounded, plus atoms."""
        base, target = self.reference, self.target
        locs, scales, weights = (
            part[sample, :, row].numpy()
            for part in (self.mixture.locs, self.mixture.scales, self.mixture.weights)
        )

        def z_of(value: np.ndarray | float) -> np.ndarray:
            tensor = torch.as_tensor(value, dtype=torch.float64)
            return target.to_z(tensor).numpy()

        edge = np.floor(y) + 0.5 if self.integer else y
        total = np.zeros_like(y)
        for loc, scale, weight in zip(locs, scales, weights, strict=True):
            lower = None if self.integer else target.lower
            upper = None if self.integer else target.upper
            low = 0.0 if lower is None else base.cdf((z_of(lower) - loc) / scale)
            high = 1.0 if upper is None else base.cdf((z_of(upper) - loc) / scale)
            inside = np.clip(edge, target.lower, target.upper)
            each = (base.cdf((z_of(inside) - loc) / scale) - low) / (high - low)
            total += weight * each
        for atom, probability in zip(self.atoms, self.mixture.atoms[sample, :, row], strict=True):
            total += probability.item() * (y >= atom)
        if target.lower is not None:
            total = np.where(y < target.lower, 0.0, total)
        if target.upper is not None:
            total = np.where(y >= target.upper, 1.0, total)
        return total

    def cdf(self, y: np.ndarray, row: int) -> np.ndarray:
        return np.mean([self.sample_cdf(y, s, row) for s in range(SAMPLES)], axis=0)


CASES = [
    Case("identity", "logistic", 3, (0.0, 2.0)),
    Case("bounded", "normal", 1),
    Case("bounded", "logistic", 2, (0.0,)),
    Case("log", "logistic", 3, (0.0, 2.0)),
    Case("log", "normal", 1),
    Case("power", "logistic", 2, (0.0,)),
    Case("logit", "normal", 1),
    Case("logit", "logistic", 3, (0.0, 2.0)),
    Case("bounded", "logistic", 3, (0.0,), integer=True),
    Case("log", "normal", 1, integer=True),
    Case("identity", "normal", 1, integer=True),
    Case("logit", "normal", 2, integer=True),
]
