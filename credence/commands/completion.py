"""Shell completion of names that the service knows, if it responds quickly."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from credence.client import Client

MAX_NAMES = 200
TIMEOUT_SECONDS = 0.5  # a slow answer to TAB is worse than none


def model_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Models and their targets."""
    found = _fetch(ctx, lambda client: client.models())
    return [(m["name"], f"{m['task']} of {m['target']}") for m in found]


def dataset_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Data sets, with their names and sizes."""
    found = _fetch(ctx, lambda client: client.datasets())
    return [(d["id"], f"{d['name']}, {d['rows']} rows") for d in found]


def job_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Jobs, newest first."""
    found = _fetch(ctx, lambda client: client.jobs())
    return [(j["id"], f"{j['kind']} {j['model']}, {j['status']}") for j in found]


def names_and_ids(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Models; jobs or data sets if the word begins as their ids."""
    kinds = {"job_": job_ids, "ds_": dataset_ids}
    found = next((names for prefix, names in kinds.items() if incomplete.startswith(prefix)), None)
    return (found or model_names)(ctx, incomplete)


def dataset_ids_and_files(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Files, or data sets if the word begins with `ds_`."""
    if incomplete.startswith("ds_"):
        return dataset_ids(ctx, incomplete)
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    prefix = incomplete[: incomplete.rfind("/") + 1]
    return [(f"{prefix}{path.name}{'/' if path.is_dir() else ''}", "") for path in paths]


def _fetch(ctx: typer.Context, query: "Callable[[Client], Iterable[Any]]") -> list[Any]:
    """The items that the service lists; none if it does not respond."""
    from credence.client import Client  # noqa: PLC0415
    from credence.exceptions import ClientError  # noqa: PLC0415

    url = ctx.params.get("url")
    try:
        with Client(url, timeout_seconds=TIMEOUT_SECONDS, retries=0, progress=False) as client:
            return list(islice(query(client), MAX_NAMES))
    except ClientError:
        return []
