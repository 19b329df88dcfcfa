"""Conformal intervals of the steps of forecasts: which residuals, and which rank among them.

    python -m benchmarks.path_residuals [--repeats 40]

Errors of forecasts of 12 steps are simulated for 17 processes. What is predicted has the right
shape (√h or constant) only for some. Scales are fitted to the errors of some origins, and 90 %
intervals judged on fresh errors: by their coverage over all steps, by how far each step is from
90 %, and by the interval score (Gneiting and Raftery 2007, eq. 43) ÷ that of the first rule.

* `k/n`: the k-th of n independent residuals is the k/n share of those of all steps.
* `all`: it is the k (N + 1)/(n + 1)-th of all N.
* `own`: so among those of the step, if they are worth enough for the level.
"""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks import results
from models.evaluation.conformal_rank import conformal_rank
from models.evaluation.path_calibration import fit_scales
from models.forecasting.worth import Overlaps

HORIZON, LEVEL, FRESH = 12, 0.9, 300
STEPS = np.arange(1, HORIZON + 1)
SETTINGS = ((1, 64), (1, 30), (8, 8), (64, 1))  # series, origins of each
RULES = ("k/n", "all", "own")


@dataclass(frozen=True)
class Process:
    """Errors Σ_j ψ_j e_{t−j}, times a size by the step.

    Args:
        psi: how a shock acts later.
        shocks: "normal", "t3", "jumps" or "arch".
        predicted: whether deviations grow as √h, or stay.
        size: of the errors of each step.
    """

    psi: np.ndarray
    shocks: str = "normal"
    predicted: bool = True
    size: np.ndarray | float = 1.0


ONE = np.r_[1.0, np.zeros(HORIZON - 1)]
ALL = np.ones(HORIZON)
PROCESSES: Mapping[str, Process] = {
    "noise": Process(ONE, predicted=False),
    "noise, as a walk": Process(ONE),
    "AR(1), 0.5": Process(0.5 ** (STEPS - 1)),
    "AR(1), 0.9": Process(0.9 ** (STEPS - 1)),
    "AR(1), 0.9, as noise": Process(0.9 ** (STEPS - 1), predicted=False),
    "walk": Process(ALL),
    "walk, as noise": Process(ALL, predicted=False),
    "integrated walk": Process(STEPS.astype(float)),
    "oscillation": Process(0.95 ** (STEPS - 1) * np.cos(np.pi * (STEPS - 1) / 4)),
    "level and noise": Process(np.r_[1.0, np.full(HORIZON - 1, 0.3)], predicted=False),
    "trend": Process(np.r_[1.0, 0.3 + 0.1 * STEPS[1:]]),
    "t3": Process(ONE, "t3", predicted=False),
    "t3 walk": Process(ALL, "t3"),
    "ARCH": Process(ONE, "arch", predicted=False),
    "jumps": Process(ALL, "jumps"),
    "hump": Process(ONE, predicted=False, size=1 + 2 * np.exp(-0.5 * (STEPS - 6.0) ** 2)),
    "every fourth": Process(ONE, predicted=False, size=np.where(STEPS % 4 == 0, 2.5, 1.0)),
}


def shocks(kind: str, shape: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    normal = random.normal(size=shape)
    if kind == "t3":
        return random.standard_t(3, size=shape)
    if kind == "jumps":
        return normal * np.where(random.random(shape) < 0.05, 8.0, 1.0)
    if kind == "arch":
        variance = np.ones(shape[0])
        for t in range(shape[1]):
            normal[:, t] *= np.sqrt(variance)
            variance = 0.3 + 0.69 * normal[:, t] ** 2
    return normal


def errors(process: Process, series: int, origins: int, random: np.random.Generator) -> np.ndarray:
    """Errors ÷ predicted deviations of all origins × steps; those of a series follow each other."""
    e = shocks(process.shocks, (series, origins + HORIZON), random)
    at = np.arange(origins)
    found = [sum(process.psi[j] * e[:, h - j + at] for j in range(h + 1)) for h in range(HORIZON)]
    sized = np.stack(found, -1).reshape(-1, HORIZON) * process.size
    return np.asarray(sized / (np.sqrt(STEPS) if process.predicted else 1.0))


def half_widths(process: Process, series: int, origins: int, random: np.random.Generator) -> dict:
    """The half widths by each rule, in predicted deviations."""
    normal = torch.from_numpy(errors(process, series, origins, random))
    firsts = np.tile(np.arange(origins), series)
    worth = Overlaps(np.repeat(np.arange(series), origins), firsts, HORIZON).worth()
    fitted = fit_scales(normal, worth.together)
    root = fitted.factors(HORIZON).sqrt()
    pooled = fitted.ranked((normal / root).abs())
    count, rank = int(worth.together), conformal_rank(int(worth.together), LEVEL)
    share = pooled.residuals[math.ceil(rank * len(pooled.residuals) / count) - 1]
    found = {
        "k/n": torch.full((HORIZON,), share, dtype=torch.float64),
        "all": pooled.half_widths(LEVEL, HORIZON),
        "own": fitted.ranked((normal / root).abs(), worth.alone).half_widths(LEVEL, HORIZON),
    }
    return {name: (half * root).numpy() for name, half in found.items()}


def judge(process: Process, series: int, origins: int, repeats: int) -> np.ndarray:
    """Rules × (coverage of each step, interval score of each step)."""
    random, found = np.random.default_rng(0), []
    for _ in range(repeats):
        widths = half_widths(process, series, origins, random)
        fresh = np.abs(errors(process, FRESH, 1, random))
        misses = [(fresh > widths[name]) for name in RULES]
        scores = [
            2 * widths[name] + 2 / (1 - LEVEL) * np.where(miss, fresh - widths[name], 0.0)
            for name, miss in zip(RULES, misses, strict=True)
        ]
        found.append([[1 - m.mean(0), s.mean(0)] for m, s in zip(misses, scores, strict=True)])
    return np.mean(found, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    repeats = parser.parse_args().repeats
    for series, origins in SETTINGS:
        lines, each = [], []
        for name, process in PROCESSES.items():
            judged = judge(process, series, origins, repeats)
            covered, score = judged[:, 0], judged[:, 1] / judged[0, 1]
            away = np.abs(covered - LEVEL).mean(1)
            each.append(np.stack([covered.mean(1), away, score.mean(1)], 1))
            lines.append([name, *_cells(each[-1])])
        print(f"{series} series, {origins} origins of each")
        headers = ["process", *(f"{rule}: covers, a step is off, score" for rule in RULES)]
        print(results.markdown(headers, [*lines, ["mean", *_cells(np.mean(each, 0))]]), flush=True)


def _cells(found: np.ndarray) -> list[str]:
    return [f"{100 * a:.1f} %, {100 * b:.1f}, {c:.2f}" for a, b, c in found]


if __name__ == "__main__":
    main()
