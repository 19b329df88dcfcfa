"""Models on disk: a directory of safetensors and JSON with SHA-256 sums, without pickle.

model.json            configuration, encoders, target, metrics and notes (`models.artifact.schema`)
prune-0.safetensors   the full posterior and the likelihood's point parameters: loc and rho, or the
                      tensors of another method's state (`models.inference`)
prune-0.9.safetensors the remaining weights of a pruned variant, and a mask with one bit per weight
background.safetensors encoded training rows that explanations compare with, if there are any
card.json             what training recorded of rows, epochs and weights (`models.card`)
features.safetensors  what training rows have in common (`models.out_of_distribution`), if known
target-1-….safetensors of a model of several targets: the same files of each target but the first
manifest.json         size and SHA-256 of each file above
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from models.artifact.schema import ModelDocument, parse_document
from models.config import Json
from models.device import ran_out_of_memory
from models.exceptions import CorruptArtifact
from models.explanation.explainer import MAX_ROWS, MIN_ROWS
from models.forecasting.model import Forecaster
from models.inference.registry import states
from models.joint.model import JointModel
from models.language.model import BayesianLanguageModel
from models.model import TrainedModel
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.variant import Variant

FORMAT = 1
MAX_HEADER_BYTES = 2**16  # of a safetensors file; ten tensors need a kilobyte
KINDS: dict[str, type[TrainedModel]] = {
    "regression": TabularModel,
    "classification": TabularModel,
    "forecasting": Forecaster,
    "language_model": BayesianLanguageModel,
}
MANIFEST, MODEL, CARD = "manifest.json", "model.json", "card.json"
BACKGROUND = "background.safetensors"
FEATURES = "features.safetensors"

# The errors caused by files with right checksums whose contents do not fit together.
_UNREADABLE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError,
    AssertionError, SafetensorError,
)  # fmt: skip


def write_model(model: TrainedModel, directory: Path) -> TrainedModel:
    """Write the model's files; return the model with the sizes of its variants filled in."""
    directory.mkdir(parents=True, exist_ok=True)
    parts = model.members if isinstance(model, JointModel) else (model,)
    written = [_write_tensors(part, directory, i) for i, part in enumerate(parts)]
    first, *others = (_to_json(member) for member, _ in written)
    if isinstance(model, JointModel):
        model = model.with_members(cast(TabularModel, member) for member, _ in written)
        together = {f"{prune:g}": asdict(copula) for prune, copula in model.dependence.items()}
        first |= {"others": others, "dependence": together}
    else:
        model = written[0][0]
    write_json(directory / MODEL, first)
    write_json(directory / CARD, model.card)
    names = [MODEL, CARD, *(name for _, files in written for name in files)]
    sums = {name: _checksum(directory / name) for name in names}
    write_json(directory / MANIFEST, {"format": FORMAT, "files": sums})
    return model


def _write_tensors(
    model: TrainedModel, directory: Path, number: int
) -> tuple[TrainedModel, list[str]]:
    """Write the tensors of a model, or of one target; return it with sizes, and the file names."""
    names, variants = [], {}

    def write(name: str, tensors: dict[str, Tensor]) -> int:
        names.append(member_file(number, name))
        path = directory / names[-1]
        path.write_bytes(save(tensors))  # unlike `save_file`, it raises an OSError
        return path.stat().st_size

    for prune, variant in model.variants_by_prune.items():
        size = write(_file_name(prune), variant.state.pack())
        variants[prune] = replace(variant, num_bytes=size)
    if model.background is not None:
        write(BACKGROUND, {"rows": model.background.contiguous()})
    if own := model.own_tensors():
        write(FEATURES, own)
    return model.with_variants(variants), names


def member_file(number: int, name: str) -> str:
    """The name of a file of the target with this number; the first one's has no prefix."""
    return name if number == 0 else f"target-{number}-{name}"


def read_model(directory: Path, device: str = "cpu") -> TrainedModel:
    """Read a model after checking every file against the manifest.

    Raises:
        CorruptArtifact: if a file is missing or changed, or the contents do not fit together.
    """
    files = read_manifest(directory)
    for name in files:
        check_file(directory, name, files)
    try:
        document = parse_document(read_json(directory / MODEL))
        card = read_json(directory / CARD)
        source = _Source(directory, files, device)
        first = _read_member(document, card, source)
        if "others" not in document:
            return first
        numbered = enumerate(document["others"], 1)
        others = [_read_member(one, {}, replace(source, number=i)) for i, one in numbered]
        members = [cast(TabularModel, member) for member in (first, *others)]
        return JointModel.of(members, document["dependence"])
    except CorruptArtifact:
        raise
    except _UNREADABLE as error:
        raise CorruptArtifact(f"{directory} cannot be read: {error!r}"[:500]) from error


