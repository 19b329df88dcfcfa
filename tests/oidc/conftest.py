"""One provider, and one service that believes it, for the tests that change neither."""

from collections.abc import Iterator

import pytest

from tests.app.running import Service, serving
from tests.oidc.running import RunningProvider, new_key, running_provider


@pytest.fixture(scope="session")
def provider() -> Iterator[RunningProvider]:
    with running_provider(new_key("first")) as running:
        yield running


@pytest.fixture(scope="session")
def service(
    provider: RunningProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("sign-on"), **provider.settings) as running:
        yield running
