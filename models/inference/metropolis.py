"""Random-walk Metropolis with symmetric Gaussian proposals; every step reads all rows.

Proposals have the shape of the posterior at the fit: their covariance is a multiple of the
preconditioner P.

A proposal w' is accepted if log u < log P(w' | D) − log P(w | D), with u uniform in (0, 1). During
burn-in the log scale of each chain's proposals is adapted with decreasing steps towards an
acceptance rate of 23 %, the optimum for many dimensions (Roberts et al. 1997). It is fixed before
the first draw is kept.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from models.config import MetropolisConfig
from models.features.rows import Rows
from models.inference.chains import ChainState, thinned
from models.inference.posterior import LogPosterior, Terms
from models.inference.preconditioner import spread

MAX_WEIGHTS = 2_000  # a random walk needs about n steps for n weights, each over all rows
ACCEPTANCE = 0.234
_SCALE = 2.38  # ÷ √values: the best scale for a Gaussian target (Roberts et al. 1997)
_FASTEST = 0.5  # step of the first adaptation, in the logarithm of the scale


@dataclass(frozen=True)
class Metropolis:
    """Asymptotically exact: no discretisation and no noise from mini-batches."""

    uses_all_rows: ClassVar[bool] = True

    config: MetropolisConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        return thinned(self.config)

    def centres(self, step: int) -> bool:
        return False

    def adapts(self, step: int) -> bool:
        return False

    @torch.no_grad()
    def move(
        self,
        posterior: LogPosterior,
        state: ChainState,
        batch: Rows,
        step: int,
        generator: torch.Generator,
    ) -> Terms:
        """Accept or reject one proposal per chain; return the terms at the new positions."""
        values = state.values
        if step == 0:
            state.density.copy_(posterior(values, batch).log_density)
            state.log_scale.fill_(math.log(_SCALE / math.sqrt(values.shape[1])))
        noise = torch.empty_like(values).normal_(generator=generator)
        uniform = torch.empty_like(state.density).uniform_(generator=generator)
        scale = state.log_scale.exp().unsqueeze(1)
        proposal = torch.addcmul(values, spread(state.root, noise), scale)
        terms = posterior(proposal, batch)
        accepted = uniform.log() < terms.log_density - state.density
        values[accepted] = proposal[accepted]
        state.density[accepted] = terms.log_density[accepted]
        if step < self.config.burn_in:
            rate = _FASTEST / (1 + step / 10) ** 0.6
            state.log_scale.add_(rate * (accepted.to(values.dtype) - ACCEPTANCE))
        else:
            state.accepted.add_(accepted)
        log_prior = posterior.prior.log_prob(posterior.split(values).weights).sum(1)
        return Terms(state.density - log_prior, log_prior)
