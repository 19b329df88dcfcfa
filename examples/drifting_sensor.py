"""When to stop trusting a sensor: one that drifts, without any label.

    python -m examples.drifting_sensor --picture sensor.svg

A model computes the concentration of a gas from two sensors and the temperature. From hour 200 on
the first sensor drifts. A wrong concentration costs its absolute error, a laboratory sample costs 2
and gives the truth. Three ways are scored on 600 hours: trust every prediction; take samples at
random, as many as the third way does; take a sample where the row is unlike the training rows.
"""

import numpy as np

from credence.estimators import BayesianRegressor
from examples.demo_parts.costs import (
    BLUE,
    GREY,
    ORANGE,
    compare_costs,
    draw_costs,
    options,
    picture,
)

SAMPLE = 2.0
TRAINED, NEW, DRIFTS_FROM = 800, 600, 200  # hours


def simulate(
    hours: int, random: np.random.Generator, drift: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """What the sensors say with the temperature, and the true concentration."""
    truth = random.uniform(10, 60, hours)
    warmth = random.uniform(5, 30, hours)
    noise = random.normal(size=(2, hours))
    first = 0.5 * truth + 0.2 * warmth + 0.5 * noise[0] + drift
    second = 8 * np.sqrt(truth) - 0.3 * warmth + 1.5 * noise[1]
    return np.column_stack([first, second, warmth]), truth


def main() -> None:
    """Train, predict while the sensor drifts, compare the costs."""
    asked = options(__doc__, epochs=60)
    random = np.random.default_rng(0)
    readings, truth = simulate(TRAINED, random)
    hour = np.arange(NEW)
    drift = 0.05 * np.clip(hour - DRIFTS_FROM, 0, None)
    new, new_truth = simulate(NEW, random, drift)
    model = BayesianRegressor(hidden=(50,), epochs=asked.epochs, pruning=(), random_state=0)
    error = np.abs(model.fit(readings, truth).predict(new) - new_truth)
    unlike = np.asarray(model.detect_unlike(new).flags)
    by_chance = random.permutation(unlike)
    costs = {
        "trust all": error,
        "samples at random": np.where(by_chance, SAMPLE, error),
        "samples where unlike": np.where(unlike, SAMPLE, error),
    }
    compare_costs(costs, "hour")
    before, after = unlike[:DRIFTS_FROM].mean(), unlike[DRIFTS_FROM:].mean()
    print(f"unlike training: {before:.0%} before the drift, {after:.0%} after")
    if asked.picture:
        figure, (left, right) = picture()
        left.axvline(DRIFTS_FROM, color=GREY, linestyle=":", label="the sensor begins to drift")
        left.plot(hour, error, ".", color=BLUE, markersize=3, label="error")
        left.plot(hour[unlike], error[unlike], ".", color=ORANGE, markersize=4, label="unlike")
        left.axhline(SAMPLE, color=GREY, label="cost of a sample")
        left.set(xlabel="hour", ylabel="cost", title="Errors, and the rows that are flagged")
        left.legend()
        draw_costs(right, costs, "hour")
        figure.savefig(asked.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
