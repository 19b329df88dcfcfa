"""Files into a folder by tasks of Ray and Spark: the same files as those of one process."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credence.bulk.runners import RUNNERS
from credence.bulk.scoring import predict_files
from credence.scoring.model import LoadedModel
from tests.engines.conftest import OPTIONS, check, skip_without


@pytest.mark.parametrize("engine", ["local", "ray", "spark"])
def test_parts_are_tasks(  # noqa: PLR0917 - fixtures
    engine: str,
    model: LoadedModel,
    rows: pa.Table,
    wanted: pa.Table,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    skip_without(engine)
    if engine == "ray":
        request.getfixturevalue("ray_cluster")
    for number, start in enumerate(range(0, 500, 125)):
        pq.write_table(rows.slice(start, 125), tmp_path / f"{number}.parquet")
    folder, seen = tmp_path / "to", list[int]()
    runner, source = RUNNERS[engine], str(tmp_path / "*.parquet")
    for _ in range(2):  # the second time two parts are missing
        done = predict_files(
            model, source, folder, OPTIONS, runner=runner, keep=["key"], show=seen.append
        )
        assert done == sum(seen) == 500
        parts = sorted(folder.glob("part-*"))
        found = pa.concat_tables(map(pq.read_table, parts))
        assert found["key"].to_pylist() == list(range(500))
        check(found.to_pylist(), wanted)
        seen.clear()
        for part in parts[:2]:
            part.unlink()
