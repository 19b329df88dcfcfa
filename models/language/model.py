"""A trained language model: its vocabulary, network and one posterior per pruned variant.

Its scores are perplexities by Monte Carlo and at the posterior's mean.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from models.config import Json, ModelConfig, RecurrentConfig
from models.device import to_host
from models.evaluation.metrics import epistemic_share
from models.features.columns import Columns, InputColumn
from models.features.targets import present
from models.inference.method import State
from models.language.text import Corpus, Vocabulary
from models.language.text_prediction import (
    PADDING,
    VALUES_PER_TEXT,
    VALUES_PER_TOKEN,
    NextToken,
    TextPrediction,
    Texts,
    mean_log_likelihood,
    score,
    texts_at_once,
)
from models.likelihoods import Categorical
from models.model import TrainedModel
from models.networks.sequences import LanguageModel
from models.prediction.options import BatchOptions, ResolvedOptions, Sampler
from models.prediction.outputs.questions import not_answered
from models.prediction.pauses import Pause, go_on
from models.prediction.threads import threads_for
from models.prediction.whole_draws import FittedDraws

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
    mean = state.at_mean()
    if mean is not None:
        at_mean = mean_log_likelihood(FittedDraws.of(network, mean), corpus, 0, 1, _STEPS)
        metrics["perplexity_posterior_mean"] = perplexity(at_mean)
    return metrics


def stopping_score(network: LanguageModel, state: State, corpus: Corpus) -> float:
    """Log likelihood per token: at the mean weights, or of an ensemble's draws.

    It takes one pass over the text; 30 samples would cost as much as ten passes.
    """
    mean = state.at_mean()
    fitted = FittedDraws.of(network, state if mean is None else mean)
    return mean_log_likelihood(fitted, corpus, 0, fitted.num_draws or 1, _STEPS)


def perplexity(log_likelihood: float) -> float:
    """exp of the mean −log p per token."""
    return math.exp(min(_MAX_NATS, -log_likelihood))


_EXAMPLE_TOKENS = 50
_EVALUATED_STREAMS = 10  # few, because the first tokens of a stream are read without their prefix


@dataclass(frozen=True, kw_only=True)
class BayesianLanguageModel(TrainedModel):
    """Everything needed to predict. Frozen: any number of threads may use one instance."""

    vocabulary: Vocabulary
    described: ClassVar[tuple[str, ...]] = (*TrainedModel.described, "language")

    @property
    def task(self) -> str:
        return "language_model"

    @property
    def inputs(self) -> tuple[InputColumn, ...]:
        return (InputColumn(name=self.config.target, type="text", continues=True),)

    @cached_property
    def network(self) -> LanguageModel:
        assert isinstance(self.config.network, RecurrentConfig)  # of the recipe
        return LanguageModel.build(self.config.network, len(self.vocabulary))

    @cached_property
    def likelihood(self) -> Categorical:
        return Categorical(len(self.vocabulary))

    @property
    def description(self) -> Json:
        return super().description | {"vocabulary_size": len(self.vocabulary)}

    def to_json(self) -> Json:
        return {"vocabulary": asdict(self.vocabulary)}

    @classmethod
    def own_fields(cls, config: ModelConfig, data: Json) -> Json:
        return {"vocabulary": data["vocabulary"]}

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        return ("monte_carlo",)

    @property
    def unknown_options(self) -> Mapping[str, str]:
        return {
            "return_draws": "a language model returns no draws: leave it out",
            "horizon": "only forecasts have a horizon: leave it out",
            "abstain_above": "a language model does not abstain: leave it out",
            "return_mc_errors": "a language model states no such errors: leave it out",
            "target_mc_error": "a language model has no mean with an mc_error: leave it out",
            "explain": "texts are not explained: only models of rows are",
            **not_answered(self.task),
        }

    @property
    def has_independent_rows(self) -> bool:
        """No: texts differ in length, and share draws that cost more than reading them."""
        return False

    @property
    def no_labels(self) -> str:
        return "a language model takes no labels: every text is its own label"

    @property
    def bytes_per_row(self) -> int:
        """The probabilities of all tokens, in float64."""
        return 8 * len(self.vocabulary)

    def values_per_row(self, options: ResolvedOptions) -> int:
        """The next tokens, and what every text has."""
        return VALUES_PER_TEXT + VALUES_PER_TOKEN * min(options.top, len(self.vocabulary))

    def num_steps(self, columns: Columns) -> int:
        """The steps of the longest text, including its end."""
        texts = columns[self.config.target]
        return 1 + max(len(self.vocabulary.encode(str(text))) for text in texts)

    def size(self, x: Texts) -> int:
        """The steps of all texts."""
        return x[:, 1:].numel()

    def blank(self, size: int) -> Texts:
        """One text of `size` steps, all of them end tokens."""
        return torch.full((1, size + 1), self.vocabulary.end, device=self.device)

    def example(self, columns: Columns) -> Texts:
        """The first text, of `_EXAMPLE_TOKENS` at most: a line may be a whole book."""
        texts = columns[self.config.target]
        x = self.encode({self.config.target: texts[present(texts)][:1]})
        return x[:, : _EXAMPLE_TOKENS + 1]

    def encode(self, columns: Columns) -> Texts:
        """Token numbers of each text between two end tokens, then padding."""
        end = self.vocabulary.end
        rows = [[end, *self.vocabulary.encode(str(t)), end] for t in columns[self.config.target]]
        width = max(map(len, rows))
        padded = torch.full((len(rows), width), PADDING)
        for i, row in enumerate(rows):
            padded[i, : len(row)] = torch.tensor(row)
        return padded.to(self.device)

    def predict(self, columns: Columns, options: BatchOptions) -> TextPrediction:
        """Predict by Monte-Carlo sampling. Blocking, stateless, bounded in memory."""
        return self.predict_rows(self.encode(columns), options)

    def predict_rows(self, x: Texts, options: BatchOptions) -> TextPrediction:
        """`predict` for encoded texts."""
        return self.predict_pausing(x, options, go_on)

    def predict_pausing(self, x: Texts, options: BatchOptions, pause: Pause) -> TextPrediction:
        """With a pause before each window of each chunk of samples."""
        options = self.resolve(options)
        texts = x.split(texts_at_once(self.network))
        return TextPrediction.joined([self._predict(part, options, pause) for part in texts])

    def evaluate(self, columns: Columns, *, prune: float = 0.0) -> Json:
        """Perplexities of a text with one line per row."""
        lines = [str(line) for line in columns[self.config.target]]
        corpus = self.corpus(lines, _EVALUATED_STREAMS).to(self.device)
        state = self.variant(prune).state
        return {"rows": len(lines), **evaluate(self.network, state, corpus, self.default_seed)}

    def corpus(self, lines: Iterable[str], num_streams: int) -> Corpus:
        """The text as streams of this model's tokens."""
        return Corpus.of(self.vocabulary.stream(lines), num_streams)

    def _predict(self, x: Texts, options: ResolvedOptions, pause: Pause) -> TextPrediction:
        fitted, seed, names = self.fitted(options.prune), options.seed, self.vocabulary.tokens
        with threads_for(fitted.operations * x.numel() * options.samples):
            scores = score(fitted, x, self.vocabulary.end, seed, options.samples, pause)
        lengths = (x[:, 1:] != PADDING).sum(1)
        log_likelihood = scores.log_likelihoods.sum(1)
        total = torch.special.entr(scores.probabilities).sum(1)
        epistemic = (total - scores.aleatoric).clamp_min(0)
        parts = {"epistemic_entropy": epistemic, "aleatoric_entropy": scores.aleatoric}
        entropies = to_host(parts)
        probabilities, numbers = scores.probabilities.topk(min(options.top, len(names)))
        of_texts = zip(scores.log_likelihoods.cpu(), lengths.tolist(), strict=True)
        values = {
            **entropies,
            "total_entropy": entropies["aleatoric_entropy"] + entropies["epistemic_entropy"],
            "epistemic_share": epistemic_share(*entropies.values()),
            "out_of_distribution": np.zeros(len(x), dtype=bool),  # unknown words are `<unk>`
            "log_likelihood": log_likelihood.cpu().numpy(),
            "perplexity": torch.exp(-log_likelihood / lengths).cpu().numpy(),
            "token_log_likelihoods": [tokens[:length].tolist() for tokens, length in of_texts],
            "next_tokens": [
                [NextToken(names[n], p) for n, p in zip(*pair, strict=True)]
                for pair in zip(numbers.tolist(), probabilities.tolist(), strict=True)
            ],
        }
        return TextPrediction(
            values=values,
            task=self.task,
            samples=options.samples,
            seed=seed,
            sampler="monte_carlo",
            prune=options.prune,
        )
