"""What a forecaster knows of a series by its key: a learned row of numbers.

*A new series* gets a row as if it were one of the learned series. Methods with a distribution of
weights give it N(mean of the rows, their variance + the mean of their posterior variances), so the
epistemic variance contains what is not known of it. Methods that keep several weight vectors give
it, in each of them, the row of another learned series. A method that keeps one vector gives it the
mean of all rows, which widens nothing.

*Whether the key is read* by default depends on whether it tells what the window does not, on later
steps. A useless key costs 0.03 to 0.11 nats per step on simulated panels of 30 and 200 series of 40
steps. To find out, a linear model is fitted to the windows of the earlier steps. The mean m_k of
its n_k residuals of series k, whose variance within series is s², is shrunk:

    b_k = τ² / (τ² + s²/n_k) · m_k,      τ² = mean of (m_k² − s²/n_k), at least 0

(random effects: Robinson 1991, Statistical Science 6, 15). The key helps if subtracting b_k makes
the errors of the later steps smaller.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from models.config import Identity, MethodConfig, NetworkConfig
from models.features.categories import KeyEncoder
from models.features.feature_encoder import FeatureEncoder
from models.forecasting.series import Series
from models.forecasting.windows import Frame, windows
from models.inference.method import AnyState
from models.inference.registry import method_of
from models.layers.layer import Layer
from models.layers.tables import KeyTable
from models.networks import Inputs, Masks, Network, TensorSlot, build_network
from models.networks.network import Batch, Outputs
from models.posteriors.layout import Weights
from models.prediction.outputs.reasons import Levels, Reason
from models.tabular.shape_choice import ridge

LEAST_SERIES = 10  # with fewer the scatter between series is not known
_ASKED = 1_000  # series, evenly spread
_WINDOWS = 60  # of each, the latest ones
_LATER = 1 / 3  # of these: what is judged
_LEAST_GAIN = 0.01  # nats per step; a key that tells nothing costs as much
_ERRORS = 2.0  # standard errors over series, by which the gain must differ from 0
_TAIL = 3 * 1.4826  # median absolute deviations: three standard deviations of a Gaussian
_RIDGE = 1e-3  # of standardised inputs, per window


def key_helps(series: Sequence[Series], frame: Frame) -> bool:
    """Whether the key helps, given the series before their held-out ends.

    Args:
        frame: how windows are read; its scales are fitted here.
    """
    if len(series) < LEAST_SERIES:
        return False
    cut = [
        tuple(part[-_WINDOWS:] for part in windows(frame.transform(one.values), frame.span)[1:])
        for one in series[:: -(-len(series) // _ASKED)]
    ]
    counts = torch.tensor([len(following) for _, following in cut])
    earlier = counts - (counts * _LATER).ceil().long()
    member = torch.repeat_interleave(torch.arange(len(cut)), counts)
    place = torch.arange(len(member)) - (counts.cumsum(0) - counts)[member]
    early = place < earlier[member]
    if int((earlier > 0).sum()) < LEAST_SERIES:
        return False
    past, following = (torch.cat(parts) for parts in zip(*cut, strict=True))
    frame = frame.fit(past[early], following[early])
    inputs = frame.read(past).inputs.flatten(1)
    targets = frame.targets(past, following).double()
    centred = targets - targets.median()
    most = _TAIL * centred.abs().median()  # short windows have scales near 0
    bounded = centred.clamp(-most, most)
    errors = bounded - ridge(inputs[early], bounded[early], _RIDGE)(inputs)
    effects = _effects(errors[early], member[early], len(cut))
    before, after = errors[~early].square(), (errors - effects[member])[~early].square()
    gain = 0.5 * math.log(float(before.mean() / after.mean()))
    _, place = torch.unique(member[~early], return_inverse=True)
    counts = torch.bincount(place).double()
    of_each = torch.zeros(len(counts)).double().index_add(0, place, before - after) / counts
    error = float(of_each.std()) / math.sqrt(len(of_each))
    return gain > _LEAST_GAIN and float(of_each.mean()) > _ERRORS * error


def _effects(errors: Tensor, member: Tensor, count: int) -> Tensor:
    """The shrunk mean of each series' residuals; 0 for a series without any."""
    n = torch.bincount(member, minlength=count).double()
    sums = torch.zeros(count).double().index_add(0, member, errors)
    means = sums / n.clamp_min(1)
    within = (errors - means[member]).square().sum() / (n - 1).clamp_min(0).sum().clamp_min(1)
    seen = n > 0
    between = (means.square() - within / n.clamp_min(1))[seen].mean().clamp_min(0)
    return means * between / (between + within / n.clamp_min(1)).clamp_min(1e-300)


