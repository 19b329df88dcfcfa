"""Second chapter: images of digits, pruned models, and rotated digits."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from credence.client import Client
from credence.rendering import print_table
from credence.types import Json, PredictionAnswer, Version
from examples.demo_parts.data import Split, digits, rotate, write_npz
from examples.demo_parts.scores import Reliability, error, log_likelihood, reliability
from examples.demo_parts.training import train

SAMPLES = 100
ANGLES = (0, 15, 30, 45, 60, 90)
SHOWN_ROWS = 5
EPOCHS = 1_500  # of the recipe's 3,300: the demo ends within two minutes


@dataclass(frozen=True)
class Digits:
    """Results of this chapter for the pictures."""

    reliability: Reliability
    pruning: list[Json]


def run(client: Client, directory: Path) -> Digits:
    """Train on digits, then predict the held-out ones: as they are, rotated, and with pruning."""
    data = digits()
    path = directory / "digits.npz"
    write_npz(path, data.train_x, data.train_y)
    request: Json = {"model": "digits", "target": "digit", "task": "classification"}
    request |= {"training": {"epochs": EPOCHS}}
    version = train(client, path, request)
    upright = _predict(client, data.test_x)
    _show_rows(upright, data.test_y)
    _show_rotated(client, data)
    pruning = _pruning_table(client, data, version)
    return Digits(reliability(upright, data.test_y), pruning)


def _predict(client: Client, images: np.ndarray, prune: float = 0.0) -> PredictionAnswer:
    inputs = {"image": images.tolist()}
    return client.submit_predict(
        {"model": "digits", "inputs": inputs, "samples": SAMPLES, "prune": prune}
    )


def _show_rows(prediction: PredictionAnswer, truth: np.ndarray) -> None:
    """The held-out digits that the model is least sure of."""
    entropy = prediction["entropy"]
    rows = np.argsort(entropy["total"])[::-1][:SHOWN_ROWS].tolist()
    print(f"\nPOST /predict   {len(truth)} held-out digits, {error(prediction, truth):.1%} wrong;")
    print("                the ones it is least sure of, entropies in nats\n")
    table = [
        [
            int(truth[row]),
            prediction["labels"][row],
            f"{max(prediction['probabilities'][row]):.0%}",
            f"{entropy['aleatoric'][row]:.2f}",
            f"{entropy['epistemic'][row]:.2f}",
        ]
        for row in rows
    ]
    print_table(["truth", "label", "probability", "aleatoric", "epistemic"], table)


def _show_rotated(client: Client, data: Split) -> None:
    """Rotated digits are unlike those of training: the mutual information shows it."""
    print("\nthe same digits rotated; epistemic entropy = mutual information\n")
    table = []
    upright = 0.0
    for angle in ANGLES:
        prediction = _predict(client, rotate(data.test_x, angle))
        epistemic = float(np.mean(prediction["entropy"]["epistemic"]))
        upright = upright or epistemic
        wrong = f"{error(prediction, data.test_y):.1%}"
        table.append([f"{angle}°", wrong, f"{epistemic:.3f}", f"× {epistemic / upright:.1f}"])
    print_table(["rotated by", "error", "epistemic entropy", "epistemic"], table)


def _pruning_table(client: Client, data: Split, version: Version) -> list[Json]:
    """Predict the held-out digits with every variant."""
    rows: list[Json] = []
    for variant in version["variants"]:
        prediction = _predict(client, data.test_x, variant["prune"])
        scores = {
            "error": error(prediction, data.test_y),
            "log_likelihood": log_likelihood(prediction, data.test_y),
        }
        rows.append({**variant, **scores})
    print("\npruned by signal-to-noise ratio, held-out digits\n")
    table = [
        [
            f"{r['prune']:.0%}",
            r["num_weights"],
            r["bytes"],
            f"{r['error']:.1%}",
            r["log_likelihood"],
        ]
        for r in rows
    ]
    print_table(["pruned", "weights", "bytes", "error", "log likelihood"], table)
    return rows
