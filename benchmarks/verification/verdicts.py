"""How often are forecasts of equal methods called better or worse?

The best forecast of x_t = φ x_{t−1} + noise is compared at one set of origins with itself, once
with a bias and once with its opposite, or with two independent errors that last like its own. The
expected scores are equal. A verdict that two exact standard errors give would differ in 4.6 %.
"""

import numpy as np

from benchmarks.verification.check import Check, Scale
from models.forecasting.backtest import verdict
from models.forecasting.worth import Overlaps

HORIZON = 12
ORIGINS = {
    "16 successive origins": np.arange(16),
    "40 successive origins": np.arange(40),
    "12 origins, every third step": 3 * np.arange(12),
    "5 origins without overlap": HORIZON * np.arange(5),
}
PERSISTENCE = (0.0, 0.5, 0.9, 1.0)
REPEATS = {"short": 200, "full": 1_000}
MOST = 0.06


def checks(scale: Scale) -> list[Check]:
    """The share of differences that get a verdict: at most 6 %, and three standard errors of it."""
    random, repeats = np.random.default_rng(0), REPEATS[scale]
    most = MOST + 3 * np.sqrt(0.046 * 0.954 / repeats)
    found = []
    for name, firsts in ORIGINS.items():
        for phi in PERSISTENCE:
            for kind in ("biases", "errors of their own"):
                share = called(firsts, phi, kind, repeats, random)
                what = f"{name}, φ = {phi:g}, equal but for {kind}: better or worse"
                found.append(Check(what, f"at most {most:.3f}", share, 0.0, most))
    return found


def called(
    firsts: np.ndarray, phi: float, kind: str, repeats: int, random: np.random.Generator
) -> float:
    """The share of pairs of equal methods that are called different."""
    overlaps = Overlaps(np.zeros(len(firsts), int), firsts, HORIZON)
    deviation = np.sqrt(np.cumsum(phi ** (2.0 * np.arange(HORIZON))))
    number = 0
    for _ in range(repeats):
        error = errors(firsts, phi, random)
        if kind == "biases":
            first, second = error - 0.3 * deviation, error + 0.3 * deviation
        else:
            first, second = (error - 0.5 * errors(firsts, phi, random) for _ in range(2))
        differences = (np.abs(first) - np.abs(second)).ravel()
        known = overlaps.error_of_mean(differences, 1)
        number += verdict(float(differences.mean()), *known) != "no difference"
    return number / repeats


def errors(firsts: np.ndarray, phi: float, random: np.random.Generator) -> np.ndarray:
    """Of the best forecasts from each origin: origins × steps."""
    noise, error = random.normal(size=firsts[-1] + HORIZON), np.zeros(len(firsts))
    found = []
    for step in range(HORIZON):
        error = phi * error + noise[firsts + step]
        found.append(error)
    return np.stack(found, 1)
