"""Predictive distributions: equal-weight mixtures over the samples of the posterior.

Those of numbers are in `models.likelihoods.number_mixture`; those of classes are here.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr

from models.likelihoods.number_mixture import NumberMixture, PerRow, variance

_FEW_CLASSES = 16


@dataclass(frozen=True)
class CategoricalMixture:
    """Sample s predicts the class probabilities probs[s], the softmax of logits[s], for each row.

    Logits distinguish probabilities that floats cannot, such as 1 − 1e-20 and 1 − 1e-40. `member`
    is the member that each sample belongs to, if the network has several.
    """

    logits: Float[Tensor, "samples rows classes"]
    member: Int[Tensor, "samples"] | None = None

    @cached_property
    def probs(self) -> Float[Tensor, "samples rows classes"]:
        if self.logits.shape[-1] > _FEW_CLASSES:
            return self.logits.softmax(-1)
        by_class = self.logits.transpose(1, 2).contiguous()  # a softmax of few is ten times slower
        return by_class.softmax(1).transpose(1, 2).contiguous()

    @property
    def num_samples(self) -> int:
        return len(self.logits)

    def mean(self) -> Float[Tensor, "rows classes"]:
        return self.probs.mean(0)

    def of_members(self, member: Int[Tensor, "samples"] | None) -> "CategoricalMixture":
        return replace(self, member=member)

    def tempered(self, temperature: float) -> "CategoricalMixture":
        """Each sample's logits ÷ the temperature."""
        return replace(self, logits=self.logits / temperature)

    def aleatoric(self) -> Float[Tensor, "rows classes"]:
        """The mean over the samples of p(1 − p) (Kwon et al. 2018)."""
        return (self.probs * (1 - self.probs)).mean(0)

    def epistemic(self) -> Float[Tensor, "rows classes"]:
        """The variance over the samples of p (divided by S, two passes)."""
        return variance(self.probs, correction=0)

    def total_entropy(self) -> PerRow:
        """H(mean p), in nats."""
        return entr(self.mean()).sum(-1)

    def expected_entropy(self) -> PerRow:
        """The mean over the samples of H(p): the aleatoric part, in nats."""
        return entr(self.probs).mean(0).sum(-1)  # the last axis is short, and so slow to sum

    def mutual_information(self) -> PerRow:
        """Total minus expected entropy: the epistemic part, in nats."""
        return (self.total_entropy() - self.expected_entropy()).clamp_min(0)

    def log_prob(self, targets: Int[Tensor, "rows"]) -> PerRow:
        """log of the mean probability of the true class."""
        chosen = self.mean().gather(-1, targets.unsqueeze(-1)).squeeze(-1)
        return chosen.clamp_min(1e-300).log()


Mixture = NumberMixture | CategoricalMixture
