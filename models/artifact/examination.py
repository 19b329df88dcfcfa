"""Whether an artifact that somebody sends can be served: more than that its sums are right.

Whoever writes the files writes their sums, too. So what they say is compared with types and ranges
(`models.artifact.schema`), with each other (`models.artifact.files`), and tried: each variant
predicts.
"""

from pathlib import Path

from models.artifact.files import MANIFEST, check_file, read_manifest, read_model
from models.exceptions import CorruptArtifact
from models.model import TrainedModel
from models.prediction.prediction import PredictOptions

_SIZE = 2  # rows, steps or tokens
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
    """Predict from blank inputs: of rows one lacks all values, and one lacks none.

    Raises:
        CorruptArtifact: if it is not finite.
    """
    prediction = model.predict_rows(
        model.blank(_SIZE), PredictOptions(prune=prune, samples=_SAMPLES)
    )
    if not prediction.is_finite:
        raise CorruptArtifact("predicts numbers that are not finite")
