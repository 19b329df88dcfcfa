"""Likelihoods: the distribution of the encoded target, given the network's outputs.

Each has `num_outputs`, `log_prob` and, for prediction, the parameters of the predicted
distribution.
"""

from models.likelihoods.builder import NumberLikelihood as NumberLikelihood
from models.likelihoods.builder import build_likelihood as build_likelihood
from models.likelihoods.classes import Bernoulli as Bernoulli
from models.likelihoods.classes import Categorical as Categorical
from models.likelihoods.classes import ClassLikelihood as ClassLikelihood
from models.likelihoods.gaussian import GaussianLikelihood as GaussianLikelihood
from models.likelihoods.gaussian import HeteroscedasticGaussian as HeteroscedasticGaussian
from models.likelihoods.gaussian import HomoscedasticGaussian as HomoscedasticGaussian
from models.likelihoods.gaussian import expected_noise as expected_noise
from models.likelihoods.gaussian import gaussian_log_prob as gaussian_log_prob
from models.likelihoods.likelihood import Likelihood as Likelihood
from models.likelihoods.shaped import ShapedLikelihood as ShapedLikelihood
