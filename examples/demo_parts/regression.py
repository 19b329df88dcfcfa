"""First chapter: regression on a table, with aleatoric and epistemic variance."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from credence.client import Client
from credence.rendering import print_table
from credence.types import Json, PredictionAnswer, Version
from examples.demo_parts.data import Split, diabetes, stretch, write_csv
from examples.demo_parts.scores import coverage, rmse
from examples.demo_parts.training import train, wait

TARGET = "progression"
SAMPLE_COUNTS = (1, 10, 100, 1000)
LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
SHOWN_ROWS = 6
STRETCHES = (1, 2, 4, 8)
BAND_FEATURE = "bmi"
BAND_EPOCHS = 400  # one feature needs fewer than the recipe allows for


@dataclass(frozen=True)
class Band:
    """Predictions along one feature, inside and outside the range of the training rows."""

    feature: str
    train: np.ndarray
    truth_x: np.ndarray
    truth_y: np.ndarray
    grid: np.ndarray
    prediction: PredictionAnswer


@dataclass(frozen=True)
class Regression:
    """Results of this chapter for the pictures and the latency chapter."""

    row: Json
    coverages: dict[float, float]
    pruning: list[Json]
    band: Band


def run(client: Client, directory: Path) -> Regression:
    """Train on the diabetes data, predict its held-out rows, and score the predictions."""
    names, data = diabetes()
    path = directory / "diabetes.csv"
    write_csv(path, names, data.train_x, data.train_y)
    version = train(client, path, {"model": "diabetes", "target": TARGET})
    rows = records(names, data.test_x)
    answers = [_predict(client, rows, samples) for samples in SAMPLE_COUNTS]
    _show_rows(answers, data.test_y)
    _show_samples(answers, data)
    _show_stretched(client, names, data)
    pruning = _pruning_table(client, directory, names, data, version)
    intervals = answers[-1]["intervals"]
    coverages = {item["level"]: coverage(item, data.test_y) for item in intervals}
    band = _band(client, version["dataset"], names, data)
    return Regression(rows[0], coverages, pruning, band)


def records(names: list[str], x: np.ndarray) -> list[Json]:
    """Rows as the objects that `POST /predict` takes."""
    return [dict(zip(names, row, strict=True)) for row in x.tolist()]


def _predict(client: Client, rows: list[Json], samples: int) -> PredictionAnswer:
    options = {"samples": samples, "intervals": LEVELS, "interval_kinds": ["credible"]}
    return client.submit_predict({"model": "diabetes", "inputs": rows, **options})


def _show_rows(answers: list[PredictionAnswer], truth: np.ndarray) -> None:
    """Mean ± aleatoric ± epistemic standard deviation of the first held-out patients."""
    columns = [[_cell(answer, row) for row in range(SHOWN_ROWS)] for answer in answers]
    print("\nPOST /predict   mean ± aleatoric ± epistemic standard deviation, held-out patients\n")
    headers = ["truth", "1 sample", *(f"{samples} samples" for samples in SAMPLE_COUNTS[1:])]
    print_table(headers, zip(truth[:SHOWN_ROWS].tolist(), *columns, strict=True))


def _cell(prediction: PredictionAnswer, row: int) -> str:
    variance = prediction["variance"]
    aleatoric, epistemic = (np.sqrt(variance[kind][row]) for kind in ("aleatoric", "epistemic"))
    return f"{prediction['mean'][row]:.0f} ± {aleatoric:.0f} ± {epistemic:.1f}"


def _show_samples(answers: list[PredictionAnswer], data: Split) -> None:
    """Error, coverage and Monte-Carlo error per number of samples."""
    print(f"\nall {len(data.test_y)} held-out patients; predicting the mean of the training")
    print(f"patients for all has an error of {np.std(data.test_y - data.train_y.mean()):.1f}\n")
    headers = ["samples", "rmse", "90 % intervals cover", "epistemic std", "Monte-Carlo error"]
    print_table(headers, [_scores(answer, data.test_y) for answer in answers])


def _scores(prediction: PredictionAnswer, truth: np.ndarray) -> list[str]:
    interval = next(item for item in prediction["intervals"] if item["level"] == 0.9)
    mc_error = prediction["mc_error"]
    return [
        str(prediction["samples"]),
        f"{rmse(prediction, truth):.1f}",
        f"{coverage(interval, truth):.1%}",
        f"{np.sqrt(np.mean(prediction['variance']['epistemic'])):.1f}",
        "unknown" if mc_error is None or None in mc_error else f"{np.mean(mc_error):.2f}",
    ]


def _show_stretched(client: Client, names: list[str], data: Split) -> None:
    """Patients unlike those of training: the same rows, further and further from the mean."""
    print("\nthe same patients with all measurements moved away from the training mean\n")
    means = []
    for factor in STRETCHES:
        moved = stretch(data.test_x, data.train_x.mean(axis=0), factor)
        variance = _predict(client, records(names, moved), 100)["variance"]
        means.append([float(np.mean(variance[kind])) for kind in ("aleatoric", "epistemic")])
    table = [
        [
            f"{factor} times",
            f"{aleatoric:,.0f}",
            f"{epistemic:,.0f}",
            f"× {epistemic / means[0][1]:.1f}",
        ]
        for factor, (aleatoric, epistemic) in zip(STRETCHES, means, strict=True)
    ]
    print_table(["distance", "aleatoric variance", "epistemic variance", "epistemic"], table)


def _pruning_table(
    client: Client, directory: Path, names: list[str], data: Split, version: Version
) -> list[Json]:
    """Evaluate every variant on the held-out patients."""
    path = directory / "held-out-patients.csv"
    write_csv(path, names, data.test_x, data.test_y)
    dataset = client.upload(path)["id"]
    rows: list[Json] = []
    for variant in version["variants"]:
        request = {"version": version["version"], "dataset": dataset, "prune": variant["prune"]}
        metrics = wait(client, client.submit_evaluate("diabetes", request), quiet=True)["metrics"]
        rows.append(
            {**variant, "error": metrics["rmse"], "log_likelihood": metrics["log_likelihood"]}
        )
    print("\nPOST /models/diabetes/evaluate   pruned by signal-to-noise ratio, held-out patients\n")
    table = [
        [f"{r['prune']:.0%}", r["num_weights"], r["bytes"], r["error"], r["log_likelihood"]]
        for r in rows
    ]
    print_table(["pruned", "weights", "bytes", "rmse", "log likelihood"], table)
    return rows


def _band(client: Client, dataset: str, names: list[str], data: Split) -> Band:
    """A second model of only one feature, so that its predictions can be drawn."""
    print(f"\na small model of {BAND_FEATURE} alone, for the picture of its predictive band\n")
    request = {"model": "band", "dataset": dataset, "target": TARGET, "features": [BAND_FEATURE]}
    job = client.submit_train(request | {"training": {"epochs": BAND_EPOCHS}, "pruning": []})
    wait(client, job)
    column = names.index(BAND_FEATURE)
    train_x, test_x = data.train_x[:, column], data.test_x[:, column]
    margin = 0.5 * np.ptp(train_x)
    grid = np.linspace(train_x.min() - margin, train_x.max() + margin, 200)
    inputs = {BAND_FEATURE: grid.tolist()}
    prediction = client.submit_predict({"model": "band", "inputs": inputs, "samples": 1000})
    return Band(BAND_FEATURE, train_x, test_x, data.test_y, grid, prediction)
