"""A bucket `lake` of a server of the tests' own."""

from collections.abc import Iterator

import boto3
import pytest

from core.destinations.bucket import Keys
from tests.core.s3 import KEY, SECRET, running_moto


@pytest.fixture(scope="module")
def keys() -> Iterator[Keys]:
    with running_moto() as server:
        found = Keys(KEY, SECRET, endpoint=server.url, region="us-east-1")
        client = boto3.client(
            "s3",
            endpoint_url=server.url,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="lake")
        yield found
