"""The benchmark of the standard tables: its settings."""

import numpy as np

from benchmarks import uci

SETTINGS = {"training": {"epochs": 2, "batch_size": 16}}


def test_the_published_network_is_prescribed_and_the_recipes_is_not() -> None:
    training = {"x0": np.arange(50.0), "y": np.arange(50.0)}
    published, own = (uci.Recipe(kind, 3, SETTINGS).configure(training) for kind in uci.NETWORKS)
    assert published.network.hidden == (50,)
    assert (published.training.seed, published.training.epochs) == (3, 2)
    assert published.training.validation_fraction == own.training.validation_fraction == 0.01
    assert published.pruning == own.pruning == ()
    large = {name: np.arange(20_001.0) for name in ("x0", "y")}
    assert uci.Recipe("published", 0, {}).configure(large).network.hidden == (100,)
