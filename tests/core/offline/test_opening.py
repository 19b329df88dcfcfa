"""A destination is opened below a folder of the operator's, with the named secret alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core.destinations.bucket import BucketFolder
from core.offline.destination import Destination
from core.offline.opening import Target, open_destination
from core.settings import load_settings

Open = Callable[..., Target]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(
        '[lake]\nkind = "s3"\naccess_key = "k"\nsecret_key = "hidden"\nregion = "eu-west-1"\n'
        '[shop]\nkind = "sqlite"\npath = "/srv/shop.db"\n'
    )
    settings = load_settings(
        data_dir=tmp_path / "data",
        source_secrets_file=secrets,
        destinations=f"file://{tmp_path}/out/, s3://lake/scored/",
    )

    def open_(uri: str, **more: str) -> Target:
        given = Destination.model_validate({"uri": uri, **more})
        return open_destination(given, settings, "ann", tmp_path)

    return open_


def test_a_bucket_is_opened_with_the_secret_and_never_at_the_stores_endpoint(opened: Open) -> None:
    place = opened("s3://lake/scored/today", secret="lake").place
    assert isinstance(place, BucketFolder)
    assert (place.bucket, place.folder) == ("lake", "scored/today")
    assert place.keys.access_key == "k"
    assert place.keys.endpoint == "https://s3.eu-west-1.amazonaws.com"
    assert "hidden" not in repr(place)
