"""Probabilities of thresholds: how right they are on held-out rows, and how many a minute.

    python -m benchmarks.probabilities speed [--rows N] [--rounds N]
    python -m benchmarks.probabilities reliability FOLDER [--only NAME …] [--train N] [--epochs N]
    python -m benchmarks.probabilities picture FILE

`speed` starts a service with a model of eight numbers and sends rows × 16 thresholds in Arrow, and
as a job over a data set; without thresholds in turns, for the ratio. `reliability` fits
`BayesianRegressor` to tables as `benchmarks.tables` describes them, and compares P(y > t) with the
share of test rows above t, at thresholds from the training targets' quantiles. `picture` draws the
guide's example, from generated demand.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import results
from benchmarks.interleaving import rounds
from benchmarks.pictures import picture
from benchmarks.tables import Table, tables
from credence.client import Client
from credence.estimators import BayesianRegressor
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from examples.demo_parts.service import running_service

MODEL, THRESHOLDS = "probabilities", 16
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)  # of the training targets below each threshold
BINS = 10
STOCK = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    speed = tasks.add_parser("speed")
    speed.add_argument("--rows", type=int, default=20_000)
    speed.add_argument("--rounds", type=int, default=3)
    reliability = tasks.add_parser("reliability")
    reliability.add_argument("folder", type=Path)
    reliability.add_argument("--only", nargs="+", help="names of tables; default: all")
    reliability.add_argument("--train", type=int, default=3000, help="most training rows")
    reliability.add_argument("--epochs", type=int, help="of a training; default: the recipe's")
    tasks.add_parser("picture").add_argument("file", type=Path)
    arguments = parser.parse_args()
    match arguments.task:
        case "speed":
            print(report_speed(measure(arguments.rows, arguments.rounds)))
        case "reliability":
            print(report_reliability(arguments))
        case "picture":
            draw(arguments.file)


def measure(rows: int, repetitions: int) -> dict[str, list[float]]:
    """Seconds of each way, interleaved."""
    frame = _generated(rows)
    thresholds = np.linspace(-3, 3, THRESHOLDS).tolist()
    with tempfile.TemporaryDirectory() as folder, running_service(Path(folder) / "log") as client:
        table = _generated(2000)
        table["y"] = _target(table)
        train, data = Path(folder) / "train.csv", Path(folder) / "rows.csv"
        table.to_csv(train, index=False)
        frame.to_csv(data, index=False)
        client.train(train, target="y", model=MODEL, training={"epochs": 30})
        dataset = client.upload(data)["id"]
        runs: dict[str, Callable[[], object]] = {
            "Arrow, without": lambda: client.predict(MODEL, frame),
            "Arrow, 16 thresholds": lambda: client.predict(MODEL, frame, exceeds=thresholds),
            "job, without": lambda: _job(client, dataset, []),
            "job, 16 thresholds": lambda: _job(client, dataset, thresholds),
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for name in rounds(list(runs), dict.fromkeys(runs, repetitions)):
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
    results.save("probabilities", {"machine": results.machine(), "rows": rows, "seconds": seconds})
    return {name: [rows / each for each in values] for name, values in seconds.items()}


def _job(client: Client, dataset: str, thresholds: list[float]) -> None:
    request = {"model": MODEL, "dataset": dataset, "exceeds": thresholds}
    client.wait(client.submit_batch(request)["id"])


def report_speed(rates: dict[str, list[float]]) -> str:
    """Rows per second, and thresholds per minute."""
    lines = []
    for name, values in rates.items():
        rate = statistics.median(values)
        many = f"{60 * rate * THRESHOLDS / 1e6:.2f}" if "16" in name else "–"
        lines.append((name, f"{rate:,.0f}", many))
    return results.markdown(("way", "rows/s", "million P(y > t) per minute"), lines)


def report_reliability(arguments: argparse.Namespace) -> str:
    """By table: mean |predicted − observed| over bins, what chance alone gives, and the tails."""
    lines = []
    for table in tables(arguments.folder, arguments.only):
        if table.task == "regression":
            predicted, observed = _held_out(table, arguments.train, arguments.epochs)
            error, chance = _calibration(predicted, observed)
            tail = f"{predicted[:, -1].mean():.3f} / {observed[:, -1].mean():.3f}"
            lines.append((table.name, len(observed), f"{error:.3f}", f"{chance:.3f}", tail))
            print(lines[-1], flush=True)
    headers = (
        "table",
        "test rows",
        "calibration error",
        "by chance",
        "above the 97 %: said / seen",
    )
    return results.markdown(headers, lines)


def _held_out(table: Table, train: int, epochs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """P(y > t) of the test rows, rows × thresholds, and whether each was above."""
    fit, test = (pd.read_csv(table.file(side)) for side in ("train", "test"))
    fit = fit.sample(min(train, len(fit)), random_state=0)
    y = fit.pop(table.target).to_numpy(float)
    truth = test.pop(table.target).to_numpy(float)
    thresholds = np.quantile(y, SHARES)
    model = BayesianRegressor(pruning=(), epochs=epochs).fit(fit, y)
    return model.predict_exceeds(test, thresholds), truth[:, None] > thresholds


def _calibration(predicted: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """Mean |predicted − observed| over equally full bins, and that of draws from the predictions.

    The latter is what a right model has.
    """
    p, seen = predicted.ravel(), observed.ravel()
    order = np.array_split(np.argsort(p), BINS)
    random = np.random.default_rng(0)
    drawn = [random.random(p.shape) < p for _ in range(50)]

    def error(values: np.ndarray) -> float:
        return float(np.mean([abs(p[part].mean() - values[part].mean()) for part in order]))

    return error(seen), float(np.mean([error(values) for values in drawn]))


def draw(file: Path) -> None:
    """Draw three days' demand against a stock, and P(demand > stock) for every stock."""
    random = np.random.default_rng(0)
    days = pd.DataFrame(
        {"degrees": random.uniform(5, 35, 800), "weekend": random.random(800) < 0.3}
    )
    level = 2.6 + 0.04 * days["degrees"] + 0.4 * days["weekend"]
    sold = np.round(np.exp(level + 0.25 * random.normal(size=800)))
    model = BayesianRegressor(pruning=(), random_state=0).fit(days, sold)
    asked = pd.DataFrame({"degrees": [12.0, 24.0, 32.0], "weekend": [False, True, False]})
    names = ("12 °C", "24 °C, weekend", "32 °C")
    stocks = np.arange(0.0, 161.0, 2.0)
    chances = np.hstack([model.predict_exceeds(asked, part) for part in _parts(stocks)])
    found = model.predict_density(asked, points=256)
    with picture(file, 1, 2, (8.5, 2.9)) as ((left, right),):
        for i, (name, colour) in enumerate(zip(names, (GREY, BLUE, ORANGE), strict=True)):
            left.plot(found.values[i], found.density[i], color=colour, label=name)
            above = found.values[i] > STOCK
            left.fill_between(
                found.values[i], found.density[i], where=above.tolist(), color=colour, alpha=0.3
            )
            right.plot(stocks, 100 * chances[i], color=colour, label=name)
        for axes in (left, right):
            axes.axvline(STOCK, color="black", linestyle="--", linewidth=1)
            axes.set_xlim(0, 160)
        left.set(
            title="how likely each demand is", xlabel="demand, pieces", yticks=[], ylim=(0, None)
        )
        right.set(title="P(demand > stock), %", xlabel="stock, pieces", ylim=(0, 100))
        left.legend()


def _parts(stocks: np.ndarray) -> Iterator[np.ndarray]:
    yield from np.array_split(stocks, -(-len(stocks) // THRESHOLDS))


def _generated(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(random.normal(size=(rows, 8)), columns=[f"x{i}" for i in range(8)])


def _target(frame: pd.DataFrame) -> np.ndarray:
    random = np.random.default_rng(1)
    signal = np.sin(frame["x0"]) + 0.5 * frame["x1"]
    return np.asarray(signal + 0.3 * random.normal(size=len(frame)))


if __name__ == "__main__":
    main()
