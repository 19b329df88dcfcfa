"""Numbers far from all others: found where they are errors, and not in honest tails."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from core.datasets.files.ingest import Given, Ingested, understood
from core.datasets.files.opening import opened
from core.datasets.findings.extremes import extremes_of
from core.datasets.understanding.fixes import ColumnFix

Draw = Callable[[np.random.Generator, int], np.ndarray]
HONEST: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal prices": lambda rng, n: rng.lognormal(12, 1, n),
    "Pareto incomes": lambda rng, n: rng.pareto(1.5, n) + 1,
    "cubes": lambda rng, n: rng.exponential(size=n) ** 3,
    "overdispersed counts": lambda rng, n: rng.negative_binomial(0.05, 0.02, n),
    "bimodal": lambda rng, n: rng.normal(100 * rng.integers(0, 2, n), 1),
    "ties": lambda rng, n: rng.integers(1, 7, n),
    "t with 3 degrees": lambda rng, n: rng.standard_t(3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "mostly zero": lambda rng, n: rng.lognormal(5, 2, n) * (rng.random(n) < 0.05),
}


@pytest.mark.parametrize("name", HONEST)
def test_fewer_than_one_in_a_hundred_honest_columns_has_an_extreme_value(name: str) -> None:
    for rows, columns in ((100, 300), (1_000, 300)):
        draws = (HONEST[name](np.random.default_rng(seed), rows) for seed in range(columns))
        alarms = sum(len(extremes_of(values)) > 0 for values in draws)
        assert alarms < 0.01 * columns


@pytest.mark.parametrize(
    ("name", "sign"), [("normal", 1), ("bimodal", -1), ("ties", 1), ("t with 3 degrees", -1)]
)
def test_130_times_the_largest_is_found(name: str, sign: int) -> None:
    for seed in range(20):
        values = HONEST[name](np.random.default_rng(seed), 1_000).astype(float)
        values[7] = sign * 130 * np.abs(values).max()
        assert extremes_of(values).tolist() == [values[7]]


def test_up_to_three_are_found_and_more_are_a_group() -> None:
    values = np.random.default_rng(0).lognormal(12, 0.5, 300)
    for count in (1, 2, 3):
        errors = 130 * values.max() * np.arange(1, count + 1)
        assert sorted(extremes_of(np.append(values, errors))) == errors.tolist()
    assert len(extremes_of(np.append(values, 130 * values.max() * np.arange(1, 5)))) == 0
    assert len(extremes_of(np.append(values[:50], 1e12))) == 0  # too few to know the tail


def read(path: Path, *fixes: ColumnFix) -> Ingested:
    with opened(path, "text/csv", 10**7) as file:
        given = Given(fixes=fixes)
        return understood(file, file.read(10**7, given.options), given)


def prices(path: Path) -> Path:
    """300 prices as Germans write them, with an error in line 58 under a title and a header."""
    rng = np.random.default_rng(0)
    amounts = np.minimum(766_300, 1_000 * np.round(rng.lognormal(12.7, 0.4, 300) / 1_000))
    amounts[1] = 766_300
    amounts[55] = 98_500_000
    texts = [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) for one in amounts]
    areas = [f"{area:.1f}".replace(".", ",") for area in rng.uniform(30, 150, 300)]
    rows = [f"{price};{area}" for price, area in zip(texts, areas, strict=True)]
    path.write_text("\n".join(["Angebote vom 1. März", "Preis;Fläche", *rows]), encoding="cp1252")
    return path


def test_the_finding_names_line_value_and_factor_and_its_fix_mends(tmp_path: Path) -> None:
    path = prices(tmp_path / "flats.csv")
    (finding,) = [one for one in read(path).findings if one.code == "extreme"]
    assert "98,500,000 in line 58, 129 times the next largest" in finding.message
    assert [example.line for example in finding.examples] == [58]
    (fix,) = finding.fix["columns"]
    for missing in (tuple(fix["missing"]), ("98.500.000,00",)):
        mended = read(path, ColumnFix(name="Preis", missing=missing))
        assert (mended.profiles[0].missing, mended.profiles[0].max) == (1, 766_300)
        assert "extreme" not in [one.code for one in mended.findings]
