"""From a request to one file: buckets, secrets and hosts together."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.sources.budget import Budget
from core.sources.files import Fetched, fetch
from core.sources.rules import read_rules
from core.sources.secrets import Secrets, read_secrets
from core.sources.source import UriSource
from tests.core.s3 import KEY, SECRET, S3Server, running_moto

pytestmark = pytest.mark.stack  # a server of S3

TABLE = pa.table({"x": [1.0, 2.0, 3.0], "g": ["u", "v", "u"]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A bucket with files of two years, a Delta table, and a key that climbs."""
    folder = tmp_path_factory.mktemp("lake")
    for year in (2023, 2024):
        (folder / f"sales/year={year}").mkdir(parents=True)
        pq.write_table(TABLE, folder / f"sales/year={year}/part.parquet")
    deltalake.write_deltalake(str(folder / "table"), TABLE, partition_by=["g"])
    with running_moto() as running:
        client = running.bucket._client
        client.create_bucket(Bucket="lake")
        for path in folder.rglob("*"):
            if path.is_file():
                key = str(path.relative_to(folder))
                client.put_object(Bucket="lake", Key=key, Body=path.read_bytes())
        client.put_object(Bucket="lake", Key="climbing/../../x.csv", Body=b"x\n1\n")
        yield running


@pytest.fixture
def secrets(server: S3Server, tmp_path: Path) -> Secrets:
    given = f'kind = "s3"\naccess_key = "{KEY}"\nsecret_key = "{SECRET}"\n'
    given += f'endpoint = "{server.url}"\n'
    file = tmp_path / "secrets.toml"
    file.write_text(f'[lake]\n{given}[narrow]\n{given}uris = ["s3://lake/table/"]\n')
    return read_secrets(file)


@pytest.fixture
def read(secrets: Secrets, tmp_path: Path) -> Any:
    def do(uri: str, secret: str = "lake", **given: Any) -> Fetched:
        out = tmp_path / "out"
        out.mkdir()
        source = UriSource.model_validate({"uri": uri, "secret": secret, **given})
        rules = read_rules("s3://lake/, s3://open/")
        return fetch(source, rules, secrets, "", out, Budget(10**7, 60))

    return do


def test_a_lake_in_a_bucket(read: Any) -> None:
    found = read("s3://lake/sales/")
    assert pq.read_table(found.path)["year"].to_pylist() == [2023] * 3 + [2024] * 3
    paths = [file["path"] for file in found.snapshot["files"]]
    assert paths == ["sales/year=2023/part.parquet", "sales/year=2024/part.parquet"]
    assert all(len(file["tag"]) == 32 for file in found.snapshot["files"])  # an MD5


def test_a_delta_table_in_a_bucket(read: Any) -> None:
    found = read("s3://lake/table", "narrow", format="delta")
    assert sorted(pq.read_table(found.path)["x"].to_pylist()) == [1.0, 2.0, 3.0]
    assert found.snapshot["version"] == 0


@pytest.mark.parametrize(
    "text",
    [
        '[a]\nkind = "s3"\naccess_key = "sesame"\n',
        '[a]\nkind = "https"\ntoken = "sesame"\n',
        '[a]\nkind = "sqlite"\npath = "/x"\npassword = "sesame"\n',
        'sesame = "',
    ],
)
def test_a_wrong_file_of_secrets_is_refused_without_a_value(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(ValueError, match=r"\w") as refused:
        read_secrets(tmp_path / "s.toml")
    assert "sesame" not in str(refused.value)
    assert refused.value.__cause__ is None
