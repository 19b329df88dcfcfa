"""Estimators from archives."""

from pathlib import Path

from credence.estimators.classifier import BayesianClassifier
from credence.estimators.regressor import BayesianRegressor
from credence.estimators.saving import unpack


def load(path: Path | str) -> BayesianRegressor | BayesianClassifier:
    """Return the fitted estimator of an archive, which `save` or `credence models export` wrote.

    Its settings are the defaults, which `fit` would train with. It predicts as the saved one did
    with 100 samples.

    Raises:
        ValueError: if the model is neither a regression nor a classification.
        NotParseable, Invalid: if the file is no archive of a model.
        CorruptArtifact: if a file differs from its checksum, or a field is out of its range.
    """
    kinds = {kind.task: kind for kind in (BayesianRegressor, BayesianClassifier)}
    model = unpack(Path(path).read_bytes(), tuple(kinds))
    return kinds[model.task].of(model)