WIDTH = 4
_SHOWN = 3  # keys in a reason


def usual_identity(method: MethodConfig, series: Sequence[Series], frame: Frame) -> Identity:
    """ "one_hot" for few series; for more an embedding if the key helps on later steps.

    Args:
        series: before their held-out ends.
    """
    if len(series) < LEAST_SERIES:
        return "one_hot"
    if not key_helps(series, frame):
        return "none"
    return "embedding" if method_of(method).learns_keys else "one_hot"


def keyed_inputs(inputs: Inputs, width: int) -> Inputs:
    """What the network reads that is given the rows in place of the number.

    Args:
        inputs: a sequence, what stands beside it, and the number.
    """
    assert inputs.tensor is not None
    steps, channels = inputs.tensor.shape
    slot = TensorSlot(0, (steps, channels + width))
    return Inputs(slot.stop + inputs.width - inputs.tensor.stop - 1 + width, slot)


@dataclass(frozen=True)
class KeyedNetwork(Network):
    """The last input is the number of a key. Its row is read at every step and beside the sequence.

    At every step it changes how the sequence is read, beside it what follows: a series may differ
    in its dynamics, and in its level and noise. Source: the embeddings of categories of Salinas et
    al. 2020 (DeepAR, arXiv 1704.04110), §3.4; here each has a posterior and a shared prior.
    """

    slot: TensorSlot
    table: KeyTable
    inner: Network

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.table, *self.inner.layers

    @property
    def num_outputs(self) -> int:
        return self.inner.num_outputs

    @property
    def widest(self) -> int:
        return self.inner.widest

    @property
    def operations(self) -> int:
        return self.inner.operations

    @property
    def mask_widths(self) -> tuple[int, ...]:
        return self.inner.mask_widths

    def init(self, generator: Generator) -> dict[str, Tensor]:
        """Rows from N(0, 0.1²), and the weights of the network that reads them."""
        shape = self.table.shapes()[self.table.weight]
        rows = torch.randn(shape, generator=generator) * self.table.fan_in**-0.5
        return {self.table.weight: rows, **self.inner.init(generator)}

    def __call__(self, weights: Weights, x: Batch, masks: Masks | None = None) -> Outputs:
        row = self.table(weights, x[..., -1])
        rest = x[..., :-1].expand(*row.shape[:-1], -1)
        flat, beside = rest[..., : self.slot.stop], rest[..., self.slot.stop :]
        steps = flat.unflatten(-1, self.slot.shape)
        at_each = row.unsqueeze(-2).expand(*steps.shape[:-1], -1)
        sequence = torch.cat([steps, at_each], dim=-1).flatten(-2)
        return self.inner(weights, torch.cat([sequence, beside, row], dim=-1), masks)


def keyed(
    encoder: FeatureEncoder, config: NetworkConfig, inputs: Inputs, num_outputs: int
) -> Network:
    """The network of these inputs. If the key is encoded as a number, it has a table of learned
    rows.
    """
    key = encoder.encoders[-1]
    if not isinstance(key, KeyEncoder):
        return build_network(config, inputs, num_outputs)
    assert inputs.tensor is not None
    inner = build_network(config, keyed_inputs(inputs, WIDTH), num_outputs)
    return KeyedNetwork(inputs.tensor, KeyTable("embedding", len(key.levels), WIDTH), inner)


def unseen_key(encoder: FeatureEncoder, key: str | None) -> tuple[Reason, ...]:
    """Why a series is unlike those of training: none of these had its key."""
    known = encoder.encoders[-1]
    if key is None or not isinstance(known, KeyEncoder) or key in known.levels:
        return ()
    seen = Levels(known.levels[:_SHOWN], len(known.levels))
    return (Reason(encoder.features[-1].name, "unseen_level", key, seen),)


def with_unseen(state: AnyState, network: Network, seed: int) -> AnyState:
    """The state with a row for unseen keys (see the module)."""
    if not isinstance(network, KeyedNetwork):
        return state
    return state.with_last_row(network.table.num_keys + 1, network.table.width, seed)
