"""Models on disk: a directory of safetensors and JSON with SHA-256 sums. Nothing is unpickled.

model.json            configuration, encoders, target, metrics and notes
prune-0.safetensors   loc and rho of the full posterior, the likelihood's point parameters;
                      of other methods than Bayes by Backprop what they keep (`STATES`)
prune-0.9.safetensors the weights that are left of a variant, and a bit per weight for where
card.json             what training tells of rows, epochs and weights (`models.training.card`)
manifest.json         size and SHA-256 of each file above
"""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from models.artifact.schema import VariantDocument, parse_document
from models.artifact.soundness import check_state
from models.config import Json
from models.exceptions import CorruptArtifact
from models.forecasting.model import Forecaster
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.method import State
from models.inference.point import DrawsState
from models.inference.swag import SWAGState
from models.language.model import BayesianLanguageModel
from models.model import TrainedModel
from models.posteriors.variant import Variant
from models.tabular.model import TabularModel

FORMAT = 1
MAX_HEADER_BYTES = 2**16  # of a safetensors file: ten tensors take a kilobyte
STATES: dict[str, type[State]] = {
    "mean_field": BBBState,
    "draws": DrawsState,
    "dropout": DropoutState,
    "swag": SWAGState,
}
KINDS: dict[str, type[TrainedModel]] = {
    "regression": TabularModel,
    "classification": TabularModel,
    "forecasting": Forecaster,
    "language_model": BayesianLanguageModel,
}
MANIFEST, MODEL, CARD = "manifest.json", "model.json", "card.json"

# What comes of files whose sums are right and whose contents do not belong together.
_UNREADABLE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError,
    AssertionError, SafetensorError,
)  # fmt: skip


def write_model(model: TrainedModel, directory: Path) -> TrainedModel:
    """Writes the model's files and returns the model with its variants' sizes filled in."""
    directory.mkdir(parents=True, exist_ok=True)
    variants = {}
    for prune, variant in model.variants_by_prune.items():
        path = directory / _file_name(prune)
        path.write_bytes(save(variant.state.pack()))  # unlike `save_file`, it raises an OSError
        variants[prune] = replace(variant, num_bytes=path.stat().st_size)
    model = model.with_variants(variants)
    write_json(directory / MODEL, _to_json(model))
    names = [MODEL, CARD, *map(_file_name, variants)]
    write_json(directory / CARD, model.card)
    sums = {name: _checksum(directory / name) for name in names}
    write_json(directory / MANIFEST, {"format": FORMAT, "files": sums})
    return model


def read_model(directory: Path, device: str = "cpu") -> TrainedModel:
    """Reads a model after checking every file against the manifest.

    Raises:
        CorruptArtifact: if a file is missing, changed or of a later format.
    """
    files = read_manifest(directory)
    for name in files:
        check_file(directory, name, files)
    try:
        document = parse_document(read_json(directory / MODEL))
        config, card = document["config"], read_json(directory / CARD)
        model = KINDS[str(config.task)].from_json(config, {**document}, card)
        variants = [_read_variant(v, model, directory, device) for v in document["variants"]]
        return model.with_variants({variant.prune: variant for variant in variants})
    except CorruptArtifact:
        raise
    except _UNREADABLE as error:
        raise CorruptArtifact(f"{directory} cannot be read: {error!r}"[:500]) from error


def read_card(directory: Path) -> Json:
    """Return what training recorded for the model card: rows, epochs, weights.

    Raises:
        CorruptArtifact: if it is missing or changed, or the artifact is of a later format.
    """
    check_file(directory, CARD, read_manifest(directory))
    return read_json(directory / CARD)


def read_manifest(directory: Path) -> dict[str, Json]:
    """Names, sizes and sums, as the manifest says."""
    manifest = read_json(directory / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise CorruptArtifact(
            f"{directory} has format {manifest.get('format')}; this release reads {FORMAT}"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not {MODEL, CARD} <= files.keys():
        raise CorruptArtifact(
            f"{directory / MANIFEST} does not name {MODEL} and {CARD}", "/manifest.json/files"
        )
    return files


def check_file(directory: Path, name: str, files: dict[str, Json]) -> None:
    """Raise `CorruptArtifact` unless the file is there, and is what the manifest says."""
    path = directory / Path(name).name
    if not path.is_file() or _checksum(path) != files[name]:
        raise CorruptArtifact(f"{path} is missing or does not match its SHA-256 sum", f"/{name}")


def write_json(path: Path, data: Json) -> None:
    """JSON without NaN: one would make the file unreadable elsewhere."""
    path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _to_json(model: TrainedModel) -> Json:
    """The document of `models.artifact.schema`."""
    return {
        "format": FORMAT,
        "config": asdict(model.config),
        **model.to_json(),
        "default_seed": model.default_seed,
        "history": list(model.history),
        "notes": list(model.notes),
        "variants": [_variant_json(variant) for variant in model.variants_by_prune.values()],
    }


def _variant_json(variant: Variant) -> Json:
    return {
        "prune": variant.prune,
        "state": next(name for name, kind in STATES.items() if isinstance(variant.state, kind)),
        "metrics": variant.metrics,
        "num_bytes": variant.num_bytes,
        "error_factors": dict(variant.error_factors),
        "calibration": variant.calibration and asdict(variant.calibration),
        "bfloat16": variant.bfloat16,
        "detector": variant.detector and asdict(variant.detector),
    }


def _read_variant(
    document: VariantDocument, model: TrainedModel, directory: Path, device: str
) -> Variant:
    path = directory / _file_name(document["prune"])
    _check_header(path)
    state = STATES[document["state"]].unpack(load_file(path), model.num_weights)
    check_state(state, model.network, model.likelihood)
    fields: dict[str, Any] = {**document, "state": state.to(device)}
    return Variant(**fields)


def _check_header(path: Path) -> None:
    """The first eight bytes say how long the description of the tensors is: ours are short."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER_BYTES:
        raise CorruptArtifact(f"{path} has a header of {length} bytes; {MAX_HEADER_BYTES} is most")


def _file_name(prune: float) -> str:
    return f"prune-{prune:g}.safetensors"


def _checksum(path: Path) -> Json:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises `CorruptArtifact` for anything else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptArtifact(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise CorruptArtifact(f"{path} does not hold a JSON object")
    return data


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
