"""A trained model of rows as one `torch.nn.Module`: raw values in, moments or probabilities out.

Encoders, network, target and calibration are in it, so that whatever runs the graph needs nothing
else. The posterior is baked in: as draws, the same that `predict` returns with `return_draws` for
this seed, or as its mean alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from models.config import Json, RecurrentConfig
from models.evaluation.calibration import ClassCalibration, NumberCalibration
from models.exceptions import InvalidInput
from models.features.encoders import CYCLES, DatetimeEncoder, Encoder, NumberEncoder, TensorEncoder
from models.features.encoders import CategoryEncoder as Levels
from models.features.feature_encoder import FARTHEST
from models.features.power import PowerTransform
from models.features.targets import NumberTarget
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.method import State
from models.inference.point import DrawsState
from models.inference.swag import SWAGState
from models.likelihoods import Bernoulli, Categorical
from models.posteriors.layout import Weights
from models.prediction.weight_draws import FittedDraws, Functions
from models.tabular.model import TabularModel

Posterior = Literal["full", "mean"]

NUMBER_OUTPUTS = ("mean", "aleatoric_variance", "epistemic_variance")
CLASS_OUTPUTS = ("probabilities", "predictive_entropy", "expected_entropy", "mutual_information")


@dataclass(frozen=True)
class Export:
    """A module, rows to trace it with, the names of what goes in and out, and what they mean."""

    module: nn.Module
    example: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    description: Json


def build(
    model: TabularModel, *, posterior: Posterior = "full", prune: float = 0.0, samples: int = 100
) -> Export:
    """
    Args:
        samples: draws of a full posterior; of a method that keeps some, at most as many.

    Raises:
        InvalidInput: for a recurrent network, or the mean of a posterior that has no useful one.
        UnknownVariant: for a pruning fraction that is not stored.
    """
    if isinstance(model.config.network, RecurrentConfig) or model.config.task == "forecasting":
        raise InvalidInput("recurrent networks are not exported: keep them in the archive")
    state = model.variant(prune).state
    functions = _mean(state, model) if posterior == "mean" else _draws(state, model, samples)
    module = _Exported(model, functions, prune).eval()
    outputs = NUMBER_OUTPUTS if isinstance(model.target, NumberTarget) else CLASS_OUTPUTS
    names = {"inputs": list(module.input_names), "outputs": list(outputs)}
    return Export(
        module=module,
        example=module.example(rows=3),
        inputs=module.input_names,
        outputs=outputs,
        description=_describe(model, posterior, prune, functions) | names,
    )


def _draws(state: State, model: TabularModel, samples: int) -> Functions:
    fitted = FittedDraws.of(model.network, state)
    count = min(samples, fitted.num_draws or samples)
    return fitted.source.functions(model.default_seed, 0, count)


def _mean(state: State, model: TabularModel) -> Functions:
    """One function, without a spread: aleatoric uncertainty is all that it tells."""
    match state:
        case BBBState():
            weights, point = state.posterior.distribution().moments()[0], state.point
        case DropoutState():
            weights, point = state.weights, state.point
        case DrawsState(num_draws=1):
            weights, point = state.weights[0], {k: v[0] for k, v in state.point.items()}
        case SWAGState():
            weights = state.mean[: state.num_weights]
            rest = state.mean[state.num_weights :].unbind()
            point = dict(zip(state.iterate.point, rest, strict=True))
        case _:
            raise InvalidInput(
                "the mean of several networks' weights is no network: export the full posterior",
                "/posterior",
            )
    named = {name: value.reshape(1, 1) for name, value in point.items()}
    return Functions(model.network.layout.unflatten(weights.unsqueeze(0)), named)


def _describe(
    model: TabularModel, posterior: Posterior, prune: float, functions: Functions
) -> Json:
    """What somebody needs who has the graph alone."""
    features = [
        {"name": feature.name, "type": feature.type, **_meaning(encoder)}
        for feature, encoder in zip(model.features, model.encoder.encoders, strict=True)
    ]
    return {
        "task": model.task,
        "target": model.config.target,
        "classes": None if model.classes is None else list(model.classes),
        "features": features,
        "posterior": posterior,
        "prune": prune,
        "samples": _num_samples(functions),
        "seed": model.default_seed,
    }


def _num_samples(functions: Functions) -> int:
    """Of dropout the masks have the samples' axis, of others the weights."""
    return len(functions.masks[0] if functions.masks else next(iter(functions.weights.values())))


