"""`credence predict MODEL SOURCE --to DESTINATION`: the service is asked for a model at most."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.exceptions import CredenceError
from credence.bulk.places import Format
from credence.bulk.runners import RUNNERS
from credence.bulk.scoring import predict_files
from credence.progress import is_interactive, rows_bar
from credence.rendering import fail, note
from credence.scoring.loading import load
from models.exceptions import ModelError

REFUSED = 1


def predict_to(
    *,
    model: str,
    version: str | None,
    url: str | None,
    source: str,
    destination: str,
    format_: Format,
    engine: str,
    keep: Sequence[str],
    options: Mapping[str, Any],
) -> None:
    """Predict files into a folder or a table, and say how many rows; an error ends the command.

    Args:
        model: a path of an archive or a folder, or the name of a model of the service.
    """
    name = f"models:/{model}/{version}" if version else f"models:/{model}"
    try:
        loaded = load(Path(model)) if Path(model).exists() else load(name, url=url)
        with rows_bar(None, visible=is_interactive()) as show:
            rows = predict_files(
                loaded,
                source,
                destination,
                options,
                runner=RUNNERS[engine],
                format_=format_,
                keep=keep,
                show=show,
            )
    except (CredenceError, ModelError, OSError, ModuleNotFoundError, ValueError) as error:
        fail(str(error), REFUSED)
    note(f"{rows} rows of {loaded.name} version {loaded.version} in {destination}")
