"""Likelihoods: the distribution of the encoded target, given the network's outputs.

Each has `num_outputs`, `log_prob` and, for prediction, the parameters of the predicted
distribution. `build_likelihood` makes the one that a configuration names.
"""

from collections.abc import Mapping

from models.config import LikelihoodConfig, LikelihoodName
from models.config.model import ShapedKind
from models.features.targets import NumberTarget
from models.likelihoods.families import FamilyName
from models.likelihoods.likelihood import Bernoulli as Bernoulli
from models.likelihoods.likelihood import Categorical as Categorical
from models.likelihoods.likelihood import ClassLikelihood as ClassLikelihood
from models.likelihoods.likelihood import GaussianLikelihood as GaussianLikelihood
from models.likelihoods.likelihood import HeteroscedasticGaussian as HeteroscedasticGaussian
from models.likelihoods.likelihood import HomoscedasticGaussian as HomoscedasticGaussian
from models.likelihoods.likelihood import Likelihood as Likelihood
from models.likelihoods.likelihood import expected_noise as expected_noise
from models.likelihoods.likelihood import gaussian_log_prob as gaussian_log_prob
from models.likelihoods.shaped import ShapedLikelihood as ShapedLikelihood

NumberLikelihood = GaussianLikelihood | ShapedLikelihood

_FAMILIES: Mapping[ShapedKind, FamilyName] = {
    "gaussian": "normal",
    "mixture": "logistic",
    "count": "logistic",
}


def build_likelihood(
    config: LikelihoodName | LikelihoodConfig | None,
    num_classes: int | None,
    target: NumberTarget | None = None,
) -> NumberLikelihood | ClassLikelihood:
    """Build the likelihood of this name or kind.

    Args:
        target: what a target with a shape is like.

    Raises:
        ValueError: if the name and the number of classes, or the target, do not fit together.
    """
    if isinstance(config, LikelihoodConfig):
        if target is None or not target.is_shaped:
            raise ValueError(f"likelihood {config.kind!r} needs a number target with a shape")
        return ShapedLikelihood(target, _FAMILIES[config.kind], config.components or 1)
    match config:
        case "heteroscedastic" if num_classes is None:
            return HeteroscedasticGaussian()
        case "homoscedastic" if num_classes is None:
            return HomoscedasticGaussian()
        case "categorical" if num_classes is not None and num_classes >= 2:
            return Categorical(num_classes)
        case "bernoulli" if num_classes == 2:
            return Bernoulli()
    raise ValueError(f"likelihood {config!r} does not fit {num_classes} classes")