@dataclass(frozen=True)
class _Source:
    """The files of one target's model, and the device that its posteriors go to."""

    directory: Path
    files: dict[str, Json]
    device: str
    number: int = 0

    def path(self, name: str) -> Path:
        return self.directory / member_file(self.number, name)

    def tensors(self, name: str) -> dict[str, Tensor]:
        path = self.path(name)
        with path.open("rb") as file:  # the length of the header is in the first eight bytes
            length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER_BYTES:
            message = f"{path} has a header of {length} bytes; at most {MAX_HEADER_BYTES}"
            raise CorruptArtifact(message)
        return load_file(path)

    def has(self, name: str) -> bool:
        return member_file(self.number, name) in self.files


def _read_member(document: ModelDocument, card: Json, source: _Source) -> TrainedModel:
    config = document["config"]
    model = KINDS[str(config.task)].from_json(config, {**document}, card)
    if source.has(FEATURES):  # before the states: trees are inputs of the network
        model = model.with_own_tensors(source.tensors(FEATURES))
    variants = {}
    for stored in document["variants"]:
        tensors = source.tensors(_file_name(stored["prune"]))
        state = states()[stored["state"]].unpack(tensors, model.num_weights)
        state.check(model.network, model.likelihood)
        fields: dict[str, Any] = {**stored, "state": state.to(source.device)}
        variants[stored["prune"]] = Variant(**fields)
    model = model.with_variants(variants)
    return _with_background(model, source) if source.has(BACKGROUND) else model


def examine_artifact(directory: Path) -> TrainedModel:
    """Read a model from an untrusted source, and try to predict with each of its variants.

    Checksums do not help here: the author of the files also wrote the checksums.

    Raises:
        CorruptArtifact: with the file or the field of `model.json` that is wrong.
        MemoryError: a prediction takes more memory than there is.
    """
    known = {MANIFEST, *read_manifest(directory)}
    if unknown := {path.name for path in directory.iterdir()} - known:
        raise CorruptArtifact("is not in the manifest", f"/{min(unknown)}")
    model = read_model(directory)
    try:
        for prune in model.variants:  # one blank row lacks all values, another lacks none
            options = PredictOptions(prune=prune, samples=2)  # enough for a variance
            if not model.predict_rows(model.blank(2), options).is_finite:
                raise CorruptArtifact("predicts numbers that are not finite")
    except Exception as error:  # any error: a model that cannot predict is of no use
        if ran_out_of_memory(error):
            raise MemoryError(str(error)[:500]) from error
        raise CorruptArtifact(f"cannot predict: {error!r}"[:500], "/model.json") from error
    return model


def read_card(directory: Path) -> Json:
    """Return what training recorded for the model card: rows, epochs, weights.

    Raises:
        CorruptArtifact: if it is missing, was changed, or the manifest is of another format.
    """
    check_file(directory, CARD, read_manifest(directory))
    return read_json(directory / CARD)


def read_manifest(directory: Path) -> dict[str, Json]:
    """Return the sizes and SHA-256 sums by file name.

    Raises:
        CorruptArtifact: if the manifest cannot be read or is of another format.
    """
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
    """Raise `CorruptArtifact` unless the file exists and matches the manifest."""
    path = directory / Path(name).name
    if not path.is_file() or _checksum(path) != files[name]:
        raise CorruptArtifact(f"{path} is missing or does not match its SHA-256 sum", f"/{name}")


def write_json(path: Path, data: Json) -> None:
    """Write JSON. NaN raises a ValueError, because other readers could not parse the file."""
    path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _to_json(model: TrainedModel) -> Json:
    """The document of `models.artifact.schema`."""
    variants = model.variants_by_prune.values()
    return {
        "format": FORMAT,
        "config": asdict(model.config),
        **model.to_json(),
        "default_seed": model.default_seed,
        "history": list(model.history),
        "notes": list(model.notes),
        "baselines": [asdict(baseline) for baseline in model.baselines],
        "recommended_variant": model.recommended_variant,
        "selection": model.selection,
        "readings": [reading.to_json() for reading in model.readings],
        "variants": [asdict(replace(one, state=cast(Any, one.state.kind))) for one in variants],
    }


def _with_background(model: TrainedModel, source: _Source) -> TrainedModel:
    """
    Raises:
        CorruptArtifact: if these are no rows that the model has encoded.
    """
    rows, width = source.tensors(BACKGROUND)["rows"], model.num_explained
    fits = rows.ndim == 2 and rows.shape[1] == width and MIN_ROWS <= len(rows) <= MAX_ROWS
    if not fits or rows.dtype != torch.float32 or not rows.isfinite().all():
        message = f"must be {MIN_ROWS} to {MAX_ROWS} rows of {width} finite float32 numbers"
        raise CorruptArtifact(message, f"/{member_file(source.number, BACKGROUND)}")
    return replace(model, background=rows)


def _file_name(prune: float) -> str:
    return f"prune-{prune:g}.safetensors"


def _checksum(path: Path) -> Json:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        CorruptArtifact: if the file cannot be read or is not a JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptArtifact(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise CorruptArtifact(f"{path} is not a JSON object")
    return data


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")
