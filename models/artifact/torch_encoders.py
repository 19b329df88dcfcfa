"""The encoders of `models.features.encoders` as torch operations, for export."""

import torch
from torch import Tensor

from models.features.encoders import (
    CYCLES,
    CategoryEncoder,
    DatetimeEncoder,
    Encoder,
    NumberEncoder,
    TensorEncoder,
)
from models.features.power import PowerTransform


def encode_column(encoder: Encoder, values: Tensor) -> Tensor:
    """Return the block of network inputs for the values of a column, in float64.

    A category is the index of its level; any other number is an unknown level.
    """
    match encoder:
        case NumberEncoder():
            return _standardise(encoder, values)
        case DatetimeEncoder():
            phases = [_wave(values, CYCLES[name][0]) for name in encoder.cycles]
            return torch.cat([_standardise(encoder.instant, values), *phases], dim=1)
        case CategoryEncoder(levels=levels):
            codes = torch.arange(len(levels), dtype=values.dtype)
            known = (values.unsqueeze(1) == codes).to(values.dtype)
            unknown = 1 - known.sum(1, keepdim=True)
            return torch.cat([known, unknown], dim=1) if levels else known
    raise TypeError(f"a {type(encoder).__name__} cannot encode a column")


def _standardise(encoder: NumberEncoder, values: Tensor) -> Tensor:
    missing = values.isnan()
    known = torch.where(missing, torch.zeros_like(values), values)
    if encoder.power is not None:
        known = _yeo_johnson(encoder.power, known)
    parts = []
    if encoder.std > 0:
        scaled = (known - float64(encoder.mean)) / float64(encoder.std)
        parts.append(torch.where(missing, torch.zeros_like(scaled), scaled))
    if encoder.indicator:
        parts.append(missing.to(values.dtype))
    return torch.stack(parts, dim=1) if parts else values.new_zeros(values.shape[0], 0)


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
