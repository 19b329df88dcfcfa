"""Summaries of Gaussian and categorical mixtures by compiled kernels."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float32, Float64

from models.prediction.compiled.packed import errors
from models.prediction.compiled.passes import Outputs

Arrays = dict[str, np.ndarray]


def numbers(
    outputs: Outputs,
    log_noise: Float32[np.ndarray, "_"],
    units: tuple[float, float],
    factor: float,
    levels: Sequence[float],
    *,
    even: bool,
    whole: bool = False,
) -> Float64[np.ndarray, "quantities rows"] | None:
    """Mean, aleatoric and epistemic variance, error and quantiles of Gaussian mixtures.

    None if something is not finite, or the noise leaves its bounds.

    Args:
        log_noise: of each sample, if the network has one output; else empty.
        units: mean and standard deviation of the target.
        factor: of the calibration, on all variances.
        even: whether the samples are successive points of a sequence.
        whole: whether all weights are drawn, none integrated.
    """
    found = np.empty((4 + len(levels), outputs.moments.shape[2]))
    is_fine = outputs.kernels.numbers(
        outputs.moments,
        outputs.noise,
        outputs.column,
        log_noise,
        outputs.exact,
        units,
        whole,
        factor,
        *_normals(tuple(levels)),
        errors(outputs.counts, even=even),
        found,
    )
    return found if is_fine else None


def classes(
    outputs: Outputs,
    temperature: float,
    *,
    binary: bool,
    even: bool,
) -> Arrays | None:
    """Means, variances, errors and entropies of class probabilities; None if not finite.

    Args:
        binary: whether one logit is of two classes.
        others: as of `numbers`.
    """
    _, number, rows, _ = outputs.moments.shape
    found = np.empty((4, rows, 2 if binary else number))
    entropies = np.empty((2, rows))
    is_fine = outputs.kernels.classes(
        outputs.moments,
        outputs.noise,
        outputs.column,
        binary,
        temperature,
        errors(outputs.counts, even=even),
        found,
        entropies,
    )
    if not is_fine:
        return None
    names = ("mean", "aleatoric_variance", "epistemic_variance", "mc_error")
    return {
        **dict(zip(names, found, strict=True)),
        "expected_entropy": entropies[0],
        "mutual_information": entropies[1],
    }


@lru_cache(maxsize=64)
def _normals(levels: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The levels, and the standard normal's quantiles."""
    wanted = torch.tensor(levels, dtype=torch.float64)
    return wanted.numpy(), torch.special.ndtri(wanted).numpy()
