"""Coverage of adaptive 90 % intervals of forecasts of 12 steps, whose labels come together.

    python -m benchmarks.adaptive_steps [--repeats 8]

Errors are those of `benchmarks.path_residuals`, of 40 origins that calibrate and 150 that are
forecast, with constant shocks and with ones that double at half time. Labels of a forecast come
when its last step is known. Each step counts as a row, or all steps of a forecast together do.
"""

import argparse

import numpy as np

from benchmarks import results
from benchmarks.path_residuals import HORIZON, LEVEL, PROCESSES, errors
from models.evaluation.adaptive import Labels, allowed_score, covered, follow
from models.evaluation.conformal_rank import Reference

CALIBRATING, FORECAST = 40, 150
INDEPENDENT = 9.0  # what the calibrating errors are worth
HEADERS = ["errors", "conformal", "each step", "its width", "together", "its width "]


def run(scores: np.ndarray, calibrating: np.ndarray, per_label: float) -> tuple[float, float]:
    """The share of labels inside, and the median of how far intervals reach."""
    weights = np.full(len(calibrating), INDEPENDENT / len(calibrating))
    past = Reference(calibrating, weights, per_label)
    known = np.maximum(0, np.arange(len(scores)) - HORIZON + 1) * HORIZON
    labels = Labels.newest(scores.ravel().tolist(), np.repeat(known, HORIZON).tolist())
    path = follow(past, labels, [LEVEL])
    values, told = labels.arrays
    reach = [allowed_score(past, values[:k], path[k, 0]) for k in np.unique(told).tolist() if k]
    return float(covered(past, labels, path).mean()), float(np.median(reach))


def compare(name: str, *, doubles: bool, repeats: int) -> list[float]:
    """Coverage of conformal intervals, then coverage and width of both adaptive ones."""
    random, found = np.random.default_rng(0), []
    for _ in range(repeats):
        both = np.abs(errors(PROCESSES[name], 1, CALIBRATING + FORECAST, random))
        past, scores = np.sort(both[:CALIBRATING].ravel()), both[CALIBRATING:]
        if doubles:
            scores = scores * np.where(np.arange(FORECAST) < FORECAST / 2, 1.0, 2.0)[:, None]
        half = np.quantile(past, LEVEL)
        alone, together = (run(scores, past, each) for each in (1.0, 1 / HORIZON))
        inside = float((scores <= half).mean())
        found.append([inside, alone[0], alone[1] / half, together[0], together[1] / half])
    return np.asarray(np.mean(found, 0)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    repeats = parser.parse_args().repeats
    lines, each = [], []
    for doubles in (False, True):
        for name in PROCESSES:
            each.append(compare(name, doubles=doubles, repeats=repeats))
            lines.append([f"{name}, doubles" if doubles else name, *_cells(each[-1])])
    means = [
        ["mean, constant", *_cells(np.mean(each[: len(PROCESSES)], 0).tolist())],
        ["mean, doubles", *_cells(np.mean(each[len(PROCESSES) :], 0).tolist())],
    ]
    print(results.markdown(HEADERS, [*lines, *means]))


def _cells(found: list[float]) -> list[str]:
    shares, widths = (0, 1, 3), (2, 4)
    return [
        f"{100 * value:.1f} %" if i in shares else f"{value:.2f}"
        for i, value in enumerate(found)
        if i in (*shares, *widths)
    ]


if __name__ == "__main__":
    main()
