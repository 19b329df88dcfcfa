"""A noisy sine of 92 points: every method, and every weight of the KL.

    python -m benchmarks.reproductions.sine [--picture docs/images/sine.png]

y = 10 sin(2πx) + N(0, 2²) on [−½, ½], network 1-20-20-2. The noise has variance 4. Outside of the
data the epistemic variance should grow.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks import results
from benchmarks.pictures import picture
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import (
    BBBConfig,
    CyclicalSGLDConfig,
    DropoutConfig,
    EnsembleConfig,
    KLConfig,
    MAPConfig,
    MethodConfig,
    MetropolisConfig,
    MLEConfig,
    MLPConfig,
    ModelConfig,
    ScaleMixturePriorConfig,
    SGLDConfig,
    SWAGConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

MIXTURE = ScaleMixturePriorConfig(kind="scale_mixture", pi=0.5, sigma1=1.5, sigma2=0.1)
# For methods with early stopping on 9 held-out rows: with the default of 1 they stopped too early.
PRIOR_SIGMA = 0.5
METHODS: dict[str, MethodConfig] = {
    "bbb": BBBConfig(),
    "bbb, scale mixture": BBBConfig(prior=MIXTURE),
    "mc_dropout": DropoutConfig(kind="mc_dropout", rate=0.05),
    "ensemble": EnsembleConfig(kind="ensemble", prior_sigma=PRIOR_SIGMA),
    "swag": SWAGConfig(kind="swag", prior_sigma=PRIOR_SIGMA, epochs=200),
    "sgld": SGLDConfig(kind="sgld"),
    "csgld": CyclicalSGLDConfig(kind="csgld"),
    "metropolis": MetropolisConfig(kind="metropolis"),
    "map": MAPConfig(kind="map", prior_sigma=PRIOR_SIGMA),
    "mle": MLEConfig(kind="mle"),
}
KL_WEIGHTS = ("uniform", "blundell", "parameters", 0.0, 0.1, 10.0)
INSIDE, FAR = np.linspace(-0.4, 0.4, 81), np.array([-1.5, 0.0, 1.5])
WIDE = np.linspace(-1.5, 1.5, 301)
POINTS, TEST_POINTS = 92, 2000
WEIGHTED_BATCH = 16  # six mini-batches; with a single one the weights of Blundell et al. are all 1


@dataclass(frozen=True)
class Row:
    """The results of one configuration."""

    name: str
    aleatoric: float
    at_zero: float
    far: float
    log_likelihood: float
    coverage: float
    seconds: float
    draws: RowPrediction

    @property
    def growth(self) -> float:
        """Epistemic variance at ±1.5 (the smaller one) ÷ at 0."""
        return self.far / self.at_zero if self.at_zero > 0 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="methods; all by default")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {k: m for k, m in METHODS.items() if not arguments.only or k in arguments.only}
    rows = [measure(name, method, arguments.seed) for name, method in chosen.items()]
    print(table("method", rows))
    weighted = [] if arguments.only else [_with_weight(w, arguments.seed) for w in KL_WEIGHTS]
    print(table("weight of the KL", weighted))
    kept = {"methods": list(map(_figures, rows)), "kl_weights": list(map(_figures, weighted))}
    results.save("sine", {"machine": results.machine(), **kept})
    if arguments.picture:
        draw(rows, sine(POINTS, arguments.seed), arguments.picture)


def sine(count: int, seed: int) -> dict[str, np.ndarray]:
    """Points of the example."""
    random = np.random.default_rng(seed)
    x = random.uniform(-0.5, 0.5, count)
    return {"x": x, "y": 10 * np.sin(2 * np.pi * x) + random.normal(0, 2, count)}


def fit(method: MethodConfig, seed: int, batch_size: int | None) -> TabularModel:
    """Train with the recommended recipe."""
    columns = sine(POINTS, seed)
    profiles = [ColumnProfile(name=n, type="number", min=-1.0, max=1.0) for n in columns]
    wanted = ModelConfig(
        target="y",
        network=MLPConfig(hidden=(20, 20)),
        method=method,
        training=TrainingConfig(seed=seed, batch_size=batch_size),
        pruning=() if isinstance(method, BBBConfig) else None,
    )
    return train(columns, dict.fromkeys(columns, "number"), resolve(wanted, profiles, POINTS))


def measure(name: str, method: MethodConfig, seed: int, batch_size: int | None = None) -> Row:
    started = time.perf_counter()
    model = fit(method, seed, batch_size)
    seconds = time.perf_counter() - started
    options = PredictOptions(samples=1000)
    inside, far = (model.predict({"x": x}, options) for x in (INSIDE, FAR))
    scores = model.evaluate(sine(TEST_POINTS, 10_000 + seed), samples=1000)
    epistemic = far.variance["epistemic"]
    return Row(
        name=name,
        aleatoric=float(inside.variance["aleatoric"].mean()),
        at_zero=float(epistemic[1]),
        far=float(min(epistemic[0], epistemic[2])),
        log_likelihood=float(scores["log_likelihood"]),
        coverage=float(scores["coverage"]["0.9"]),
        seconds=seconds,
        draws=model.predict({"x": WIDE}, options),
    )


def _with_weight(weight: str | float, seed: int) -> Row:
    method = BBBConfig(kl=KLConfig(weight=weight))  # type: ignore[arg-type]
    return measure(str(weight), method, seed, WEIGHTED_BATCH)


def _figures(row: Row) -> dict[str, object]:
    names = ("name", "aleatoric", "at_zero", "far", "log_likelihood", "coverage", "seconds")
    return {name: getattr(row, name) for name in names} | {"growth": row.growth}


def table(first: str, rows: list[Row]) -> str:
    headers = (
        first,
        "aleatoric inside",
        "epistemic at 0",
        "at ±1.5, the smaller",
        "ratio",
        "test log likelihood",
        "90 % covers",
        "seconds",
    )
    lines = [
        (
            row.name,
            *map(results.figure, (row.aleatoric, row.at_zero, row.far, row.growth)),
            f"{row.log_likelihood:.3f}",
            f"{100 * row.coverage:.1f} %",
            f"{row.seconds:.1f}",
        )
        for row in rows
    ]
    return results.markdown(headers, lines) + "\n"


def draw(rows: list[Row], data: dict[str, np.ndarray], path: Path) -> None:
    """Draw one panel per method: mean ± 2 epistemic and ± 2 total standard deviations."""
    height = -(-len(rows) // 3)
    with picture(path, height, 3, (9.5, 2.5 * height)) as axes:
        panels = [axis for line in axes for axis in line]
        for axis, row in zip(panels, rows, strict=False):
            mean, variance = row.draws.mean, row.draws.variance
            for name, colour, label in (
                ("total", ORANGE, "± 2 √total"),
                ("epistemic", BLUE, "± 2 √epistemic"),
            ):
                spread = 2 * np.sqrt(variance[name])
                axis.fill_between(WIDE, mean - spread, mean + spread, color=colour, alpha=0.35)
                axis.plot([], [], color=colour, linewidth=6, alpha=0.35, label=label)
            axis.plot(WIDE, mean, color=BLUE, label="mean")
            axis.plot(
                WIDE, 10 * np.sin(2 * np.pi * WIDE), color=GREY, linestyle="--", label="truth"
            )
            axis.scatter(data["x"], data["y"], s=4, color="black", zorder=3, label="data")
            axis.set(title=row.name, ylim=(-60, 60), xlim=(-1.5, 1.5))
        for axis in panels[len(rows) :]:
            axis.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        panels[-1].legend(handles, labels, loc="center")


if __name__ == "__main__":
    main()
