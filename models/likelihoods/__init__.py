"""Likelihoods: the distribution of the encoded target, given the network's outputs.

Each has `num_outputs`, `log_prob` and, for prediction, the parameters of the predicted
distribution. `registry` has the one that a configuration names.
"""

from models.likelihoods.likelihood import Bernoulli as Bernoulli
from models.likelihoods.likelihood import Categorical as Categorical
from models.likelihoods.likelihood import ClassLikelihood as ClassLikelihood
from models.likelihoods.likelihood import GaussianLikelihood as GaussianLikelihood
from models.likelihoods.likelihood import HeteroscedasticGaussian as HeteroscedasticGaussian
from models.likelihoods.likelihood import HomoscedasticGaussian as HomoscedasticGaussian
from models.likelihoods.likelihood import Likelihood as Likelihood
from models.likelihoods.likelihood import expected_noise as expected_noise
from models.likelihoods.likelihood import gaussian_log_prob as gaussian_log_prob
from models.likelihoods.registry import NumberLikelihood as NumberLikelihood
from models.likelihoods.registry import build_likelihood as build_likelihood
from models.likelihoods.shaped import ShapedLikelihood as ShapedLikelihood
