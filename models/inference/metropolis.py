"""Random-walk Metropolis: symmetric Gaussian proposals, accepted in log space, all rows each time.

A proposal is taken if log u < log P(w' | D) − log P(w | D). During burn-in the logarithm of a
chain's scale moves towards an acceptance of 23 %, which is best for many dimensions (Roberts et al.
1997), by ever smaller steps; it is fixed before the first draw is kept.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from models.config import MetropolisConfig
from models.features.rows import Rows
from models.inference.chains import ChainState, LogPosterior, Terms, thinned

MAX_WEIGHTS = 2_000  # a random walk crosses n dimensions in some n steps, each over all rows
ACCEPTANCE = 0.234
_FASTEST = 0.5  # of the first adaptations, in the logarithm of the scale


@dataclass(frozen=True)
class Metropolis:
    """Exact but for the chains' length: nothing is discretised, no mini-batch adds noise."""

    uses_all_rows: ClassVar[bool] = True

    config: MetropolisConfig

    @property
    def kept_steps(self) -> tuple[int, ...]:
        return thinned(self.config)

    @torch.no_grad()
    def move(
        self,
        posterior: LogPosterior,
        state: ChainState,
        batch: Rows,
        step: int,
        generator: torch.Generator,
    ) -> Terms:
        """Each chain takes its proposal or stays; the terms of log P of where it is then."""
        values = state.values
        if step == 0:
            state.density.copy_(posterior(values, batch).log_density)
            state.log_scale.fill_(-0.5 * torch.tensor(float(values.shape[1] * len(batch))).log())
        noise = torch.empty_like(values).normal_(generator=generator)
        uniform = torch.empty_like(state.density).uniform_(generator=generator)
        proposal = torch.addcmul(values, noise, state.log_scale.exp().unsqueeze(1))
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
