"""Scores and their errors, and tests of differences, beside SciPy and scikit-learn."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from scipy import stats
from scipy.stats import studentized_range, ttest_rel
from sklearn import metrics as sk
from torch import Tensor

from models.evaluation.class_scores import (
    auroc,
    auroc_error,
    auroc_of,
    class_metrics,
    class_row_scores,
)
from models.evaluation.exact_tests import (
    Counts,
    bernoulli_divergence,
    expected_hits,
    highest_flagged,
    highest_mean,
    p_fewer,
    p_more,
    p_other,
)
from models.evaluation.gate import GateConfig, Scores, coverage_bounds, judge
from models.evaluation.metrics import classification_scores, regression_scores, summarise
from models.evaluation.ranking import rank, recommend_variant
from models.evaluation.reliability import Chance
from models.evaluation.weighting import WEIGHT, paired
from models.likelihoods.class_mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture

NAMES = ("a", "b", "c")
ONES = torch.ones(120).double()


def _rows(num_classes: int, rows: int = 300, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities, rounded so that there are ties, and classes drawn from them."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.linspace(3, 0.3, num_classes), rows)
    targets = np.array([random.choice(num_classes, p=p) for p in shares])
    rounded = np.round(shares, 2)
    rounded /= rounded.sum(1, keepdims=True)
    return torch.from_numpy(rounded), torch.from_numpy(targets)


def test_three_classes_have_the_scores_of_scikit_learn() -> None:
    """Of rows with weights."""
    p, t = _rows(3)
    own = np.random.default_rng(1).integers(1, 4, len(t)).astype(float)
    metrics, errors = class_metrics(class_row_scores(p, t) | {WEIGHT: torch.from_numpy(own)}, NAMES)
    truth, label, p = t.numpy(), p.argmax(1).numpy(), p.numpy()
    together = {
        "balanced_accuracy": sk.balanced_accuracy_score(truth, label, sample_weight=own),
        "average_precision": sk.average_precision_score(np.eye(3)[truth], p, sample_weight=own),
        "auroc": sk.roc_auc_score(truth, p, multi_class="ovr", sample_weight=own),
    }
    assert {name: metrics[name] for name in together} == pytest.approx(together)
    confusion = sk.confusion_matrix(truth, label, sample_weight=own)
    assert np.array(metrics["confusion"]["counts"]) == pytest.approx(confusion)
    recalls = sk.recall_score(truth, label, average=None, sample_weight=own)
    precisions = sk.precision_score(truth, label, average=None, sample_weight=own)
    for k, one in enumerate(metrics["by_class"]):
        assert (one["class"], one["rows"]) == (NAMES[k], int((truth == k).sum()))
        expected = {
            "recall": recalls[k],
            "precision": precisions[k],
            "average_precision": sk.average_precision_score(truth == k, p[:, k], sample_weight=own),
            "auroc": sk.roc_auc_score(truth == k, p[:, k], sample_weight=own),
        }
        assert {name: one[name] for name in expected} == pytest.approx(expected)
    assert set(errors) == {"balanced_accuracy"}


def test_two_classes_have_the_scores_of_the_rarer_one() -> None:
    p, t = _rows(2)
    assert (t == 1).sum() < (t == 0).sum()
    metrics, errors = class_metrics(class_row_scores(p, t), (False, True))
    truth, score = t.numpy() == 1, p[:, 1].numpy()
    assert metrics["positive"] is True
    assert metrics["average_precision"] == pytest.approx(sk.average_precision_score(truth, score))
    assert metrics["auroc"] == pytest.approx(sk.roc_auc_score(truth, score))
    flipped, _ = class_metrics(class_row_scores(p.flip(1), 1 - t), ("x", "y"))
    assert flipped["positive"] == "x"
    assert flipped["average_precision"] == pytest.approx(metrics["average_precision"])
    assert errors["auroc"] > 0


def test_the_error_of_the_auroc_is_its_spread() -> None:
    """Over 300 tables: the mean error and the standard deviation agree within 15 %.

    The deviation of 300 values has an error of 4 %, their mean error one of about 1 %.
    """
    random = np.random.default_rng(0)
    found, errors = [], []
    for _ in range(300):
        positive = torch.from_numpy(random.random(120) < 0.25)
        scores = torch.from_numpy(random.normal(size=120)) + positive
        found.append(auroc_of(scores, positive, ONES))
        errors.append(auroc_error(scores, positive, ONES))
    spread = float(np.std([f for f in found if f is not None]))
    assert np.mean([e for e in errors if e is not None]) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(("usual", "strange", "distinct"), [(2000, 300, 10**9), (50, 80, 5)])
def test_the_auroc_is_that_of_scikit_learn(usual: int, strange: int, distinct: int) -> None:
    """With few distinct values most pairs are equal, and count half."""
    random = np.random.default_rng(usual + distinct)
    a = random.integers(0, distinct, usual).astype(float)
    b = random.integers(0, distinct, strange) * 1.2
    expected = sk.roc_auc_score([0] * usual + [1] * strange, np.concatenate([a, b]))
    assert auroc(torch.from_numpy(a), torch.from_numpy(b)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("rows", "wrong"), [(1, 0.4), (2, 0.9), (20, 0.05), (150, 0.4)])
def test_chance_is_that_of_the_poisson_binomial_distribution(rows: int, wrong: float) -> None:
    """Its probabilities by convolution, term by term."""
    generator = np.random.default_rng(0)
    q = np.clip(wrong * generator.uniform(0.5, 1.5, rows), 0, 0.95)
    probability = np.ones(1)
    for one in q:
        probability = np.convolve(probability, [1 - one, one])
    away, variance = np.arange(rows + 1) - q.sum(), (q * (1 - q)).sum()
    found = Chance.of(1 - q, np.ones(rows))
    # 0.4 % where the Gaussian stands in for it
    assert found.size == pytest.approx(probability @ abs(away), rel=4e-3)
    damping = probability @ np.exp(-0.5 * away**2 / variance)
    assert found.damping == pytest.approx(damping, rel=4e-3)


@pytest.mark.parametrize(
    "counts",
    [
        Counts(100, 60, 19, 19),
        Counts(10, 0, 4, 0),
        Counts(20_000, 17_700, 5_000, 4_510),
    ],
)
def test_one_table_has_the_p_value_of_fisher(counts: Counts) -> None:
    table = [
        [counts.hits, counts.rows - counts.hits],
        [counts.held_out_hits, counts.held_out_rows - counts.held_out_hits],
    ]
    for alternative, p_value in (("less", p_fewer), ("greater", p_more)):
        expected = stats.fisher_exact(table, alternative=alternative).pvalue
        assert p_value([counts]) == pytest.approx(expected, rel=1e-8)


def test_strata_are_added_as_all_their_tables_say() -> None:
    strata = [Counts(5, 2, 4, 3), Counts(3, 3, 6, 1), Counts(0, 0, 5, 2), Counts(4, 1, 0, 0)]
    hits = [one.hits + one.held_out_hits for one in strata]
    laws = [
        stats.hypergeom(one.rows + one.held_out_rows, t, one.rows)
        for one, t in zip(strata, hits, strict=True)
    ]
    seen, fewer, more, mean = sum(one.hits for one in strata), 0.0, 0.0, 0.0
    for table in product(*(range(one.rows + 1) for one in strata)):
        probability = float(np.prod([law.pmf(w) for law, w in zip(laws, table, strict=True)]))
        fewer += probability * (sum(table) <= seen)
        more += probability * (sum(table) >= seen)
        mean += probability * sum(table)
    assert p_fewer(strata) == pytest.approx(fewer)
    assert p_more(strata) == pytest.approx(more)
    assert p_other(strata) == pytest.approx(min(1.0, 2 * min(fewer, more)))
    assert expected_hits(strata) == pytest.approx(mean)


@pytest.mark.parametrize(("rows", "rank"), [(19, 19), (199, 198), (10_000, 9_901)])
def test_the_highest_flagged_share_is_a_quantile_of_beta(rows: int, rank: int) -> None:
    expected = stats.beta(rows + 1 - rank, rank).isf(0.001)
    assert highest_flagged(rows, rank) == pytest.approx(expected, rel=1e-9)


def test_the_highest_mean_has_the_divergence_that_its_error_allows() -> None:
    for mean, rows in ((0.1, 19), (0.0, 200), (0.4, 10_000)):
        bound = highest_mean(mean, rows)
        assert rows * bernoulli_divergence(mean, bound) == pytest.approx(np.log(1000))
        assert bound > mean
    assert highest_mean(1.0, 50) == highest_mean(0.3, 0) == 1.0


COVERED = 0.9


def scores(log_likelihood: np.ndarray, covered: np.ndarray | None = None) -> Scores:
    hits = np.ones(len(log_likelihood)) if covered is None else covered
    return Scores(torch.from_numpy(log_likelihood), torch.from_numpy(hits.astype(float)))


def test_bounds_of_shares_are_scipys() -> None:
    for hits, rows in ((0, 30), (30, 30), (27, 30), (870, 1000)):
        exact = scipy.stats.binomtest(hits, rows).proportion_ci(0.9, "exact")  # 5 % either side
        found = coverage_bounds(hits / rows, rows)
        assert found == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_the_verdict_is_that_of_scipys_paired_test() -> None:
    """P < 5 % against a mean difference of −max_loss, and only then does it pass."""
    random, max_loss = np.random.default_rng(7), 0.05
    decisions = set()
    for _ in range(30):
        champion = random.normal(-1, 1, 80)
        challenger = champion + random.normal(0.05, 0.4, 80)
        test = scipy.stats.ttest_rel(challenger, champion - max_loss, alternative="greater")
        verdict = judge(scores(challenger), scores(champion), GateConfig(max_loss=max_loss))
        assert verdict.passed == (test.pvalue <= 0.05)
        assert verdict.difference == pytest.approx(np.mean(challenger - champion))
        low, high = scipy.stats.ttest_rel(challenger, champion).confidence_interval(0.9)
        assert (verdict.lower, verdict.upper) == pytest.approx((low, high))
        decisions.add(verdict.passed)
    assert decisions == {True, False}


def test_without_a_champion_coverage_decides() -> None:
    flat = np.zeros(200)
    good = judge(scores(flat, np.arange(200) >= 20), None, GateConfig())
    assert (good.passed, good.difference, good.coverage) == (True, None, pytest.approx(COVERED))
    poor = judge(scores(flat, np.arange(200) >= 60), None, GateConfig())
    assert not poor.passed
    assert "70.0%" in poor.reason


def test_the_critical_difference_is_tukeys() -> None:
    """Equal variances and no covariance: the studentized range of infinitely many rows, ÷ √2."""
    generator = torch.Generator().manual_seed(0)
    base = torch.linalg.qr(torch.randn(4_000, 6, generator=generator).double()).Q
    base = (
        torch.linalg.qr(base - base.mean(0)).Q * 4_000**0.5
    )  # orthogonal columns of equal variance
    critical = studentized_range.ppf(0.95, 5, np.inf) / 2**0.5
    error = (2 / 4_000) ** 0.5
    for factor, is_worse in ((0.97, False), (1.03, True)):
        scores = [base[:, i] - base[:, i].mean() for i in range(5)]
        scores[0] += factor * critical * error
        found = rank(scores)
        assert found.worse[1:] == (is_worse,) * 4


def normal(seed: int, rows: int = 50) -> Tensor:
    return torch.randn(rows, generator=torch.Generator().manual_seed(seed)).double()


def test_the_difference_and_its_error_are_those_of_the_paired_t_test() -> None:
    ours, theirs = normal(0), normal(1) + 0.3
    found = paired(ours, theirs)
    expected = ttest_rel(ours.numpy(), theirs.numpy())
    assert found.difference == pytest.approx((ours - theirs).mean().item())
    assert found.difference / found.standard_error == pytest.approx(expected.statistic)


def test_a_variant_must_be_certainly_better() -> None:
    """A constant offset has no error; noise of 1 in 50 rows has one of 0.14."""
    full = normal(2)
    noise = normal(3) - normal(3).mean()
    hardly = full + noise + 0.2  # about one and a half standard errors
    assert recommend_variant({0.0: full, 0.5: hardly, 0.9: full - 1}) == (0.0, None)
    best, pair = recommend_variant({0.0: full, 0.5: full + 0.2, 0.9: full + 0.5 + noise})
    assert best == 0.9
    assert pair.difference == pytest.approx(0.5)


ROWS, REPETITIONS = 60, 300


def numbers(generator: torch.Generator) -> dict[str, Any]:
    """Metrics of right predictive distributions N(m, 1) with random means."""
    mean = torch.randn(ROWS, generator=generator).double()
    target = mean + torch.randn(ROWS, generator=generator).double()
    mixture = NumberMixture.gaussian(mean.unsqueeze(0), torch.ones(1, ROWS).double())
    return summarise(regression_scores(mixture, target))


def classes(generator: torch.Generator) -> dict[str, Any]:
    probs = torch.rand(ROWS, 3, generator=generator).double().softmax(-1)
    truth = probs.multinomial(1, generator=generator).squeeze(1)
    return summarise(classification_scores(CategoricalMixture(probs.log().unsqueeze(0)), truth))


@pytest.mark.parametrize(
    ("draw", "names"),
    [
        (numbers, ("log_likelihood", "rmse", "mae", "crps")),
        (classes, ("log_likelihood", "accuracy", "brier")),
    ],
)
def test_stated_errors_are_the_deviations_over_other_rows(
    draw: Callable[[torch.Generator], dict[str, Any]], names: tuple[str, ...]
) -> None:
    """A deviation of 300 draws is known to 4 %, with heavy tails to some 6 %: within 18 %."""
    generator = torch.Generator().manual_seed(0)
    found = [draw(generator) for _ in range(REPETITIONS)]
    for name in names:
        stated = np.sqrt(np.mean([one["standard_errors"][name] ** 2 for one in found]))
        assert np.std([one[name] for one in found]) == pytest.approx(stated, rel=0.18), name
