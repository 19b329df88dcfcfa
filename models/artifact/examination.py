"""Whether an artifact that somebody sends can be served: more than that its sums are right.

Whoever writes the files writes their sums, too. So what they say is compared with types and ranges
(`models.artifact.schema`), with each other (`models.artifact.files`), and tried: each variant
predicts.
"""

from pathlib import Path

import numpy as np
import torch

from models.artifact.files import MANIFEST, check_file, read_manifest, read_model
from models.exceptions import CorruptArtifact
from models.features.columns import Columns, InputColumn
from models.forecasting.model import Forecaster
from models.language.model import BayesianLanguageModel
from models.model import BayesianModel
from models.prediction.prediction import PredictOptions
from models.trained import TrainedModel

_SAMPLES = 2  # enough for a variance


def examine(directory: Path) -> TrainedModel:
    """The model, once everything in the directory is known to be sound.

    Raises:
        CorruptArtifact: with what is wrong, and in which file or field of `model.json`.
    """
    files = read_manifest(directory)
    if strange := {path.name for path in directory.iterdir()} - {*files, MANIFEST}:
        raise CorruptArtifact("is not in the manifest", f"/{min(strange)}")
    for name in files:
        check_file(directory, name, files)
    model = read_model(directory)
    try:
        for prune in model.variants:
            _try(model, prune)
    except Exception as error:  # whatever it is: these files cannot predict
        raise CorruptArtifact(f"cannot predict: {error!r}"[:500], "/model.json") from error
    return model


def _try(model: TrainedModel, prune: float) -> None:
    """A first prediction, of a row in which everything is missing and of one in which nothing is.

    Raises:
        CorruptArtifact: if it is not finite.
    """
    options = PredictOptions(prune=prune, samples=_SAMPLES)
    if isinstance(model, BayesianLanguageModel):
        told = model.predict({model.config.target: np.array([""], object)}, options)
        found = [told.log_likelihood]
    elif isinstance(model, Forecaster):
        answer = model.predict_rows(model.blank_history(1), options)
        found = [answer.mean, *answer.variance.values()]
    else:
        found = _predict(model, options)
    if not all(np.isfinite(values).all() for values in found):
        raise CorruptArtifact("predicts numbers that are not finite")


def _predict(model: BayesianModel, options: PredictOptions) -> list[np.ndarray]:
    rows = [model.encode(_row(model.inputs, missing)) for missing in (True, False)]
    answer = model.predict_rows(torch.cat(rows), options)
    return [answer.mean, *answer.variance.values()]


def _row(inputs: tuple[InputColumn, ...], missing: bool) -> Columns:
    return {column.name: _value(column, missing) for column in inputs}


def _value(column: InputColumn, missing: bool) -> np.ndarray:
    match column.type:
        case "category":
            return np.array([None if missing else "?"], object)
        case "datetime":
            return np.array(["NaT" if missing else "2026-01-01"], "datetime64[us]")
        case "tensor":
            return np.zeros((1, *(column.shape or ())), np.float32)
    return np.array([np.nan if missing else 1.0])
