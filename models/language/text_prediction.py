"""Log likelihoods of texts and of their next tokens, as mixtures over weight draws.

Sample s is one function for all texts of a request. With C_s,t = Σ_{i≤t} log p(x_i | x_<i, w_s):

    log p(text)      = log (1/S) Σ_s exp C_s,n, with the end of the sequence among its n tokens
    log p(x_t | x_<t) = L_t − L_{t−1},   L_t = log (1/S) Σ_s exp C_s,t

so that the values of a text's tokens add up to the text's value; weights that explain the prefix
count more. The distribution of the next token is the plain average (1/S) Σ_s p(· | x, w_s), from
which the entropies are computed.

Texts are read in windows, some samples at a time. Hidden states are passed on to the next window,
so memory does not grow with a text's length. Logits are computed for parts of a window.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr

from models.inference.method import Functions
from models.language.text import Corpus
from models.layers.recurrent import CELLS
from models.networks.sequences import LanguageModel, States
from models.prediction.pauses import Pause, go_on
from models.prediction.prediction import Prediction
from models.prediction.whole_draws import FittedDraws

# Logits that are computed at once: they and their results stay in the cache, and a product still
# has hundreds of rows.
_LOGITS_BYTES = 16 * 2**20
_WEIGHTS_BYTES = 128 * 2**20  # of samples that are drawn at once
_WINDOW_BYTES = 32 * 2**20  # of gates and states that are computed at once
_WINDOW_STEPS = 50  # of a text; longer windows do not make the inputs' products faster
_CELLS_AT_ONCE = 2**21  # texts × tokens of the vocabulary, in float64
# In the answer: a token with its names and its probability takes as much text as three numbers.
VALUES_PER_TEXT, VALUES_PER_TOKEN = 5, 3
PADDING = -1  # after the end of a text that is shorter than the longest

Texts = Int[Tensor, "texts steps"]
PerToken = Float[Tensor, "texts steps"]
Hidden = Float[Tensor, "samples texts steps hidden"]


@dataclass(frozen=True)
class NextToken:
    """A possible next token and its probability."""

    token: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class TextPrediction(Prediction):
    """For each text its log likelihood, and the distribution of the next token."""

    @property
    def num_values(self) -> int:
        """About how many numbers the response has."""
        tokens = sum(len(values) for values in self["token_log_likelihoods"])
        return tokens + sum(
            VALUES_PER_TOKEN * len(next_) + VALUES_PER_TEXT for next_ in self["next_tokens"]
        )


@dataclass(frozen=True)
class Scores:
    """Log likelihoods of the tokens of some texts, and the distribution of each next token."""

    log_likelihoods: PerToken  # per token, 0 after a text's end
    probabilities: Float[Tensor, "texts tokens"]  # of the next token
    aleatoric: Float[Tensor, "texts"]  # mean of the samples' entropies


@torch.inference_mode()
def score(  # noqa: PLR0917 - what is read, the draws, and who may run in between
    fitted: FittedDraws, x: Texts, end: int, seed: int, samples: int, pause: Pause = go_on
) -> Scores:
    """Scores of encoded texts that begin and end with an end token, padded at the right."""
    network = _language_model(fitted)
    inputs, targets = torch.where(x == PADDING, end, x)[:, :-1], x[:, 1:]
    steps = max(1, min(_WINDOW_STEPS, _steps_at_once(network) // len(x)))
    mixture = torch.full(targets.shape, -math.inf, dtype=torch.float64, device=x.device)
    probabilities = torch.zeros(len(x), network.num_outputs, dtype=torch.float64, device=x.device)
    entropies = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for functions in _functions(fitted, seed, samples, len(x) * steps):
        ends = _read(network, functions, inputs, targets, steps, mixture, pause)
        for weights, s, _ in _parts(network, functions, ends):
            probs = network.decoder(weights, ends[s]).squeeze(2).double().softmax(-1)
            probabilities += probs.sum(0)
            entropies += entr(probs).sum(-1).sum(0)
    count = min(samples, fitted.num_draws or samples)
    mixture -= math.log(count)
    per_token = mixture.diff(dim=-1, prepend=mixture.new_zeros(len(x), 1))
    return Scores(per_token, probabilities / count, entropies / count)


def texts_at_once(network: LanguageModel) -> int:
    """How many texts `score` can take at once: as many as fit with one step of one sample."""
    return max(1, min(_CELLS_AT_ONCE // network.num_outputs, _steps_at_once(network)))


@torch.inference_mode()
def mean_log_likelihood(
    fitted: FittedDraws, corpus: Corpus, seed: int, samples: int, steps: int
) -> float:
    """The mean over all tokens of log (1/S) Σ_s p(x_t | x_<t, w_s), in nats.

    Samples are averaged token by token, as in published perplexities of mixtures.
    """
    network = _language_model(fitted)
    count = min(samples, fitted.num_draws or samples)
    mixture = torch.full((1, 1), -math.inf, dtype=torch.float64, device=corpus.streams.device)
    for functions in _functions(fitted, seed, samples, corpus.num_streams * steps):
        states: States | None = None
        parts = []
        for tokens, targets in corpus.windows(steps):
            hidden, states = network.read(functions.weights, tokens, states, functions.masks)
            parts.append(_log_probs(network, functions, hidden, targets).logsumexp(0))
        mixture = torch.logaddexp(mixture, torch.cat(parts, dim=1))
    return float(mixture.mean()) - math.log(count)


def _language_model(fitted: FittedDraws) -> LanguageModel:
    assert isinstance(fitted.network, LanguageModel)
    return fitted.network


def _functions(fitted: FittedDraws, seed: int, samples: int, steps: int) -> Iterator[Functions]:
    """All samples in order, as many at a time as fit with `steps` steps of all texts together.

    The pieces that are drawn do not depend on the texts, so that any request can use cached draws.
    """
    at_once = max(1, _steps_at_once(_language_model(fitted)) // steps)
    count = min(samples, fitted.num_draws or samples)
    drawn_at_once = max(1, _WEIGHTS_BYTES // max(1, fitted.source.bytes_per_sample))
    for start in range(0, count, drawn_at_once):
        stop = min(start + drawn_at_once, count)
        drawn = fitted.source.functions(seed, start, stop)
        for first in range(0, stop - start, at_once):
            part = slice(first, first + at_once)
            weights = {name: _some(value, part, name) for name, value in drawn.weights.items()}
            masks = drawn.masks and [mask[part] for mask in drawn.masks]
            yield replace(drawn, weights=weights, masks=masks)


def _steps_at_once(network: LanguageModel) -> int:
    """How many steps of all texts and samples fit, with their gates, inputs, states and copies."""
    layers = network.recurrent
    numbers = (CELLS[x.kind].gates * x.hidden + 3 * (x.in_features + x.hidden) for x in layers)
    return _WINDOW_BYTES // (4 * max(numbers))


def _read(  # noqa: PLR0917 - inputs and where results are added
    network: LanguageModel,
    functions: Functions,
    inputs: Texts,
    targets: Texts,
    steps: int,
    mixture: PerToken,
    pause: Pause,
) -> Float[Tensor, "samples texts 1 hidden"]:
    """Add exp C_s,t of these samples to exp `mixture`; return each text's last hidden state."""
    last = (targets != PADDING).sum(1) - 1
    texts = torch.arange(len(last), device=last.device)
    ends, so_far, states = mixture.new_zeros(()), mixture.new_zeros(()), None
    for start in range(0, inputs.shape[1], steps):
        pause()
        window = slice(start, min(start + steps, inputs.shape[1]))
        hidden, states = network.read(functions.weights, inputs[:, window], states, functions.masks)
        hidden = hidden if hidden.dim() == 4 else hidden.unsqueeze(0)
        log_probs = _log_probs(network, functions, hidden, targets[:, window])
        cumulated = so_far + log_probs.cumsum(-1)
        mixture[:, window] = torch.logaddexp(mixture[:, window], cumulated.logsumexp(0))
        so_far = cumulated[..., -1:]
        here = (last >= start) & (last < window.stop)
        at_last = hidden[:, texts, (last - start).clamp(0, hidden.shape[2] - 1)]
        ends = torch.where(here.unsqueeze(-1), at_last, ends.to(at_last))
    return ends.unsqueeze(2)


