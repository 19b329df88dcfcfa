"""Exports a model of rows as one `torch.nn.Module` from raw values to moments or probabilities.

The module contains encoders, network, target and calibration, so that its graph runs without this
package. The posterior is part of it: as the draws that `predict` uses for the model's default seed,
or as the posterior mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from models.config import Json, RecurrentConfig
from models.exceptions import InvalidInput
from models.features.categories import CategoryEncoder
from models.features.encoders import DatetimeEncoder, Encoder, TensorEncoder
from models.features.feature_encoder import ReadColumns
from models.features.targets import NumberTarget
from models.inference.method import Functions, State
from models.inference.point import DrawsState
from models.likelihoods import ShapedLikelihood
from models.likelihoods.mixture import CategoricalMixture
from models.posteriors.layout import Weights
from models.prediction.whole_draws import FittedDraws, linearised
from models.tabular.model import TabularModel

Posterior = Literal["full", "mean"]

NUMBER_OUTPUTS = ("mean", "aleatoric_variance", "epistemic_variance")
CLASS_OUTPUTS = ("probabilities", "predictive_entropy", "expected_entropy", "mutual_information")


@dataclass(frozen=True)
class Export:
    """A module, example inputs to trace it with, names of inputs and outputs, their meaning."""

    module: nn.Module
    example: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    description: Json


def build(
    model: TabularModel, *, posterior: Posterior = "full", prune: float = 0.0, samples: int = 100
) -> Export:
    """Build the module of one variant.

    Args:
        samples: number of draws from a full posterior; at most the number of stored draws.

    Raises:
        InvalidInput: for a recurrent network, a feature of text, or for the mean of several
            networks' weights.
        UnknownVariant: for a pruning fraction that is not stored.
    """
    if isinstance(model.config.network, RecurrentConfig) or model.config.task == "forecasting":
        raise InvalidInput("recurrent networks cannot be exported: export the archive instead")
    if texts := [feature.name for feature in model.features if feature.type == "text"]:
        raise InvalidInput(
            f"{texts[0]!r} is text, which a graph cannot read: export the archive instead"
        )
    state = model.variant(prune).state
    functions = _mean(state, model) if posterior == "mean" else _draws(state, model, samples)
    seed = None if posterior == "mean" else model.default_seed
    module = _Exported(model, functions, prune, seed).eval()
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
    """Return so many draws that their members are at least `samples` functions."""
    fitted = FittedDraws.of(model.network, state)
    count = min(samples, fitted.num_draws or samples)
    return fitted.source.functions(model.default_seed, 0, -(-count // fitted.members))


def _mean(state: State, model: TabularModel) -> Functions:
    """Return the function at the posterior mean, which has only aleatoric uncertainty."""
    mean: DrawsState | None = state.at_mean()
    if mean is None:
        raise InvalidInput(
            "the mean of several networks' weights is not useful: export the full posterior",
            "/posterior",
        )
    named = {name: value.reshape(1, -1, 1) for name, value in mean.point.items()}
    return Functions(model.network.layout.unflatten(mean.weights), named)


def _describe(
    model: TabularModel, posterior: Posterior, prune: float, functions: Functions
) -> Json:
    """Return what a user of the graph must know about inputs, outputs and posterior."""

    def values_of(encoder: Encoder) -> Json:
        match encoder:
            case CategoryEncoder():
                return {"levels": list(encoder.known_levels)}
            case TensorEncoder():
                return {"shape": list(encoder.shape)}
            case DatetimeEncoder():
                return {"unit": "microseconds since 1970-01-01 UTC"}
        return {}

    pairs = zip(model.features, model.encoder.encoders, strict=True)
    # Draws are of masks for dropout, of weights for other methods.
    drawn = functions.masks[0] if functions.masks else next(iter(functions.weights.values()))
    return {
        "task": model.task,
        "target": model.config.target,
        "classes": None if model.classes is None else list(model.classes),
        "features": [{"name": f.name, "type": f.type, **values_of(e)} for f, e in pairs],
        "posterior": posterior,
        "prune": prune,
        "samples": len(drawn) * model.network.layout.members,
        "seed": model.default_seed,
    }


class _Exported(nn.Module):
    """Takes the columns as one float64 matrix, then each tensor feature as float32."""

    def __init__(
        self, model: TabularModel, functions: Functions, prune: float, seed: int | None
    ) -> None:
        super().__init__()
        self._model, self._prune = model, prune
        self._seed = seed  # of the draws of a process below the networks; None for its mean
        pairs = zip(model.features, model.encoder.encoders, strict=True)
        tensors = [(f.name, e.shape) for f, e in pairs if isinstance(e, TensorEncoder)]
        self._num_columns = len(model.features) - len(tensors)
        self._shapes = [shape for _, shape in tensors]
        self.input_names = ("features",) * bool(self._num_columns) + tuple(n for n, _ in tensors)
        _fill_caches(model)
        self._weights = self._register("weight", functions.weights)
        self._centre = self._register("centre", functions.centre or {})
        self._point = self._register("point", functions.point)
        masks = functions.masks or []
        self._masks = self._register("mask", {str(i): mask for i, mask in enumerate(masks)})

    def example(self, rows: int) -> tuple[Tensor, ...]:
        """Return zeros of the types and shapes that `forward` takes."""
        tensors = [torch.zeros(rows, *shape) for shape in self._shapes]
        if not self._num_columns:
            return tuple(tensors)
        return torch.zeros(rows, self._num_columns, dtype=torch.float64), *tensors

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The moments or probabilities of the mixture that predictions are made of."""
        encoder, engine, network = self._model.encoder, self._model.engine, self._model.network
        x = encoder.expand(encoder.encode_read(self._read(inputs)))
        weights = self._buffers_of(self._weights)
        if self._centre:
            outputs = linearised(network, self._buffers_of(self._centre), weights, x)
        else:
            masks = [self.get_buffer(name) for name in self._masks.values()] or None
            outputs = network(weights, x, masks)
        if outputs.ndim == 4:  # each member of each draw is a sample
            outputs = outputs.flatten(0, 1)
        outputs = engine.move(outputs, x, self._seed).double()
        point = {k: v.reshape(-1, 1) for k, v in self._buffers_of(self._point).items()}
        mixture = engine.whole_mixture(outputs, point)
        calibration = self._model.calibration_of(self._prune)
        if calibration is not None:
            mixture = calibration.apply(mixture)
        summaries = [mixture.mean]
        if isinstance(mixture, CategoricalMixture):
            entropies = mixture.total_entropy, mixture.expected_entropy
            summaries += [*entropies, mixture.mutual_information]
        else:
            summaries += [mixture.aleatoric, mixture.epistemic]
        return tuple(summary().float() for summary in summaries)

    def _read(self, inputs: Sequence[Tensor]) -> ReadColumns:
        """The inputs as the model's encoders read columns.

        A category is the index of its level; NaN is a missing one, any other number an unknown one.
        """
        encoder, rows = self._model.encoder, inputs[0].shape[0]
        table = inputs[0].T if self._num_columns else torch.empty(0, rows, dtype=torch.float64)
        columns = [i for i in range(len(encoder.encoders)) if i not in encoder.others]
        numbers, codes = (
            table.index_select(0, torch.tensor([columns.index(i) for i in some], dtype=torch.int64))
            for some in (encoder.numbers, encoder.codes)
        )
        each = [(e.new, e.absent) for e in encoder.encoders if isinstance(e, CategoryEncoder)]
        new, absent = torch.tensor(each, dtype=torch.int64).view(-1, 2, 1).unbind(1)
        known = (codes >= 0) & (codes < new) & (codes == codes.floor())
        codes = torch.where(codes.isnan(), absent, torch.where(known, codes.long(), new))
        return ReadColumns(numbers, codes, inputs[int(self._num_columns > 0) :])

    def _register(self, kind: str, tensors: Weights) -> dict[str, str]:
        """Register tensors as buffers; return the buffers' names, which may not contain dots."""
        names = {name: f"{kind}_{name}".replace(".", "_") for name in tensors}
        for name, tensor in tensors.items():
            self.register_buffer(names[name], tensor.detach().clone())
        return names

    def _buffers_of(self, names: dict[str, str]) -> dict[str, Tensor]:
        return {name: self.get_buffer(buffer) for name, buffer in names.items()}


def _fill_caches(model: TabularModel) -> None:
    """Compute the numbers that a graph has as constants, because tracing has no numbers."""
    _ = model.engine
    if model.process is not None:
        _ = model.process.ready
    if model.encoder.boosted is not None:
        _ = model.encoder.boosted.ready
    if isinstance(model.likelihood, ShapedLikelihood):
        target = model.likelihood.target
        for _ in (model.likelihood.location_bounds, target.z_bounds, target.z_extremes):
            pass
        if target.integer:
            assert target.whole_edges
