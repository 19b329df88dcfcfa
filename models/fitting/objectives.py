"""The negative evidence lower bound on mini-batches, and the weight of its KL term.

    nelbo = E_q[−log P(D | w)] + KL(q‖P)

is estimated on a mini-batch B as (N/|B|) · Σ_{i∈B} nll_i + c · KL, with N = `num_data` likelihood
terms. With c = 1 its expectation over mini-batches is the bound itself for any |B|.
All values here are divided by N ("per row"), so that learning rates do not depend on the size of
the data. This does not change the minimiser.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from models.config import KLConfig
from models.fitting.distributed import Part

Scalar = Float[Tensor, ""]


@dataclass(frozen=True)
class Loss:
    """Both terms in nats per row of the data: `nelbo = nll + kl_weight · kl`.

    If parts of a network have KL weights of their own, `nelbo` has each part's KL with its weight.
    """

    nll: Scalar
    kl: Scalar
    nelbo: Scalar

    def divided(self, factor: float) -> "Loss":
        """All terms ÷ `factor`, which has the same minimiser."""
        return Loss(self.nll / factor, self.kl / factor, self.nelbo / factor)


def negative_elbo(
    nll: Float[Tensor, "*members batch"],
    kl: Scalar,
    num_data: int,
    kl_weight: float,
    part: Part | None = None,
    *,
    tempered: Scalar | None = None,
) -> Loss:
    """Return the mini-batch estimate of the negative ELBO, divided by `num_data`.

    For a part of a mini-batch, both terms are that part's share: the parts' sums are the terms of
    the whole mini-batch. The losses of members are added, so that each has the gradient that it
    would have alone. A member that leaves out rows has weight 0 for them in `nll`, and the same
    `num_data`: both terms are divided by the number of rows that mini-batches are taken from.

    Args:
        nll: −log P(y_i | x_i, w) of each likelihood term in the batch, in nats.
        kl: KL(q‖P) of the whole network, in nats; of all members together.
        num_data: likelihood terms in the training set (rows; tokens or steps for sequences).
        kl_weight: c; 1 gives the ELBO.
        part: the part of the mini-batch that `nll` belongs to; by default all of it.
        tempered: the KL with the weights of the network's parts, in nats; by default `kl`.

    Raises:
        ValueError: if `num_data` is below 1.
    """
    if num_data < 1:
        raise ValueError(f"num_data must be at least 1; got {num_data}")
    part = part or Part.whole(nll.shape[-1])
    nll_per_row, kl_per_row = nll.sum() / part.total, kl / (num_data * part.ranks)
    second = kl_per_row if tempered is None else tempered / (num_data * part.ranks)
    return Loss(nll_per_row, kl_per_row, nll_per_row + kl_weight * second)


def kl_weight(config: KLConfig, *, batch: int, num_batches: int, num_parameters: int) -> float:
    """Return c for mini-batch `batch` (from 0) of an epoch of M = `num_batches`, before warm-up.

    uniform: 1. blundell: M·2^(M−i)/(2^M − 1), i from 1 (Blundell et al. 2015, §3.4), computed as
    M·2^−i/(1 − 2^−M), since 2^M overflows; its mean over an epoch is 1. parameters: 1 divided by
    the number of variational parameters. A number is c itself.
    """
    match config.weight:
        case "uniform" | None:
            return 1.0
        case "blundell":
            return float(num_batches * 2.0 ** -(batch + 1) / (1 - 2.0**-num_batches))
        case "parameters":
            return 1.0 / num_parameters
        case number:
            return float(number)


def warmup(step: int, warmup_steps: int) -> float:
    """Return the factor on c: it rises linearly to 1 over the first `warmup_steps` steps."""
    return min(1.0, (step + 1) / warmup_steps) if warmup_steps > 0 else 1.0
