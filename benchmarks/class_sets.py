"""Coverage and size of sets of classes, beside other conformal sets of the same probabilities.

    python -m benchmarks.class_sets [--tables FOLDER] [--only NAME …] [--level 0.9] [--splits 50]
                                    [--epochs N]

A model learns from half of the rows of each data set, with the recommended settings, or with
`--epochs` in seconds, with 64 hidden units. The data are of
scikit-learn, generated, and with `--tables` those of a folder (see `benchmarks.tables`) that have
classes. The other half is divided at random into rows for calibration and rows for the test, many
times. `own` are the sets of the version itself, whose calibration rows are of the first half; the
number behind ± is the standard error of this one share. The others are calibrated to the same rows,
with a temperature for the mean probabilities:

    ours  the sets of this release      aps   Romano et al. 2020: a random number per row, as s_r
    raps  aps with a penalty chosen          = p_1 + … + p_{r−1} + u p_r; sets may be empty
          as ours is                    lac   p_y at least a threshold (Sadinle et al. 2019)

`best` is the larger of the level and the accuracy: no sets without empty ones cover less, unless
they leave out the most probable class.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn import datasets
from torch import Tensor

from benchmarks import tables
from credence.estimators import BayesianClassifier
from models.evaluation.calibration import ClassCalibration, LabelledMixture, fit_scale
from models.evaluation.class_sets import (
    Penalty,
    RankedClasses,
    choose_penalty,
    fit_sets,
)
from models.evaluation.conformal_rank import conformal_rank
from models.likelihoods.class_mixture import CategoricalMixture

MOST_ROWS = 4_000  # of a data set, so that a run takes minutes
GENERATED = {"two": 2, "three": 3, "five": 5, "ten": 10, "twenty": 20}  # classes

Random = np.random.Generator
Members = Tensor  # rows × classes, True in the set


@dataclass(frozen=True)
class Data:
    name: str
    frame: pd.DataFrame
    y: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="a folder as of benchmarks.tables")
    parser.add_argument("--only", nargs="+", help="names of data sets; default: all")
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--epochs", type=int, help="of a small network; default: the whole recipe")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | classes | test rows | accuracy | best | own | ", end="")
    print(" | ".join(f"{name}: coverage, size" for name in METHODS), "|", flush=True)
    for data in _data(arguments.tables):
        if not arguments.only or data.name in arguments.only:
            model = _untrained(arguments.epochs)
            print(_line(data, model, arguments.level, arguments.splits), flush=True)


def _data(folder: Path | None) -> Iterator[Data]:
    for name in ("digits", "wine", "breast_cancer", "iris"):
        found: Any = getattr(datasets, f"load_{name}")()
        yield Data(name, pd.DataFrame(found.data).add_prefix("x"), found.target)
    for name, classes in GENERATED.items():
        x, y = datasets.make_classification(
            MOST_ROWS, 15, n_informative=10, n_redundant=2, n_classes=classes, flip_y=0.05,
            n_clusters_per_class=1 if classes > 3 else 2, class_sep=0.6, random_state=classes,
        )  # fmt: skip
        yield Data(f"generated, {name}", pd.DataFrame(x).add_prefix("x"), y)
    for table in tables.tables(folder) if folder else ():
        if table.task == "classification":
            both = pd.concat([pd.read_csv(table.file(side)) for side in ("train", "test")])
            some = both.sample(min(MOST_ROWS, len(both)), random_state=0)
            yield Data(table.name, some.drop(columns=table.target), some[table.target].to_numpy())


def _untrained(epochs: int | None) -> BayesianClassifier:
    """A model that has not learned yet."""
    settings: Any = {} if epochs is None else {"hidden": (64,), "epochs": epochs}
    return BayesianClassifier(pruning=(), random_state=0, **settings)


def _line(data: Data, model: BayesianClassifier, level: float, splits: int) -> str:
    order = np.random.default_rng(0).permutation(len(data.y))
    learned, rest = order[: len(order) // 2], order[len(order) // 2 :]
    model.fit(data.frame.iloc[learned], data.y[learned])
    probabilities = torch.from_numpy(model.predict_proba(data.frame.iloc[rest]))
    targets = torch.from_numpy(np.searchsorted(model.classes_, data.y[rest]))
    accuracy = float((probabilities.argmax(-1) == targets).double().mean())
    rows = [
        f"{data.name} | {len(model.classes_)} | {len(rest) - len(rest) // 2} | {accuracy:.3f}",
        f"{max(level, accuracy):.3f} | {_own(model, data.frame.iloc[rest], targets, level)}",
    ]
    found = _resampled(probabilities, targets, level, splits)
    return f"| {' | '.join([*rows, *found])} |"


def _own(model: BayesianClassifier, frame: pd.DataFrame, targets: Tensor, level: float) -> str:
    """Coverage and size of the version's own conformal sets."""
    calibration = model.model_.variant(0.0).calibration
    if not isinstance(calibration, ClassCalibration) or calibration.sets is None:
        return "–"
    members = torch.from_numpy(model.predict_set(frame, level, "conformal"))
    covered, size = _measured(members, targets)
    return f"{covered:.3f} ± {math.sqrt(covered * (1 - covered) / len(targets)):.3f}, {size:.2f}"


