"""The standard error of a mean over samples, which may be divided among members."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def standard_error(
    values: Float[Tensor, "samples *rest"], member: Int[Tensor, "samples"] | None = None
) -> Float[Tensor, "*rest"]:
    """Return √(Σ_m n_m s_m²) ÷ S, with the variance s_m² of the n_m samples of member m.

    The members are fixed, so that the differences between them are no sampling error (stratified
    sampling: Cochran 1977, Sampling Techniques, eq. 5.6 with equal weights of samples). Without
    members, or with members of a single sample, it is the standard deviation ÷ √S.

    Args:
        member: the number of the member that each sample belongs to.
    """
    counts = None if member is None else torch.bincount(member)
    if member is None or counts is None or bool((counts == 1).any()):
        centred, factor = values - values.mean(0), len(values) / (len(values) - 1)
        return (factor * centred.square_().sum(0)).sqrt() / len(values)
    sums = values.new_zeros(len(counts), *values.shape[1:]).index_add_(0, member, values)
    shape = (-1, *[1] * (values.ndim - 1))
    means = sums / counts.clamp_min(1).view(shape)
    factors = (counts / (counts - 1)).to(values)[member].view(shape)
    return ((values - means[member]).square_() * factors).sum(0).sqrt() / len(values)
