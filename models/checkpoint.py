"""Models on disk: a directory of safetensors and JSON with SHA-256 sums. Nothing is unpickled.

model.json            configuration, encoders, target, metrics and notes
prune-0.safetensors   loc and rho of the full posterior, the likelihood's point parameters
prune-0.9.safetensors the weights that are left of a variant, and a bit per weight for where
manifest.json         size and SHA-256 of each file above
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.config import Json, ModelConfig
from models.exceptions import CorruptArtifact
from models.features import FeatureEncoder
from models.inference.bbb import BBBState
from models.model import BayesianModel
from models.posteriors import MeanFieldNormal
from models.targets import target_from_json
from models.variant import Variant

FORMAT = 1
MANIFEST, MODEL = "manifest.json", "model.json"


def write(model: BayesianModel, directory: Path) -> BayesianModel:
    """Writes the model's files and returns the model with its variants' sizes filled in."""
    directory.mkdir(parents=True, exist_ok=True)
    variants = {}
    for prune, variant in model.variants_by_prune.items():
        path = directory / _file_name(prune)
        save_file(pack(variant.state), path)
        variants[prune] = replace(variant, num_bytes=path.stat().st_size)
    model = replace(model, variants_by_prune=variants)
    write_json(directory / MODEL, _to_json(model))
    names = [MODEL, *map(_file_name, variants)]
    sums = {name: _checksum(directory / name) for name in names}
    write_json(directory / MANIFEST, {"format": FORMAT, "files": sums})
    return model


def read(directory: Path, device: str = "cpu") -> BayesianModel:
    """Reads a model after checking every file against the manifest.

    Raises:
        CorruptArtifact: if a file is missing, changed or of a later format.
    """
    manifest = _read_json(directory / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise CorruptArtifact(
            f"{directory} has format {manifest.get('format')}; this release reads {FORMAT}"
        )
    for name, expected in manifest["files"].items():
        path = directory / Path(name).name
        if not path.is_file() or _checksum(path) != expected:
            raise CorruptArtifact(f"{path} is missing or does not match its SHA-256 sum")
    try:
        return _from_json(_read_json(directory / MODEL), directory, device)
    except (KeyError, TypeError, SafetensorError) as error:
        raise CorruptArtifact(f"{directory} cannot be read: {error}") from error


def pack(state: BBBState) -> dict[str, Tensor]:
    """A state as tensors; of a pruned posterior only what is left, and its mask as bits."""
    q = state.posterior
    tensors = {f"point.{name}": value.detach().cpu() for name, value in state.point.items()}
    if q.mask is None:
        return {**tensors, "loc": q.loc.detach().cpu(), "rho": q.rho.detach().cpu()}
    bits = np.packbits(q.mask.cpu().numpy())
    kept = {"loc": q.loc[q.mask].detach().cpu(), "rho": q.rho[q.mask].detach().cpu()}
    return {**tensors, **kept, "mask": torch.from_numpy(bits)}


def unpack(tensors: Mapping[str, Tensor], num_weights: int) -> BBBState:
    """The inverse of `pack`. A pruned weight gets loc 0 and rho 0; its mask hides both."""
    point = {k.removeprefix("point."): v for k, v in tensors.items() if k.startswith("point.")}
    if "mask" not in tensors:
        return BBBState(MeanFieldNormal(tensors["loc"], tensors["rho"]), point)
    bits = np.unpackbits(tensors["mask"].numpy(), count=num_weights)
    mask = torch.from_numpy(bits.astype(bool))
    parts = [torch.zeros(num_weights).masked_scatter(mask, tensors[k]) for k in ("loc", "rho")]
    return BBBState(MeanFieldNormal(parts[0], parts[1], mask), point)


def write_json(path: Path, data: Json) -> None:
    """JSON without NaN: one would make the file unreadable elsewhere."""
    path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _to_json(model: BayesianModel) -> Json:
    return {
        "format": FORMAT,
        "config": asdict(model.config),
        "encoders": model.encoder.to_json(),
        "target": model.target.to_json(),
        "default_seed": model.default_seed,
        "ood_threshold": model.ood_threshold,
        "history": list(model.history),
        "notes": list(model.notes),
        "variants": [
            {
                "prune": v.prune,
                "metrics": v.metrics,
                "bytes": v.num_bytes,
                "error_factors": {str(n): factor for n, factor in v.error_factors.items()},
                "bfloat16": v.bfloat16,
            }
            for v in model.variants_by_prune.values()
        ],
    }


def _from_json(data: Json, directory: Path, device: str) -> BayesianModel:
    config = TypeAdapter(ModelConfig).validate_python(data["config"])
    model = BayesianModel(
        config=config,
        encoder=FeatureEncoder.from_json(config.features or (), data["encoders"]),
        target=target_from_json(data["target"]),
        variants_by_prune={},
        default_seed=data["default_seed"],
        ood_threshold=data["ood_threshold"],
        history=tuple(data["history"]),
        notes=tuple(data["notes"]),
    )
    variants = {v["prune"]: _read_variant(v, model, directory, device) for v in data["variants"]}
    return replace(model, variants_by_prune=variants, tuned=True)


def _read_variant(data: Json, model: BayesianModel, directory: Path, device: str) -> Variant:
    tensors = load_file(directory / _file_name(data["prune"]))
    state = unpack(tensors, model.num_weights).to(device)
    factors = {int(n): factor for n, factor in data.get("error_factors", {}).items()}
    bfloat16 = data.get("bfloat16", False)
    return Variant(data["prune"], state, data["metrics"], data["bytes"], factors, bfloat16)


def _file_name(prune: float) -> str:
    return f"prune-{prune:g}.safetensors"


def _checksum(path: Path) -> Json:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"sha256": digest, "bytes": path.stat().st_size}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifact(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise CorruptArtifact(f"{path} does not hold a JSON object")
    return data
