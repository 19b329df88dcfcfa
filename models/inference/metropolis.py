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

import torch
from torch import Generator

from models.config import Json, MetropolisConfig
from models.exceptions import InvalidData
from models.features.rows import Rows
from models.inference.chains import Chains, ChainState, Kernel
from models.inference.posterior import LogPosterior, Terms, spread
from models.networks import Network, num_inner_weights

MAX_WEIGHTS = 2_000  # a random walk needs about n steps for n weights, each over all rows
ACCEPTANCE = 0.234
_SCALE = 2.38  # ÷ √values: the best scale for a Gaussian target (Roberts et al. 1997)
_FASTEST = 0.5  # step of the first adaptation, in the logarithm of the scale


@dataclass(frozen=True)
class RandomWalk(Kernel):
    """Asymptotically exact: no discretisation and no noise from mini-batches."""

    uses_all_rows = True

    config: MetropolisConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        config = self.config
        return tuple(config.burn_in + config.thinning * (i + 1) for i in range(config.draws))

    @torch.no_grad()
    def move(
        self, posterior: LogPosterior, state: ChainState, batch: Rows, step: int, source: Generator
    ) -> Terms:
        """Accept or reject one proposal per chain; return the terms at the new positions."""
        values = state.values
        if step == 0:
            state.density.copy_(posterior(values, batch).log_density)
            state.log_scale.fill_(math.log(_SCALE / math.sqrt(values.shape[1])))
        noise = torch.empty_like(values).normal_(generator=source)
        uniform = torch.empty_like(state.density).uniform_(generator=source)
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

    def describe(self, state: ChainState) -> Json:
        steps = self.config.draws * self.config.thinning
        return {"acceptance_rate": float(state.accepted.mean()) / steps}


class Metropolis(Chains):
    """A random walk around each fit, on all rows."""

    settings = MetropolisConfig
    kernel = RandomWalk

    @classmethod
    def check(cls, config: MetropolisConfig, network: Network) -> None:
        if (count := num_inner_weights(network)) > MAX_WEIGHTS:
            raise InvalidData(
                f"a random walk over more than {count} weights would hardly move: metropolis "
                f"takes up to {MAX_WEIGHTS}; make the network smaller, or take 'sgld'",
                "/network/hidden",
            )
