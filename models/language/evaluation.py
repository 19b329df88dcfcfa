"""Scores of texts: perplexities by Monte Carlo and at the posterior's mean."""

import math

from models.config import Json
from models.inference.bbb import BBBState
from models.inference.mc_dropout import DropoutState
from models.inference.method import State
from models.inference.point import DrawsState
from models.language.corpus import Corpus
from models.language.prediction import mean_log_likelihood
from models.networks.recurrent import LanguageModel
from models.prediction.weight_draws import FittedDraws

SAMPLES = 30
_STEPS = 50  # that are read at once; hidden states are passed on
_MAX_NATS = 700.0  # per token: beyond it the perplexity exceeds float64


def evaluate(network: LanguageModel, state: State, corpus: Corpus, seed: int) -> Json:
    """Perplexity and nats per token by Monte Carlo; perplexity at the mean weights, if any."""
    fitted = FittedDraws.of(network, state)
    drawn = mean_log_likelihood(fitted, corpus, seed, SAMPLES, _STEPS)
    metrics: Json = {
        "perplexity": perplexity(drawn),
        "log_likelihood": drawn,
        "tokens": corpus.num_targets,
    }
    mean = mean_of(state)
    if mean is not None:
        at_mean = mean_log_likelihood(FittedDraws.of(network, mean), corpus, 0, 1, _STEPS)
        metrics["perplexity_posterior_mean"] = perplexity(at_mean)
    return metrics


def score(network: LanguageModel, state: State, corpus: Corpus) -> float:
    """Log likelihood per token for early stopping: at the mean weights, or of all stored draws.

    It takes one pass over the text; 30 samples would cost as much as ten passes.
    """
    mean = mean_of(state)
    fitted = FittedDraws.of(network, state if mean is None else mean)
    return mean_log_likelihood(fitted, corpus, 0, fitted.num_draws or 1, _STEPS)


def mean_of(state: State) -> DrawsState | None:
    """The mean of the weights as a single draw; None for ensembles, whose mean is meaningless."""
    match state:
        case BBBState():
            weights = state.posterior.distribution().moments()[0]
        case DropoutState():
            weights = state.weights
        case DrawsState() if len(state.weights) == 1:
            weights = state.weights[0]
        case _:
            return None
    return DrawsState(weights.detach().unsqueeze(0), {})


def perplexity(log_likelihood: float) -> float:
    """exp of the mean −log p per token."""
    return math.exp(min(_MAX_NATS, -log_likelihood))
