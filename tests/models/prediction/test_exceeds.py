"""P(y > t) of mixtures: closed forms."""

import numpy as np
import torch
from scipy import stats

from models.prediction.answers import exceeds
from models.prediction.answers.exceeds import Exceedance
from models.prediction.options import PredictOptions
from models.prediction.predictive import GaussianMixture


def test_the_probability_is_the_mean_of_the_components_survival_functions() -> None:
    means, variances = (
        torch.tensor([[0.0, 1.0], [2.0, 5.0]]),
        torch.tensor([[1.0, 4.0], [9.0, 1.0]]),
    )
    mixture = GaussianMixture(means.double(), variances.double())
    options = PredictOptions(exceeds=(-1.0, 3.0))
    found = exceeds.of_mixture(mixture, options, None)["probabilities"]
    deviations = variances.sqrt().numpy()
    expected = [stats.norm.sf(t, means.numpy(), deviations).mean(0) for t in options.exceeds]
    np.testing.assert_allclose(found.numpy(), np.stack(expected, axis=-1), rtol=1e-12)


def test_rows_are_cut_and_joined() -> None:
    whole = Exceedance((1.0, 2.0), np.arange(6.0).reshape(3, 2))
    parts = [whole.select(slice(0, 1)), whole.select(slice(1, 3))]
    np.testing.assert_array_equal(Exceedance.joined(parts).probabilities, whole.probabilities)
    assert list(whole.columns()) == ["exceeds_1.0", "exceeds_2.0"]
