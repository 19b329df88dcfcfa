"""The encoders of `models.features.encoders` as torch operations, for export."""

from collections.abc import Sequence

import torch
from torch import Tensor

from models.features.categories import CategoryEncoder
from models.features.encoders import Encoder, TensorEncoder
from models.features.numbers import CYCLES, DatetimeEncoder, NumberEncoder
from models.features.power import PowerTransform
from models.features.quantiles import MISSING, NormalScore


def encode_column(encoder: Encoder, values: Tensor) -> Tensor:
    """Return the compact columns of a column's values, in float64.

    A category is the index of its level; NaN is a missing one, and any other number an unknown
    one.
    """
    match encoder:
        case NumberEncoder():
            return torch.cat([_plain(encoder, values), _positions(encoder, values)], dim=1)
        case DatetimeEncoder(instant=instant):
            phases = [_wave(values, CYCLES[name][0]) for name in encoder.cycles]
            plain = _plain(instant, values)
            return torch.cat([plain, *phases, _positions(instant, values)], dim=1)
        case CategoryEncoder():
            return torch.cat([_effects(encoder, values), _slot(encoder, values)], dim=1)
    raise TypeError(f"a {type(encoder).__name__} cannot encode a column")


def _plain(encoder: NumberEncoder, values: Tensor) -> Tensor:
    """The standardised value, the normal score and the indicator."""
    missing = values.isnan()
    known = torch.where(missing, torch.zeros_like(values), values)
    parts = []
    if encoder.std > 0:
        parts.append(_standardise(encoder, known))
    if encoder.scores is not None:
        parts.append(_normal_score(encoder.scores, known))
    parts = [torch.where(missing, torch.zeros_like(part), part) for part in parts]
    if encoder.indicator:
        parts.append(missing.to(values.dtype))
    return torch.stack(parts, dim=1) if parts else values.new_zeros(values.shape[0], 0)


def _standardise(encoder: NumberEncoder, known: Tensor) -> Tensor:
    if encoder.power is not None:
        known = _yeo_johnson(encoder.power, known)
    scaled = (known - float64(encoder.mean)) / float64(encoder.std)
    return scaled if encoder.bound is None else scaled.clamp(-encoder.bound, encoder.bound)


def _normal_score(scores: NormalScore, known: Tensor) -> Tensor:
    heights = torch.tensor(scores.scores, dtype=torch.float64)
    return heights[0] + (_shares(scores.knots, known) * heights.diff()).sum(1)


def _positions(encoder: NumberEncoder, values: Tensor) -> Tensor:
    """The number of bins below each value, as in `Pieces.positions`."""
    if encoder.pieces is None:
        return values.new_zeros(values.shape[0], 0)
    missing = values.isnan()
    found = _shares(encoder.pieces.edges, torch.where(missing, torch.zeros_like(values), values))
    return torch.where(missing, float64(MISSING), found.sum(1)).unsqueeze(1)


def _shares(edges: Sequence[float], known: Tensor) -> Tensor:
    """The share of each interval between edges that lies below each value."""
    bounds = torch.tensor(edges, dtype=torch.float64)
    return ((known.unsqueeze(1) - bounds[:-1]) / bounds.diff()).clamp(0, 1)


def _effects(encoder: CategoryEncoder, values: Tensor) -> Tensor:
    """The inputs of each level, 0 for an unknown one."""
    if encoder.effects is None:
        return values.new_zeros(values.shape[0], 0)
    table = torch.from_numpy(encoder.effects.table)
    known = (values >= 0) & (values < len(table))
    index = torch.where(known, values, torch.zeros_like(values)).long()
    found = table.index_select(0, index)
    return torch.where(known.unsqueeze(1), found, torch.zeros_like(found))


def _slot(encoder: CategoryEncoder, values: Tensor) -> Tensor:
    """One-hot rows, or with `coded` the number of each row's slot."""
    if not encoder.num_slots:
        return values.new_zeros(values.shape[0], 0)
    num_levels, last = len(encoder.levels), float(encoder.num_slots - 1)
    has_slot = (values >= 0) & (values < num_levels) & (values == values.floor())
    slots = torch.where(has_slot, values, float64(last))
    if encoder.effects is not None:
        pooled = (values >= num_levels) & (values < len(encoder.known_levels))
        slots = torch.where(pooled, float64(last - 1), slots)
    if encoder.missing:
        slots = torch.where(values.isnan(), float64(float(num_levels)), slots)
    slots = slots.unsqueeze(1)
    if encoder.coded:
        return slots
    return (slots == torch.arange(encoder.num_slots, dtype=values.dtype)).to(values.dtype)


def _yeo_johnson(power: PowerTransform, values: Tensor) -> Tensor:
    z = (values - float64(power.centre)) / float64(power.scale)
    above = _box_cox(1 + z.clamp_min(0), power.exponent)
    below = _box_cox(1 - z.clamp_max(0), 2 - power.exponent)
    return torch.where(z >= 0, above, -below)


def _box_cox(x: Tensor, exponent: float) -> Tensor:
    return x.log() if exponent == 0 else (float64(exponent) * x.log()).expm1() / float64(exponent)


def _wave(micros: Tensor, period: float) -> Tensor:
    turns = torch.where(micros.isnan(), torch.zeros_like(micros), micros) / float64(period)
    phase = float64(2 * torch.pi) * (turns - turns.floor())
    waves = torch.stack([phase.sin(), phase.cos()], dim=1)
    return torch.where(micros.isnan().unsqueeze(1), torch.zeros_like(waves), waves)


def float64(value: float) -> Tensor:
    """Return a float64 scalar; the ONNX exporter writes Python numbers as float32."""
    return torch.tensor(value, dtype=torch.float64)


def encode_tensor(encoder: TensorEncoder, values: Tensor) -> Tensor:
    """Return the flattened and standardised tensor of each row."""
    flat = values.flatten(1)
    return (flat - encoder.mean) / encoder.std if encoder.std > 0 else flat[:, :0]
