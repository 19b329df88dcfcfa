"""Scores of strange rows against brute force and closed forms; bounds against their own rate."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, OutOfDistributionConfig, TrainingConfig
from models.evaluation.out_of_distribution import (
    CLASS_SCORES,
    SURPRISE,
    Detector,
    logit_disagreement,
    ood_score,
)
from models.features.columns import ColumnProfile
from models.prediction.moments import propagate
from models.prediction.options import PredictOptions
from models.prediction.prediction import summarise
from models.prediction.predictive import CategoricalMixture, GaussianMixture
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

LABELS = ("alder", "beech", "oak")
RATE = 0.05


def plane(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Three classes whose clouds touch."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 3, rows)
    x = np.stack([random.normal(label, 0.5), random.normal(-label, 0.5)], axis=1)
    return {"x": x[:, 0], "y": x[:, 1], "tree": np.array(LABELS, object)[label]}


@pytest.fixture(scope="module")
def trees() -> TabularModel:
    columns = plane(2000, 0)
    profiles = [ColumnProfile(name=name, type="number") for name in "xy"]
    profiles.append(ColumnProfile(name="tree", type="category", levels=LABELS))
    wanted = ModelConfig(
        target="tree",
        network=MLPConfig(hidden=(16,)),
        training=TrainingConfig(epochs=15, fine_tune_epochs=1, validation_fraction=0.5),
        pruning=(0.5, 0.75),
        out_of_distribution=OutOfDistributionConfig(false_alarm_rate=RATE),
    )
    types = {profile.name: profile.type for profile in profiles}
    return train(columns, types, resolve(wanted, profiles, 2000))


def mixture_of(model: TabularModel, x: Tensor, sampler: str, samples: int) -> CategoricalMixture:
    ((_, mixture),) = model.engine.mixtures(model.fitted(0.0), x, sampler, 3, samples)
    assert isinstance(mixture, CategoricalMixture)
    return mixture


@pytest.mark.parametrize("sampler", ["sobol", "monte_carlo"])
def test_disagreement_is_that_of_whole_weight_draws(trees: TabularModel, sampler: str) -> None:
    """A variance of 20,000 normal draws is known to 1 % (√(2/S)); both sides, 5 of it."""
    x = trees.encoder.expand(trees.encode(plane(6, 1)))
    state = trees.variant(0.0).state
    noise = torch.randn(20_000, state.num_noise, generator=torch.Generator().manual_seed(1))
    weights = trees.network.layout.unflatten(state.draws(noise).weights)
    logits = trees.network(weights, x, None).double()
    expected = torch.stack(
        [(row - row.mean(1, keepdim=True)).var(0).mean() for row in logits.unbind(1)]
    )
    found = logit_disagreement(mixture_of(trees, x, sampler, 10_000))
    torch.testing.assert_close(found, expected, rtol=0.07, atol=0)


def test_moments_give_it_too(trees: TabularModel) -> None:
    """Independent logits of variances v: (1 − 1/K) mean v. 128 spread nodes know it to 5 %."""
    x = trees.encoder.expand(trees.encode(plane(6, 1)))
    _, variances = propagate(trees.fitted(0.0).local, x)
    found = logit_disagreement(mixture_of(trees, x, "moments", 100))
    torch.testing.assert_close(found, 2 / 3 * variances.double().mean(1), rtol=0.05, atol=0)


def test_a_constant_added_to_a_samples_logits_changes_nothing_but_the_energy() -> None:
    logits = torch.randn(9, 5, 3, generator=torch.Generator().manual_seed(0)).double()
    moved = CategoricalMixture(logits + 10 * torch.arange(9.0).view(-1, 1, 1))
    for name in CLASS_SCORES.keys() - {"energy"}:
        torch.testing.assert_close(
            ood_score(moved, name), ood_score(CategoricalMixture(logits), name)
        )


def test_numbers_scores_by_hand() -> None:
    """Two samples: means 1 and 3, variances 1 and e²."""
    e2 = float(np.exp(2))
    mixture = GaussianMixture(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [e2]]))
    aleatoric = (1 + e2) / 2
    for name, expected in (
        ("epistemic_variance", 1.0),
        ("total_variance", 1 + aleatoric),
        ("epistemic_share", 1 / (1 + aleatoric)),
        ("noise_disagreement", 1.0),
    ):
        assert summarise(mixture, PredictOptions(intervals=()), name)["ood_score"] == pytest.approx(
            [expected]
        )


@pytest.mark.parametrize(("rows", "rate"), [(99, 0.01), (500, 0.05), (20, 0.5)])
def test_the_bound_is_exceeded_as_often_as_asked(rows: int, rate: float) -> None:
    """Of uniform scores the share above the k-th smallest is 1 − U_(k), whose mean is known."""
    random = np.random.default_rng(0)
    bounds = [Detector.fit("energy", random.random(rows), rate).threshold for _ in range(4000)]
    alarms = 1 - np.array(bounds)
    assert alarms.mean() <= rate + 4 * alarms.std() / np.sqrt(4000)
    assert alarms.mean() == pytest.approx(rate, abs=1 / (rows + 1))


def test_few_rows_say_which_rate_they_give() -> None:
    few = Detector.fit("energy", np.arange(9.0), 0.01)
    assert (few.threshold, few.false_alarm_rate) == (8.0, 0.1)
    assert few.flags(np.array([8.0, 8.1])).tolist() == [False, True]


def test_each_variant_flags_usual_rows_as_rarely_as_asked(
    trees: TabularModel,
) -> None:
    """1,000 held-out rows make the bound, 4,000 fresh ones test it: beta-binomial, 1 in 10⁴."""
    fresh, detectors = plane(4000, 7), [trees.detector(prune) for prune in trees.variants]
    for prune in trees.variants:
        flagged = int(trees.predict(fresh, PredictOptions(prune=prune)).out_of_distribution.sum())
        slack = 4 * np.sqrt(RATE * (1 - RATE) / 1000)  # what the bound itself may be off
        low, high = (
            binom.ppf(p, 4000, q) for p, q in ((1e-4, RATE - slack), (1 - 1e-4, RATE + slack))
        )
        assert low <= flagged <= high
    assert {detector.score for detector in detectors} == {SURPRISE}
    assert {detector.false_alarm_rate for detector in detectors} == {RATE}


def test_the_score_in_the_answer_is_what_is_compared(trees: TabularModel) -> None:
    rows = {"x": np.array([0.0, 0.5, 1.0]), "y": np.array([0.0, 0.5, -1.0])}
    for prune in trees.variants:
        answer = trees.predict(rows, PredictOptions(prune=prune))
        detector = trees.detector(prune)
        assert (
            answer.out_of_distribution.tolist() == (answer.ood_score > detector.threshold).tolist()
        )
        np.testing.assert_allclose(
            answer.ood_score, trees.ood_score(trees.encode(rows), prune=prune)
        )


def test_an_undecided_row_is_not_flagged_and_a_sure_one_far_away_is(trees: TabularModel) -> None:
    """Between two classes the entropy is near ln 2; far from all of them the network is sure."""
    rows = {"x": np.array([0.5, 40.0]), "y": np.array([-0.5, 40.0])}
    answer = trees.predict(rows, PredictOptions())
    assert answer.entropy is not None
    assert answer.entropy["total"][0] > 0.6
    assert answer.out_of_distribution.tolist() == [False, True]


def test_the_score_depends_on_no_draws(trees: TabularModel) -> None:
    rows = plane(20, 11)
    one, many = (trees.predict(rows, PredictOptions(samples=n, seed=n)) for n in (1, 50))
    assert one.ood_score.tolist() == many.ood_score.tolist()


def test_methods_are_still_compared_by_their_own_predictive_score(trees: TabularModel) -> None:
    x = trees.encode(plane(30, 12))
    assert trees.predictive_ood_score(x, samples=50).max() <= np.log(3) + 1e-6  # an entropy


def test_an_artifact_keeps_its_variants_bounds(trees: TabularModel, tmp_path: Path) -> None:
    write_model(trees, tmp_path)
    again = read_model(tmp_path)
    assert isinstance(again, TabularModel)
    assert [again.detector(p) for p in again.variants] == [
        trees.detector(p) for p in trees.variants
    ]
    x = trees.encode(plane(50, 9))
    assert again.ood_score(x).tolist() == trees.ood_score(x).tolist()


def _first_input(values: Tensor, name: str) -> Tensor:
    """A tensor of the dependence part, for the first input alone."""
    return values[:, :1] if name in {"background", "nets.first"} else values[:1]


def test_tensors_that_do_not_fit_the_columns_are_refused(trees: TabularModel) -> None:
    assert trees.unlike is not None
    tensors = trees.own_tensors()
    names = ("centre", "scale", "lower", "upper", "background", "nets.first")
    narrow = {f"dependence.{n}": _first_input(tensors[f"dependence.{n}"], n) for n in names}
    with pytest.raises(ValueError, match="is for 1 inputs, not 2"):
        trees.with_own_tensors(tensors | narrow)
    del tensors["dependence.nets.last"]
    with pytest.raises(ValueError, match=r"dependence\.nets\.last is missing"):
        trees.with_own_tensors(tensors)


def test_before_it_is_scored_a_model_flags_nothing(trees: TabularModel) -> None:
    variants = {p: replace(trees.variant(p), detector=None) for p in trees.variants}
    answer = trees.with_variants(variants).predict(plane(50, 2), PredictOptions())
    assert not answer.out_of_distribution.any()


def test_a_score_that_is_no_number_is_flagged() -> None:
    detector = Detector("total_entropy", threshold=1.0)
    assert detector.flags(np.array([np.nan, np.inf, 2.0, 1.0, 0.5])).tolist() == [1, 1, 1, 0, 0]
