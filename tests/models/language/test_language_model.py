"""Language models: their training, likelihoods and answers."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.func import functional_call
from torch.nn.functional import cross_entropy, softplus

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    EnsembleConfig,
    FeatureConfig,
    GaussianPriorConfig,
    KLConfig,
    LanguageConfig,
    MethodConfig,
    MLEConfig,
    ModelConfig,
    RecurrentConfig,
    SplitBy,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData, Stopped
from models.features.columns import ColumnProfile
from models.inference.registry import build_method
from models.language import text_prediction
from models.language.model import BayesianLanguageModel
from models.language.text import Corpus
from models.language.text_problem import TextTask, text_problem
from models.likelihoods import Categorical
from models.networks.sequences import LanguageModel
from models.prediction.options import PredictOptions
from models.randomness import generator
from models.training.recipe import resolve
from models.training.train import TrainingRun, train
from models.training.trainer import Trainer

SMALL = RecurrentConfig(kind="lstm", hidden=(5, 4))
STILL = TrainingConfig(  # a rate that moves no float32
    epochs=1, batch_size=3, optimizer="sgd", learning_rate=1e-30, schedule="constant"
)
BRIEF = TrainingConfig(epochs=2, batch_size=4)
PROFILE = ColumnProfile(name="text", type="text")


def random_lines(count: int, words: str = "abcde", seed: int = 0) -> list[str]:
    """Lines of independent words, up to seven each."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(list(words), random.integers(0, 8))) for _ in range(count)]


def column(lines: list[str]) -> dict[str, np.ndarray]:
    return {"text": np.array([*lines, None], dtype=object)[:-1]}


def random_corpus(num_tokens: int, length: int, streams: int, steps: int) -> Corpus:
    tokens = torch.randint(num_tokens, (length,), generator=generator(3, "corpus"))
    return Corpus.of(tokens.tolist(), streams).whole_windows(steps)


def trainer(  # noqa: PLR0917 - what a run is made of
    method: MethodConfig,
    corpus: Corpus,
    steps: int,
    training: TrainingConfig = STILL,
    num_tokens: int = 7,
    score: Any = None,
) -> Trainer:
    """A fresh run on a corpus."""
    network = LanguageModel.build(SMALL, num_tokens)
    bound: Any = build_method(method, network, Categorical(num_tokens), corpus.num_targets)
    state = bound.init(generator(1, "init"))
    return Trainer(TextTask(network, corpus, steps), training, bound, state, score)


def trained(
    lines: list[str],
    method: MethodConfig | None = None,
    training: TrainingConfig = BRIEF,
    **options: Any,
) -> BayesianLanguageModel:
    """A model by the recipe; `options` are of `TrainingRun`."""
    asked = ModelConfig(
        target="text",
        method=method or BBBConfig(),
        network=SMALL,
        training=training,
        pruning=(0.5,) if method is None else None,
        language=LanguageConfig(steps=6),
    )
    config = resolve(asked, [PROFILE], len(lines))
    return train(column(lines), {"text": "text"}, config, TrainingRun(**options))


LINES = random_lines(60)
TEXTS = ["a b c", "", "zebra a", "e e e e e d"]


@pytest.fixture(scope="module")
def model() -> BayesianLanguageModel:
    return trained(LINES)


@pytest.fixture(scope="module")
def ensemble() -> BayesianLanguageModel:
    return trained(LINES, EnsembleConfig(kind="ensemble", members=3))


