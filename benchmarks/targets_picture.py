"""The picture of the guide to several targets, and the figures that it quotes.

python -m benchmarks.targets_picture docs/images/targets.svg
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from benchmarks.pictures import picture
from examples.demo_parts.pictures import BLUE, GREY, ORANGE
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.joint.answer import JointPrediction, joint_name
from models.joint.fitting import train_joint
from models.joint.model import JointModel
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import TrainingRun

TARGETS = ("flour", "butter")
ROWS, FRESH, SAMPLES, GUESTS = 2_000, 4_000, 1_000, 60.0
TYPES = {"guests": "number", "flour": "number", "butter": "number"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path, columns = parser.parse_args().path, bakery(np.random.default_rng(0), ROWS)
    model = train_joint(columns, TYPES, _configs(columns), TrainingRun())
    _report(model, bakery(np.random.default_rng(1), FRESH))
    day = model.predict({"guests": np.array([GUESTS])}, PredictOptions(**_OPTIONS))
    truth = bakery(np.random.default_rng(2), FRESH, GUESTS)
    with picture(path, 1, 2, (9.0, 4.0)) as ((left, right),):
        _boxes(left, day, truth)
        _sums(right, day, truth)


_OPTIONS = {"samples": SAMPLES, "return_draws": True, "intervals": (0.9,)}


def bakery(random: np.random.Generator, rows: int, guests: float | None = None) -> Columns:
    """Kilograms of flour and butter that a day takes; what the guests order moves both."""
    number = random.uniform(20, 100, rows) if guests is None else np.full(rows, guests)
    noise = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], rows)
    flour = 0.2 * number + (1 + 0.02 * number) * noise[:, 0]
    butter = 2 + 0.05 * number + 0.8 * noise[:, 1]
    return {"guests": number, "flour": flour, "butter": butter}


def _configs(columns: Columns) -> list[ModelConfig]:
    training = TrainingConfig(epochs=60, batch_size=100, learning_rate=0.01)
    wanted = partial(ModelConfig, network=MLPConfig(hidden=(32,)), training=training, pruning=())

    def load(names: Sequence[str]) -> Mapping[str, np.ndarray]:
        return {name: columns[name] for name in names}

    return [
        resolve(
            wanted(target=target), [_profile(n, columns[n]) for n in ("guests", target)], ROWS, load
        )
        for target in TARGETS
    ]


def _profile(name: str, values: np.ndarray) -> ColumnProfile:
    found = {"min": values.min(), "max": values.max(), "mean": values.mean(), "std": values.std()}
    return ColumnProfile(name=name, type="number", **{k: float(v) for k, v in found.items()})


def _report(model: JointModel, fresh: Columns) -> None:
    """Print on how many fresh days both lie in their intervals, and how well sums are predicted."""
    answer = model.predict(
        {"guests": fresh["guests"]}, PredictOptions(**_OPTIONS | {"samples": 200})
    )
    truth = np.column_stack([fresh[target] for target in TARGETS])
    lower, upper = (_joint(answer, end)[..., 0] for end in ("lower", "upper"))
    draws = _joint(answer, "draws")
    together = (lower <= truth) & (truth <= upper)
    each = [one.intervals[0] for one in answer.targets.values()]
    alone = [(a.lower <= y) & (y <= a.upper) for a, y in zip(each, truth.T, strict=True)]
    shuffled = np.random.default_rng(3).permuted(draws[:, 1], axis=-1)
    print(f"correlation: {model.dependence[0.0].correlation[0][1]:.3f}")
    print(f"both in their joint intervals: {together.all(1).mean():.3f}")
    print(f"both in their own 90 % intervals: {np.logical_and(*alone).mean():.3f}")
    print(f"both below the upper joint bounds: {(truth <= upper).all(1).mean():.3f}")
    for name, sums in (("joint", draws.sum(1)), ("separate", draws[:, 0] + shuffled)):
        lower, upper = np.quantile(sums, [0.05, 0.95], axis=-1)
        inside = (lower <= truth.sum(1)) & (truth.sum(1) <= upper)
        print(f"sum in the 90 % interval of {name} draws: {inside.mean():.3f}")


def _boxes(axes: Axes, day: JointPrediction, truth: Columns) -> None:
    """True days with as many guests, the intervals of each target, and the joint ones."""
    axes.scatter(truth["flour"][:500], truth["butter"][:500], s=5, color=GREY, linewidths=0)
    own = [one.intervals[0] for one in day.targets.values()]
    joint = [_joint(day, end)[0, :, 0] for end in ("lower", "upper")]
    sides = (
        ("90 % each", ORANGE, [one.lower[0] for one in own], [one.upper[0] for one in own]),
        ("90 % together", BLUE, *joint),
    )
    for label, colour, lower, upper in sides:
        size = np.subtract(upper, lower)
        axes.add_patch(
            Rectangle(tuple(lower), *size, fill=False, color=colour, linewidth=2, label=label)
        )
    axes.set(xlabel="flour, kg", ylabel="butter, kg", title="500 days with 60 guests")
    axes.legend(loc="upper left", fontsize=8, frameon=False)


def _sums(axes: Axes, day: JointPrediction, truth: Columns) -> None:
    """The weight of both: in truth, of joint draws, of draws that do not belong together."""
    draws = _joint(day, "draws")[0]
    shuffled = np.random.default_rng(3).permutation(draws[1])
    bins = np.linspace(5, 30, 51)
    common = {"bins": bins, "density": True}
    axes.hist(truth["flour"] + truth["butter"], color=GREY, alpha=0.5, label="truth", **common)
    lines = {"histtype": "step", "linewidth": 2, **common}
    axes.hist(draws.sum(0), color=BLUE, label="joint draws", **lines)
    axes.hist(draws[0] + shuffled, color=ORANGE, label="draws of each alone", **lines)
    axes.set(xlabel="flour and butter, kg", yticks=[], title="The weight of the delivery")
    axes.legend(loc="upper left", fontsize=8, frameon=False)


def _joint(answer: JointPrediction, what: str) -> np.ndarray:
    """Rows × targets × levels, or samples."""
    return np.stack([answer[joint_name(target, what)] for target in answer.targets], axis=1)


if __name__ == "__main__":
    main()
