"""Models that the tests share."""

import pytest

from models.tabular.model import TabularModel
from tests.models.explanation.fitting import fit


@pytest.fixture(scope="session")
def regression() -> TabularModel:
    return fit("y")


@pytest.fixture(scope="session")
def classifier() -> TabularModel:
    return fit("kind")