def _asked(training: TrainingConfig) -> dict[str, Any]:
    return {"training": training}


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"method": SWAGConfig(kind="swag")}, "/method/kind"),
        ({"network": ConvolutionalConfig(kind="cnn")}, "/network/kind"),
        ({"weight": "w"}, "/weight"),
        ({"features": (FeatureConfig(name="n", type="number"),)}, "/features"),
        ({"likelihood": "bernoulli"}, "/likelihood"),
        (_asked(TrainingConfig(split=SplitBy(by="n"))), "/training/split"),
        (_asked(TrainingConfig(refit=True)), "/training/refit"),
        (_asked(TrainingConfig(calibration_fraction=0.1)), "/training/calibration_fraction"),
        (_asked(TrainingConfig(stopping_fraction=0.1)), "/training/stopping_fraction"),
        ({"method": MLEConfig(kind="mle"), "pruning": (0.5,)}, "/pruning"),
        ({"target": "n"}, "/target"),
        ({"target": "n", "task": None, "language": LanguageConfig()}, "/language"),
    ],
)
def test_what_texts_cannot_be_trained_with_is_named(asked: dict[str, Any], path: str) -> None:
    profiles = [PROFILE, *(ColumnProfile(name=name, type="number") for name in "nw")]
    config = ModelConfig(**{"target": "text", "task": "language_model", **asked})
    with pytest.raises(InvalidData) as error:
        resolve(config, profiles, 100)
    assert error.value.path == path


def test_a_likelihood_is_the_mixtures_by_enumeration(ensemble: BayesianLanguageModel) -> None:
    """(1/S) Σ_s Π_t p(x_t | x_<t, w_s) of every draw alone, one step after the other."""
    found = ensemble.predict(column(TEXTS), PredictOptions(samples=3))
    state = ensemble.variant(0.0).state
    end = ensemble.vocabulary.end
    for row, text in enumerate(TEXTS):
        tokens = [*ensemble.vocabulary.encode(text), end]
        products = np.ones(3)
        running = []
        for t, token in enumerate(tokens):
            prefix = torch.tensor([[end, *tokens[:t]]])
            for s in range(3):
                weights = ensemble.network.layout.unflatten(state.weights[s])
                logits = ensemble.network(weights, prefix)[0, -1]
                products[s] *= float(logits.double().softmax(-1)[token])
            running.append(math.log(products.mean()))
        assert found["log_likelihood"][row] == pytest.approx(running[-1], abs=1e-5)
        perplexity = math.exp(-running[-1] / len(tokens))
        assert found["perplexity"][row] == pytest.approx(perplexity, rel=1e-5)
        values = found["token_log_likelihoods"][row]
        assert list(itertools.accumulate(values)) == pytest.approx(running, abs=1e-5)


def test_next_tokens_are_the_average_with_its_entropies(ensemble: BayesianLanguageModel) -> None:
    found = ensemble.predict(column(TEXTS), PredictOptions(samples=3, top=100))
    weights = ensemble.network.layout.unflatten(ensemble.variant(0.0).state.weights)
    end = ensemble.vocabulary.end
    for row, text in enumerate(TEXTS):
        prefix = torch.tensor([[end, *ensemble.vocabulary.encode(text)]])
        probs = ensemble.network(weights, prefix)[:, 0, -1].double().softmax(-1).detach()
        mean = dict(zip(ensemble.vocabulary.tokens, probs.mean(0).tolist(), strict=True))
        told = {next_.token: next_.probability for next_ in found["next_tokens"][row]}
        assert told == pytest.approx(mean, abs=1e-6)
        aleatoric = float(torch.special.entr(probs).sum(-1).mean())
        total = float(torch.special.entr(probs.mean(0)).sum())
        assert found["aleatoric_entropy"][row] == pytest.approx(aleatoric, abs=1e-6)
        assert found["total_entropy"][row] == pytest.approx(total, abs=1e-6)
        assert found["epistemic_entropy"][row] == pytest.approx(total - aleatoric, abs=1e-6)


def test_a_text_pauses_in_each_window_and_what_runs_meanwhile_changes_nothing(
    ensemble: BayesianLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_prediction, "_WINDOW_STEPS", 2)
    x, options = ensemble.encode(column(TEXTS)), PredictOptions(samples=3, seed=3)
    others: list[float] = []

    def pause() -> None:
        others.extend(ensemble.predict(column(TEXTS[:1]), options)["log_likelihood"])

    found = ensemble.predict_pausing(x, options, pause)
    assert len(others) >= (x.shape[1] - 1) // 2
    assert set(others) == {others[0]}
    alone = ensemble.predict_rows(x, options)
    np.testing.assert_array_equal(found["log_likelihood"], alone["log_likelihood"])


