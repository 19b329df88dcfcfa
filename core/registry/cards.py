"""A version's model card: one document from the artifact, the registry and the job.

Rows, curves and histograms are in a file of the artifact (`card.json`), because lists of models do
not need them and the database's rows stay small.
"""

from collections.abc import Sequence

from core.access.callers import SERVICE
from core.context import Context
from core.database.schema import Json
from core.names import dotted_paths
from core.registry.limitations import find_limits
from core.registry.registry import Version
from models.artifact.files import read_card

_REGISTERED = ("model", "version", "aliases", "dataset", "job", "created_at")
_CONFIGURED = ("likelihood", "network", "method", "training")
_NO_SETTINGS = ("features", "target")  # shown in the table of columns


def read(context: Context, version: Version) -> Json:
    """The model card of a version.

    Raises:
        CorruptArtifact: the artifact's `card.json` is damaged.
    """
    trained = read_card(context.registry.path(version))
    return compose(version, trained, _recipe(context, version))


def compose(version: Version, trained: Json, recipe: Sequence[Json]) -> Json:
    """The model card.

    Args:
        trained: the artifact's `card.json`.
        recipe: every setting of the training.
    """
    about, rows = version.description, trained["rows"]
    return {
        **{name: getattr(version, name) for name in _REGISTERED},
        "task": about["task"],
        "target": about["target"],
        "features": about["features"],
        "classes": about["classes"],
        "num_weights": about["num_weights"],
        "rows": rows | {"split": about["training"]["split"]},
        "recipe": recipe,
        "learning_curve": trained["learning_curve"],
        "variants": about["variants"],
        "baselines": about.get("baselines", []),  # versions of older releases have none
        "recommended_variant": about.get("recommended_variant", 0.0),
        "selection": about.get("selection", {}),
        "source": trained.get("source"),
        "importance": trained.get("importance", {}),  # older releases did not measure it
        "held_out": trained.get("held_out", {}),  # older releases did not store it
        "signal_to_noise": trained["signal_to_noise"],
        "out_of_distribution": _out_of_distribution(about),
        "notes": about["notes"],
        "limits": find_limits(about, rows),
    }


def _recipe(context: Context, version: Version) -> list[Json]:
    """Every setting of the training, and whether the request gave it (null if imported)."""
    if "imported" in version.description:
        return imported_recipe(version)
    spec = context.for_caller(SERVICE).jobs.get(version.job).spec
    given = spec["given"]
    return _settings({k: v for k, v in spec["config"].items() if k not in _NO_SETTINGS}, given)


def imported_recipe(version: Version) -> list[Json]:
    """The settings of a version that was imported."""
    return _settings({name: version.description[name] for name in _CONFIGURED}, None)


def _settings(settings: Json, given: Sequence[str] | None) -> list[Json]:
    return [
        {"setting": path, "value": value, "given": None if given is None else path in given}
        for path, value in dotted_paths(settings).items()
        if value is not None
    ]


def _out_of_distribution(about: Json) -> list[Json]:
    """Each variant's score and threshold. Language models have none."""
    return [
        {"prune": variant["prune"]} | variant["out_of_distribution"]
        for variant in about["variants"]
        if "out_of_distribution" in variant
    ]
