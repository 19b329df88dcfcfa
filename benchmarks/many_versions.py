"""Many models, and many versions of one: milliseconds of each operation, and bytes.

    python -m benchmarks.many_versions [--versions 10000]

On SQLite and on a PostgreSQL of its own. As many models with one version each as `--versions`, and
one model with as many versions, each described as an ordinary table's model is. The rows are
inserted; the versions that are loaded and deleted have files. `docs/scaling.md` uses these figures.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from benchmarks import results
from benchmarks.ratios.engine import ordinary
from core.clock import now
from core.context import Context, open_context
from core.database.schema import ModelRow, VersionRow
from core.paging import encode_cursor
from core.registry.registry import Version
from core.settings import load_settings
from models.artifact.files import read_model, write_model
from tests.core.postgresql import running_postgresql

ONE = "one"  # the model with many versions
BLOCK = 500  # rows per INSERT
PUBLISHED = 20
SECONDS = 1.0  # per figure, and at least three repetitions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=10_000)
    count = parser.parse_args().versions
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(ordinary(), Path(folder) / "model")
        artifact = Path(folder) / "model", model.description
        with opened(None) as context:
            found["SQLite"] = measure(context, artifact, count)
        with running_postgresql() as url, opened(url) as context:
            found["PostgreSQL"] = measure(context, artifact, count)
    results.save("many_versions", {"machine": results.machine(), "count": count, **found})
    print(table(found))


@contextmanager
def opened(url: str | None) -> Iterator[Context]:
    """A new installation."""
    with tempfile.TemporaryDirectory() as folder:
        context = open_context(load_settings(data_dir=Path(folder), database_url=url))
        try:
            yield context
        finally:
            context.close()


def measure(
    context: Context, artifact: tuple[Path, dict[str, Any]], count: int
) -> dict[str, float]:
    """Milliseconds of each operation, and bytes per version."""
    files, description = artifact
    before = database_bytes(context)
    fill(context, description, count)
    per_version = (database_bytes(context) - before) / (2 * count)
    registry = context.registry
    stamp = {"imported": {"bytes": 0, "origin": None}}
    publish = partial(registry.add, ONE, files, description | stamp)
    published, publishing = repeated(publish, PUBLISHED)
    last = encode_cursor("models", name(count - 21))
    return {
        "list 20 models, first page": milliseconds(lambda: registry.list(20)),
        "list 20 models, last page": milliseconds(lambda: registry.list(20, last)),
        "list 1,000 models": milliseconds(lambda: registry.list(1000)),
        "list the versions of one model": milliseconds(lambda: registry.versions(ONE)),
        "open the newest version": milliseconds(lambda: registry.get(ONE)),
        "open a version by alias": milliseconds(lambda: registry.get(ONE, "champion")),
        "load a version": milliseconds(lambda: read_model(registry.path(registry.get(ONE)))),
        "publish a version": publishing,
        "delete a version": deleting(context, published),
        "delete the model with all its versions": once(lambda: registry.delete_model(ONE)),
        "bytes of a version in the database": per_version,
        "bytes of a version in the store": sum(f.stat().st_size for f in files.rglob("*")),
    }


def fill(context: Context, description: dict[str, Any], count: int) -> None:
    """Insert the rows of `count` models with a version, and of one model with `count` versions."""
    many = [version_row(name(i), 1, description) for i in range(count)]
    one = [version_row(ONE, i + 1, description) for i in range(count)]
    with context.database.begin() as session:
        named = [{"name": name(i), "owner": "", "last_version": 1} for i in range(count)]
        in_blocks(session, ModelRow, [*named, {"name": ONE, "owner": "", "last_version": count}])
        in_blocks(session, VersionRow, [*many, *one])
    context.registry.set_alias(ONE, "champion", count // 2)
    if not context.database.is_sqlite:
        with context.database.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))


def in_blocks(session: Session, table: type[Any], rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), BLOCK):
        session.execute(insert(table), rows[start : start + BLOCK])


def version_row(model: str, version: int, description: dict[str, Any]) -> dict[str, Any]:
    origin = {"dataset": "ds-1", "job": "job-1", "artifact_key": f"models/{model}/{version}"}
    row = {"model": model, "version": version, "description": description, "created_at": now()}
    return row | origin


def name(number: int) -> str:
    return f"model-{number:06}"


def deleting(context: Context, published: list[Version]) -> float:
    """Milliseconds of deleting one version, with its files."""
    times = [once(partial(context.registry.delete_version, ONE, v.version)) for v in published]
    return statistics.median(times)


def repeated(work: Callable[[], Version], times: int) -> tuple[list[Version], float]:
    """What the calls return, and the median of their milliseconds."""
    made: list[Version] = []
    spent = [once(lambda: made.append(work())) for _ in range(times)]
    return made, statistics.median(spent)


def milliseconds(work: Callable[[], object]) -> float:
    """Median milliseconds of repeated calls."""
    spent: list[float] = []
    while sum(spent) < 1000 * SECONDS or len(spent) < 3:
        spent.append(once(work))
    return statistics.median(spent)


def once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def database_bytes(context: Context) -> float:
    pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    server = "SELECT pg_database_size(current_database())"
    with context.database.read() as session:
        return float(session.scalar(text(pages if context.database.is_sqlite else server)) or 0)


def table(found: dict[str, dict[str, float]]) -> str:
    lines = [
        [
            what,
            *(results.figure(of[what], 2 if "bytes" not in what else 3) for of in found.values()),
        ]
        for what in next(iter(found.values()))
    ]
    return results.markdown(["milliseconds", *found], lines)


if __name__ == "__main__":
    main()
