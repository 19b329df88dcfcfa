"""What a forecaster knows of a series by its key: a learned row, and what a new series gets.

A new series is one of the population that the learned rows show: each draw of the weights gives it
a row from N(mean of the rows, their variance + the mean of their posterior variances), so that the
epistemic variance contains what is not known of it. Methods that keep weights instead of their
distribution give it the row of some learned series, another one in each draw; one that keeps
a single vector the mean of all rows, which widens nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    Identity,
    MAPConfig,
    MethodConfig,
    MLEConfig,
    NetworkConfig,
)
from models.features.categories import KeyEncoder
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.panels.usefulness import LEAST_SERIES, key_helps
from models.forecasting.series import Series
from models.forecasting.windows import Frame
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.point import DrawsState
from models.layers.key_table import KeyTable
from models.networks import Inputs, KeyedNetwork, Network, build_network, keyed_inputs
from models.posteriors.mean_field import softplus_inverse
from models.prediction.answers.reasons import Levels, Reason
from models.randomness import generator

WIDTH = 4
_SHOWN = 3  # keys in a reason

EMBEDDED = (BBBConfig, DropoutConfig, EnsembleConfig, MAPConfig, MLEConfig)
"""Methods whose states `with_unseen` can complete."""

S = TypeVar("S")


def usual_identity(method: MethodConfig, series: Sequence[Series], frame: Frame) -> Identity:
    """A slot for each of a few series; of more, rows if the key helps on later steps.

    Args:
        series: before their held-out ends.
    """
    if len(series) < LEAST_SERIES:
        return "one_hot"
    if not key_helps(series, frame):
        return "none"
    return "embedding" if isinstance(method, EMBEDDED) else "one_hot"


def keyed(
    encoder: FeatureEncoder, config: NetworkConfig, inputs: Inputs, num_outputs: int
) -> Network:
    """The network of these inputs, with a table of learned rows if the key is a number."""
    key = encoder.encoders[-1]
    if not isinstance(key, KeyEncoder):
        return build_network(config, inputs, num_outputs)
    assert inputs.tensor is not None
    inner = build_network(config, keyed_inputs(inputs, WIDTH), num_outputs)
    return KeyedNetwork(inputs.tensor, KeyTable("embedding", len(key.levels), WIDTH), inner)


def unseen_key(encoder: FeatureEncoder, key: str | None) -> tuple[Reason, ...]:
    """Why a series is unlike those of training, if none of these had its key."""
    known = encoder.encoders[-1]
    if key is None or not isinstance(known, KeyEncoder) or key in known.levels:
        return ()
    seen = Levels(known.levels[:_SHOWN], len(known.levels))
    return (Reason(encoder.features[-1].name, "unseen_level", key, seen),)


def with_unseen(state: S, network: Network, seed: int) -> S:
    """The state with a row for unseen keys that is drawn from the population of the others."""
    if not isinstance(network, KeyedNetwork):
        return state
    width, stop = network.table.width, (network.table.num_keys + 1) * network.table.width
    last = slice(stop - width, stop)
    match state:
        case BBBState(posterior=posterior):
            q = posterior.distribution()
            loc, scale = (part[:stop].unflatten(0, (-1, width))[:-1] for part in (q.loc, q.scale))
            spread = (loc.var(0, correction=0) + scale.square().mean(0)).sqrt().clamp_min(1e-6)
            rho = torch.tensor([softplus_inverse(one) for one in spread.tolist()])
            mask = posterior.mask
            filled = replace(
                posterior,
                loc=_filled(posterior.loc, last, loc.mean(0)),
                rho=_filled(posterior.rho, last, rho.to(posterior.rho)),
                mask=None if mask is None else _filled(mask, last, torch.ones_like(mask[last])),
            )
            return replace(state, posterior=filled)
        case DrawsState(weights=weights) if len(weights) > 1:
            rows = weights[:, :stop].unflatten(1, (-1, width))[:, :-1]
            order = torch.randperm(rows.shape[1], generator=generator(seed, "unseen"))
            chosen = order[torch.arange(len(rows)) % len(order)].to(rows.device)
            own = rows[torch.arange(len(rows), device=rows.device), chosen]
            return replace(state, weights=_filled(weights, last, own))
        case DrawsState(weights=weights) | DropoutState(weights=weights):
            mean = weights[..., :stop].unflatten(-1, (-1, width))[..., :-1, :].mean(-2)
            return replace(state, weights=_filled(weights, last, mean))
    return state


def _filled(
    values: Shaped[Tensor, "*draws weights"], part: slice, new: Shaped[Tensor, "*draws width"]
) -> Shaped[Tensor, "*draws weights"]:
    copy = values.detach().clone()
    copy[..., part] = new
    return copy
