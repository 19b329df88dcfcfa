"""Vocabularies, the recipe, and what a trained language model answers."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    ConvolutionalConfig,
    EnsembleConfig,
    FeatureConfig,
    LanguageConfig,
    MLEConfig,
    ModelConfig,
    SplitBy,
    SWAGConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.language import text_prediction
from models.language.model import BayesianLanguageModel
from models.language.text_problem import text_problem
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from tests.models.language.language_cases import PROFILE, column, random_lines, trained

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