def test_the_answer_depends_neither_on_other_texts_nor_on_how_work_is_cut(
    model: BayesianLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = PredictOptions(samples=7, seed=3)
    together = model.predict(column(TEXTS), options)
    monkeypatch.setattr(text_prediction, "_WINDOW_STEPS", 2)
    in_windows = model.predict(column(TEXTS), options)
    for name in ("_LOGITS_BYTES", "_WEIGHTS_BYTES", "_WINDOW_BYTES"):
        monkeypatch.setattr(text_prediction, name, 1)
    for row, text in enumerate(TEXTS):
        values = together["token_log_likelihoods"][row]
        assert in_windows["token_log_likelihoods"][row] == pytest.approx(values, abs=1e-5)
        alone = model.predict(column([text]), options)
        assert alone["log_likelihood"][0] == pytest.approx(
            together["log_likelihood"][row], abs=1e-5
        )
        for ours, theirs in zip(alone["next_tokens"][0], together["next_tokens"][row], strict=True):
            assert ours.probability == pytest.approx(theirs.probability, abs=1e-6)


def test_a_stored_model_answers_as_before(model: BayesianLanguageModel, tmp_path: Path) -> None:
    write_model(model, tmp_path)
    read = read_model(tmp_path)
    assert read.vocabulary == model.vocabulary
    for prune in (0.0, 0.5):
        options = PredictOptions(samples=5, prune=prune)
        ours, theirs = (m.predict(column(TEXTS), options) for m in (model, read))
        assert np.array_equal(ours["log_likelihood"], theirs["log_likelihood"])
    assert read.evaluate(column(LINES[-3:])) == {
        key: value for key, value in model.variant(0.0).metrics.items() if key != "members"
    }


@pytest.mark.parametrize("count", [3, 5])
def test_no_line_chooses_the_epoch_and_is_scored(count: int) -> None:
    """A tenth of five lines is less than one: two are held out all the same, one for each."""
    lines = ["a b c"] * (count - 2) + ["chooses the epoch", "is scored alone here"]
    config = resolve(ModelConfig(target="text"), [PROFILE], count)
    problem = text_problem(column(lines), config, "cpu")
    assert (problem.profile.learned, problem.profile.stopping) == (count - 2, 1)
    assert list(problem.scores) == lines[-1:]
    assert problem.stopping.num_targets == 4  # three words and the end of the line
    with pytest.raises(InvalidData, match="2 lines"):
        text_problem(column(["a b", "c", None]), config, "cpu")


GAUSSIAN = GaussianPriorConfig(sigma=0.5)


def test_every_token_but_the_first_is_a_target_once() -> None:
    corpus = Corpus.of(list(range(23)), 3)
    seen = [targets.flatten() for _, targets in corpus.windows(4)]
    assert torch.cat(seen).sort().values.tolist() == list(range(1, 22))  # 22 is left at the end
    for tokens, targets in corpus.windows(4):
        assert torch.equal(targets, tokens + 1)


def _nll_by_torch(run: Any, corpus: Corpus) -> float:
    """Mean −log p of all targets in one pass over whole streams, by torch's own modules."""
    weights = run.method.layout.unflatten(run.state.current.weights[0].detach())
    module = torch.nn.ModuleList(
        [torch.nn.LSTM(4, 5, batch_first=True), torch.nn.LSTM(5, 4, batch_first=True)]
    )
    x = torch.nn.functional.embedding(corpus.streams[:, :-1], weights["embedding.weight"])
    for i, layer in enumerate(module):
        bias = weights[f"lstm{i}.input.bias"]
        named = {
            "weight_ih_l0": weights[f"lstm{i}.input.weight"],
            "weight_hh_l0": weights[f"lstm{i}.hidden.weight"],
            "bias_ih_l0": bias,
            "bias_hh_l0": torch.zeros_like(bias),
        }
        x = functional_call(layer, named, (x,))[0]
    logits = x @ weights["embedding.weight"].T + weights["decoder.bias"]
    return float(cross_entropy(logits.flatten(0, 1), corpus.streams[:, 1:].flatten()))


def test_windows_with_carried_states_add_up_to_one_pass_over_the_text() -> None:
    corpus = random_corpus(7, 100, streams=3, steps=4)
    run = trainer(MLEConfig(kind="mle"), corpus, steps=4)
    run.run()
    assert run.history[0].nll == pytest.approx(_nll_by_torch(run, corpus), abs=2e-6)


def test_the_kl_counts_once_per_epoch_and_a_tied_tensor_once() -> None:
    """Against torch's own divergence, tensor by tensor of the network's layers."""
    corpus = random_corpus(7, 100, streams=3, steps=4)
    method = BBBConfig(prior=GAUSSIAN, kl=KLConfig(weight="blundell"), initial_sigma=0.02)
    run = trainer(method, corpus, steps=4)
    q = run.state.current.posterior
    assert q.loc.numel() == 7 * 4 + (20 * 4 + 20 + 20 * 5) + (16 * 5 + 16 + 16 * 4) + 7
    kl = float(kl_divergence(Normal(q.loc, softplus(q.rho)), Normal(0.0, 0.5)).sum().detach())
    run.run()
    result = run.history[0]
    assert result.kl == pytest.approx(kl / corpus.num_targets, rel=1e-5)
    assert result.nelbo - result.nll == pytest.approx(kl / corpus.num_targets, rel=1e-4)


def test_a_source_of_independent_words_is_learned_down_to_its_entropy() -> None:
    """Perplexity is e^H for the true probabilities; 6,000 tokens tell them.

    Measured against the held-out lines' own mean −log p, so that their sampling does not matter.
    """
    probs = {"a": 0.5, "b": 0.25, "c": 0.15, "<eos>": 0.1}
    random = torch.Generator().manual_seed(0)
    draws = torch.multinomial(torch.tensor([*probs.values()]), 6_000, True, generator=random)
    words = [list(probs)[i] for i in draws]
    lines = [line.strip() for line in " ".join(words).split("<eos>")][:-1]
    training = TrainingConfig(epochs=4, batch_size=30, learning_rate=0.3)
    model = trained(lines, MLEConfig(kind="mle"), training=training)
    last = round(len(lines) * 0.1)
    held_out = model.corpus(lines[-(last - last // 2) :], 10).streams[:, 1:].flatten()
    by_number = [probs.get(token, 1.0) for token in model.vocabulary.tokens]
    truth = -torch.tensor(by_number)[held_out].log().mean()
    assert -model.variant(0.0).metrics["log_likelihood"] == pytest.approx(float(truth), abs=0.03)
    perplexity = math.exp(-sum(p * math.log(p) for p in probs.values()))
    assert model.variant(0.0).metrics["perplexity"] == pytest.approx(perplexity, rel=0.06)


def test_a_stopped_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Through all stages, pruned variants included, to the same weights bit for bit."""
    lines, method = random_lines(60), BBBConfig()
    looks = iter(range(25))
    with pytest.raises(Stopped):
        trained(
            lines, method, checkpoint_dir=tmp_path, should_stop=lambda: next(looks, None) is None
        )
    assert any(tmp_path.iterdir())
    resumed, undisturbed = trained(lines, method, checkpoint_dir=tmp_path), trained(lines, method)
    assert resumed.variants == undisturbed.variants
    for prune in resumed.variants:
        ours, theirs = (m.variant(prune) for m in (resumed, undisturbed))
        assert ours.metrics == theirs.metrics
        for name, value in ours.state.pack().items():
            assert torch.equal(value, theirs.state.pack()[name])
