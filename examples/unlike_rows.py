"""The picture of the guide on rows unlike training: a row's values beside what training saw.

    python -m examples.unlike_rows docs/images/unlike-rows.svg

Simulated people, seeded. The row has one value far outside of its column.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
from matplotlib import pyplot

from models.config import FeatureConfig
from models.features.feature_encoder import FeatureEncoder

ROWS = 2_000
ROW: Mapping[str, float] = {"age": 900, "hours per week": 38, "years of school": 12, "children": 2}
SEEN, INSIDE, OUTSIDE = "#b9c7dd", "#3b6fb6", "#c77700"  # distinct with red-green blindness, too


def people() -> dict[str, np.ndarray]:
    """Ages, hours, years of school and children of people, in whole numbers."""
    random = np.random.default_rng(0)
    return {
        "age": random.integers(17, 91, ROWS).astype(float),
        "hours per week": random.integers(1, 100, ROWS).astype(float),
        "years of school": random.integers(4, 21, ROWS).astype(float),
        "children": random.binomial(7, 0.25, ROWS).astype(float),
    }


def main(path: Path) -> None:
    columns = people()
    features = [FeatureConfig(name=name, type="number") for name in columns]
    types = dict.fromkeys(columns, "number")
    encoder = FeatureEncoder.fit(features, types, columns, rate=0.01)
    assert encoder.seen is not None
    row = {name: np.array([ROW[name]], dtype=float) for name in columns}
    scores = encoder.column_scores(row)[0]
    matplotlib.rcParams["svg.hashsalt"] = "unlike rows"
    figure, axes = pyplot.subplots(figsize=(8, 2.8), layout="constrained")
    described = zip(columns, encoder.seen.columns, scores, strict=True)
    for place, (name, seen, score) in enumerate(described):
        low, high = float(seen.lowest or 0), float(seen.highest or 0)
        axes.barh(place, 1, height=0.5, color=SEEN)
        at, colour = (ROW[name] - low) / (high - low), OUTSIDE if score else INSIDE
        axes.plot(at, place, "o", color=colour, markersize=9)
        beyond = f": {score:.1f} ranges beyond" if score else ""
        text = f"{ROW[name]:g}{beyond}\ntraining saw {low:g} to {high:g}"
        left = at > 2
        axes.annotate(
            text, (at - 0.3 if left else 1.2, place),
            ha="right" if left else "left", va="center", fontsize=9, color=colour,
        )  # fmt: skip
    axes.set_yticks(range(len(columns)), list(columns))
    axes.invert_yaxis()
    axes.set_xlim(-0.3, 13)
    axes.set_xlabel("ranges of the training rows, from the lowest value")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
