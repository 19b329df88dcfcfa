"""Truncated backpropagation: what the objective is, what it counts, and that it can be resumed."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.func import functional_call
from torch.nn.functional import cross_entropy, softplus

from models.config import BBBConfig, GaussianPriorConfig, KLConfig, MLEConfig, TrainingConfig
from models.exceptions import Stopped
from models.language.text import Corpus
from tests.models.language.language_cases import random_corpus, random_lines, trained, trainer

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
