"""Whether conformal intervals are right in each group, with and without quantiles of its own.

    python -m benchmarks.groups FOLDER [--only NAME …] [--splits 2]
    python -m benchmarks.groups --picture docs/images/groups.svg

FOLDER has tables as `benchmarks.tables` takes them. Rows of both files are joined and split anew.
A network of 50 units learns from four fifths, a quarter of them held out to calibrate, and
predicts the others. For each column of 2 to
100 values the gap is Σ |inside − 0.9 n| ÷ Σ n over the groups, in percent; `chance` is its mean for
a method that covers 90 % of each group. The picture is of generated rows.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.pictures import BLUE, ORANGE, picture
from benchmarks.tables import Table, tables
from credence.estimators import BayesianRegressor

LEVEL = 0.9
MOST_GROUPS = 100
MOST_ROWS = 6_000  # that a model learns from


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", help="names of tables; default: all regressions")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.picture:
        draw(arguments.picture)
    if arguments.folder:
        print(f"{'table':16}{'column':16}{'groups':>7}{'rows':>7}{'all':>7}{'own':>7}{'chance':>7}")
        for table in tables(arguments.folder, arguments.only):
            if table.task == "regression":
                for line in measure(table, arguments.splits):
                    print(line, flush=True)


def measure(table: Table, splits: int) -> Iterator[str]:
    """A line for each column: the gap with the quantile of all rows, and with own ones."""
    files = [pd.read_csv(table.file(side)) for side in ("train", "test")]
    frame = pd.concat(files, ignore_index=True).dropna(subset=[table.target])
    for column in frame.columns.drop(table.target):
        if 2 <= frame[column].nunique() <= MOST_GROUPS and frame[column].notna().all():
            each = [_gaps(frame, table.target, column, seed) for seed in range(splits)]
            rows = sum(one[0] for one in each)
            gaps = [100 * sum(one[i] for one in each) / rows for i in (1, 2, 3)]
            groups = frame[column].nunique()
            numbers = "".join(f"{gap:7.2f}" for gap in gaps)
            yield f"{table.name:16}{column:16}{groups:7}{rows:7}{numbers}"


def _gaps(
    frame: pd.DataFrame, target: str, column: str, seed: int
) -> tuple[int, float, float, float]:
    """Test rows; Σ |inside − 0.9 n| with one quantile, and with own ones; its mean by chance."""
    order = np.random.default_rng(seed).permutation(len(frame))
    new, learned = np.split(order, [len(order) // 5])
    learned, test = frame.iloc[learned[:MOST_ROWS]], frame.iloc[new]
    counts = learned[column].value_counts()
    found = []
    for groups in (None, column):
        model = BayesianRegressor(
            groups=groups, hidden=(50,), epochs=100, calibration_fraction=0.25, random_state=seed
        )
        model.fit(learned.drop(columns=target), learned[target])
        lower, upper = model.predict_interval(test.drop(columns=target), LEVEL, kind="conformal")
        inside = (lower <= test[target]) & (test[target] <= upper)
        sums = inside.groupby(test[column]).agg(["sum", "size"])
        found.append(float((sums["sum"] - LEVEL * sums["size"]).abs().sum()))
    sizes = test[column].value_counts()
    by_chance = sum(
        math.sqrt(2 / math.pi * LEVEL * (1 - LEVEL) * n * (1 + n / max(counts.get(group, 0), 1)))
        for group, n in sizes.items()
    )
    return len(test), found[0], found[1], by_chance


def draw(path: Path) -> None:
    """Two regions of unlike noise: the intervals of one quantile, and of one for each region."""
    random = np.random.default_rng(21)
    rows = 8_000
    area, noisy = random.uniform(40, 160, rows), random.integers(0, 2, rows)
    price = 2.0 * area + random.standard_normal(rows) * np.where(noisy, 60.0, 15.0)
    frame = pd.DataFrame({"area": area, "region": np.where(noisy, "city", "village")})
    learned, test = slice(0, rows // 2), slice(rows // 2, None)
    titles = ("One quantile for all rows", "A quantile for each region")
    with picture(path, 1, 2, (9.0, 3.6)) as axes:
        for axis, groups, title in zip(axes[0], (None, "region"), titles, strict=True):
            model = BayesianRegressor(
                groups=groups,
                hidden=(20,),
                likelihood="homoscedastic",
                epochs=60,
                calibration_fraction=0.25,
                random_state=0,
            )
            names = ["area"] if groups is None else ["area", "region"]
            model.fit(frame[names][learned], price[learned])
            lower, upper = model.predict_interval(frame[names][test], LEVEL, kind="conformal")
            inside = (lower <= price[test]) & (price[test] <= upper)
            for region, colour, line in (("city", ORANGE, "-"), ("village", BLUE, "--")):
                own = (frame["region"][test] == region).to_numpy()
                order = np.argsort(area[test][own])[::10]
                x = area[test][own][order]
                share = f"{region}: {100 * inside[own].mean():.0f} % inside"
                axis.scatter(x, price[test][own][order], s=4, color=colour, alpha=0.5)
                for bound in (lower, upper):
                    axis.plot(x, bound[own][order], line, color=colour, linewidth=1.4)
                axis.plot([], [], line, color=colour, label=share)
            axis.set(title=title, xlabel="area", ylabel="price")
            axis.legend(loc="upper left")


if __name__ == "__main__":
    main()
