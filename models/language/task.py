"""A text as a task: windows in order. Hidden states are passed on, without gradients.

Per target token, with N of them in the text and B in a window,

    loss = (1/B) Σ_t −log p(x_t | x_<t, w) + c KL(q‖P)/N,   w ~ q once

for the window. Windows are of equal size, so that the mean over an epoch of M = N/B windows is the
negative ELBO per token: the KL counts once (Fortunato et al. 2017, arXiv 1704.02798, eq. 3–5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.nn.functional import cross_entropy

from models.config import TrainingConfig
from models.inference.method import WindowMethod
from models.inference.objectives import Loss, negative_elbo
from models.language.corpus import Corpus
from models.networks.recurrent import LanguageModel
from models.training.distributed import ALONE, Ranks
from models.training.loop import Carried


@dataclass(frozen=True)
class TextTask:
    """Windows of a corpus, in order. Only a single process can fit to them.

    Args:
        corpus: of whole windows.
        steps: tokens of each stream in a window.
    """

    ranks: ClassVar[Ranks] = ALONE

    network: LanguageModel
    corpus: Corpus
    steps: int

    @property
    def device(self) -> torch.device:
        return self.corpus.streams.device

    @property
    def num_data(self) -> int:
        return self.corpus.num_targets

    def num_batches(self, config: TrainingConfig) -> int:
        return -(-self.corpus.num_steps // self.steps)

    def batches(self, config: TrainingConfig, epoch: int) -> Sequence[int]:
        """First steps of the windows."""
        return range(0, self.corpus.num_steps, self.steps)

    def loss(
        self,
        method: WindowMethod,
        state: Any,
        batch: int,
        *,
        kl_weight: float,
        noise: torch.Generator,
        carried: Carried,
    ) -> tuple[Loss, Carried]:
        """The negative ELBO per token, estimated from one window."""
        tokens, targets = self.corpus.window(batch, self.steps)
        draw = method.draw(state, len(tokens), noise)
        logits, carried = method.products.advance(
            self.network.advance, draw.weights, tokens, carried or None, draw.masks
        )
        flat = logits.flatten(0, -2)
        members = flat.shape[0] // targets.numel()  # that are fitted in parallel
        nll = cross_entropy(flat, targets.flatten().repeat(members), reduction="none")
        nll = nll.view(members, -1).sum(0)
        return negative_elbo(nll, draw.penalty, self.num_data, kl_weight), carried
