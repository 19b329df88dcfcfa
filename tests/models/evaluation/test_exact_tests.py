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
    p_fewer,
    p_more,
    p_other,
)


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
    assert highest_flagged(rows, rank, 0.001) == pytest.approx(expected, rel=1e-9)


def test_the_highest_mean_has_the_divergence_that_its_error_allows() -> None:
    for mean, rows in ((0.1, 19), (0.0, 200), (0.4, 10_000)):
        bound = highest_mean(mean, rows, 0.001)
        assert rows * bernoulli_divergence(mean, bound) == pytest.approx(np.log(1000))
        assert bound > mean
    assert highest_mean(1.0, 50, 0.001) == highest_mean(0.3, 0, 0.001) == 1.0
