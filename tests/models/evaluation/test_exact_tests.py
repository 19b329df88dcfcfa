"""Exact tests and bounds, beside SciPy's and beside enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from models.evaluation.exact_tests import (
    Counts,
    bernoulli_divergence,
    expected_hits,
    highest_flagged,
    highest_mean,
    independent_rows,
    p_fewer,
    p_more,
    p_other,
)
from models.evaluation.out_of_distribution import Detector


@pytest.mark.parametrize(
    "counts",
    [
        Counts(900, 780, 200, 181),
        Counts(100, 60, 19, 19),
        Counts(5, 5, 3, 0),
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


def test_without_rows_nothing_is_unusual() -> None:
    assert p_fewer([]) == p_other([Counts(0, 0, 0, 0)]) == p_fewer([Counts(9, 0, 0, 0)]) == 1.0


@pytest.mark.parametrize(("rows", "rank"), [(19, 19), (99, 99), (199, 198), (10_000, 9_901)])
def test_the_highest_flagged_share_is_a_quantile_of_its_beta_distribution(
    rows: int, rank: int
) -> None:
    expected = stats.beta(rows + 1 - rank, rank).isf(0.001)
    assert highest_flagged(rows, rank, 0.001) == pytest.approx(expected, rel=1e-9)


def test_a_detector_bounds_the_share_that_it_flags_for_any_number_of_rows() -> None:
    """The share that each of 20,000 thresholds flags is exact, for uniform scores: 1 − threshold.

    At an error of 5 % their number is binomial: within 4 standard deviations, 0.6 %.
    """
    random = np.random.default_rng(0)
    for rows in (19, 59, 199):
        usual = random.random((20_000, rows))
        detectors = [Detector.fit("energy", some, 0.01) for some in usual]
        bound = detectors[0].highest_rate(0.05)
        above = np.mean([1 - detector.threshold > bound for detector in detectors])
        assert abs(above - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 20_000)


def test_a_detector_that_does_not_say_its_rows_has_the_bound_of_the_fewest() -> None:
    unknown, known = Detector("energy", 1.0, 0.05), Detector("energy", 1.0, 0.05, rows=19)
    assert unknown.highest_rate(0.001) == known.highest_rate(0.001)
    assert unknown.highest_rate(0.001) > Detector("energy", 1.0, 0.05, rows=200).highest_rate(0.001)


def test_the_highest_mean_has_the_divergence_that_its_error_allows() -> None:
    for mean, rows in ((0.1, 19), (0.0, 200), (0.4, 10_000)):
        bound = highest_mean(mean, rows, 0.001)
        assert rows * bernoulli_divergence(mean, bound) == pytest.approx(np.log(1000))
        assert bound > mean
    assert highest_mean(1.0, 50, 0.001) == highest_mean(0.3, 0, 0.001) == 1.0


def test_the_highest_mean_of_few_coins_is_missed_at_most_as_often_as_stated() -> None:
    """Coins are the hardest values in [0, 1]. The probability is a sum, not a simulation."""
    for rows, truth in product((5, 19, 200), (0.05, 0.3, 0.8)):
        heads = range(rows + 1)
        missed = [highest_mean(k / rows, rows, 0.001) < truth for k in heads]
        assert stats.binom(rows, truth).pmf(heads)[missed].sum() <= 0.001


def test_the_steps_of_a_forecast_count_as_one_row() -> None:
    assert independent_rows({"rows": 120}) == 120
    assert independent_rows({"rows": 120, "horizon": 12}) == 10


def test_a_row_of_a_large_weight_counts_as_one_row_and_of_a_small_one_as_less() -> None:
    assert independent_rows({"rows": 120, "weight": 9e5}) == 120
    assert independent_rows({"rows": 120, "weight": 80.5}) == 80