class Known(NamedTuple):
    """Predicted probabilities, and the true classes of their rows."""

    probabilities: Tensor
    targets: Tensor


def _resampled(probabilities: Tensor, targets: Tensor, level: float, splits: int) -> list[str]:
    """Means over the splits of coverage and size, per method."""
    mixture = CategoricalMixture(probabilities.log().unsqueeze(0))
    measured = {name: np.empty((splits, 2)) for name in METHODS}
    for split in range(splits):
        random = np.random.default_rng(split)
        order = torch.from_numpy(random.permutation(len(targets)))
        fit, test = order[: len(order) // 2], order[len(order) // 2 :]
        some = LabelledMixture(replace(mixture, logits=mixture.logits[:, fit]), targets[fit], None)
        temperature = fit_scale([some])
        told = mixture.tempered(temperature).mean()
        labelled = Known(told[fit], targets[fit])
        for name, method in METHODS.items():
            members = method(labelled, told[test], level, random)
            measured[name][split] = _measured(members, targets[test])
    return [f"{one[:, 0].mean():.3f}, {one[:, 1].mean():.2f}" for one in measured.values()]


def _measured(members: Members, targets: Tensor) -> tuple[float, float]:
    inside = members.gather(-1, targets.unsqueeze(-1))
    return float(inside.double().mean()), float(members.sum(-1).double().mean())


def _ours(known: Known, new: Tensor, level: float, random: Random) -> Members:
    ranked = RankedClasses.of(new)
    sizes = fit_sets(*known, torch.ones(len(known.targets)).double()).sizes(ranked, level)
    return _members(ranked, torch.arange(new.shape[-1]) < sizes.unsqueeze(-1))


def _aps(known: Known, new: Tensor, level: float, random: Random) -> Members:
    return _randomised(known, new, level, random, Penalty())


def _raps(known: Known, new: Tensor, level: float, random: Random) -> Members:
    choosing = torch.arange(len(known.targets)) % 5 == 0
    ones = torch.ones(int(choosing.sum())).double()
    penalty = choose_penalty(*(values[choosing] for values in known), ones)
    return _randomised(Known(*(values[~choosing] for values in known)), new, level, random, penalty)


def _randomised(
    known: Known, new: Tensor, level: float, random: Random, penalty: Penalty
) -> Members:
    def scores(ranked: RankedClasses) -> Tensor:
        u = torch.from_numpy(random.random((len(ranked.order), 1)))
        return penalty.scores(ranked) + u * ranked.probabilities

    before, ranked = RankedClasses.of(known.probabilities), RankedClasses.of(new)
    place = (before.ranks(known.targets) - 1).unsqueeze(-1)
    true = scores(before).gather(-1, place).squeeze(-1)
    return _members(ranked, scores(ranked) <= _threshold(true, level))


def _lac(known: Known, new: Tensor, level: float, random: Random) -> Members:
    true = 1 - known.probabilities.gather(-1, known.targets.unsqueeze(-1)).squeeze(-1)
    return 1 - new <= _threshold(true, level)


def _threshold(scores: Tensor, level: float) -> float:
    rank = conformal_rank(len(scores), level)
    return float(scores.sort().values[rank - 1]) if rank <= len(scores) else math.inf


def _members(ranked: RankedClasses, inside: Tensor) -> Members:
    return torch.zeros_like(inside).scatter(-1, ranked.order, inside)


METHODS: dict[str, Callable[[Known, Tensor, float, Random], Members]] = {
    "ours": _ours,
    "aps": _aps,
    "raps": _raps,
    "lac": _lac,
}

if __name__ == "__main__":
    main()