def _meaning(encoder: Encoder) -> Json:
    match encoder:
        case Levels():
            return {"levels": list(encoder.levels)}
        case TensorEncoder():
            return {"shape": list(encoder.shape)}
        case DatetimeEncoder():
            return {"unit": "microseconds since 1970-01-01 UTC"}
    return {}


class _Exported(nn.Module):
    """Columns as one float64 matrix, then each tensor feature: as float32."""

    def __init__(self, model: TabularModel, functions: Functions, prune: float) -> None:
        super().__init__()
        self._model = model
        self._calibration = model.variant(prune).calibration
        self._weights = self._hold("weight", functions.weights)
        self._point = self._hold("point", functions.point)
        masks = functions.masks or []
        self._masks = self._hold("mask", {str(i): mask for i, mask in enumerate(masks)})

    @property
    def input_names(self) -> tuple[str, ...]:
        names = [name for name, _ in self._tensors]
        return (*(["features"] if self._num_columns else []), *names)

    def example(self, rows: int) -> tuple[Tensor, ...]:
        """Zeros, of the types and shapes that `forward` takes."""
        table = [torch.zeros(rows, self._num_columns, dtype=torch.float64)]
        tensors = [torch.zeros(rows, *encoder.shape) for _, encoder in self._tensors]
        return *(table if self._num_columns else []), *tensors

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x = self._encode(inputs)
        masks = [self.get_buffer(name) for name in self._masks.values()] or None
        outputs = self._model.network(self._held(self._weights), x, masks).double()
        found = self._probabilities(outputs) if self._is_classes else self._moments(outputs)
        return tuple(values.float() for values in found)

    def _encode(self, inputs: Sequence[Tensor]) -> Tensor:
        tables, tensors = iter(inputs[:1]), iter(inputs[1 if self._num_columns else 0 :])
        columns = iter(next(tables).unbind(1)) if self._num_columns else iter(())
        parts = [
            _scale(encoder, next(tensors))
            if isinstance(encoder, TensorEncoder)
            else _encode(encoder, next(columns))
            for encoder in self._model.encoder.encoders
        ]
        return torch.cat([part.float() for part in parts], dim=1).clamp(-FARTHEST, FARTHEST)

    def _moments(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """See `models.prediction.predictive.GaussianMixture`."""
        target, likelihood = self._model.target, self._model.likelihood
        assert isinstance(target, NumberTarget)
        assert not isinstance(likelihood, Categorical | Bernoulli)
        means, noise = likelihood.moments(outputs, self._held(self._point))
        factor = target.std**2
        if isinstance(self._calibration, NumberCalibration):
            factor = factor * self._calibration.variance_scale
        mean, scale = means.mean(0), _exact(factor)
        epistemic = (means - mean).square().mean(0)
        in_units = mean * _exact(target.std) + _exact(target.mean)
        return in_units, noise.mean(0) * scale, epistemic * scale

    def _probabilities(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """See `models.prediction.predictive.CategoricalMixture`."""
        likelihood = self._model.likelihood
        assert isinstance(likelihood, Categorical | Bernoulli)
        logits = likelihood.logits(outputs)
        if isinstance(self._calibration, ClassCalibration):
            logits = logits / _exact(self._calibration.temperature)
        probs = logits.softmax(-1)
        mean = probs.mean(0)
        total, expected = _entropy(mean), _entropy(probs).mean(0)
        return mean, total, expected, (total - expected).clamp_min(0)

    @property
    def _is_classes(self) -> bool:
        return isinstance(self._model.likelihood, Categorical | Bernoulli)

    @property
    def _tensors(self) -> list[tuple[str, TensorEncoder]]:
        pairs = zip(self._model.features, self._model.encoder.encoders, strict=True)
        return [(f.name, e) for f, e in pairs if isinstance(e, TensorEncoder)]

    @property
    def _num_columns(self) -> int:
        return len(self._model.features) - len(self._tensors)

    def _hold(self, kind: str, tensors: Weights) -> dict[str, str]:
        """Registers buffers; names in them may hold no dots."""
        names = {name: f"{kind}_{name}".replace(".", "_") for name in tensors}
        for name, tensor in tensors.items():
            self.register_buffer(names[name], tensor.detach().clone())
        return names

    def _held(self, names: dict[str, str]) -> dict[str, Tensor]:
        return {name: self.get_buffer(buffer) for name, buffer in names.items()}


def _encode(encoder: Encoder, values: Tensor) -> Tensor:
    """`models.features.encoders` in torch: a column → its block of inputs, in float64."""
    match encoder:
        case NumberEncoder():
            return _standardise(encoder, values)
        case DatetimeEncoder():
            phases = [_wave(values, CYCLES[name][0]) for name in encoder.cycles]
            return torch.cat([_standardise(encoder.instant, values), *phases], dim=1)
        case Levels(levels=levels):
            codes = torch.arange(len(levels), dtype=values.dtype)
            known = (values.unsqueeze(1) == codes).to(values.dtype)
            unknown = 1 - known.sum(1, keepdim=True)
            return torch.cat([known, unknown], dim=1) if levels else known
    raise TypeError(f"a {type(encoder).__name__} encodes no column")


def _standardise(encoder: NumberEncoder, values: Tensor) -> Tensor:
    missing = values.isnan()
    known = torch.where(missing, torch.zeros_like(values), values)
    if encoder.power is not None:
        known = _yeo_johnson(encoder.power, known)
    parts = []
    if encoder.std > 0:
        scaled = (known - _exact(encoder.mean)) / _exact(encoder.std)
        parts.append(torch.where(missing, torch.zeros_like(scaled), scaled))
    if encoder.indicator:
        parts.append(missing.to(values.dtype))
    return torch.stack(parts, dim=1) if parts else values.new_zeros(values.shape[0], 0)


def _yeo_johnson(power: PowerTransform, values: Tensor) -> Tensor:
    z = (values - _exact(power.centre)) / _exact(power.scale)
    above = _box_cox(1 + z.clamp_min(0), power.exponent)
    below = _box_cox(1 - z.clamp_max(0), 2 - power.exponent)
    return torch.where(z >= 0, above, -below)


def _box_cox(x: Tensor, exponent: float) -> Tensor:
    return x.log() if exponent == 0 else (_exact(exponent) * x.log()).expm1() / _exact(exponent)


def _wave(micros: Tensor, period: float) -> Tensor:
    turns = torch.where(micros.isnan(), torch.zeros_like(micros), micros) / _exact(period)
    phase = _exact(2 * torch.pi) * (turns - turns.floor())
    waves = torch.stack([phase.sin(), phase.cos()], dim=1)
    return torch.where(micros.isnan().unsqueeze(1), torch.zeros_like(waves), waves)


def _exact(value: float) -> Tensor:
    """In float64: ONNX's exporter writes bare numbers as float32."""
    return torch.tensor(value, dtype=torch.float64)


def _scale(encoder: TensorEncoder, values: Tensor) -> Tensor:
    flat = values.flatten(1)
    return (flat - encoder.mean) / encoder.std if encoder.std > 0 else flat[:, :0]


def _entropy(probs: Tensor) -> Tensor:
    """−Σ p log p in nats, 0 where p is."""
    return -(probs * probs.clamp_min(1e-300).log()).sum(-1)
