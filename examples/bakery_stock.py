"""How much to bake: the mean, or what costs least given the uncertainty?

    python -m examples.bakery_stock --picture stock.svg

A loaf too many costs 1, a loaf too few costs 4 (the margin, and a customer). Demand is simulated:
warm days sell more, and vary more. Three ways to decide are scored on 400 new days: bake the mean;
bake the mean and a reserve that is the same every day; bake what costs least for the predicted
distribution of the day.
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

OVER, UNDER = 1.0, 4.0
TRAINED, NEW = 600, 400  # days


def simulate(days: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Temperatures, and loaves that customers ask for."""
    warmth = random.uniform(0, 30, days)
    mean = 20 + 2.5 * warmth
    spread = 0.08 + 0.5 * (warmth / 30) ** 2  # as a share of the mean: rain or sun on warm days
    return warmth[:, None], np.round(mean * random.gamma(1 / spread**2, spread**2))


def cost(baked: np.ndarray, demand: np.ndarray) -> np.ndarray:
    """What each day costs."""
    return np.where(baked > demand, OVER * (baked - demand), UNDER * (demand - baked))


def main() -> None:
    """Train, decide for new days, compare the costs."""
    asked = options(__doc__, epochs=60)
    random = np.random.default_rng(0)
    warmth, demand = simulate(TRAINED, random)
    new_warmth, new_demand = simulate(NEW, random)
    model = BayesianRegressor(
        hidden=(20,),
        likelihood={"kind": "count", "scale": "log"},
        epochs=asked.epochs,
        pruning=(),
        random_state=0,
    ).fit(warmth, demand)
    mean = model.predict(new_warmth)
    reserve = np.quantile(demand - model.predict(warmth), UNDER / (OVER + UNDER))
    action = model.decide(new_warmth, {"over": OVER, "under": UNDER}).action
    costs = {
        "mean": cost(mean, new_demand),
        "mean + same reserve": cost(mean + reserve, new_demand),
        "uncertainty of the day": cost(np.asarray(action), new_demand),
    }
    compare_costs(costs, "day")
    if asked.picture:
        figure, (left, right) = picture()
        order = np.argsort(new_warmth[:, 0])
        x = new_warmth[order, 0]
        left.plot(x, new_demand[order], ".", color=GREY, markersize=3, label="demand")
        left.plot(x, mean[order], color=BLUE, label="mean")
        left.plot(x, np.asarray(action)[order], color=ORANGE, label="baked: costs least")
        left.set(xlabel="temperature", ylabel="loaves", title="How much to bake")
        left.legend()
        draw_costs(right, costs, "day")
        figure.savefig(asked.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