def _log_probs(
    network: LanguageModel,
    functions: Functions,
    hidden: Float[Tensor, "*samples texts steps hidden"],
    targets: Texts,
) -> Float[Tensor, "samples texts steps"]:
    """log p of each target, 0 for padding."""
    hidden = hidden if hidden.dim() == 4 else hidden.unsqueeze(0)
    chosen = targets.clamp_min(0)
    log_probs = hidden.new_empty(hidden.shape[:3], dtype=torch.float64)
    for weights, s, t in _parts(network, functions, hidden):
        logits = network.decoder(weights, hidden[s, :, t])
        index = chosen[:, t].expand(logits.shape[:-1]).unsqueeze(-1)
        given = logits.gather(-1, index).squeeze(-1)
        log_probs[s, :, t] = given.double() - logits.logsumexp(-1).double()
    return log_probs * (targets != PADDING)


def _parts(
    network: LanguageModel, functions: Functions, hidden: Hidden
) -> Iterator[tuple[dict[str, Tensor], slice, slice]]:
    """Decoder weights, samples and steps of the parts whose logits are computed at once."""
    samples, texts, steps, _ = hidden.shape
    pairs = max(1, _LOGITS_BYTES // (4 * texts * network.num_outputs))
    at_once = min(steps, pairs)
    count = max(1, pairs // at_once)
    names = (network.embedding.weight, network.decoder.bias)
    for start in range(0, samples, count):
        s = slice(start, min(start + count, samples))
        weights = {name: _some(functions.weights[name], s, name) for name in names}
        for step in range(0, steps, at_once):
            yield weights, s, slice(step, min(step + at_once, steps))


def _some(tensor: Tensor, samples: slice, name: str) -> Tensor:
    """Some samples of a weight; the weight itself if all samples share it."""
    has_samples = tensor.dim() > (1 if name.endswith("bias") else 2)
    return tensor[samples] if has_samples else tensor
