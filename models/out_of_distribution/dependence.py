"""How much rarer a row's values are together than each by itself."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.out_of_distribution.ratio_nets import NETS, Draws, RatioNets
from models.tensors import TensorRecord

_BACKGROUND = 16  # rows that tell what a column contributes
_LEAST_SCALE = 1e-3


@dataclass(frozen=True)
class Dependence(TensorRecord):
    """The log ratio of the product of the columns' densities to the density of the row,

        s(x) = log ∏_j p_j(x_j) − log p(x),

    which does not depend on how a column is scaled. Small networks estimate it: the best
    discrimination between training rows and rows of independent columns is the logistic function
    of −s (Hastie et al. 2009, The Elements of Statistical Learning, §14.2.4; Gutmann and Hyvärinen
    2010, AISTATS). Rows of independent columns take each column from a training row of its own.
    s is the mean over the networks. Values outside the range of training count as its end: how far
    outside they are is another part's to say.

    Args:
        centre, scale, lower, upper: of each input in training rows; the bounds are standardised.
        background: standardised training rows.
    """

    centre: Float[Tensor, "inputs"]
    scale: Float[Tensor, "inputs"]
    lower: Float[Tensor, "inputs"]
    upper: Float[Tensor, "inputs"]
    background: Float[Tensor, "few inputs"]
    nets: RatioNets

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "rows inputs"],
        column: Int[Tensor, "inputs"],
        seed: int,
        weights: Float[Tensor, "rows"] | None = None,
    ) -> tuple["Dependence", Float[Tensor, "rows"]]:
        """Fit it to training rows.

        Args:
            column: the column that each input belongs to, numbered from 0 without gaps; at least
                two of them.
            weights: of the rows, above 0; None if each is 1.

        Returns:
            it, and the score of each row by the network that did not learn from this row.
        """
        x = x.detach().float().cpu()
        centre, scale = x.mean(0), x.std(0, correction=0).clamp_min(_LEAST_SCALE)
        z = (x - centre) / scale
        nets = RatioNets.begin(x.shape[1], seed)
        fold = torch.arange(len(z)) % NETS
        with torch.enable_grad():
            nets.train(z, column, Draws.of(fold, weights, seed))
        nets = nets.detach()
        left_out = -nets(z.expand(NETS, -1, -1)).gather(0, fold.unsqueeze(0)).squeeze(0)
        places = torch.linspace(0, len(z) - 1, min(_BACKGROUND, len(z))).long()
        return cls(centre, scale, z.amin(0), z.amax(0), z[places], nets), left_out

    def __call__(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows"]:
        """The score of each row."""
        return self.score(self.standardise(x))

    def contributions(
        self, x: Float[Tensor, "rows inputs"], column: Int[Tensor, "inputs"]
    ) -> Float[Tensor, "rows columns"]:
        """By how much the score falls, in the mean, if a column's value is another row's.

        Args:
            column: as in `fit`.
        """
        z = self.standardise(x)
        score, falls = self.score(z), []
        for one in range(int(column.max()) + 1):
            others = torch.where(column == one, self.background.unsqueeze(1), z).flatten(0, 1)
            falls.append(score - self.score(others).view(-1, len(z)).mean(0))
        return torch.stack(falls, 1)

    def standardise(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows inputs"]:
        """The inputs in standard deviations from their mean, within the range of training."""
        return torch.minimum(torch.maximum((x - self.centre) / self.scale, self.lower), self.upper)

    def score(self, z: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows"]:
        """The score of standardised inputs."""
        return -self.nets(z.expand(NETS, -1, -1)).mean(0)
