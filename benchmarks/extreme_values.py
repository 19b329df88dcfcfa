"""How often the finding `extreme` names a column: of tables in files, and of drawn honest ones.

    python -m benchmarks.extreme_values FILE.csv …

A named column of a file is printed with its values, to be judged; drawn columns have no errors.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from core.datasets.findings.extremes import extremes_of

Draw = Callable[[np.random.Generator, int], np.ndarray]
DRAWN: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal, σ ½": lambda rng, n: rng.lognormal(12, 0.5, n),
    "log-normal, σ 2": lambda rng, n: rng.lognormal(0, 2, n),
    "Pareto, index 0.7": lambda rng, n: rng.pareto(0.7, n),
    "Pareto, index 1.5": lambda rng, n: rng.pareto(1.5, n),
    "Pareto, index 3": lambda rng, n: rng.pareto(3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "gamma, shape ½": lambda rng, n: rng.gamma(0.5, 1, n),
    "Poisson, mean 2": lambda rng, n: rng.poisson(2, n),
    "rare counts": lambda rng, n: rng.poisson(0.05, n),
    "mostly zero": lambda rng, n: rng.lognormal(5, 2, n) * (rng.random(n) < 0.05),
    "two modes": lambda rng, n: rng.normal(100 * rng.integers(0, 2, n), 1),
}
ROWS, COLUMNS = (100, 800, 5_000), 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="CSV files, gzip too")
    read, named = 0, 0
    for path in parser.parse_args().files:
        frame = pd.read_csv(path).select_dtypes("number")
        for name in frame:
            values = frame[name].dropna().to_numpy(float)
            found, read = extremes_of(values), read + 1
            if len(found):
                named += 1
                print(f"{path.name}, {name}: {found.tolist()}, median {np.median(values):g}")
    print(f"files: {named} of {read} columns named")
    for kind, draw in DRAWN.items():
        for rows in ROWS:
            draws = (draw(np.random.default_rng(seed), rows) for seed in range(COLUMNS))
            alarms = sum(len(extremes_of(values)) > 0 for values in draws)
            print(f"{kind}, {rows} rows: {alarms} of {COLUMNS} columns named")


if __name__ == "__main__":
    main()
