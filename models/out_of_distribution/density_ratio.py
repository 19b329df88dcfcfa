"""How much rarer a row's values are together than each by itself."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import silu, softplus

from models.randomness import generator
from models.tensors import TensorRecord

NETS = 4  # each leaves out a fold of the rows
STEPS, BATCH = 400, 256
_HIDDEN, _LEAST_HIDDEN = 32, 8
_MOST_WEIGHTS = 65_536  # of a net's first layer
_RATE, _DECAY = 3e-3, 1e-2
_PLACES_PER_ROW = 8  # of a table of rows to draw from: weights count in eighths of their mean
_BACKGROUND = 16  # rows that tell what a column contributes
_LEAST_SCALE = 1e-3


@dataclass(frozen=True)
class RatioNets(TensorRecord):
    """Networks of two hidden layers with SiLU, whose logit is the log ratio of two densities."""

    first: Float[Tensor, "nets inputs hidden"]
    first_bias: Float[Tensor, "nets 1 hidden"]
    second: Float[Tensor, "nets hidden hidden"]
    second_bias: Float[Tensor, "nets 1 hidden"]
    last: Float[Tensor, "nets hidden 1"]
    last_bias: Float[Tensor, "nets 1 1"]

    @classmethod
    def begin(cls, inputs: int, seed: int) -> "RatioNets":
        """The weights that training starts from."""
        random = generator(seed, "dependence")
        hidden = max(_LEAST_HIDDEN, min(_HIDDEN, _MOST_WEIGHTS // inputs))
        widths = (inputs, hidden, hidden, 1)
        tensors = []
        for ins, outs in pairwise(widths):
            tensors.append(torch.randn(NETS, ins, outs, generator=random) / math.sqrt(ins))
            tensors.append(torch.zeros(NETS, 1, outs))
        return cls(*tensors)

    def __call__(self, z: Float[Tensor, "nets rows inputs"]) -> Float[Tensor, "nets rows"]:
        """The logits, in the type of z."""
        first, first_bias, second, second_bias, last, last_bias = (
            weight.to(z) for weight in vars(self).values()
        )
        hidden = silu(torch.baddbmm(first_bias, z, first))
        hidden = silu(torch.baddbmm(second_bias, hidden, second))
        return torch.baddbmm(last_bias, hidden, last).squeeze(2)

    def train(
        self, z: Float[Tensor, "rows inputs"], column: Int[Tensor, "inputs"], draws: "Draws"
    ) -> None:
        """Learn in place, all nets at once, each from the rows outside its fold."""
        weights = [weight.requires_grad_() for weight in vars(self).values()]
        steps = max(2, min(STEPS, len(z)))
        optimiser = torch.optim.AdamW(weights, lr=_RATE, weight_decay=_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
        each = torch.arange(z.shape[1])
        for _ in range(steps):
            real = z[draws(1).squeeze(2)]
            independent = z[draws(int(column.max()) + 1)[:, :, column], each]
            loss = softplus(-self(real)) + softplus(self(independent))
            optimiser.zero_grad()
            loss.mean(1).sum().backward()
            optimiser.step()
            schedule.step()


@dataclass(frozen=True)
class Draws:
    """Draws of row numbers for each net, from the rows outside its fold.

    Args:
        tables: row numbers, each as often as its weight says.
    """

    tables: Int[Tensor, "nets places"]
    random: torch.Generator

    @classmethod
    def of(
        cls, fold: Int[Tensor, "rows"], weights: Float[Tensor, "rows"] | None, seed: int
    ) -> "Draws":
        """Tables of the rows.

        Args:
            weights: a row of weight w is drawn as often as w rows; None if each is 1.
        """
        each = torch.ones(len(fold)) if weights is None else weights.cpu()
        places = _PLACES_PER_ROW * len(fold)
        shares = (torch.arange(places, dtype=torch.float64) + 0.5) / places
        tables = []
        for net in range(NETS):
            rows = torch.nonzero(fold != net).squeeze(1)
            sums = each[rows].double().cumsum(0)
            found = torch.searchsorted(sums, shares * sums[-1])
            tables.append(rows[found.clamp_max(len(rows) - 1)])
        return cls(torch.stack(tables), generator(seed, "dependence", "rows"))

    def __call__(self, count: int) -> Int[Tensor, "nets batch count"]:
        """`count` independent rows for each place of a batch."""
        nets, places = self.tables.shape
        drawn = torch.randint(places, (nets, BATCH * count), generator=self.random)
        return self.tables.gather(1, drawn).view(nets, BATCH, count)


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
